/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ranges of physical addresses, `first`..`last` inclusive, so that the top of the address space
 * needs no special case and an end can never overflow.
 */
#ifndef RAMSEAL_BASE_RANGE_H
#define RAMSEAL_BASE_RANGE_H

#include <stdbool.h>

#include "formats/base/err.h"

struct range {
	uint64_t first;
	uint64_t last; /* inclusive; first <= last always */
};

/* Zero-initialise. Owned by whoever declares it; range_list_deinit() frees and zeroes. */
struct range_list {
	struct range *at;
	size_t count;
	size_t room;
};

void range_list_deinit(struct range_list *l);
#define _cleanup_ranges_ CLEANUP(range_list_deinit)

/* Appends [first, last]; a range that runs backwards is ST_CORRUPT. */
enum status range_list_add(struct range_list *l, uint64_t first, uint64_t last, struct err *e);

/* Makes `to` a copy of `from`, replacing what it held. */
enum status range_list_copy(struct range_list *to, const struct range_list *from, struct err *e);

/* What range_list_tidy() had to fix. All zero: the list already was a proper map. */
struct range_faults {
	size_t unsorted;    /* ranges that began before their predecessor */
	size_t overlapping; /* ranges that shared addresses with another (counted once each) */
	size_t beyond;      /* ranges cut or dropped because they reach past PHYS_LIMIT */
	size_t partial;     /* ends that lay inside a page and were moved inwards to whole pages */
};

/*
 * Turns any list into a map: sorted, no overlaps, whole pages, below PHYS_LIMIT. Adjacent ranges
 * stay apart (they may come from different banks) but overlapping ones are merged, and so are those
 * that meet inside a page: firmware tables split "System RAM" at any byte, and the page is RAM all
 * the same. A page that is only partly covered is left out, because half a page of RAM is
 * firmware's, not the kernel's.
 * `ret` may be NULL.
 */
void range_list_tidy(struct range_list *l, struct range_faults *ret);

/* Merges ranges that touch. The list must be tidy. */
void range_list_join(struct range_list *l);

/* Sum of the lengths. The list must be tidy (below 2^52 the sum cannot overflow). */
uint64_t range_list_bytes(const struct range_list *l);

/* True if both name the same addresses, however they are cut. Both must be tidy. */
bool range_list_same(const struct range_list *a, const struct range_list *b);

/* Appends the parts of `a` that are not in `b`. Both must be tidy; so is the result. */
enum status range_list_subtract(const struct range_list *a, const struct range_list *b,
				struct range_list *ret, struct err *e);

/*
 * The index of the first range that ends at or after `addr`, or the count. The list must be tidy.
 */
size_t range_list_from(const struct range_list *l, uint64_t addr);

/* The range that holds `addr`, or NULL. The list must be tidy. O(log n). */
const struct range *range_list_find(const struct range_list *l, uint64_t addr);

static inline uint64_t range_bytes(struct range r)
{
	return r.last - r.first + 1;
}

#endif
