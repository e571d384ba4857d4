/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Groups blocks that the same line of a program probably allocated: same heap and size, same stack
 * trace if known, and same first pointer if it leads into a module. Such a pointer is the virtual
 * function table of a C++ object and so identifies its class.
 */
#ifndef RAMSEAL_AGENT_EXAMINE_HEAP_BLOCK_GROUPS_H
#define RAMSEAL_AGENT_EXAMINE_HEAP_BLOCK_GROUPS_H

#include "agent/examine/heap/trace_pool.h"
#include "agent/examine/process/modules.h"

struct block_member {
	const struct heap_allocation *block;
	uint64_t first; /* its first pointer, if that leads into a module; else 0 */
	uint32_t trace; /* number in the pool; 0: none */
};

struct block_group {
	const struct block_member *members; /* by address */
	size_t count;
};

struct block_groups {
	struct block_member *members;
	struct block_group *at; /* by heap, size, trace and first pointer */
	size_t count;
};

struct block_groups_plan {
	const struct memory_view *memory;
	const struct heaps *heaps;
	const struct modules *modules;
	const struct block_list *blocks;
	const struct trace_pool *traces;
	/* Selects blocks of the list; NULL: all. */
	bool (*wanted)(const void *context, size_t block);
	const void *context;
};

/*
 * The blocks are borrowed until block_groups_deinit(), which must be called even after an error.
 * ST_NOMEM, ST_INTERRUPTED.
 */
enum status block_groups_make(const struct block_groups_plan *plan, struct block_groups *ret,
			      struct err *e);
void block_groups_deinit(struct block_groups *g);

static inline uint64_t block_group_bytes(const struct block_group *g)
{
	return g->count * block_bytes(g->members->block);
}

#endif
