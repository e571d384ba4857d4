/* SPDX-License-Identifier: Apache-2.0 */
/* Blocks of heaps as `ramseal heap` prints them, and the questions about one of them. */
#ifndef RAMSEAL_AGENT_COMMANDS_HEAP_BLOCKS_H
#define RAMSEAL_AGENT_COMMANDS_HEAP_BLOCKS_H

#include "agent/commands/process_session.h"
#include "agent/heap/heap.h"
#include "agent/program/json.h"
#include "formats/base/bytes.h"

/* So many are printed at once: what they are worth is asked of other pages than their headers'. */
#define BLOCKS_AT_ONCE 1024

struct block_printer {
	struct peek *peek;
	struct heaps *heaps;
	bool json, csv;
	bool begun;
	uint64_t judged; /* pages */
	struct heap_allocation at[BLOCKS_AT_ONCE];
	size_t count;
};

/* For struct heap_visitor; `context` is a printer. The heap's own blocks are left out. */
enum status block_printer_take(void *context, const struct heap_allocation *a, struct err *e);
enum status block_printer_end(struct block_printer *p, struct err *e);

/* All busy blocks. For struct heap_visitor; `context` is a list, zero-initialised. */
struct block_list {
	struct heap_allocation *at;
	size_t count, room;
};

enum status block_list_take(void *context, const struct heap_allocation *a, struct err *e);
void block_list_sort(struct block_list *l);
void block_list_deinit(struct block_list *l);

/* The block around `va` and its words. ST_INPUT: it is in none that is known. */
enum status block_show(struct block_printer *p, const struct process_session *s,
		       const struct block_list *l, uint64_t va, struct err *e);

/* Every word of `ranges` that is `va`. */
enum status block_referrers(struct block_printer *p, const struct block_list *l,
			    const struct range_list *ranges, uint64_t va, struct err *e);

/*
 * Every place in `ranges` that holds `what`: a text, as UTF-16 and then as UTF-8, or "hex:" and
 * digits. ST_USAGE: it is neither, or longer than BLOCK_FIND_MAX bytes.
 */
#define BLOCK_FIND_MAX 256
#define BLOCK_FIND_HEX "hex:"
enum status block_find(struct block_printer *p, const struct block_list *l,
		       const struct range_list *ranges, const char *what, struct err *e);

/* "0x..."; NULL without memory. */
json_t *block_hex(uint64_t v);

#endif
