/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The busy blocks of all heaps of a process, sorted by address: finds the block that an address is
 * in, and its size.
 */
#ifndef RAMSEAL_AGENT_EXAMINE_HEAP_BLOCK_LIST_H
#define RAMSEAL_AGENT_EXAMINE_HEAP_BLOCK_LIST_H

#include "agent/examine/heap/heap.h"

/* Zero-initialise. */
struct block_list {
	struct heap_allocation
		*at; /* by rising address, once it is sorted; none overlaps another */
	size_t count, room;
	bool with_free; /* free blocks, too */
};

/* For struct heap_visitor; `context` is a list. The heap's own blocks are left out. */
enum status block_list_take(void *context, const struct heap_allocation *a, struct err *e);
void block_list_sort(struct block_list *l);
void block_list_deinit(struct block_list *l);

/* The requested bytes or, if that is not known, the usable ones. */
static inline uint64_t block_bytes(const struct heap_allocation *a)
{
	return a->has_requested ? a->requested : a->size;
}

/*
 * The list must be sorted; the result is valid until it changes. _before: the last block that
 * begins at or before `va`. _find: the block that `va` lies in; an empty block contains its own
 * address. NULL: none.
 */
const struct heap_allocation *block_list_before(const struct block_list *l, uint64_t va);
const struct heap_allocation *block_list_find(const struct block_list *l, uint64_t va);

#endif
