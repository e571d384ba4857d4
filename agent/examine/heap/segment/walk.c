/* SPDX-License-Identifier: Apache-2.0 */
/* The page ranges of a segment heap's segments, and what each of them holds. */
#include "agent/examine/heap/segment/segment.h"
#include "agent/examine/heap/segment/segment_internal.h"

/* A range that is one block: more than 128 KiB were asked for. */
static enum status tell_plain(struct heap_walk *w, const struct page_segment *s,
			      const struct page_range *r, bool island)
{
	struct heap_allocation a = {
		.address = r->at,
		.size = r->size,
		.container = s->at,
		.place = PLACE_SEGMENT,
		.island = island,
	};

	if (r->unused < r->size) {
		a.has_requested = true;
		a.requested = r->size - r->unused;
	} else {
		w->stats->contradictions++;
	}
	segment__unpad(w, &a);
	return heap__tell(w, &a);
}

static enum status walk_range(struct heap_walk *w, const struct segment_heap *heap,
			      const struct page_segment *s, const struct page_range *r, bool island)
{
	switch (r->kind) {
	case RANGE_PLAIN:
		return tell_plain(w, s, r, island);
	case RANGE_LFH:
		return segment__walk_lfh(w, heap, r, island);
	case RANGE_VS:
		return segment__walk_vs(w, heap, r, island);
	case RANGE_REST:
	case RANGE_FREE:
		return ST_OK;
	case RANGE_OTHER:
		w->stats->contradictions++;
		w->stats->unlinked += r->size;
		return ST_OK;
	}
	return ST_OK;
}

static enum status walk_page_segment(struct heap_walk *w, const struct segment_heap *heap,
				     const struct page_segment *s)
{
	const struct segment_context *c = &heap->contexts[s->context];
	bool island = false;
	struct page_range r;
	enum status st = ST_OK;

	w->stats->segments++;
	w->stats->segments_unread += !heap__at(w->p, s->at, 1);
	w->stats->reserved += c->size;
	for (unsigned i = c->first; i < SEGMENT_DESCRIPTORS && !st && !w->p->cut;) {
		if (!segment__range(w->p, heap->l, s, c, i, &r)) {
			/* Nothing says what the unit is: a block's, or free. */
			w->stats->lost += (uint64_t)1 << c->shift;
			island = true;
			i++;
			continue;
		}
		if (r.kind == RANGE_REST) {
			i++;
			continue;
		}
		if (!r.units) {
			w->stats->contradictions++;
			w->stats->unlinked += (uint64_t)1 << c->shift;
			i++;
			continue;
		}
		st = walk_range(w, heap, s, &r, island);
		island = false;
		i += r.units;
	}
	return st;
}

enum status heap__walk_segment_heap(struct heap_walk *w)
{
	const struct segment_state *s = w->h->segment;
	enum status st = ST_OK;

	for (size_t i = 0; s && i < s->segment_count && !st; i++)
		if (s->heaps[s->segments[i].heap].address == w->info->address)
			st = walk_page_segment(w, &s->heaps[s->segments[i].heap], &s->segments[i]);
	if (!st && w->info->head && w->info->layout)
		st = segment__walk_large(w);
	w->stats->cut |= s && s->cut;
	return st;
}
