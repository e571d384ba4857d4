/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The key of a process of which no segment heap's first page can be had: page segments are known by
 * their shape, chunks in them vote for the key's upper 48 bits, and with these each signature tells
 * its heap, whose address is a multiple of 64 KiB. What the signatures leave of the lower bits then
 * has to be the same for all segments of a process. A segment of 16 MiB may look like one of 1 MiB:
 * where a VS subsegment is says which it is.
 */
#include "agent/examine/heap/segment/segment_internal.h"

/* Segments and subsegments that are looked at: more tell nothing new. */
#define SHAPES_MAX  256
#define SAMPLES_MAX 16

struct shape {
	uint64_t at, signature;
	const struct segment_range_layout *range;
	uint8_t context;
	bool certain; /* it has a VS subsegment where this context's units are */
};

struct lost {
	struct shape shapes[SHAPES_MAX];
	struct vs_subsegment vs[SAMPLES_MAX];
	size_t count, vs_count;
	uint64_t starts;
};

/* Is a VS subsegment there? One that can't be had does not say that there is none. */
static bool take_vs(struct heaps *h, const struct page_range *r, struct lost *x, bool *certain)
{
	enum chunk_read read = CHUNK_WRONG;

	for (size_t k = 0; k < SEGMENT_LAYOUTS && read == CHUNK_WRONG; k++) {
		struct vs_subsegment vs;

		read = segment__vs_open(&h->pages, &segment__layouts[k], r, &vs);
		if (read == CHUNK_GOOD && x->vs_count < SAMPLES_MAX)
			x->vs[x->vs_count++] = vs;
	}
	*certain |= read == CHUNK_GOOD;
	return read != CHUNK_WRONG;
}

/* Ranges without gaps or overlaps, as far as they can be read. */
static bool has_shape(struct heaps *h, const struct segment_layout *l, uint64_t at,
		      const struct segment_context *c, struct lost *x, bool *certain)
{
	const struct page_segment s = { .at = at, .end = at + c->size };
	const size_t before = x->vs_count;
	struct page_range r;
	bool any = false, good = true;

	for (unsigned i = c->first; i < SEGMENT_DESCRIPTORS && good;) {
		if (!segment__range(&h->pages, l, &s, c, i, &r))
			break;
		if (r.kind == RANGE_REST) {
			i++;
			continue;
		}
		any |= r.kind != RANGE_FREE;
		good = r.units && r.kind != RANGE_OTHER;
		if (good && r.kind == RANGE_VS)
			good = take_vs(h, &r, x, certain);
		i += r.units;
	}
	if (!good)
		x->vs_count = before;
	return any && good;
}

static void add_shapes(struct heaps *h, const struct segment_layout *l, uint64_t at, uint64_t last,
		       uint64_t signature, struct lost *x)
{
	for (unsigned i = 0; i < SEGMENT_CONTEXTS && x->count < SHAPES_MAX; i++) {
		const struct segment_context c = segment__usual_context(at, l, i);
		bool certain = false;

		if (c.at && at % c.size == 0 && (h->sources.not_vads || c.size - 1 <= last - at) &&
		    has_shape(h, l, at, &c, x, &certain))
			x->shapes[x->count++] = (struct shape){
				.at = at,
				.signature = signature,
				.range = l->range,
				.context = (uint8_t)i,
				.certain = certain,
			};
	}
}

static void vote_for_lost_key(struct heaps *h, uint64_t at, uint64_t last, struct lost *x)
{
	struct heap_pages *p = &h->pages;
	const struct segment_range_layout *tried = NULL;
	uint64_t next, before, signature;

	if (!heap__u64(p, at, &next) || !heap__u64(p, at + 8, &before) ||
	    !heap__u64(p, at + PAGE_SEGMENT_SIGNATURE, &signature) || !signature ||
	    !heap__plausible(next, true, 8) || !heap__plausible(before, true, 8))
		return;
	for (size_t k = 0; k < SEGMENT_LAYOUTS; k++) {
		const struct segment_layout *l = &segment__layouts[k];

		if (l->range != tried)
			add_shapes(h, l, at, last, signature, x);
		tried = l->range;
	}
}

/* The lower bits of the key that a shape tells, if it is of a heap whose page can't be had. */
static bool low_bits(struct heaps *h, const struct shape *s, const struct segment_layout *l,
		     uint64_t key, uint64_t *ret)
{
	const uint64_t plain = s->signature ^ s->at ^ l->constant;
	const uint64_t heap = (plain ^ key) & ~UINT64_C(0xffff);
	const uint64_t context = l->contexts + (uint64_t)s->context * l->context->size;

	*ret = (plain ^ context) & 0xffff;
	return s->range == l->range && heap__plausible(heap, true, ALLOCATION_GRANULARITY) &&
	       !heap__at(&h->pages, heap, 1);
}

/* How many shapes agree with the one that most agree with. */
static size_t count_agreement(struct heaps *h, const struct lost *x, const struct segment_layout *l,
			      uint64_t key, uint64_t *ret_low)
{
	size_t best = 0;

	for (size_t i = 0; i < x->count; i++) {
		uint64_t low, other;
		size_t n = 0;

		if (!x->shapes[i].certain || !low_bits(h, &x->shapes[i], l, key, &low))
			continue;
		for (size_t k = 0; k < x->count; k++)
			n += low_bits(h, &x->shapes[k], l, key, &other) && other == low;
		if (n > best) {
			best = n;
			*ret_low = low;
		}
	}
	return best;
}

static void find_low_bits(struct heaps *h, const struct lost *x, uint64_t key)
{
	struct segment_state *s = h->segment;
	size_t best = 0;

	for (size_t k = 0; k < SEGMENT_LAYOUTS; k++) {
		const struct segment_layout *l = &segment__layouts[k];
		uint64_t low = 0;
		const size_t n = count_agreement(h, x, l, key, &low);

		if (n <= best)
			continue;
		best = n;
		s->key = key | low;
		s->constant = l->constant;
		s->has_key = s->is_signed = s->guessed = true;
	}
}

enum status segment__find_lost_key(struct heaps *h, struct err *e)
{
	_cleanup_free_ struct lost *x = calloc(1, sizeof(*x));
	const struct range_list *l = h->sources.ranges;
	uint64_t key;

	if (!x)
		return err_nomem(e);
	for (size_t i = 0; l && i < l->count; i++) {
		uint64_t at = (l->at[i].first + PAGE_SEGMENT_STEP - 1) & ~(PAGE_SEGMENT_STEP - 1);

		for (; at < l->at[i].last && x->starts++ < PAGE_SEGMENT_STARTS_MAX && !h->pages.cut;
		     at += PAGE_SEGMENT_STEP)
			vote_for_lost_key(h, at, l->at[i].last, x);
	}
	if (x->count && segment__vote_vs(h, x->vs, x->vs_count, &key))
		find_low_bits(h, x, key & ~UINT64_C(0xffff));
	return ST_OK;
}
