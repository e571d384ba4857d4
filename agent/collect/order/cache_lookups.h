/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Looks up in the swap cache the slots that slots.c is about to read. An entry names its slot
 * before the page is written there; until then the page is in the swap cache. So the cache is asked
 * after the entry was read and before the slot is (examine/smear/METHOD.md, section 6), and what it
 * has is captured.
 */
#ifndef RAMSEAL_AGENT_COLLECT_ORDER_CACHE_LOOKUPS_H
#define RAMSEAL_AGENT_COLLECT_ORDER_CACHE_LOOKUPS_H

#include "agent/collect/order/slots.h"

/* Slots that are looked for in one go: a piece. */
#define CACHE_LOOKUPS_MAX (STREAM_CHUNK / PAGE_SIZE)

/* All functions but the first accept NULL: then nothing is looked up. */
struct cache_lookups;

/* `cache` is owned from now on, also after ST_NOMEM. */
enum status cache_lookups_create(struct swap_cache *cache, struct cache_lookups **ret,
				 struct err *e);
void cache_lookups_destroy(struct cache_lookups *l);

/*
 * Looks for the slots of area `file` that the extents cover, CACHE_LOOKUPS_MAX pages at most, and
 * counts what it saw. What was made before must have been taken.
 */
void cache_lookups_make(struct cache_lookups *l, uint32_t file, const struct rsz_extent *x,
			size_t n, struct slots_counts *counts);

/* What was seen, as a piece for the stream that the file has for it. False: there is nothing. */
bool cache_lookups_pending(const struct cache_lookups *l);
bool cache_lookups_take(struct cache_lookups *l, const struct slots_file *f,
			struct stream_piece *p);

/* Makes one extent of two if the second goes on where the first ends. */
static inline bool slots_join(struct rsz_extent *x, const struct rsz_extent *next)
{
	if (x->address + x->length != next->address || x->pass != next->pass)
		return false;
	x->length += next->length;
	return true;
}

#endif
