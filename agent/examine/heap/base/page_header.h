/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Page heap, which GFlags and Application Verifier switch on. A header lies directly before the
 * data of each block, with a stamp at either end. Full page heap gives each block pages of its own;
 * the block ends where they end, and the next page is inaccessible. Light page heap puts header and
 * block into a block of the NT heap.
 *
 * Bytes that look like a header may be left over in another block, or be its content. So:
 * - A light header counts only at the start of a busy block that the walk of its heap confirmed. It
 *   is reported in place of that block, so that no byte is reported twice.
 * - A full header is not searched for in a heap's segments, nor in the pages of a full block found
 *   before: the first header in a block's pages is its own, because the data follows it.
 * - The sizes in a full header must lead to the end of a page; the fill bytes in between must be
 *   right where they can be read; the next page must be empty or missing.
 * A copy of such a block at the same offset in a page cannot be told from a real one if the pages
 * before and after it are missing.
 *
 * Header: _DPH_BLOCK_INFORMATION {StartStamp, Heap, RequestedSize, ActualSize, FreeQueue (list),
 * StackTrace, EndStamp} of ntdll's public types (Rickebo/ntoskrnlib at 0a72996, Win11/ntdll, has
 * those of x64; x86: 4 bytes for each pointer and size). Stamps and fillings: Microsoft's ms220938
 * ("Structure of a Page Heap Block"); shanepowell/DbgHelpUtils at c62b5a8, dph_entry.h.
 */
#ifndef RAMSEAL_AGENT_EXAMINE_HEAP_BASE_PAGE_HEADER_H
#define RAMSEAL_AGENT_EXAMINE_HEAP_BASE_PAGE_HEADER_H

#include "agent/examine/heap/base/heap_internal.h"

/* In a freed block, both stamps are smaller by this. */
#define PAGE_HEADER_FREED 1

struct page_header_layout {
	uint8_t size;
	uint8_t heap, requested, actual, trace, end;
	uint8_t unit; /* alignment of blocks */
};

extern const struct page_header_layout page_header_layouts[2]; /* of 32 bits, and of 64 */

struct page_header {
	uint64_t heap, requested, actual, trace;
	bool busy;
};

/* False: no header with those stamps, or it crosses into a page that is missing. */
bool page_header_read(struct heap_pages *p, bool wide, uint64_t at, uint32_t start, uint32_t end,
		      struct page_header *ret);

/* True if every readable byte of [from, to) is `byte`. */
bool page_header_filled(struct heap_pages *p, uint64_t from, uint64_t to, uint8_t byte);

#endif
