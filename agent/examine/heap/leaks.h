/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Blocks that nothing refers to: what the process's own leak checkers look for, as ntdll's does at
 * exit and WinDbg's !heap -l did. Every word of the roots that leads into a busy block reaches it;
 * so does every word of a block that was reached. What is left is leaked, or is referred to in a
 * way that is no plain pointer (encoded, compressed, held by the kernel or a device).
 *
 * It errs on one side: a word that only looks like a pointer, and the dead part of a stack, reach
 * blocks too. Where a page of the roots or of a block is lost, whatever it held may have reached
 * any block: nothing is leaked for certain then.
 */
#ifndef RAMSEAL_AGENT_EXAMINE_HEAP_LEAKS_H
#define RAMSEAL_AGENT_EXAMINE_HEAP_LEAKS_H

#include "agent/examine/heap/block_list.h"

enum leak_page {
	LEAK_PAGE_THERE,
	LEAK_PAGE_NONE, /* the process has no content of its own there */
	LEAK_PAGE_LOST
};

/* `bytes`: PAGE_SIZE of them, valid for the call; of LEAK_PAGE_THERE. */
struct leak_visitor {
	enum status (*pages)(void *context, uint64_t va, uint64_t pages, enum leak_page is,
			     const uint8_t *bytes, struct err *e);
	void *context;
};

struct leak_sources {
	/*
	 * Tells of all pages of the ranges, which are whole pages: each once, in any order, by one
	 * thread at a time. Neighbours without bytes can come as one.
	 */
	enum status (*sweep)(void *context, const struct range_list *ranges,
			     const struct leak_visitor *v, struct err *e);
	void *context;
	const struct block_list *blocks; /* sorted; at most LEAK_BLOCKS_MAX */
	const struct range_list *roots;  /* tidy, whole pages; heaps are not among them */
	bool narrow;                     /* words of 32 bits, too: of a WoW64 process */
};

/* 14 bytes each while it is searched, and twelve for each word of theirs that leads to one. */
#define LEAK_BLOCKS_MAX ((size_t)1 << 28)
#define LEAK_EDGES_MAX  ((size_t)1 << 28)

/*
 * So many pages are asked for: 1 TiB. Address ranges and blocks can be said to be as large as the
 * address space; what lies behind counts as lost.
 */
#define LEAK_PAGES_MAX  (UINT64_C(1) << 28)

enum leak_mark {
	LEAK_UNREACHED, /* by no word at all */
	LEAK_BY_LEAKED, /* only by other blocks that are not reached: children, circles */
	LEAK_INSIDE,    /* only by words that do not lead to its first byte */
	LEAK_REACHED
};

static inline bool leak_is(uint8_t mark)
{
	return mark == LEAK_UNREACHED || mark == LEAK_BY_LEAKED;
}

struct leak_stats {
	uint64_t root_pages; /* with content */
	uint64_t root_pages_lost;
	uint64_t blocks_lost; /* that were reached, and of which a part is lost */
};

/*
 * One of enum leak_mark for each block, for free(). ST_NOMEM, ST_INTERRUPTED; ST_INPUT: too many
 * blocks.
 */
enum status leaks_find(const struct leak_sources *s, uint8_t **ret, struct leak_stats *stats,
		       struct err *e);

#endif
