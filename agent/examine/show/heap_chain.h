/* SPDX-License-Identifier: Apache-2.0 */
/* ramseal heap --referrers ADDRESS --chain: by which way the process gets to a block. */
#ifndef RAMSEAL_AGENT_EXAMINE_SHOW_HEAP_CHAIN_H
#define RAMSEAL_AGENT_EXAMINE_SHOW_HEAP_CHAIN_H

#include "agent/examine/show/heap_blocks.h"

/*
 * From the block that `va` is in, or `va`, to the block that refers to it, and on: the shortest way
 * to the data of a module or to a stack, else to other memory that is no heap's, else the longest
 * that there is. Free blocks refer to nothing. Searches all memory once for each step.
 */
enum status heap_chain(struct block_printer *p, const struct heap_session *s,
		       const struct block_list *l, uint64_t va, struct err *e);

#endif
