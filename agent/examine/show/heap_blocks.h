/* SPDX-License-Identifier: Apache-2.0 */
/* Blocks of heaps as `ramseal heap` prints them. */
#ifndef RAMSEAL_AGENT_EXAMINE_SHOW_HEAP_BLOCKS_H
#define RAMSEAL_AGENT_EXAMINE_SHOW_HEAP_BLOCKS_H

#include "agent/examine/show/block_filter.h"
#include "agent/shared/program/table.h"

/* How many are printed at once: what a block is worth depends on other pages than its header. */
#define BLOCKS_AT_ONCE 1024

struct block_printer {
	struct heap_session *session;
	const struct block_filter *filter; /* NULL: all blocks */
	const struct block_list *preview;  /* all blocks, to name pointers; NULL: no previews */
	bool json, csv;
	bool windows; /* references are told with the words around them */
	bool begun;
	uint64_t judged;    /* pages */
	struct table table; /* for people */
	struct heap_allocation at[BLOCKS_AT_ONCE];
	size_t count;
};

/* For struct heap_visitor; `context` is a printer. Internal blocks are left out. */
enum status block_printer_take(void *context, const struct heap_allocation *a, struct err *e);
enum status block_printer_end(struct block_printer *p, struct err *e);

/* Where the bytes of a block were found. */
#define BLOCK_FROM_MAP(X)                                                                          \
	X(FROM_VALID, "valid", "valid")                                                            \
	X(FROM_TRANSITION, "transition", "transition")                                             \
	X(FROM_PAGE_FILE, "page_file", "page file")                                                \
	X(FROM_ZEROS, "demand_zero", "demand zero")                                                \
	X(FROM_COMPRESSED, "compressed", "compressed")

enum block_from {
#define X(name, text, words) name,
	BLOCK_FROM_MAP(X)
#undef X
		BLOCK_FROMS
};

/* What the content of a block is worth. */
struct block_worth {
	uint64_t unread;            /* bytes */
	uint64_t from[BLOCK_FROMS]; /* bytes; together with .unread the whole block */
	const char *trust;          /* of the worst page; "none" if nothing of it can be read */
};

void block_judge(struct block_printer *b, const struct heap_allocation *a, struct block_worth *ret);

/* "60 valid, 28 page file, 12 not read" bytes; "-" for no bytes. */
#define BLOCK_FROM_TEXT 160
void block_from_text(const struct block_worth *w, char ret[static BLOCK_FROM_TEXT]);

/* The word for what holds something that was found. */
static inline const char *block_noun(const struct heap_allocation *a)
{
	return a->state == BLOCK_FREE ? "a free block" : "an allocation";
}

/* A document about one block; NULL if out of memory. */
json_t *block_json(const struct block_printer *p, const struct heap_allocation *a,
		   const struct block_worth *w);

#endif
