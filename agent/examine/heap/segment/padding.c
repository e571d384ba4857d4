/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether the blocks of a process are padded (block.c): neither heap nor block says so, and the
 * blocks of all its heaps are asked.
 */
#include "agent/examine/heap/segment/segment.h"
#include "agent/examine/heap/segment/segment_internal.h"

/* Blocks that are asked, of all heaps; and how many at least must say so, ... */
#define SAMPLES_MAX  256
#define MARKED_LEAST 2
/* ... with so many of 4 of those that can be read. */
#define MARKED_OF_4  3

struct padding_vote {
	struct heap_pages *p;
	size_t read, marked;
};

static enum status ask_block(void *context, const struct heap_allocation *a, struct err *e)
{
	struct padding_vote *v = context;
	uint64_t word;

	if (a->state != BLOCK_BUSY || !heap__u64(v->p, a->address, &word))
		return ST_OK;
	v->read++;
	v->marked += word == segment__padding(a);
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
