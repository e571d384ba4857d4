/* SPDX-License-Identifier: Apache-2.0 */
/* ramseal heap --show: one block. */
#ifndef RAMSEAL_AGENT_EXAMINE_SHOW_HEAP_SHOW_H
#define RAMSEAL_AGENT_EXAMINE_SHOW_HEAP_SHOW_H

#include "agent/examine/show/heap_blocks.h"

struct heap_show_options {
	uint64_t va;
	uint64_t bytes; /* so many around it; 0: a default */
	bool header;
};

/* The block around `o->va`, and its words there. ST_INPUT: it is in no known block. */
enum status heap_show(struct block_printer *p, const struct heap_session *s,
		      const struct block_list *l, const struct heap_show_options *o, struct err *e);

#endif
