/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/examine/report/kit/timeline.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

/*
 * Measuring
 */

static void fold_timeline(struct timeline *t)
{
	for (size_t i = 0; i < TIMELINE_BINS / 2; i++)
		t->bins[i] = t->bins[2 * i] | t->bins[2 * i + 1];
	memset(t->bins + TIMELINE_BINS / 2, 0, TIMELINE_BINS / 2);
	t->shift++;
}

void timeline_scale(struct timeline *t, uint32_t kind, const struct rsz_chunk *c)
{
	if (!t->shift)
		t->shift = PAGE_SHIFT;
	for (size_t i = 0; i < c->n_extents; i++) {
		const struct rsz_extent *x = &c->extents[i];
		const uint64_t last = x->address + x->length - 1;

		if (x->end && (!t->start || x->start < t->start))
			t->start = x->start;
		t->end = MAX(t->end, x->end);
		if (!rsz_kind_is_physical(kind) || !x->length)
			continue;
		while (last >> t->shift >= TIMELINE_BINS)
			fold_timeline(t);
		memset(t->bins + (x->address >> t->shift), 1,
		       (size_t)((last >> t->shift) - (x->address >> t->shift) + 1));
	}
}

/*
 * Bands: addresses that nobody captured are left out where that saves room, so that a bank above
 * 4 GiB does not press the one below it flat.
 */

struct gap {
	size_t first, count; /* bins */
};

/* The largest gaps between what was captured, at most `max` of them, in order of address. */
static size_t find_gaps(const struct timeline *t, size_t first, size_t last, size_t least,
			struct gap *ret, size_t max)
{
	size_t n = 0;

	for (size_t i = first, end; i <= last; i = end) {
		struct gap g = { .first = i };
		size_t smallest = 0;

		for (end = i; end <= last && t->bins[end] == t->bins[i];)
			end++;
		g.count = end - i;
		if (t->bins[i] || g.count < least)
			continue;
		if (n < max) {
			ret[n++] = g;
			continue;
		}
		for (size_t k = 1; k < n; k++)
			if (ret[k].count < ret[smallest].count)
				smallest = k;
		if (ret[smallest].count >= g.count)
			continue;
		memmove(&ret[smallest], &ret[smallest + 1], (n - smallest - 1) * sizeof(*ret));
		ret[n - 1] = g;
	}
	return n;
}

static void add_band(struct timeline *t, size_t first, size_t last)
{
	t->bands[t->n_bands++] = (struct timeline_band){
		.first = (uint64_t)first << t->shift,
		.last = (((uint64_t)last + 1) << t->shift) - 1,
	};
}

/* Rows by size; no band is flatter than a few rows. */
static void share_rows(struct timeline *t)
{
	const unsigned breaks = TIMELINE__BREAK * (unsigned)(t->n_bands - 1);
	const unsigned least = 8, rows = TIMELINE_ROWS - breaks;
	const unsigned rest = rows - least * (unsigned)t->n_bands;
	double all = 0, seen = 0;
	unsigned at = 0, given = 0;

	for (size_t i = 0; i < t->n_bands; i++)
		all += (double)timeline__band_bytes(&t->bands[i]);
	for (size_t i = 0; i < t->n_bands; i++) {
		unsigned upto;

		seen += (double)timeline__band_bytes(&t->bands[i]);
		upto = (unsigned)(rest * (seen / all) + 0.5);
		t->bands[i].low = at;
		t->bands[i].high = at + least + upto - given;
		given = upto;
		at = t->bands[i].high + TIMELINE__BREAK;
	}
}

void timeline_fix(struct timeline *t)
{
	struct gap gaps[TIMELINE_BANDS - 1];
	size_t first = 0, last = TIMELINE_BINS - 1, covered = 0, n;

	while (first < TIMELINE_BINS && !t->bins[first])
		first++;
	if (first == TIMELINE_BINS)
		return;
	while (!t->bins[last])
		last--;
	for (size_t i = first; i <= last; i++)
		covered += t->bins[i];
	n = find_gaps(t, first, last, MAX(covered / 16, 1), gaps, ARRAY_SIZE(gaps));
	for (size_t i = 0; i < n; i++) {
		add_band(t, first, gaps[i].first - 1);
		first = gaps[i].first + gaps[i].count;
	}
	add_band(t, first, last);
	share_rows(t);
}

/*
 * Marking
 */

static unsigned column_of(const struct timeline *t, uint64_t ns)
{
	const double part = ((double)ns - (double)t->start) / fmax((double)(t->end - t->start), 1);

	return (unsigned)fmin(fmax(part, 0) * TIMELINE_COLUMNS, TIMELINE_COLUMNS - 1);
}

double timeline__row(const struct timeline_band *b, uint64_t address)
{
	return b->low +
	       (double)(address - b->first) / (double)timeline__band_bytes(b) * (b->high - b->low);
}

/* The columns of a span of time, as bits. */
struct span {
	uint64_t mask[TIMELINE_WORDS];
};

static void fill_bins(struct timeline *t, enum timeline_kind kind, unsigned low, unsigned high,
		      const struct span *s)
{
	for (unsigned row = low; row <= high; row++)
		for (size_t k = 0; k < TIMELINE_WORDS; k++)
			t->cells[kind][row][k] |= s->mask[k];
	t->has[kind] = true;
}

static void mark_span(struct timeline *t, enum timeline_kind kind, uint64_t first, uint64_t last,
		      const struct span *s)
{
	for (size_t i = 0; i < t->n_bands; i++) {
		const struct timeline_band *b = &t->bands[i];
		unsigned low, high;

		if (last < b->first || first > b->last)
			continue;
		low = (unsigned)timeline__row(b, MAX(first, b->first));
		high = (unsigned)timeline__row(b, MIN(last, b->last));
		fill_bins(t, kind, MIN(low, b->high - 1), MIN(high, b->high - 1), s);
	}
}

static enum timeline_kind timeline_kind_of(uint32_t kind, const struct rsz_extent *x,
					   uint32_t state)
{
	if (state == PAGE_UNREADABLE)
		return TIMELINE_UNREADABLE;
	if (state == PAGE_SKIPPED)
		return TIMELINE_SKIPPED;
	if (kind == RSZ_KIND_TABLES_BEFORE)
		return TIMELINE_BEFORE;
	if (kind == RSZ_KIND_TABLES_AFTER)
		return TIMELINE_AFTER;
	return x->pass ? TIMELINE_AGAIN : TIMELINE_MEMORY;
}

/* Its pages, one mark for each run that is of one kind. */
static void mark_extent(struct timeline *t, uint32_t kind, const struct rsz_extent *x,
			const struct page_status *pages)
{
	const unsigned left = column_of(t, x->start), right = column_of(t, x->end);
	const size_t n = rsz_extent_pages(x);
	struct span s = { { 0 } };

	for (unsigned i = left; i <= right; i++)
		s.mask[i / 64] |= UINT64_C(1) << i % 64;
	for (size_t at = 0, end; at < n; at = end) {
		const enum timeline_kind as = timeline_kind_of(kind, x, pages[at].state);

		for (end = at + 1; end < n && timeline_kind_of(kind, x, pages[end].state) == as;)
			end++;
		mark_span(t, as, x->address + at * PAGE_SIZE, x->address + end * PAGE_SIZE - 1, &s);
	}
}

void timeline_mark(struct timeline *t, uint32_t kind, const struct rsz_chunk *c)
{
	const struct page_status *pages = c->pages;

	for (size_t i = 0; rsz_kind_is_physical(kind) && i < c->n_extents; i++) {
		if (c->extents[i].end)
			mark_extent(t, kind, &c->extents[i], pages);
		pages += rsz_extent_pages(&c->extents[i]);
	}
}

uint64_t timeline_cell_ns(const struct timeline *t)
{
	return MAX((t->end - t->start) / TIMELINE_COLUMNS, 1);
}

uint64_t timeline_cell_bytes(const struct timeline *t)
{
	uint64_t most = 0;

	for (size_t i = 0; i < t->n_bands; i++)
		most = MAX(most, timeline__band_bytes(&t->bands[i]) /
					 (t->bands[i].high - t->bands[i].low));
	return most;
}
