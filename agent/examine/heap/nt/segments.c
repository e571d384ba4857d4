/* SPDX-License-Identifier: Apache-2.0 */
/* The segments of NT heaps: those that private ranges begin with, and those on the heaps' lists. */
#include "agent/examine/heap/nt/nt.h"
#include "formats/base/array.h"

/* Of one process; each is a VirtualAlloc of 64 KiB at least, and may be met three times. */
#define SEGMENTS_MAX (1U << 20)

static uint64_t end_of(const struct heaps *h, uint64_t base)
{
	const struct range *r = h->sources.ranges ? range_list_find(h->sources.ranges, base) : NULL;

	return r ? r->last + 1 : 0;
}

enum status heap__add_segment(struct heaps *h, const struct heap_segment *s, struct err *e)
{
	if (h->segment_count == SEGMENTS_MAX) {
		h->segments_cut = true;
		return ST_OK;
	}
	if (h->segment_count == h->segment_room) {
		struct heap_segment *grown =
			array_grow(h->segments, &h->segment_room, sizeof(*grown));

		if (!grown)
			return err_nomem(e);
		h->segments = grown;
	}
	h->segments[h->segment_count++] = *s;
	return ST_OK;
}

bool heap__read_segment(struct heaps *h, uint64_t base, bool wide, struct heap_segment *ret)
{
	const struct heap_layout *l = heap__layout(wide);
	struct heap_pages *p = &h->pages;
	const uint64_t end = end_of(h, base);
	uint32_t signature, pages, uncommitted;

	*ret = (struct heap_segment){ .base = base, .wide = wide, .read = true };
	if (!heap__u32(p, base + l->segment_signature, &signature) ||
	    signature != SEGMENT_SIGNATURE ||
	    !heap__pointer(p, base + l->segment_heap, wide, &ret->heap) ||
	    !heap__u32(p, base + l->pages, &pages) ||
	    !heap__u32(p, base + l->uncommitted_pages, &uncommitted) ||
	    !heap__pointer(p, base + l->first, wide, &ret->first) ||
	    !heap__pointer(p, base + l->last, wide, &ret->last))
		return false;
	ret->uncommitted_pages = MIN(uncommitted, pages);
	ret->end = base + (uint64_t)pages * PAGE_SIZE;
	if (end)
		ret->end = MIN(ret->end, end);
	return heap__plausible(ret->heap, wide, PAGE_SIZE) && base % PAGE_SIZE == 0 &&
	       ret->first > base && ret->first < ret->end && ret->last > ret->first &&
	       ret->last <= ret->end && ret->first % l->unit == 0 && ret->last % l->unit == 0;
}

/* The list of the heap's segments, in one direction; where it can't be read, its next member. */
static enum status follow_segments(struct heaps *h, struct heap_info *info, bool backward,
				   struct err *e)
{
	const struct heap_layout *l = heap__layout(info->wide);
	struct heap_pages *p = &h->pages;
	const uint64_t word = info->wide ? 8 : 4;
	const uint64_t head = info->address + l->family[!info->old].segments;
	struct heap_segment s;
	uint64_t entry, base, before = head, back;
	enum status st = ST_OK;

	if (!heap__pointer(p, head + (backward ? word : 0), info->wide, &entry))
		return ST_OK;
	for (size_t i = 0; i < HEAPS_MAX && entry != head && !st; i++) {
		base = entry - l->segment_entry;
		if (!heap__plausible(base, info->wide, PAGE_SIZE))
			break;
		if (!heap__at(p, base, 1)) {
			s = (struct heap_segment){
				.base = base,
				.first = base,
				.last = end_of(h, base),
				.end = end_of(h, base),
				.heap = info->address,
				.wide = info->wide,
			};
			return s.end ? heap__add_segment(h, &s, e) : ST_OK;
		}
		if (!heap__read_segment(h, base, info->wide, &s) || s.heap != info->address)
			break;
		/* Each points back to the one before: so none comes twice. */
		if (!heap__pointer(p, entry + (backward ? 0 : word), info->wide, &back) ||
		    back != before)
			break;
		before = entry;
		st = heap__add_segment(h, &s, e);
		if (!heap__pointer(p, entry + (backward ? word : 0), info->wide, &entry))
			return st;
	}
	info->segments_followed |= entry == head;
	return st;
}

/* Of those with one base the one that is to be kept comes first. */
static int by_base(const void *a, const void *b)
{
	const struct heap_segment *x = a, *y = b;

	if (x->base != y->base)
		return x->base < y->base ? -1 : 1;
	if (x->read != y->read)
		return x->read ? -1 : 1;
	return (x->heap > y->heap) - (x->heap < y->heap);
}

static int by_heap_and_base(const void *a, const void *b)
{
	const struct heap_segment *x = a, *y = b;

	if (x->heap != y->heap)
		return x->heap < y->heap ? -1 : 1;
	return (x->base > y->base) - (x->base < y->base);
}

/* The first segment of the heap, or where it would be. */
static size_t first_segment(const struct heaps *h, uint64_t heap)
{
	return FIRST_WHERE(i, h->segment_count, h->segments[i].heap >= heap);
}

const struct heap_segment *heap__segments(const struct heaps *h, uint64_t heap, size_t *ret_count)
{
	const size_t first = first_segment(h, heap);

	*ret_count = first_segment(h, heap + 1) - first;
	return h->segments ? h->segments + first : NULL;
}

enum status heap__add_segment_ranges(const struct heaps *h, struct range_list *ret, struct err *e)
{
	enum status st = ST_OK;

	for (size_t i = 0; i < h->segment_count && !st; i++)
		if (h->segments[i].end > h->segments[i].base)
			st = range_list_add(ret, h->segments[i].base, h->segments[i].end - 1, e);
	return st;
}

/* A heap whose head can't be had may still have its first segment's chunks. */
static enum status add_lost_segments(struct heaps *h, struct err *e)
{
	enum status st = ST_OK;

	for (size_t i = 0; i < h->count && !st; i++) {
		struct heap_info *info = &h->at[i];
		struct heap_segment s = { .base = info->address,
					  .heap = info->address,
					  .first = info->address,
					  .wide = info->wide };

		s.end = s.last = end_of(h, info->address);
		if (info->kind == HEAP_UNREAD && s.end)
			st = heap__add_segment(h, &s, e);
		else if (info->kind == HEAP_NT)
			st = follow_segments(h, info, false, e);
		if (!st && info->kind == HEAP_NT)
			st = follow_segments(h, info, true, e);
		if (!st && info->kind == HEAP_NT &&
		    heap__read_segment(h, info->address, info->wide, &s))
			st = heap__add_segment(h, &s, e);
	}
	return st;
}

/* A segment is met by its range, and in the list from both ends; of an unread head by two heaps. */
static void drop_twins(struct heaps *h)
{
	size_t kept = 0;

	array_sort(h->segments, h->segment_count, sizeof(*h->segments), by_base);
	for (size_t i = 0; i < h->segment_count; i++)
		if (!kept || h->segments[kept - 1].base != h->segments[i].base)
			h->segments[kept++] = h->segments[i];
	h->segment_count = kept;
}

/* No byte belongs to two segments: of those that overlap, the one that was read is kept. */
static void drop_overlapping_segments(struct heaps *h)
{
	size_t kept = 0;

	for (size_t i = 0; i < h->segment_count; i++) {
		struct heap_segment *s = &h->segments[i];
		struct heap_segment *before = kept ? &h->segments[kept - 1] : NULL;

		if (before && before->heap == s->heap && before->end > s->base) {
			if (s->read && !before->read)
				*before = *s;
			continue;
		}
		h->segments[kept++] = *s;
	}
	h->segment_count = kept;
}

void heap__sort_segments(struct heaps *h)
{
	drop_twins(h);
	array_sort(h->segments, h->segment_count, sizeof(*h->segments), by_heap_and_base);
	drop_overlapping_segments(h);
}

enum status heap__find_segments(struct heaps *h, struct err *e)
{
	const enum status st = add_lost_segments(h, e);

	heap__sort_segments(h);
	return st;
}
