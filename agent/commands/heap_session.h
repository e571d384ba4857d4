/* SPDX-License-Identifier: Apache-2.0 */
/* The heaps of one process, for `ramseal heap`: open, and what a walk of them met. */
#ifndef RAMSEAL_AGENT_COMMANDS_HEAP_SESSION_H
#define RAMSEAL_AGENT_COMMANDS_HEAP_SESSION_H

#include "agent/commands/process_session.h"
#include "agent/heap/block_list.h"
#include "agent/program/json.h"

struct heap_session {
	const struct process_session *process;
	struct peek *peek;
	struct memory_view memory;
	struct range_list ranges; /* private memory that was made to be written */
	struct heaps *heaps;
	struct heap_stats *stats; /* one for each heap, of the last walk */
};

/* `p` is borrowed; `ret` stays where it is. heap_session_close() only behind ST_OK. */
enum status heap_session_open(const struct process_session *p, struct heap_session *ret,
			      struct err *e);
void heap_session_close(struct heap_session *s);

/* All heaps, one after the other; and all busy blocks of them, sorted. */
enum status heap_session_walk(struct heap_session *s, const struct heap_visitor *v, struct err *e);
enum status heap_session_list(struct heap_session *s, struct block_list *ret, struct err *e);

/* heap_stats_lost() of all. */
uint64_t heap_session_lost(const struct heap_session *s);

/* ST_UNREADABLE: not all of the heaps could be had. To be asked behind a walk. */
enum status heap_session_outcome(const struct heap_session *s, struct err *e);

/* "0x..."; NULL without memory. */
json_t *heap_hex(uint64_t v);

#endif
