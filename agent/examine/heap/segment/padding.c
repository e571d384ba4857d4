/* SPDX-License-Identifier: Apache-2.0 */
/*
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

/* Blocks that are asked, of all heaps; and how many at least must say so, ... */
#define SAMPLES_MAX   256
#define MARKED_LEAST  2
/* ... with so many of 4 of those that can be read. */
#define MARKED_OF_4   3

struct padding_vote {
	struct heap_pages *p;
	size_t read, marked;
};

static uint64_t padding_of(const struct heap_allocation *a)
{
	const bool is_large = a->has_requested ? a->requested > SMALL_MOST : a->size > SMALL_MOST;

	return is_large ? PADDING_LARGE : PADDING;
}

static enum status ask_block(void *context, const struct heap_allocation *a, struct err *e)
{
	struct padding_vote *v = context;
	uint64_t word;

	if (a->state != BLOCK_BUSY || !heap__u64(v->p, a->address, &word))
		return ST_OK;
	v->read++;
	v->marked += word == padding_of(a);
	return v->read < SAMPLES_MAX ? ST_OK : ST_END;
}

enum status segment__find_padding(struct heaps *h, struct err *e)
{
	struct padding_vote vote = { .p = &h->pages };
	const struct heap_visitor v = { ask_block, &vote };
	enum status st = ST_OK;

	for (size_t i = 0; i < h->count && !st && !h->pages.cut; i++) {
		struct heap_stats stats = { 0 };
		struct heap_walk w = {
			.h = h,
			.index = i,
			.info = &h->at[i],
			.l = heap__layout(true),
			.p = &h->pages,
			.v = &v,
			.stats = &stats,
			.e = e,
		};

		if (segment__heap_at(h, h->at[i].address))
			st = heap__walk_segment_heap(&w);
	}
	h->segment->padded =
		vote.marked >= MARKED_LEAST && 4 * vote.marked >= MARKED_OF_4 * vote.read;
	return st == ST_END ? ST_OK : st;
}

void segment__unpad(struct heap_walk *w, struct heap_allocation *a)
{
	const uint64_t padding = padding_of(a);
	uint64_t word;

	/* What can be read and does not say so has none: ntdll's own blocks. */
	if (!w->h->segment->padded || padding > a->size ||
	    (heap__u64(w->p, a->address, &word) && word != padding))
		return;
	a->address += padding;
	a->size -= padding;
	a->requested -= MIN(padding, a->requested);
}
