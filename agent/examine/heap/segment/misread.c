/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A head can have the members of a known build where its segments are another one's: what they hold
 * would be made up. So their page ranges are asked, and a heap most of whose ranges deny its layout
 * is not walked.
 */
#include "agent/examine/heap/segment/segment_internal.h"

/* What the ranges of segments say of the layout by which they are read. */
struct bearing {
	size_t good, bad;
};

static bool is_range_denied(struct heap_pages *p, const struct segment_layout *l,
			    const struct page_range *r)
{
	struct vs_subsegment vs;
	struct lfh_subsegment lfh;

	return !r->units || r->kind == RANGE_OTHER ||
	       (r->kind == RANGE_VS && segment__vs_open(p, l, r, &vs) == CHUNK_WRONG) ||
	       (r->kind == RANGE_LFH && segment__lfh_open(p, l, r, &lfh) == CHUNK_WRONG);
}

/* One behind the other, without gaps, up to the segment's end. */
static void ask_page_ranges(struct heaps *h, const struct segment_state *s,
			    const struct page_segment *x, struct bearing *ret)
{
	const struct segment_heap *heap = &s->heaps[x->heap];
	const struct segment_context *c = &heap->contexts[x->context];
	bool in_gap = false;
	struct page_range r;

	for (unsigned i = c->first; i < SEGMENT_DESCRIPTORS && !h->pages.cut;) {
		if (!segment__range(&h->pages, heap->l, x, c, i, &r)) {
			in_gap = true; /* of which nothing is known */
			i++;
			continue;
		}
		if (r.kind == RANGE_REST) {
			ret->bad += !in_gap;
			in_gap = true;
			i++;
			continue;
		}
		in_gap = false;
		if (is_range_denied(&h->pages, heap->l, &r))
			ret->bad++;
		else
			ret->good++;
		i += MAX(r.units, 1);
	}
}

static void drop_segments_of(struct segment_state *s, size_t heap)
{
	size_t kept = 0;

	for (size_t i = 0; i < s->segment_count; i++)
		if (s->segments[i].heap != heap)
			s->segments[kept++] = s->segments[i];
	s->segment_count = kept;
}

void segment__refuse_misread(struct heaps *h)
{
	struct segment_state *s = h->segment;

	for (size_t k = 0; k < s->heap_count; k++) {
		struct bearing b = { 0 };

		for (size_t i = 0; i < s->segment_count; i++)
			if (s->segments[i].heap == k)
				ask_page_ranges(h, s, &s->segments[i], &b);
		if (b.bad <= b.good)
			continue;
		s->heaps[k].misread = true;
		drop_segments_of(s, k);
	}
}
