/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/examine/heap/base/page_header.h"

#include <string.h>

#define LIGHT_START   0xabcdaaaa
#define LIGHT_END     0xdcbaaaaa
#define LIGHT_SUFFIX  0xa0
/* What light page heap adds behind a block, filling and rounding, and some room. */
#define LIGHT_SURPLUS 64
/* So much of it is looked at: how much is filled differs. */
#define LIGHT_FILLED  8

const struct page_header_layout page_header_layouts[2] = {
	{ .size = 0x20,
	  .heap = 4,
	  .requested = 8,
	  .actual = 0xc,
	  .trace = 0x18,
	  .end = 0x1c,
	  .unit = 8 },
	{ .size = 0x40,
	  .heap = 8,
	  .requested = 0x10,
	  .actual = 0x18,
	  .trace = 0x30,
	  .end = 0x3c,
	  .unit = 16 },
};

bool page_header_read(struct heap_pages *p, bool wide, uint64_t at, uint32_t start, uint32_t end,
		      struct page_header *ret)
{
	const struct page_header_layout *l = &page_header_layouts[wide];
	uint32_t first, last;

	if (!heap__u32(p, at, &first) || (first != start && first != start - PAGE_HEADER_FREED) ||
	    !heap__u32(p, at + l->end, &last) || last - end != first - start ||
	    !heap__pointer(p, at + l->heap, wide, &ret->heap) ||
	    !heap__pointer(p, at + l->requested, wide, &ret->requested) ||
	    !heap__pointer(p, at + l->actual, wide, &ret->actual) ||
	    !heap__pointer(p, at + l->trace, wide, &ret->trace) ||
	    !heap__plausible(ret->heap, wide, l->unit / 2))
		return false;
	if (!heap__plausible(ret->trace, wide, l->unit / 2))
		ret->trace = 0;
	ret->busy = first == start;
	return true;
}

bool page_header_filled(struct heap_pages *p, uint64_t from, uint64_t to, uint8_t byte)
{
	for (uint64_t va = from, next; va < to; va = next) {
		const uint8_t *at;

		next = MIN((va | (PAGE_SIZE - 1)) + 1, to);
		at = heap__at(p, va, (size_t)(next - va));
		if (at && (*at != byte || memcmp(at, at + 1, (size_t)(next - va) - 1) != 0))
			return false;
	}
	return true;
}

bool heap__page_heap_may_be(const struct heaps *h)
{
	const uint64_t pebs[2] = { h->sources.peb32, h->sources.peb };
	bool known = false;

	for (size_t i = 0; i < ARRAY_SIZE(pebs); i++) {
		const struct heap_global_flag *f = &h->global_flag[i];

		if (f->known && f->value & GLOBAL_FLAG_PAGE_HEAP)
			return true;
		if (pebs[i] && !f->known)
			return true;
		known |= f->known;
	}
	return !known;
}

void heap__see_light(struct heap_walk *w, struct heap_allocation *a)
{
	const bool wide = w->info->wide;
	const uint64_t head = page_header_layouts[wide].size;
	const uint64_t bytes = a->has_requested ? a->requested : a->size;
	uint64_t user;
	struct page_header h;

	if (a->state != BLOCK_BUSY || a->place == PLACE_PAGE_HEAP || bytes < head ||
	    !heap__page_heap_may_be(w->h) ||
	    !page_header_read(w->p, wide, a->address, LIGHT_START, LIGHT_END, &h) ||
	    h.requested > bytes - head || h.actual < h.requested ||
	    h.actual > h.requested + head + LIGHT_SURPLUS)
		return;
	user = a->address + head;
	if (h.busy && a->has_requested &&
	    !page_header_filled(w->p, user + h.requested,
				user + MIN(h.requested + LIGHT_FILLED, bytes - head), LIGHT_SUFFIX))
		return;
	a->address = user;
	a->size = h.requested;
	a->requested = h.busy ? h.requested : 0;
	a->has_requested = h.busy;
	a->place = PLACE_PAGE_HEAP;
	a->state = h.busy ? BLOCK_BUSY : BLOCK_FREE;
	a->trace = h.trace;
}
