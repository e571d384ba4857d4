/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Page heap, of programs that are tested with GFlags or Application Verifier. A header lies
 * directly before the data of each block, with a stamp at either end. Of full page heap, each block
 * has pages of its own, whose end is the block's, and behind which nothing can be read. Of light
 * page heap, header and block lie in a block of the NT heap.
 *
 * Bytes that look like a header may be left over in another block, or be its content. So:
 * - A light header counts at the begin of a busy block that the walk of its heap has confirmed, and
 *   nowhere else; the one is told of in place of the other, so that no byte is told of twice.
 * - A full one is not looked for where a heap has a segment, nor in the pages of a full block that
 *   was found before: the first header of a block's pages is its own, for the data comes behind.
 * - A full one's numbers must lead to the end of a page; what is between, the filling, must be
 *   there if it can be read; and the page behind must be empty, or one that can't be had.
 * A copy of such a block, with its place in the page and without what was around it, can't be told
 * from one, if pages before and behind it are missing.
 *
 * Header: _DPH_BLOCK_INFORMATION {StartStamp, Heap, RequestedSize, ActualSize, FreeQueue (list),
 * StackTrace, EndStamp} of ntdll's public types (Rickebo/ntoskrnlib at 0a72996, Win11/ntdll, has
 * those of x64; x86: 4 bytes for each pointer and size). Stamps and fillings: Microsoft's ms220938
 * ("Structure of a Page Heap Block"); shanepowell/DbgHelpUtils at c62b5a8, dph_entry.h.
 */
#ifndef RAMSEAL_AGENT_EXAMINE_HEAP_BASE_PAGE_HEADER_H
#define RAMSEAL_AGENT_EXAMINE_HEAP_BASE_PAGE_HEADER_H

#include "agent/examine/heap/base/heap_internal.h"

/* Of a freed block both stamps are less by this. */
#define PAGE_HEADER_FREED 1

struct page_header_layout {
	uint8_t size;
	uint8_t heap, requested, actual, trace, end;
	uint8_t unit; /* what blocks are aligned to */
};

extern const struct page_header_layout page_header_layouts[2]; /* of 32 bits, and of 64 */

struct page_header {
	uint64_t heap, requested, actual, trace;
	bool busy;
};

/* False: no header with those stamps, or one that lies in two pages of which one is missing. */
bool page_header_read(struct heap_pages *p, bool wide, uint64_t at, uint32_t start, uint32_t end,
		      struct page_header *ret);

/* Is all of [from, to) that can be read filled with `byte`? */
bool page_header_filled(struct heap_pages *p, uint64_t from, uint64_t to, uint8_t byte);

#endif
