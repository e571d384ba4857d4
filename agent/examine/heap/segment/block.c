/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the walks need for each kind of block: its heap, and where its data begin.
 *
 * Blocks with a _RTLP_HP_PADDING_HEADER before their data. All blocks of a process have one whose
 * segment heaps were switched on by the registry (Segment Heap\Enabled, or for one program
 * FrontEndHeapDebugOptions): its first word says how much lies before the data, 10 (hexadecimal),
 * or 40 of blocks that the NT heap would have had from VirtualAlloc. Neither heap nor block says
 * that it has one, so the blocks of all heaps of the process are asked. Layout: the types of
 * ntdll's public PDB of 2004; both sizes: shanepowell/DbgHelpUtils c62b5a8
 * (segment_heap_utils.cpp), and heaps of 18362.30.
 */
#include "agent/examine/heap/segment/segment.h"
#include "agent/examine/heap/segment/segment_internal.h"

#define PADDING       0x10
#define PADDING_LARGE 0x40
/* With the padding: what is larger has the large one (VirtualMemoryThreshold, less a header). */
#define SMALL_MOST    (0xfeff8 + PADDING)

const struct segment_heap *segment__heap_at(const struct heaps *h, uint64_t address)
{
	const struct segment_state *s = h->segment;

	for (size_t i = 0; s && i < s->heap_count; i++)
		if (s->heaps[i].address == address)
			return &s->heaps[i];
	return NULL;
}

uint64_t segment__padding(const struct heap_allocation *a)
{
	const bool is_large = a->has_requested ? a->requested > SMALL_MOST : a->size > SMALL_MOST;

	return is_large ? PADDING_LARGE : PADDING;
}

void segment__unpad(struct heap_walk *w, struct heap_allocation *a)
{
	const uint64_t padding = segment__padding(a);
	uint64_t word;

	/* What can be read and does not say so has none: ntdll's own blocks. */
	if (!w->h->segment->padded || padding > a->size ||
	    (heap__u64(w->p, a->address, &word) && word != padding))
		return;
	a->address += padding;
	a->size -= padding;
	a->requested -= MIN(padding, a->requested);
}
