/* SPDX-License-Identifier: Apache-2.0 */
/* Full page heap: its blocks, found by their headers (page_header.h). */
#include "agent/examine/heap/base/page_header.h"
#include "agent/examine/heap/nt/nt.h"
#include "formats/base/array.h"

#define FULL_START  0xabcdbbbb
#define FULL_END    0xdcbabbbb
#define FULL_SUFFIX 0xd0

static uint64_t round_to_page(uint64_t va)
{
	return (va + PAGE_SIZE - 1) & ~(uint64_t)(PAGE_SIZE - 1);
}

/* Full page heap: `at` may be a header; `last` is the range's last byte. */
static bool read_full(struct heap_pages *p, bool wide, uint64_t at, uint64_t last,
		      struct page_block *ret, uint64_t *ret_end)
{
	const struct page_header_layout *l = &page_header_layouts[wide];
	const uint64_t first = at & ~(uint64_t)(PAGE_SIZE - 1);
	struct page_header h;
	uint64_t end;

	if (!page_header_read(p, wide, at, FULL_START, FULL_END, &h) || h.requested > last - at ||
	    l->size > last - at - h.requested + 1)
		return false;
	end = round_to_page(at + l->size + h.requested);
	if (end - 1 > last || end - (at + l->size + h.requested) >= l->unit ||
	    h.actual < h.requested || h.actual > end - first)
		return false;
	if (h.busy && !page_header_filled(p, at + l->size + h.requested, end, FULL_SUFFIX))
		return false;
	if (end - 1 < last && !page_header_filled(p, end, end + PAGE_SIZE, 0))
		return false;
	*ret_end = end;
	*ret = (struct page_block){
		.first = first,
		.user = at + l->size,
		.requested = h.requested,
		.heap = h.heap,
		.trace = h.trace,
		.busy = h.busy,
		.wide = wide,
	};
	return true;
}

static enum status note_block(struct heaps *h, const struct page_block *b, struct err *e)
{
	if (h->page_block_count == HEAP_PAGE_BLOCKS_MAX) {
		h->page_blocks_cut = true;
		return ST_OK;
	}
	if (h->page_block_count == h->page_block_room) {
		struct page_block *grown =
			array_grow(h->page_blocks, &h->page_block_room, sizeof(*grown));

		if (!grown)
			return err_nomem(e);
		h->page_blocks = grown;
	}
	h->page_blocks[h->page_block_count++] = *b;
	return ST_OK;
}

/* The first header in the page; *next is where to go on. */
static enum status look_at_page(struct heaps *h, uint64_t va, uint64_t last, uint64_t *next,
				struct err *e)
{
	struct heap_pages *p = &h->pages;
	uint64_t end;

	*next = va + PAGE_SIZE;
	for (uint64_t at = va; at < va + PAGE_SIZE; at += 8) {
		uint32_t stamp;
		struct page_block b;

		if (!heap__u32(p, at, &stamp))
			return ST_OK;
		if (stamp != FULL_START && stamp != FULL_START - PAGE_HEADER_FREED)
			continue;
		for (int wide = 1; wide >= 0; wide--) {
			/* A process of 64 bits has no such blocks of 32. */
			if (!wide && !h->sources.peb32 && h->sources.peb)
				continue;
			if (!read_full(p, wide, at, last, &b, &end))
				continue;
			*next = end;
			return note_block(h, &b, e);
		}
	}
	return ST_OK;
}

static int by_heap_and_address(const void *a, const void *b)
{
	const struct page_block *x = a, *y = b;

	if (x->heap != y->heap)
		return x->heap < y->heap ? -1 : 1;
	return (x->user > y->user) - (x->user < y->user);
}

/*
 * What the blocks name as their heap is page heap's root, a page behind the address that the
 * program has as its heap's (reactos/reactos, sdk/lib/rtl/heappage.c), if not that address itself.
 */
static enum status note_page_heap(struct heaps *h, struct page_block *blocks, size_t count,
				  struct err *e)
{
	struct heap_info *info = NULL;
	enum status st;

	for (size_t i = 0; i < h->count && !info; i++)
		if (h->at[i].address == blocks->heap ||
		    h->at[i].address == blocks->heap - PAGE_SIZE)
			info = &h->at[i];
	if (!info) {
		const bool root = (blocks->heap - PAGE_SIZE) % ALLOCATION_GRANULARITY == 0;

		st = heap__add(h, blocks->heap - (root ? PAGE_SIZE : 0), blocks->wide, &info, e);
		if (st || !info)
			return st;
		info->found = true;
		info->kind = HEAP_PAGE;
	}
	for (size_t i = 0; i < count; i++)
		blocks[i].heap = info->address;
	return ST_OK;
}

/* The first of the heap's blocks, or where it would be. */
static size_t first_page_block(const struct heaps *h, uint64_t heap)
{
	return FIRST_WHERE(i, h->page_block_count, h->page_blocks[i].heap >= heap);
}

/* Listed, and no other heap: what a program has where page heap is on, be it light. */
static void name_page_heaps(struct heaps *h)
{
	for (size_t i = 0; i < h->count; i++) {
		struct heap_info *info = &h->at[i];
		const struct heap_global_flag *f = &h->global_flag[info->wide];
		const size_t first = first_page_block(h, info->address);

		if (info->kind != HEAP_OTHER && info->kind != HEAP_UNREAD)
			continue;
		if ((first < h->page_block_count && h->page_blocks[first].heap == info->address) ||
		    (info->kind == HEAP_OTHER && info->listed && f->known &&
		     f->value & GLOBAL_FLAG_PAGE_HEAP))
			info->kind = HEAP_PAGE;
		if (info->kind == HEAP_PAGE)
			info->refused = REFUSED_NOTHING;
	}
}

enum status heap__find_page_blocks(struct heaps *h, const struct range_list *taken, struct err *e)
{
	const struct range_list *l = h->sources.ranges;
	enum status st = ST_OK;

	for (size_t i = 0; l && i < l->count && !st; i++)
		for (uint64_t va = round_to_page(l->at[i].first), next;
		     va < l->at[i].last && !st && !h->pages.cut; va = next) {
			const struct range *s = range_list_find(taken, va);

			if (s)
				next = s->last + 1;
			else
				st = look_at_page(h, va, l->at[i].last, &next, e);
		}
	array_sort(h->page_blocks, h->page_block_count, sizeof(*h->page_blocks),
		   by_heap_and_address);
	for (size_t i = 0, end; i < h->page_block_count && !st; i = end) {
		for (end = i; end < h->page_block_count &&
			      h->page_blocks[end].heap == h->page_blocks[i].heap;)
			end++;
		st = note_page_heap(h, &h->page_blocks[i], end - i, e);
	}
	array_sort(h->page_blocks, h->page_block_count, sizeof(*h->page_blocks),
		   by_heap_and_address);
	name_page_heaps(h);
	return st;
}

enum status heap__walk_page_blocks(struct heap_walk *w)
{
	const struct heaps *h = w->h;
	enum status st = ST_OK;

	for (size_t i = first_page_block(h, w->info->address);
	     i < h->page_block_count && h->page_blocks[i].heap == w->info->address && !st; i++) {
		const struct page_block *b = &h->page_blocks[i];
		struct heap_allocation a = {
			.address = b->user,
			.size = b->requested,
			.requested = b->busy ? b->requested : 0,
			.has_requested = b->busy,
			.container = b->first,
			.place = PLACE_PAGE_HEAP,
			.state = b->busy ? BLOCK_BUSY : BLOCK_FREE,
			.trace = b->trace,
		};

		st = heap__tell(w, &a);
	}
	w->stats->cut |= h->page_blocks_cut;
	return st;
}
