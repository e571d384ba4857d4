/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Segment heaps: their heads, contexts and page segments. The layout is told by what is in the
 * head, not by the build: contexts name the heap that they are in and where in it its VS and LFH
 * are. 64-bit processes alone: no public source has the head of the other.
 */
#include "agent/examine/heap/segment/segment.h"
#include "agent/examine/heap/segment/segment_internal.h"
#include "formats/base/array.h"
#include "formats/base/bytes.h"

/* _HEAP_SEG_CONTEXT */
#define CONTEXT_SHIFT 8
#define CONTEXT_FIRST 0xa

/*
 * Where there are no contexts: the heap, if VS and LFH name it. What the segments are is nowhere
 * said; their descriptors will tell.
 */
static enum heap_refusal read_lone_context(struct heap_pages *p, uint64_t heap,
					   const struct segment_layout *l,
					   struct segment_context *ret)
{
	uint64_t vs, lfh;

	*ret = segment__usual_context(heap, l, 0);
	if (!heap__u64(p, heap + l->vs + l->back_end, &vs) || !heap__u64(p, heap + l->lfh, &lfh) ||
	    (vs != heap && lfh != heap))
		return REFUSED_CONTEXT;
	return vs == heap && lfh == heap ? REFUSED_NOTHING : REFUSED_PARTS;
}

/* REFUSED_CONTEXT: it can't be had, too. */
static enum heap_refusal read_segment_context(struct heap_pages *p, uint64_t heap,
					      const struct segment_layout *l, unsigned i,
					      struct segment_context *ret)
{
	const struct segment_context_layout *x = l->context;
	const uint64_t at = heap + l->contexts + i * x->size;
	uint64_t mask, vs, lfh, back;
	const uint8_t *how;

	if (!heap__u64(p, at, &mask) || !heap__u64(p, at + x->vs, &vs) ||
	    !heap__u64(p, at + x->lfh, &lfh) || !heap__u64(p, at + x->heap, &back))
		return REFUSED_CONTEXT;
	if (i && !mask && !back) { /* of a heap that has no large segments yet */
		*ret = (struct segment_context){ 0 };
		return REFUSED_NOTHING;
	}
	if (back != heap)
		return REFUSED_CONTEXT;
	if ((vs && vs != heap + l->vs) || (lfh && lfh != heap + l->lfh) || (!i && (!vs || !lfh)))
		return REFUSED_PARTS;
	how = heap__at(p, at + CONTEXT_SHIFT, 4);
	if (!how || how[0] < PAGE_SHIFT || how[0] > 20)
		return REFUSED_UNITS;
	*ret = (struct segment_context){
		.at = at,
		.list = at + x->list,
		.size = (uint64_t)SEGMENT_DESCRIPTORS << how[0],
		.shift = how[0],
		.first = how[CONTEXT_FIRST - CONTEXT_SHIFT],
	};
	return mask == ~(ret->size - 1) && (uint64_t)ret->first << ret->shift >=
						   SEGMENT_DESCRIPTORS * DESCRIPTOR_SIZE
		       ? REFUSED_NOTHING
		       : REFUSED_UNITS;
}

/* Does the head have this layout? */
static enum heap_refusal read_head_as(struct heap_pages *p, struct segment_heap *x,
				      const struct segment_layout *l)
{
	enum heap_refusal first;

	if (!l->context->size)
		return read_lone_context(p, x->address, l, &x->contexts[0]);
	first = read_segment_context(p, x->address, l, 0, &x->contexts[0]);
	return first ? first : read_segment_context(p, x->address, l, 1, &x->contexts[1]);
}

/* The layout that fits it; the check that failed is that of the one that passed most of them. */
static void choose_layout(struct heap_pages *p, struct segment_heap *x, struct heap_info *info)
{
	for (size_t k = 0; k < SEGMENT_LAYOUTS && !x->l; k++) {
		const struct segment_layout *l = &segment__layouts[k];
		const enum heap_refusal r = read_head_as(p, x, l);

		if (!r)
			x->l = l;
		if (r > info->refused && r > REFUSED_CONTEXT)
			info->nearest = l->name;
		info->refused = MAX(info->refused, r);
	}
	if (!x->l)
		return;
	info->refused = REFUSED_NOTHING;
	info->nearest = NULL;
	info->experimental = !x->l->tried;
}

static struct segment_heap *add_heap(struct segment_state *s, const struct segment_heap *x)
{
	if (s->heap_count == s->heap_room) {
		struct segment_heap *grown = array_grow(s->heaps, &s->heap_room, sizeof(*grown));

		if (!grown)
			return NULL;
		s->heaps = grown;
	}
	s->heaps[s->heap_count] = *x;
	return &s->heaps[s->heap_count++];
}

static enum status read_heads(struct heaps *h, struct segment_state *s, struct err *e)
{
	for (size_t i = 0; i < h->count; i++) {
		struct segment_heap x = { .address = h->at[i].address };

		if (h->at[i].kind != HEAP_SEGMENT)
			continue;
		h->at[i].experimental = true;
		if (h->at[i].wide)
			choose_layout(&h->pages, &x, &h->at[i]);
		else
			h->at[i].refused = REFUSED_NARROW;
		if (x.l && !add_heap(s, &x))
			return err_nomem(e);
	}
	return ST_OK;
}

static enum status add_page_segment(struct segment_state *s, const struct page_segment *x,
				    struct err *e)
{
	if (s->segment_count == PAGE_SEGMENTS_MAX) {
		s->cut = true;
		return ST_OK;
	}
	if (s->segment_count == s->segment_room) {
		struct page_segment *grown =
			array_grow(s->segments, &s->segment_room, sizeof(*grown));

		if (!grown)
			return err_nomem(e);
		s->segments = grown;
	}
	s->segments[s->segment_count++] = *x;
	return ST_OK;
}

static bool in_range(const struct heaps *h, uint64_t at, uint64_t size)
{
	const struct range *r = h->sources.ranges ? range_list_find(h->sources.ranges, at) : NULL;

	return !h->sources.ranges || h->sources.not_vads || (r && size - 1 <= r->last - at);
}

static bool may_be_segment(const struct heaps *h, const struct segment_context *c, uint64_t at)
{
	return heap__plausible(at, true, c->size) && c->size <= USER_LIMIT_WIDE - at &&
	       in_range(h, at, c->size);
}

/* A context's list, in one direction, and the next one of where it can't be read. */
static enum status follow_context_list(struct heaps *h, struct segment_state *s, size_t heap,
				       unsigned k, bool backward, struct err *e)
{
	const struct segment_context *c = &s->heaps[heap].contexts[k];
	const uint64_t head = c->list;
	const uint64_t on = backward ? 8 : 0, back = backward ? 0 : 8;
	struct heap_pages *p = &h->pages;
	uint64_t at, before = head, said;
	enum status st = ST_OK;

	if (!c->at || !heap__u64(p, head + on, &at))
		return ST_OK;
	for (size_t i = 0; i < PAGE_SEGMENTS_MAX && at != head && !st; i++) {
		const struct page_segment x = { at, at + c->size, heap, (uint8_t)k };

		if (!may_be_segment(h, c, at))
			break;
		/* Each points back to the one before: so none comes twice. */
		if (heap__u64(p, at + back, &said) && said != before)
			break;
		st = add_page_segment(s, &x, e);
		before = at;
		if (!heap__u64(p, at + on, &at))
			break;
	}
	return st;
}

static enum status follow_lists(struct heaps *h, struct segment_state *s, struct err *e)
{
	enum status st = ST_OK;

	for (size_t i = 0; i < s->heap_count && !st; i++)
		for (unsigned k = 0; k < SEGMENT_CONTEXTS && !st; k++) {
			st = follow_context_list(h, s, i, k, false, e);
			if (!st)
				st = follow_context_list(h, s, i, k, true, e);
		}
	return st;
}

static int page_segment_by_address(const void *a, const void *b)
{
	const struct page_segment *x = a, *y = b;

	if (x->at != y->at)
		return x->at < y->at ? -1 : 1;
	return (x->heap > y->heap) - (x->heap < y->heap);
}

/* No byte belongs to two. */
static void drop_overlapping_page_segments(struct segment_state *s)
{
	size_t kept = 0;

	array_sort(s->segments, s->segment_count, sizeof(*s->segments), page_segment_by_address);
	for (size_t i = 0; i < s->segment_count; i++)
		if (!kept || s->segments[kept - 1].end <= s->segments[i].at)
			s->segments[kept++] = s->segments[i];
	s->segment_count = kept;
}

/*
 * The context that a signature names: 64 bits that say heap, layout and which of the two, so that
 * a heap whose first page is missing is known by its segments. NULL: none.
 */
static const struct segment_layout *decode_signature(uint64_t context, uint64_t constant,
						     uint64_t *ret_heap, unsigned *ret_which)
{
	for (size_t k = 0; k < SEGMENT_LAYOUTS; k++) {
		const struct segment_layout *l = &segment__layouts[k];

		for (unsigned i = 0; i < (l->context->size ? SEGMENT_CONTEXTS : 1); i++) {
			const uint64_t heap = context - l->contexts - i * l->context->size;

			if (l->constant != constant ||
			    !heap__plausible(heap, true, ALLOCATION_GRANULARITY))
				continue;
			*ret_heap = heap;
			*ret_which = i;
			return l;
		}
	}
	return NULL;
}

/* Which of the heaps has this context; one whose head is missing is added. SIZE_MAX: none. */
static enum status heap_of_context(struct heaps *h, struct segment_state *s, uint64_t context,
				   size_t *ret_heap, unsigned *ret_which, struct err *e)
{
	const struct segment_layout *l;
	struct segment_heap x = { 0 };
	struct heap_info *info;
	uint32_t signature;
	enum status st;

	*ret_heap = SIZE_MAX;
	if (!context)
		return ST_OK;
	for (size_t i = 0; i < s->heap_count; i++)
		for (unsigned k = 0; k < SEGMENT_CONTEXTS; k++)
			if (s->heaps[i].contexts[k].at == context) {
				*ret_heap = i;
				*ret_which = k;
				return ST_OK;
			}
	l = decode_signature(context, s->constant, &x.address, ret_which);
	if (!l || heap__u32(&h->pages, x.address + heap__wide.segment_signature, &signature))
		return ST_OK;
	st = heap__add(h, x.address, true, &info, e);
	if (st || !info || info->kind == HEAP_NT)
		return st;
	info->kind = HEAP_SEGMENT;
	info->found = true;
	info->experimental = true;
	x.l = l;
	for (unsigned k = 0; k < SEGMENT_CONTEXTS; k++)
		x.contexts[k] = segment__usual_context(x.address, l, k);
	if (!add_heap(s, &x))
		return err_nomem(e);
	*ret_heap = s->heap_count - 1;
	return ST_OK;
}

static enum status try_page_segment(struct heaps *h, struct segment_state *s, uint64_t at,
				    struct err *e)
{
	uint64_t signature;
	size_t heap;
	unsigned k = 0;
	enum status st;

	if (!heap__u64(&h->pages, at + PAGE_SEGMENT_SIGNATURE, &signature) || !signature)
		return ST_OK;
	st = heap_of_context(h, s, signature ^ at ^ s->key ^ s->constant, &heap, &k, e);
	if (!st && heap != SIZE_MAX && may_be_segment(h, &s->heaps[heap].contexts[k], at)) {
		const struct page_segment x = { at, at + s->heaps[heap].contexts[k].size, heap,
						(uint8_t)k };

		st = add_page_segment(s, &x, e);
	}
	return st;
}

/* Segments that no list leads to, because it is broken: their signatures tell them. */
static enum status try_page_segments(struct heaps *h, struct segment_state *s, struct err *e)
{
	const struct range_list *l = h->sources.ranges;
	uint64_t tried = 0;
	enum status st = ST_OK;

	for (size_t i = 0; l && i < l->count && !st; i++) {
		uint64_t at = (l->at[i].first + PAGE_SEGMENT_STEP - 1) & ~(PAGE_SEGMENT_STEP - 1);

		for (; at < l->at[i].last && !st && !h->pages.cut; at += PAGE_SEGMENT_STEP) {
			if (tried++ == PAGE_SEGMENT_STARTS_MAX) {
				s->cut = true;
				return ST_OK;
			}
			st = try_page_segment(h, s, at, e);
		}
	}
	return st;
}

/* Those whose signature denies what a list says, if it can be read. */
static void drop_unsigned(struct heaps *h, struct segment_state *s)
{
	size_t kept = 0;

	for (size_t i = 0; i < s->segment_count; i++) {
		const struct page_segment *x = &s->segments[i];
		uint64_t signature;

		if (!heap__u64(&h->pages, x->at + PAGE_SEGMENT_SIGNATURE, &signature) ||
		    signature == (x->at ^ s->heaps[x->heap].contexts[x->context].at ^ s->key ^
				  s->constant))
			s->segments[kept++] = *x;
	}
	s->segment_count = kept;
}

static void tell_infos(struct heaps *h, const struct segment_state *s)
{
	for (size_t i = 0; i < h->count; i++)
		for (size_t k = 0; k < s->heap_count; k++) {
			struct heap_info *info = &h->at[i];

			if (s->heaps[k].address != info->address)
				continue;
			info->layout = s->guessed ? NULL : s->heaps[k].l->name;
			if (s->heaps[k].misread) {
				info->layout = NULL;
				info->nearest = s->heaps[k].l->name;
				info->refused = REFUSED_RANGES;
				info->experimental = true;
			} else if (s->has_vs && !s->has_key) {
				info->refused = REFUSED_CHUNKS;
			} else if (s->has_lfh && !s->has_lfh_key) {
				info->refused = REFUSED_OFFSETS;
			}
			if (!s->has_key)
				continue;
			info->key_from = KEY_RECOVERED;
			put_le64(info->key, s->key);
		}
}

/* May there be a segment heap of which no head could be had? */
static bool is_one_lost(const struct heaps *h)
{
	for (size_t i = 0; i < h->count; i++)
		if (h->at[i].kind == HEAP_UNREAD && h->at[i].wide)
			return true;
	return heaps_list_lost(h);
}

enum status heap__find_segment_heaps(struct heaps *h, struct err *e)
{
	struct segment_state *s = calloc(1, sizeof(*s));
	enum status st;

	if (!s)
		return err_nomem(e);
	h->segment = s;
	st = read_heads(h, s, e);
	if (!st)
		st = follow_lists(h, s, e);
	drop_overlapping_page_segments(s);
	if (!st && s->heap_count)
		st = segment__find_keys(h, e);
	else if (!st && is_one_lost(h))
		st = segment__find_lost_key(h, e);
	if (!st && s->has_key && s->is_signed) {
		drop_unsigned(h, s);
		st = try_page_segments(h, s, e);
		drop_overlapping_page_segments(s);
	}
	segment__refuse_misread(h);
	if (!st && s->segment_count)
		st = segment__find_lfh_key(h, e);
	tell_infos(h, s);
	return st ? st : segment__find_padding(h, e);
}

void heap__drop_segment_heaps(struct heaps *h)
{
	if (!h->segment)
		return;
	free(h->segment->heaps);
	free(h->segment->segments);
	free(h->segment);
}

enum status heap__add_segment_areas(const struct heaps *h, uint64_t heap, struct range_list *ret,
				    struct err *e)
{
	const struct segment_state *s = h->segment;
	enum status st = ST_OK;

	for (size_t i = 0; s && i < s->segment_count && !st; i++)
		if (!heap || s->heaps[s->segments[i].heap].address == heap)
			st = range_list_add(ret, s->segments[i].at, s->segments[i].end - 1, e);
	return st;
}
