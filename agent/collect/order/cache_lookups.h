/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Looks up in the swap cache the slots that slots.c is about to read. An entry names its slot
 * before the page is written there; until then the page is in the swap cache. So the cache is asked
 * after reading the entry and before reading the slot (examine/smear/METHOD.md, section 6), and its
 * pages are captured.
 */
#ifndef RAMSEAL_AGENT_COLLECT_ORDER_CACHE_LOOKUPS_H
#define RAMSEAL_AGENT_COLLECT_ORDER_CACHE_LOOKUPS_H

#include "agent/collect/order/slots.h"

/* Slots looked up at once: one piece. */
#define CACHE_LOOKUPS_MAX (STREAM_CHUNK / PAGE_SIZE)

/* All functions except the first accept NULL and then look up nothing. */
struct cache_lookups;

/* `cache` is owned from now on, also after ST_NOMEM. */
enum status cache_lookups_create(struct swap_cache *cache, struct cache_lookups **ret,
				 struct err *e);
void cache_lookups_destroy(struct cache_lookups *l);

/*
 * Looks up the slots of area `file` in the extents, at most CACHE_LOOKUPS_MAX pages, and counts the
 * results. Earlier results must have been taken.
 */
void cache_lookups_make(struct cache_lookups *l, uint32_t file, const struct rsz_extent *x,
			size_t n, struct slots_counts *counts);

/* The results as a piece for the file's stream of them. False: there are none. */
bool cache_lookups_pending(const struct cache_lookups *l);
bool cache_lookups_take(struct cache_lookups *l, const struct slots_file *f,
			struct stream_piece *p);

/* Joins two extents if the second begins where the first ends. */
static inline bool slots_join(struct rsz_extent *x, const struct rsz_extent *next)
{
	if (x->address + x->length != next->address || x->pass != next->pass)
		return false;
	x->length += next->length;
	return true;
}

#endif
