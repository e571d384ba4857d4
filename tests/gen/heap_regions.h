/* SPDX-License-Identifier: Apache-2.0 */
/* The memory of simulated heaps, as those see it who look for heaps in it. */
#ifndef RAMSEAL_TESTS_GEN_HEAP_REGIONS_H
#define RAMSEAL_TESTS_GEN_HEAP_REGIONS_H

#include "agent/simulator/heap.h"
#include "formats/base/range.h"

/* Where the byte at `va` is, committed or not; NULL: none of the heap's. */
static inline uint8_t *heap_region_byte(const struct sim_heap *h, uint64_t va, bool *ret_committed)
{
	for (size_t i = 0; i < h->region_count; i++) {
		const struct sim_heap_region *r = &h->regions[i];
		const uint64_t page = (va - r->va) / PAGE_SIZE;

		if (va < r->va || page >= r->pages)
			continue;
		*ret_committed = r->committed[page];
		return r->bytes + (va - r->va);
	}
	return NULL;
}

/* What a program's VADs are of it; `l` has room. */
static inline void heap_region_ranges(const struct sim_heap *h, struct range_list *l)
{
	for (size_t i = 0; i < h->region_count; i++)
		l->at[l->count++] = (struct range){
			h->regions[i].va,
			h->regions[i].va + h->regions[i].pages * PAGE_SIZE - 1,
		};
}

#endif
