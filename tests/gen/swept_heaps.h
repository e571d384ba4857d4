/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Heaps that are walked twice, page by page and with the notes that a sweep makes of their pages
 * (agent/examine/heap/nt/notes.c): both must tell of the same blocks, and count the same.
 */
#ifndef RAMSEAL_TESTS_GEN_SWEPT_HEAPS_H
#define RAMSEAL_TESTS_GEN_SWEPT_HEAPS_H

#include <stdlib.h>
#include <string.h>

#include "agent/examine/heap/heap.h"
#include "formats/base/array.h"
#include "formats/base/page.h"

struct swept_heaps {
	const struct memory_view *under;
	uint64_t asked;  /* how often for a page by its address */
	uint64_t sweeps; /* and how often for all of some ranges, */
	uint64_t pages;  /* of so many */
};

static inline const uint8_t *swept_page(void *context, uint64_t va)
{
	struct swept_heaps *s = context;

	s->asked++;
	return s->under->page(s->under->context, va);
}

static inline bool swept_absent(void *context, uint64_t va)
{
	struct swept_heaps *s = context;

	return view_absent(s->under, va);
}

/* From the last page to the first: no order is promised. Neighbours that are lost come as one. */
static inline enum status swept_sweep(void *context, const struct range_list *ranges,
				      const struct view_visitor *v, struct err *e)
{
	struct swept_heaps *s = context;
	enum status st = ST_OK;

	s->sweeps++;
	for (size_t i = ranges->count; i-- > 0;)
		for (uint64_t end = ranges->at[i].last + 1; end > ranges->at[i].first && !st;) {
			const uint64_t last = end;
			const uint8_t *bytes;

			do {
				end -= PAGE_SIZE;
				bytes = s->under->page(s->under->context, end);
			} while (!bytes && end > ranges->at[i].first &&
				 !s->under->page(s->under->context, end - PAGE_SIZE));
			s->pages += (last - end) / PAGE_SIZE;
			st = v->pages(v->context, end, (last - end) / PAGE_SIZE, bytes, e);
		}
	return st;
}

struct swept_list {
	struct heap_allocation *at;
	size_t count, room;
	struct heap_stats stats; /* of the heap that was walked last */
};

static inline enum status swept_take(void *context, const struct heap_allocation *a, struct err *e)
{
	struct swept_list *l = context;

	if (l->count == l->room)
		l->at = array_grow(l->at, &l->room, sizeof(*l->at));
	if (!l->at)
		abort();
	l->at[l->count++] = *a;
	return ST_OK;
}

static inline bool swept_same_block(const struct heap_allocation *a,
				    const struct heap_allocation *b)
{
	return a->heap == b->heap && a->address == b->address && a->size == b->size &&
	       a->requested == b->requested && a->container == b->container &&
	       a->trace == b->trace && a->place == b->place && a->state == b->state &&
	       a->frames == b->frames && a->has_requested == b->has_requested &&
	       a->island == b->island;
}

static inline bool swept_same(const struct swept_list *a, const struct swept_list *b)
{
	if (a->count != b->count || a->stats.cut != b->stats.cut ||
	    memcmp(&a->stats, &b->stats, offsetof(struct heap_stats, cut)))
		return false;
	for (size_t i = 0; i < a->count; i++)
		if (!swept_same_block(&a->at[i], &b->at[i]))
			return false;
	return true;
}

/*
 * False: they differ, or one of them failed. `ret`, which may be NULL, counts what the walk with
 * notes asked for, and `*ret_plain` what the other did.
 */
static inline bool swept_heaps_agree(const struct heap_sources *from, struct swept_heaps *ret,
				     uint64_t *ret_plain)
{
	struct swept_heaps counts = { .under = from->memory }, by_page = counts;
	const struct memory_view swept = { swept_page, &counts, swept_absent, swept_sweep };
	const struct memory_view counted = { swept_page, &by_page, swept_absent, NULL };
	struct heap_sources with = *from, without = *from;
	struct heaps *plain = NULL, *noted = NULL;
	struct swept_list a = { 0 }, b = { 0 };
	const struct heap_visitor take_a = { swept_take, &a }, take_b = { swept_take, &b };
	bool same;

	with.memory = &swept;
	without.memory = &counted;
	same = !heaps_open(&without, &plain, NULL) && !heaps_open(&with, &noted, NULL) &&
	       heaps_count(plain) == heaps_count(noted);
	for (size_t i = 0; same && i < heaps_count(plain); i++) {
		a.count = b.count = 0;
		same = !heaps_walk(plain, i, &take_a, &a.stats, NULL) &&
		       !heaps_walk(noted, i, &take_b, &b.stats, NULL) && swept_same(&a, &b);
	}
	heaps_close(plain);
	heaps_close(noted);
	free(a.at);
	free(b.at);
	if (ret) {
		*ret = counts;
		*ret_plain = by_page.asked;
	}
	return same;
}

#endif
