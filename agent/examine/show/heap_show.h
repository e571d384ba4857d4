/* SPDX-License-Identifier: Apache-2.0 */
/* ramseal heap --show: one block. */
#ifndef RAMSEAL_AGENT_EXAMINE_SHOW_HEAP_SHOW_H
#define RAMSEAL_AGENT_EXAMINE_SHOW_HEAP_SHOW_H

#include "agent/examine/show/heap_blocks.h"

/* The block around `va` and its words. ST_INPUT: it is in no known block. */
enum status heap_show(struct block_printer *p, const struct heap_session *s,
		      const struct block_list *l, uint64_t va, struct err *e);

#endif
