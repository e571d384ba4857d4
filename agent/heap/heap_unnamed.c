/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Heaps that nothing names: no list that can be read has them, and the first page, by which the
 * range of one is known, is missing. What they have is their headers, and these are enough to vote
 * for a key (heap_key.c). A range of a program's own that holds a copy of a heap has them as well.
 * So nobody looks where the process's lists are whole, and can tell that they name all heaps.
 */
#include <string.h>

#include "agent/heap/heap_internal.h"
#include "agent/program/interrupt.h"

/* How many ranges are asked: each is read twice at most, and votes take up to 0.1 s. */
#define RANGES_MAX 256

static bool is_taken(const struct heaps *h, const struct range *r)
{
	for (size_t i = 0; i < h->segment_count; i++)
		if (h->segments[i].base <= r->last && h->segments[i].end > r->first)
			return true;
	for (size_t i = 0; i < h->count; i++)
		if (h->at[i].address >= r->first && h->at[i].address <= r->last)
			return true;
	return false;
}

/* Of a key, what all headers of a heap are combined with, and no two heaps have in common. */
#define KEY_OWN 6

/* A heap with that key: the range is a segment of it, whose head is missing. */
static const struct heap_info *find_key(const struct heaps *h, bool wide, const uint8_t *key)
{
	for (size_t i = 0; i < h->count; i++)
		if (h->at[i].kind == HEAP_NT && h->at[i].wide == wide &&
		    (h->at[i].key_from == KEY_READ || h->at[i].key_from == KEY_RECOVERED) &&
		    !memcmp(h->at[i].key, key, KEY_OWN))
			return &h->at[i];
	return NULL;
}

static enum status add(struct heaps *h, struct heap_segment *s, const uint8_t *key, struct err *e)
{
	const struct heap_info *known = find_key(h, s->wide, key);
	struct heap_info *info;
	enum status st;

	if (known) {
		s->heap = known->address;
		return heap__add_segment(h, s, e);
	}
	st = heap__add(h, s->base, s->wide, &info, e);
	if (st || !info)
		return st;
	info->found = true;
	info->kind = HEAP_NT;
	info->key_from = KEY_RECOVERED;
	memcpy(info->key, key, HEAP_KEY_SIZE);
	return heap__add_segment(h, s, e);
}

static enum status try_range(struct heaps *h, const struct range *r, struct err *e)
{
	enum status st = ST_OK;

	for (int wide = 1; wide >= 0; wide--) {
		struct heap_segment s = {
			.base = r->first,
			.heap = r->first,
			.first = r->first,
			.last = r->last + 1,
			.end = r->last + 1,
			.wide = wide,
		};
		uint8_t key[HEAP_KEY_SIZE];

		if (!wide && !h->sources.peb32 && !h->sources.peb32_lost)
			continue;
		if (!heap__plausible(r->first, wide, PAGE_SIZE) ||
		    !heap__recover_key(&h->pages, heap__layout(wide), &s, 1, key))
			continue;
		st = add(h, &s, key, e);
		break;
	}
	return st;
}

enum status heap__find_unnamed(struct heaps *h, struct err *e)
{
	const struct range_list *l = h->sources.ranges;
	const size_t named = h->count, known = h->segment_count;
	size_t asked = 0;
	enum status st = ST_OK;

	if (!h->list_lost || !l || h->sources.not_vads)
		return ST_OK;
	for (size_t i = 0; i < l->count && asked < RANGES_MAX && !h->pages.cut && !st; i++) {
		if (interrupted())
			return interrupt_status(e);
		if (heap__at(&h->pages, l->at[i].first, 1) || is_taken(h, &l->at[i]))
			continue;
		asked++;
		st = try_range(h, &l->at[i], e);
	}
	if (h->count > named || h->segment_count > known)
		heap__sort_segments(h);
	return st;
}
