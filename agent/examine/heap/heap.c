/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The heaps of a process: which there are (heap_lists.c, nt/unnamed.c), what the head of each says,
 * and which walks one is for.
 */
#include "agent/examine/heap/heap.h"

#include <string.h>

#include "agent/examine/heap/heap_lists.h"
#include "agent/examine/heap/nt/nt.h"
#include "agent/examine/heap/segment/segment.h"
#include "agent/shared/program/interrupt.h"
#include "formats/base/array.h"

/* Of a front end's head, what is looked at: its Heap lies below. */
#define FRONT_HEAD 0x80

/* Does the front end name its heap? Where it does so differs: in 7 at 40, in 10 at 18. */
static bool refers_back(struct heap_pages *p, uint64_t front, const struct heap_info *info)
{
	const uint64_t word = info->wide ? 8 : 4;
	uint64_t back;

	for (uint64_t at = 0; at < FRONT_HEAD; at += word)
		if (heap__pointer(p, front + at, info->wide, &back) && back == info->address)
			return true;
	return false;
}

/* Which columns of the table fit: the front end refers back, or there is none. */
static void read_front(struct heaps *h, struct heap_info *info)
{
	const struct heap_layout *l = heap__layout(info->wide);
	struct heap_pages *p = &h->pages;

	for (const struct heap_front *f = l->front[!info->old]; f->pointer; f++) {
		const uint8_t *type = heap__at(p, info->address + f->type, 1);
		const uint8_t kind = type ? *type : 0xff;
		uint64_t pointer, reserved, committed;

		if (!heap__pointer(p, info->address + f->pointer, info->wide, &pointer))
			continue;
		if (kind == 2 && heap__plausible(pointer, info->wide, l->unit / 2) &&
		    refers_back(p, pointer, info))
			info->front_end = pointer;
		else if (kind > 2 || (kind == 0) != !pointer)
			continue;
		/* _HEAP_COUNTERS: TotalMemoryReserved, TotalMemoryCommitted. */
		if (f->counters &&
		    heap__pointer(p, info->address + f->counters, info->wide, &reserved) &&
		    heap__pointer(p, info->address + f->counters + l->unit / 2, info->wide,
				  &committed) &&
		    reserved && committed && committed <= reserved && reserved % PAGE_SIZE == 0 &&
		    committed % PAGE_SIZE == 0 && reserved < USER_LIMIT_WIDE) {
			info->counted = true;
			info->counted_reserved = reserved;
			info->counted_committed = committed;
			return;
		}
		if (info->front_end)
			return;
	}
}

static enum status recover_heap(struct heaps *h, struct heap_info *info, struct err *e)
{
	size_t count;
	const struct heap_segment *s = heap__segments(h, info->address, &count);
	bool found;
	const enum status st = heap__recover_key(&h->pages, heap__layout(info->wide), s, count,
						 info->key, &found, e);

	if (st || !found)
		return st;
	info->key_from = KEY_RECOVERED;
	info->kind = HEAP_NT;
	info->refused = REFUSED_NOTHING;
	return ST_OK;
}

/* The key, and whether the heap's own header agrees with it. */
static void read_heap_key(struct heaps *h, struct heap_info *info)
{
	const struct heap_layout *l = heap__layout(info->wide);
	struct heap_pages *p = &h->pages;
	const uint8_t *key;
	uint32_t mask = 0;
	struct chunk c;

	heap__u32(p, info->address + l->encode_mask, &mask);
	key = heap__at(p, info->address + l->encoding, HEAP_KEY_SIZE);
	if (mask && key)
		memcpy(info->key, key, HEAP_KEY_SIZE);
	info->key_from = mask ? KEY_READ : KEY_PLAIN;
	if (heap__chunk(p, l, mask ? info->key : NULL, info->address, &c) == CHUNK_GOOD)
		return;
	info->key_from = KEY_NONE;
	info->refused = REFUSED_HEADERS;
	memset(info->key, 0, HEAP_KEY_SIZE);
}

static void read_head(struct heaps *h, struct heap_info *info)
{
	const struct heap_layout *l = heap__layout(info->wide);
	struct heap_pages *p = &h->pages;
	uint32_t segment, signature = 0, flags, units;
	uint16_t index;

	info->kind = HEAP_UNREAD;
	if (!heap__u32(p, info->address + l->segment_signature, &segment))
		return;
	info->kind = HEAP_OTHER;
	info->refused = REFUSED_SIGNATURE;
	if (segment == SEGMENT_HEAP_SIGNATURE) {
		info->kind = HEAP_SEGMENT;
		info->head = true;
		info->refused = REFUSED_NOTHING;
	}
	if (segment != SEGMENT_SIGNATURE)
		return;
	for (size_t i = 0; i < ARRAY_SIZE(l->family) && signature != NT_HEAP_SIGNATURE; i++) {
		heap__u32(p, info->address + l->family[i].signature, &signature);
		info->old = i == 0;
	}
	if (signature != NT_HEAP_SIGNATURE)
		return;
	info->kind = HEAP_NT;
	info->head = true;
	info->refused = REFUSED_NOTHING;
	if (heap__u32(p, info->address + l->flags, &flags))
		info->flags = flags;
	if (heap__u16(p, info->address + l->family[!info->old].index, &index))
		info->index = index;
	if (heap__u32(p, info->address + l->family[!info->old].total_free, &units))
		info->total_free = (uint64_t)units * l->unit;
	read_heap_key(h, info);
	read_front(h, info);
}

static int heap_by_address(const void *a, const void *b)
{
	const struct heap_info *x = a, *y = b;

	return (x->address > y->address) - (x->address < y->address);
}

/* Full page heap has nothing where heaps have segments. */
static enum status find_page_blocks(struct heaps *h, struct err *e)
{
	_cleanup_ranges_ struct range_list taken = { 0 };
	enum status st = heap__add_segment_ranges(h, &taken, e);

	if (!st)
		st = heap__add_segment_areas(h, 0, &taken, e);
	range_list_tidy(&taken, NULL);
	range_list_join(&taken);
	return st ? st : heap__find_page_blocks(h, &taken, e);
}

static enum status find_all(struct heaps *h, struct err *e)
{
	enum status st = heap__find_listed(h, e);

	if (st)
		return st;
	array_sort(h->at, h->count, sizeof(*h->at), heap_by_address);
	for (size_t i = 0; i < h->count; i++)
		read_head(h, &h->at[i]);
	st = heap__find_segments(h, e);
	for (size_t i = 0; i < h->count && !st; i++)
		if (h->at[i].kind == HEAP_UNREAD ||
		    (h->at[i].kind == HEAP_NT && h->at[i].key_from == KEY_NONE))
			st = recover_heap(h, &h->at[i], e);
	if (!st)
		st = heap__find_unnamed(h, e);
	if (!st)
		st = heap__find_segment_heaps(h, e);
	if (!st && heap__page_heap_may_be(h))
		st = find_page_blocks(h, e);
	array_sort(h->at, h->count, sizeof(*h->at), heap_by_address);
	return st;
}

enum status heaps_open(const struct heap_sources *s, struct heaps **ret, struct err *e)
{
	struct heaps *h = calloc(1, sizeof(*h));
	enum status st;

	*ret = NULL;
	if (!h)
		return err_nomem(e);
	h->sources = *s;
	h->pages = (struct heap_pages){ .m = s->memory, .left = HEAP_FETCHES_MAX };
	st = find_all(h, e);
	if (!st && interrupted())
		st = interrupt_status(e);
	if (!st)
		st = heap__open_notes(h, e);
	if (st) {
		heaps_close(h);
		return st;
	}
	h->list_lost[true] |= h->pages.cut;
	*ret = h;
	return ST_OK;
}

void heaps_close(struct heaps *h)
{
	if (!h)
		return;
	free(h->at);
	free(h->segments);
	free(h->page_blocks);
	heap__drop_notes(h);
	free(h->notes);
	heap__drop_segment_heaps(h);
	free(h);
}

enum status heaps_segments(const struct heaps *h, size_t i, struct range_list *ret, struct err *e)
{
	size_t count;
	const struct heap_segment *s = heap__segments(h, h->at[i].address, &count);
	enum status st = ST_OK;

	for (size_t k = 0; k < count && !st; k++)
		if (s[k].base < s[k].end)
			st = range_list_add(ret, s[k].base, s[k].end - 1, e);
	return st ? st : heap__add_segment_areas(h, h->at[i].address, ret, e);
}

void heaps_forget_page(struct heaps *h)
{
	h->pages.has = false;
}

enum status heaps_walk(struct heaps *h, size_t i, const struct heap_visitor *v,
		       struct heap_stats *ret, struct err *e)
{
	struct heap_walk w = {
		.h = h,
		.index = i,
		.info = &h->at[i],
		.key = h->at[i].key_from == KEY_PLAIN ? NULL : h->at[i].key,
		.l = heap__layout(h->at[i].wide),
		.p = &h->pages,
		.v = v,
		.stats = ret,
		.e = e,
	};
	enum status st = ST_OK;

	*ret = (struct heap_stats){ 0 };
	h->pages.cut = false;
	h->pages.has = false;
	if (w.info->kind == HEAP_NT && w.info->key_from != KEY_NONE) {
		st = heap__walk_back_end(&w);
		if (!st)
			st = heap__walk_lfh(&w);
		if (!st)
			st = heap__walk_virtual(&w);
	}
	if (w.info->kind == HEAP_SEGMENT)
		st = heap__walk_segment_heap(&w);
	if (!st)
		st = heap__walk_page_blocks(&w);
	ret->cut |= h->pages.cut || (h->segments_cut && w.info->kind == HEAP_NT);
	if (i + 1 == h->count)
		heap__drop_notes(h);
	free(w.user_blocks);
	return st || !interrupted() ? st : interrupt_status(e);
}
