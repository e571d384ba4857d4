/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "agent/shared/kernel/swap_cache_internal.h"

/*
 * Entries (mm/swap_table.h). In 6.18 and 6.19 what is cached is a pointer to its struct folio,
 * which is the first struct page; since 7.1 it is the frame's number with a mark, and what lies
 * above is a count of the slot's users and, since 7.2, a flag of pages of zeros. (The texts of
 * 6.18.15, 6.19.6, 7.1.13, 7.2.6 and 7.3.4 were read; of 7.0 only the BTF, which is that of 6.19.)
 * Which of the two it is, each entry says by itself: no pointer to a struct page has the mark, and
 * no entry with the mark is a pointer. A shadow has the lowest bit in all of them; SWP_TB_BAD, a
 * slot that there is not, is no pointer to a struct page.
 *
 *	shadow    |count 63-60|zero 59|              ...           |1|
 *	number    |count 63-60|zero 59|0 in 58-42|number in 41-2|  10|
 *	pointer   |                   address                  |  000|
 *
 * The widths are those of x86-64, where MAX_POSSIBLE_PHYSMEM_BITS is 52 (pgtable_64_types.h):
 * SWP_TB_PFN_BITS is 42, SWP_TB_COUNT_BITS 4, and with the flag SWP_TB_FLAGS_BITS 5.
 */
#define IS_SHADOW(entry)    ((entry) & 1)
#define IS_NUMBER(entry)    (((entry) & 3) == 2)
#define ZERO_FLAG           (UINT64_C(1) << 59)
#define NUMBER_SHIFT        2
#define NUMBER_BITS         40
#define NUMBER_SPARE(entry) ((entry) >> (NUMBER_SHIFT + NUMBER_BITS) & 0x1ffff)

bool swap_cache__table_is_sound(const struct linux_swap_layout *l)
{
	return l->areas && l->tables && l->cluster && l->cluster % 8 == 0 &&
	       l->cluster <= PAGE_SIZE && l->table % 8 == 0 && l->table < l->cluster &&
	       l->clusters % 8 == 0 && l->clusters < PAGE_SIZE &&
	       (l->cluster_slots == 256 || l->cluster_slots == 512);
}

/*
 * What the entry itself says. Until its first writing a page is in the cache, and behind the last
 * it leaves a shadow, for as long as somebody's entry names the slot; one that is free is nobody's.
 */
static enum swap_cache_state classify_table_entry(struct swap_cache *c,
						  const struct swap_lookup *want, uint64_t entry,
						  struct swap_trace *t)
{
	const uint64_t number = entry >> NUMBER_SHIFT & ((UINT64_C(1) << NUMBER_BITS) - 1);

	if (IS_SHADOW(entry))
		return c->known_tables ? SWAP_CACHE_ABSENT : SWAP_CACHE_UNKNOWN;
	if (IS_NUMBER(entry))
		return NUMBER_SPARE(entry)
			       ? SWAP_CACHE_UNKNOWN
			       : swap_cache__page(c, want, c->vmemmap + number * c->layout.page, t);
	return entry % 8 ? SWAP_CACHE_UNKNOWN : swap_cache__page(c, want, entry, t);
}

enum swap_cache_state swap_cache__by_table(struct swap_cache *c, const struct swap_lookup *want,
					   struct swap_trace *t)
{
	const struct linux_swap_layout *l = &c->layout;
	uint64_t area, cluster, table, entry;
	enum swap_cache_state ret;

	if (!swap_cache__area(c, want, t, &area) ||
	    !swap_cache__step(c, t, area + l->clusters, &cluster))
		return SWAP_CACHE_UNKNOWN;
	cluster += want->slot / l->cluster_slots * l->cluster;
	/* A cluster has no table (NULL) as long as none of its slots is in use. */
	if (!swap_cache__step(c, t, cluster + l->table, &table) ||
	    !swap_cache__step(c, t, table + want->slot % l->cluster_slots * 8, &entry))
		return SWAP_CACHE_UNKNOWN;
	ret = classify_table_entry(c, want, entry, t);
	if (c->zeros == SWAP_ZEROS_FLAG && entry & ZERO_FLAG &&
	    (ret == SWAP_CACHE_ABSENT || ret == SWAP_CACHE_BUSY))
		ret = SWAP_CACHE_ZEROS;
	return ret;
}
