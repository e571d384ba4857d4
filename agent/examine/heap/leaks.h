/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds blocks that nothing refers to, as ntdll's leak check at exit and WinDbg's !heap -l do. A
 * word of the roots that points into a busy block reaches it, and so does a word of a block that
 * is reached. The other blocks are leaked, or are referred to by something that is not a plain
 * pointer (encoded, compressed, held by the kernel or a device).
 *
 * The search errs on one side: a word that only looks like a pointer, or the dead part of a stack,
 * reaches blocks too. If a page of the roots or of a block is lost, any block may have been reached
 * from it, and no block is certain to be leaked.
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
	 * Visits every page of the ranges (whole pages) once, in any order, from one thread at a
	 * time. Adjacent pages without bytes may come in one call.
	 */
	enum status (*sweep)(void *context, const struct range_list *ranges,
			     const struct leak_visitor *v, struct err *e);
	void *context;
	const struct block_list *blocks; /* sorted; at most LEAK_BLOCKS_MAX */
	const struct range_list *roots;  /* tidy, whole pages; heaps are not among them */
	bool narrow;                     /* words of 32 bits, too: of a WoW64 process */
};

/* The search takes 14 bytes for each block, and 12 for each pointer between two blocks. */
#define LEAK_BLOCKS_MAX ((size_t)1 << 28)
#define LEAK_EDGES_MAX  ((size_t)1 << 28)

/*
 * At most this many pages are read: 1 TiB. A hostile image can claim ranges and blocks as large as
 * the address space; pages past the limit count as lost.
 */
#define LEAK_PAGES_MAX  (UINT64_C(1) << 28)

enum leak_mark {
	LEAK_UNREACHED, /* no word points into it */
	LEAK_BY_LEAKED, /* only leaked blocks point to it: children, cycles */
	LEAK_INSIDE,    /* pointers lead into it, but none to its first byte */
	LEAK_REACHED
};

static inline bool leak_is(uint8_t mark)
{
	return mark == LEAK_UNREACHED || mark == LEAK_BY_LEAKED;
}

struct leak_stats {
	uint64_t root_pages; /* with content */
	uint64_t root_pages_lost;
	uint64_t blocks_lost; /* reached blocks that are partly lost */
};

/*
 * *ret: an enum leak_mark for each block; the caller frees it. ST_NOMEM, ST_INTERRUPTED; ST_INPUT:
 * too many blocks.
 */
enum status leaks_find(const struct leak_sources *s, uint8_t **ret, struct leak_stats *stats,
		       struct err *e);

#endif
