/* SPDX-License-Identifier: Apache-2.0 */
#include "formats/base/range.h"

#include <inttypes.h>
#include <string.h>

#include "formats/base/array.h"

void range_list_deinit(struct range_list *l)
{
	free(l->at);
	*l = (struct range_list){ 0 };
}

enum status range_list_add(struct range_list *l, uint64_t first, uint64_t last, struct err *e)
{
	if (last < first)
		return err_set(e, ST_CORRUPT, "range 0x%" PRIx64 "-0x%" PRIx64 " runs backwards",
			       first, last);
	if (!ARRAY_ROOM(l->at, l->count, l->room))
		return err_nomem(e);
	l->at[l->count++] = (struct range){ .first = first, .last = last };
	return ST_OK;
}

enum status range_list_copy(struct range_list *to, const struct range_list *from, struct err *e)
{
	enum status st = ST_OK;

	to->count = 0;
	for (size_t i = 0; i < from->count && !st; i++)
		st = range_list_add(to, from->at[i].first, from->at[i].last, e);
	return st;
}

/* Cuts a range at PHYS_LIMIT; false if nothing is left of it. */
static bool cut_to_limit(struct range *r, struct range_faults *faults)
{
	if (r->last < PHYS_LIMIT)
		return true;
	faults->beyond++;
	r->last = PHYS_LIMIT - 1;
	return r->first < PHYS_LIMIT;
}

/* Shrinks a range to the whole pages that it covers; false if there is none. */
static bool shrink_to_pages(struct range *r, struct range_faults *faults)
{
	const uint64_t mask = PAGE_SIZE - 1;

	if ((r->first & mask) || (~r->last & mask))
		faults->partial++;
	r->first = (r->first + mask) & ~mask;
	if (r->last < mask || r->first > r->last - mask)
		return false;
	r->last = ((r->last + 1) & ~mask) - 1;
	return r->first < r->last;
}

static int range_by_first(const void *a, const void *b)
{
	const struct range *x = a, *y = b;

	if (x->first != y->first)
		return x->first < y->first ? -1 : 1;
	return x->last < y->last ? -1 : x->last > y->last;
}

/* Drops the ranges that `keep` rejects. */
static void filter_ranges(struct range_list *l, struct range_faults *faults,
			  bool (*keep)(struct range *r, struct range_faults *faults))
{
	size_t kept = 0;

	for (size_t i = 0; i < l->count; i++)
		if (keep(&l->at[i], faults))
			l->at[kept++] = l->at[i];
	l->count = kept;
}

/* Sorted input. Touching ranges become one only where the seam is inside a page. */
static void merge_ranges(struct range_list *l, struct range_faults *faults)
{
	size_t kept = 0;

	for (size_t i = 0; i < l->count; i++) {
		const struct range r = l->at[i];
		struct range *before = kept ? &l->at[kept - 1] : NULL;
		const bool overlaps = before && r.first <= before->last;
		const bool touches = before && r.first == before->last + 1;

		faults->overlapping += overlaps;
		if (overlaps || (touches && (r.first & (PAGE_SIZE - 1))))
			before->last = MAX(before->last, r.last);
		else
			l->at[kept++] = r;
	}
	l->count = kept;
}

void range_list_tidy(struct range_list *l, struct range_faults *ret)
{
	struct range_faults faults = { 0 };

	for (size_t i = 1; i < l->count; i++)
		faults.unsorted += l->at[i].first < l->at[i - 1].first;
	filter_ranges(l, &faults, cut_to_limit);
	if (l->count)
		qsort(l->at, l->count, sizeof(*l->at), range_by_first);
	merge_ranges(l, &faults);
	filter_ranges(l, &faults, shrink_to_pages);
	if (ret)
		*ret = faults;
}

void range_list_join(struct range_list *l)
{
	size_t kept = 0;

	for (size_t i = 0; i < l->count; i++) {
		if (kept && l->at[i].first == l->at[kept - 1].last + 1)
			l->at[kept - 1].last = l->at[i].last;
		else
			l->at[kept++] = l->at[i];
	}
	l->count = kept;
}

uint64_t range_list_bytes(const struct range_list *l)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < l->count; i++)
		sum += range_bytes(l->at[i]);
	return sum;
}

/* The end of the run of touching ranges that begins at index *i; *i moves behind it. */
static uint64_t joined_last(const struct range_list *l, size_t *i)
{
	uint64_t last = l->at[(*i)++].last;

	while (*i < l->count && l->at[*i].first == last + 1)
		last = l->at[(*i)++].last;
	return last;
}

bool range_list_same(const struct range_list *a, const struct range_list *b)
{
	size_t i = 0, j = 0;

	while (i < a->count && j < b->count) {
		if (a->at[i].first != b->at[j].first)
			return false;
		if (joined_last(a, &i) != joined_last(b, &j))
			return false;
	}
	return i == a->count && j == b->count;
}

/* What of one range is not in the list, whose ranges before index `from` all end before it. */
static enum status subtract_from(struct range r, const struct range_list *b, size_t from,
				 struct range_list *ret, struct err *e)
{
	for (; from < b->count && b->at[from].first <= r.last; from++) {
		const struct range hole = b->at[from];

		if (hole.first > r.first) {
			const enum status st = range_list_add(ret, r.first, hole.first - 1, e);

			if (st)
				return st;
		}
		if (hole.last >= r.last)
			return ST_OK;
		r.first = MAX(r.first, hole.last + 1);
	}
	return range_list_add(ret, r.first, r.last, e);
}

enum status range_list_subtract(const struct range_list *a, const struct range_list *b,
				struct range_list *ret, struct err *e)
{
	enum status st = ST_OK;
	size_t from = 0;

	for (size_t i = 0; i < a->count && !st; i++) {
		while (from < b->count && b->at[from].last < a->at[i].first)
			from++;
		st = subtract_from(a->at[i], b, from, ret, e);
	}
	return st;
}

size_t range_list_from(const struct range_list *l, uint64_t addr)
{
	return FIRST_WHERE(i, l->count, l->at[i].last >= addr);
}

const struct range *range_list_find(const struct range_list *l, uint64_t addr)
{
	const size_t i = range_list_from(l, addr);

	return i < l->count && l->at[i].first <= addr ? &l->at[i] : NULL;
}
