/* SPDX-License-Identifier: Apache-2.0 */
/* Blocks of heaps as `ramseal heap` prints them. */
#ifndef RAMSEAL_AGENT_COMMANDS_HEAP_BLOCKS_H
#define RAMSEAL_AGENT_COMMANDS_HEAP_BLOCKS_H

#include "agent/commands/heap_session.h"

/* So many are printed at once: what they are worth is asked of other pages than their headers'. */
#define BLOCKS_AT_ONCE 1024

struct block_printer {
	struct heap_session *session;
	bool json, csv;
	bool begun;
	uint64_t judged; /* pages */
	struct heap_allocation at[BLOCKS_AT_ONCE];
	size_t count;
};

/* For struct heap_visitor; `context` is a printer. The heap's own blocks are left out. */
enum status block_printer_take(void *context, const struct heap_allocation *a, struct err *e);
enum status block_printer_end(struct block_printer *p, struct err *e);

/* What the content of a block is worth. */
struct block_worth {
	uint64_t unread;   /* bytes */
	const char *trust; /* of the worst page; "none" where nothing of it can be had */
};

void block_judge(struct block_printer *b, const struct heap_allocation *a, struct block_worth *ret);

/* A document of one block; NULL without memory. */
json_t *block_json(const struct block_printer *p, const struct heap_allocation *a,
		   const struct block_worth *w);

#endif
