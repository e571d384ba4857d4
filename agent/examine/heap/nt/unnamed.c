/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Heaps that nothing names: no list that can be read has them, and the first page, by which the
 * range of one is known, is missing. What they have is their headers, and these are enough to vote
 * for a key (key.c). A range of a program's own that holds a copy of a heap has them as well.
 * So nothing is looked for where the process's list was read to its end, and no segment is added to
 * a heap whose list of segments was.
 */
#include <string.h>

#include "agent/examine/heap/nt/nt.h"
#include "agent/shared/program/interrupt.h"

/* How many ranges are asked. Each takes some 0.1 s for its votes, twice in a process with WoW64. */
#define RANGES_MAX  256
/* Of each, so many addresses; and so many pages of all. The heaps that are known have their own. */
#define RANGE_PAGES ((uint64_t)1 << 12)
#define PAGES_MAX   ((uint64_t)4 * RANGES_MAX * RANGE_PAGES)

/* Of a key, the two halves of it that headers vote for. The rest is what most of them have. */
static bool same_votes(const uint8_t *a, const uint8_t *b)
{
	return !memcmp(a, b, 2) && !memcmp(a + 4, b + 4, 2);
}

/* A heap that was found before, with that key. */
static struct heap_info *find_heap_with_key(const struct heaps *h, bool wide, const uint8_t *key)
{
	for (size_t i = 0; i < h->count; i++)
		if (h->at[i].kind == HEAP_NT && h->at[i].wide == wide &&
		    (h->at[i].key_from == KEY_READ || h->at[i].key_from == KEY_RECOVERED) &&
		    same_votes(h->at[i].key, key))
			return &h->at[i];
	return NULL;
}

static enum status add_unnamed_heap(struct heaps *h, struct heap_segment *s, const uint8_t *key,
				    struct err *e)
{
	struct heap_info *info = find_heap_with_key(h, s->wide, key);
	enum status st;

	if (info && info->segments_followed)
		return ST_OK;
	if (!info) {
		st = heap__add(h, s->base, s->wide, &info, e);
		if (st || !info)
			return st;
		info->unnamed = true;
		info->kind = HEAP_NT;
		info->key_from = KEY_RECOVERED;
		memcpy(info->key, key, HEAP_KEY_SIZE);
	}
	s->heap = info->address;
	return heap__add_segment(h, s, e);
}

static enum status try_range(struct heaps *h, const struct range *r, struct err *e)
{
	enum status st = ST_OK;
	bool found = false;

	for (int wide = 1; wide >= 0 && !st && !found; wide--) {
		struct heap_segment s = {
			.base = r->first,
			.heap = r->first,
			.first = r->first,
			.last = r->last + 1,
			.end = r->last + 1,
			.wide = wide,
		};
		struct heap_segment asked = s;
		uint8_t key[HEAP_KEY_SIZE];

		if (!h->list_lost[wide] || (!wide && !h->sources.peb32 && !h->sources.peb32_lost) ||
		    !heap__plausible(r->first, wide, PAGE_SIZE))
			continue;
		asked.end = MIN(s.end, s.base + RANGE_PAGES * PAGE_SIZE);
		st = heap__recover_key(&h->pages, heap__layout(wide), &asked, 1, key, &found, e);
		if (!st && found)
			st = add_unnamed_heap(h, &s, key, e);
	}
	return st;
}

/* What is a heap's already, by address. */
static enum status list_taken(const struct heaps *h, struct range_list *ret, struct err *e)
{
	enum status st = heap__add_segment_ranges(h, ret, e);

	for (size_t i = 0; i < h->count && !st; i++)
		st = range_list_add(ret, h->at[i].address, h->at[i].address + (PAGE_SIZE - 1), e);
	range_list_tidy(ret, NULL);
	return st;
}

/*
 * A heap's first page has been written, so it is there, or it is missing. What nobody ever wrote,
 * as the first page of a stack, is neither.
 */
static bool is_first_page_lost(struct heaps *h, const struct range *r)
{
	return !heap__at(&h->pages, r->first, 1) && !view_absent(h->pages.m, r->first);
}

static enum status try_ranges(struct heaps *h, const struct range_list *taken, struct err *e)
{
	const struct range_list *l = h->sources.ranges;
	size_t asked = 0, t = 0;
	enum status st = ST_OK;

	for (size_t i = 0; i < l->count && asked < RANGES_MAX && !h->pages.cut && !st; i++) {
		const struct range *r = &l->at[i];

		while (t < taken->count && taken->at[t].last < r->first)
			t++;
		if ((t < taken->count && taken->at[t].first <= r->last) ||
		    !is_first_page_lost(h, r))
			continue;
		asked++;
		st = try_range(h, r, e);
	}
	return st;
}

enum status heap__find_unnamed(struct heaps *h, struct err *e)
{
	const uint64_t left = h->pages.left;
	_cleanup_ranges_ struct range_list taken = { 0 };
	enum status st;

	if ((!h->list_lost[false] && !h->list_lost[true]) || !h->sources.ranges ||
	    h->sources.not_vads || h->pages.cut)
		return ST_OK;
	st = list_taken(h, &taken, e);
	h->pages.left = PAGES_MAX;
	if (!st)
		st = try_ranges(h, &taken, e);
	h->pages.left = left;
	h->pages.cut = false;
	heap__sort_segments(h);
	return st ? st : !interrupted() ? ST_OK : interrupt_status(e);
}
