/* SPDX-License-Identifier: Apache-2.0 */
/* The heaps of one process for `ramseal heap`: open, with what a walk of them met. */
#ifndef RAMSEAL_AGENT_EXAMINE_SHOW_HEAP_SESSION_H
#define RAMSEAL_AGENT_EXAMINE_SHOW_HEAP_SESSION_H

#include "agent/examine/heap/block_list.h"
#include "agent/examine/heap/trace_pool.h"
#include "agent/examine/show/process_session.h"
#include "agent/shared/program/json.h"

struct heap_session {
	const struct process_session *process;
	struct peek *peek;
	struct memory_view memory;
	struct range_list ranges; /* private memory that was allocated as writable */
	struct heaps *heaps;
	struct heap_stats *stats; /* one for each heap, of the last walk */
	struct modules modules;
	struct range_list code; /* executable memory */
};

/* `p` is borrowed; `ret` must not move. Call heap_session_close() only after ST_OK. */
enum status heap_session_open(const struct process_session *p, struct heap_session *ret,
			      struct err *e);
void heap_session_close(struct heap_session *s);

/* Walks all heaps, one after the other; or collects all their busy blocks, sorted. */
enum status heap_session_walk(struct heap_session *s, const struct heap_visitor *v, struct err *e);
enum status heap_session_list(struct heap_session *s, struct block_list *ret, struct err *e);

/* The sum of heap_stats_lost(). */
uint64_t heap_session_lost(const struct heap_session *s);
/* How many heaps are lost in whole or in part, including those that cannot be walked. */
size_t heap_session_heaps_lost(const struct heap_session *s);

/* ST_UNREADABLE: a heap could not be read in full. To be called after a walk. */
enum status heap_session_outcome(const struct heap_session *s, struct err *e);

/* False: it has no trace, or none that can be read. */
bool heap_session_trace(const struct heap_session *s, const struct heap_allocation *a,
			struct stack_trace *ret);

/* The traces of all blocks; to be closed. */
enum status heap_session_traces(const struct heap_session *s, const struct block_list *l,
				struct trace_pool **ret, struct err *e);

/*
 * Addresses of programs: "kernel32.dll+0x1b7e", or the bare address where no module is. Printable.
 * As JSON {address, module, offset}, the latter two then null; a trace is a list of these,
 * innermost first. NULL if out of memory.
 */
#define HEAP_PLACE_TEXT SYMBOL_TEXT_MAX
void heap_place_text(const struct heap_session *s, uint64_t va, char ret[static HEAP_PLACE_TEXT]);
json_t *heap_place_json(const struct heap_session *s, uint64_t va);
json_t *heap_trace_json(const struct heap_session *s, const struct stack_trace *t);

/* One line for each call: its address, and the place in its module. */
void heap_put_calls(const struct heap_session *s, const struct stack_trace *t);

/* By the trace's number in a pool; for 0 these give null and nothing. */
json_t *heap_trace_of_json(const struct heap_session *s, const struct trace_pool *p,
			   uint32_t number);
void heap_put_trace(const struct heap_session *s, const struct trace_pool *p, uint32_t number);

/* "0x..."; NULL if out of memory. */
json_t *heap_hex(uint64_t v);

#endif
