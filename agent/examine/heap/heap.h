/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The heaps of a Windows process (Vista to 11, x64 and x86) and their allocations, read from its
 * memory without symbols. Walks the NT heap (back end, low-fragmentation heap (LFH), VirtualAlloc
 * blocks) and page heap, which testers switch on. The segment heap of Windows 10 (from 14393) and
 * 11 is walked in 64-bit processes and only recognised in 32-bit ones. A heap that fits no layout
 * is refused (heap_info.refused).
 *
 * The memory may have holes and may be hostile. An allocation is reported only if its header (or
 * the bitmap of its LFH) agrees with its neighbours; bytes that cannot be read are counted.
 */
#ifndef RAMSEAL_AGENT_EXAMINE_HEAP_HEAP_H
#define RAMSEAL_AGENT_EXAMINE_HEAP_HEAP_H

#include "agent/examine/heap/base/heap_facts.h"

/* Finds all heaps and sorts them by address. `s` is copied. ST_NOMEM, ST_INTERRUPTED. */
enum status heaps_open(const struct heap_sources *s, struct heaps **ret, struct err *e);
void heaps_close(struct heaps *h); /* NULL is fine */

/* Adds the ranges of the heap's known segments, also of those without a head. ST_NOMEM. */
enum status heaps_segments(const struct heaps *h, size_t i, struct range_list *ret, struct err *e);

/* A visitor that reads from the memory itself calls this: the page held here is gone then. */
void heaps_forget_page(struct heaps *h);

/*
 * Visits the blocks of heap `i`, in this order, each part by address. NT heap: back end, LFH,
 * VirtualAlloc blocks, page-heap blocks that name it. Segment heap: its segments, large blocks.
 * Other kinds: none. Sets `ret` even after an error.
 */
enum status heaps_walk(struct heaps *h, size_t i, const struct heap_visitor *v,
		       struct heap_stats *ret, struct err *e);

#endif
