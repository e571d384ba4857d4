/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The heaps of a Windows process (Vista to 11, x64 and x86) and what is allocated in them, read
 * from its memory alone: no symbols. The NT heap is walked: its back end, its low-fragmentation
 * front end (LFH), its blocks out of VirtualAlloc; page heap, of programs that are tested with it.
 * The segment heap of Windows 10 (from 14393) and 11 is walked in 64-bit processes, in 32-bit ones
 * it is recognised. What no layout fits is refused (heap_info.refused).
 *
 * The memory may have holes and may be hostile. No allocation is told of without a header (or, of
 * the LFH, a bitmap) that its neighbours confirm; what can't be had is counted in bytes.
 */
#ifndef RAMSEAL_AGENT_EXAMINE_HEAP_HEAP_H
#define RAMSEAL_AGENT_EXAMINE_HEAP_HEAP_H

#include "agent/examine/heap/base/heap_facts.h"

/* All that there are, sorted by address. `s` is copied. ST_NOMEM, ST_INTERRUPTED. */
enum status heaps_open(const struct heap_sources *s, struct heaps **ret, struct err *e);
void heaps_close(struct heaps *h); /* NULL is fine */

/* Adds the ranges of its segments, as far as they are known; those without a head too. ST_NOMEM. */
enum status heaps_segments(const struct heaps *h, size_t i, struct range_list *ret, struct err *e);

/* To be called where a visitor has itself read from the memory: pages of before are gone. */
void heaps_forget_page(struct heaps *h);

/*
 * The i-th heap's: its back end by address, then LFH blocks by address, then VirtualAlloc blocks,
 * then page heap's that name it. A segment heap's: what its segments have, then large ones, each by
 * address. Nothing of a heap of another kind. `ret` is set in any case.
 */
enum status heaps_walk(struct heaps *h, size_t i, const struct heap_visitor *v,
		       struct heap_stats *ret, struct err *e);

#endif
