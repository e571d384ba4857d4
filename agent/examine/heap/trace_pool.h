/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Keeps each different stack trace of many blocks once. Blocks that the same calls allocated get
 * the same number, wherever their traces are stored.
 */
#ifndef RAMSEAL_AGENT_EXAMINE_HEAP_TRACE_POOL_H
#define RAMSEAL_AGENT_EXAMINE_HEAP_TRACE_POOL_H

#include "agent/examine/heap/block_list.h"
#include "agent/examine/heap/base/stack_trace.h"

struct trace_pool_plan {
	const struct memory_view *memory;
	const struct range_list *code; /* executable memory, tidy */
	const struct heaps *heaps;
	const struct block_list *blocks;
};

struct trace_pool;
/* The plan is borrowed for the call only. ST_NOMEM, ST_INTERRUPTED. */
enum status trace_pool_open(const struct trace_pool_plan *plan, struct trace_pool **ret,
			    struct err *e);
void trace_pool_close(struct trace_pool *p); /* NULL is fine */

size_t trace_pool_count(const struct trace_pool *p); /* different traces */
/* The number of the block's trace, from 1, in order of address; 0: it has none. */
uint32_t trace_pool_of(const struct trace_pool *p, const struct heap_allocation *a);
void trace_pool_get(const struct trace_pool *p, uint32_t number, struct stack_trace *ret);

#endif
