/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/report/timeline.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "agent/report/svg.h"

/*
 * Measuring
 */

static void fold(struct timeline *t)
{
	for (size_t i = 0; i < TIMELINE_BINS / 2; i++)
		t->bins[i] = t->bins[2 * i] | t->bins[2 * i + 1];
	memset(t->bins + TIMELINE_BINS / 2, 0, TIMELINE_BINS / 2);
	t->shift++;
}

void timeline_measure(struct timeline *t, uint32_t kind, const struct rsz_chunk *c)
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
			fold(t);
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

static uint64_t band_bytes(const struct timeline_band *b)
{
	return b->last - b->first + 1;
}

/* Between two bands, so that the addresses at their ends can both be read. */
#define BREAK_ROWS 8

/* Rows by size; no band is flatter than a few rows. */
static void share_rows(struct timeline *t)
{
	const unsigned breaks = BREAK_ROWS * (unsigned)(t->n_bands - 1);
	const unsigned least = 8, rows = TIMELINE_ROWS - breaks;
	const unsigned rest = rows - least * (unsigned)t->n_bands;
	double all = 0, seen = 0;
	unsigned at = 0, given = 0;

	for (size_t i = 0; i < t->n_bands; i++)
		all += (double)band_bytes(&t->bands[i]);
	for (size_t i = 0; i < t->n_bands; i++) {
		unsigned upto;

		seen += (double)band_bytes(&t->bands[i]);
		upto = (unsigned)(rest * (seen / all) + 0.5);
		t->bands[i].low = at;
		t->bands[i].high = at + least + upto - given;
		given = upto;
		at = t->bands[i].high + BREAK_ROWS;
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

static double row_of(const struct timeline_band *b, uint64_t address)
{
	return b->low + (double)(address - b->first) / (double)band_bytes(b) * (b->high - b->low);
}

/* The columns of a span of time, as bits. */
struct span {
	uint64_t mask[TIMELINE_WORDS];
};

static void fill(struct timeline *t, enum timeline_kind kind, unsigned low, unsigned high,
		 const struct span *s)
{
	for (unsigned row = low; row <= high; row++)
		for (size_t k = 0; k < TIMELINE_WORDS; k++)
			t->cells[kind][row][k] |= s->mask[k];
	t->has[kind] = true;
}

static void mark(struct timeline *t, enum timeline_kind kind, uint64_t first, uint64_t last,
		 const struct span *s)
{
	for (size_t i = 0; i < t->n_bands; i++) {
		const struct timeline_band *b = &t->bands[i];
		unsigned low, high;

		if (last < b->first || first > b->last)
			continue;
		low = (unsigned)row_of(b, MAX(first, b->first));
		high = (unsigned)row_of(b, MIN(last, b->last));
		fill(t, kind, MIN(low, b->high - 1), MIN(high, b->high - 1), s);
	}
}

static enum timeline_kind kind_of(uint32_t kind, const struct rsz_extent *x, uint32_t state)
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
		const enum timeline_kind as = kind_of(kind, x, pages[at].state);

		for (end = at + 1; end < n && kind_of(kind, x, pages[end].state) == as;)
			end++;
		mark(t, as, x->address + at * PAGE_SIZE, x->address + end * PAGE_SIZE - 1, &s);
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
		most = MAX(most, band_bytes(&t->bands[i]) / (t->bands[i].high - t->bands[i].low));
	return most;
}

/*
 * Drawing
 */

#define PLOT_LEFT   118
#define PLOT_TOP    44
#define PLOT_BOTTOM (PLOT_TOP + 2 * TIMELINE_ROWS)
#define PLOT_RIGHT  (PLOT_LEFT + 2 * TIMELINE_COLUMNS)
#define LANE_PITCH  20

static const struct svg_legend legends[TIMELINE_KINDS] = {
	[TIMELINE_BEFORE] = { "page tables, before", 3 },
	[TIMELINE_MEMORY] = { "memory", 0 },
	[TIMELINE_AGAIN] = { "memory, again", 1 },
	[TIMELINE_AFTER] = { "page tables, after", 4 },
	[TIMELINE_UNREADABLE] = { "unreadable", 2 },
	[TIMELINE_SKIPPED] = { "skipped", 7 },
};

static bool is_set(const struct timeline *t, unsigned kind, unsigned row, unsigned column)
{
	return t->cells[kind][row][column / 64] >> column % 64 & 1;
}

/* The runs of each row, as lines as thick as a cell. */
static void draw_cells(struct doc *d, const struct timeline *t, unsigned kind)
{
	doc_printf(d, "<path class=\"cells l%u\" d=\"", legends[kind].series);
	for (unsigned row = 0; row < TIMELINE_ROWS; row++) {
		for (unsigned i = 0, end; i < TIMELINE_COLUMNS; i = end + 1) {
			for (end = i; end < TIMELINE_COLUMNS && is_set(t, kind, row, end);)
				end++;
			if (end > i)
				doc_printf(d, "M%u %uh%u", PLOT_LEFT + 2 * i,
					   PLOT_BOTTOM - 2 * row - 1, 2 * (end - i));
		}
	}
	doc_put(d, "\"/>");
}

static double y_of(double row)
{
	return PLOT_BOTTOM - 2 * row;
}

static void address_label(struct doc *d, double row, uint64_t address)
{
	char text[NUMBER_MAX];

	snprintf(text, sizeof(text), "0x%" PRIx64, address);
	doc_printf(d, "<path class=\"axis\" d=\"M%d %.1fh-4\"/>", PLOT_LEFT, y_of(row));
	svg_text(d, PLOT_LEFT - 7, y_of(row) + 4, "end", "mono", text);
}

/* Its ends, and round addresses between them where there is room for a label. */
static void draw_band_axis(struct doc *d, const struct timeline_band *b)
{
	const double rows = b->high - b->low;
	const double step_least = (double)band_bytes(b) * 14 / rows;
	uint64_t step = PAGE_SIZE;

	while ((double)step < step_least)
		step *= 2;
	address_label(d, b->low, b->first);
	if (rows >= 16)
		address_label(d, b->high, b->last + 1);
	for (uint64_t at = (b->first / step + 1) * step; at < b->last; at += step) {
		const double row = row_of(b, at);

		if (row - b->low < 9 || b->high - row < 9)
			continue;
		doc_printf(d, "<path class=\"grid\" d=\"M%d %.1fH%d\"/>", PLOT_LEFT, y_of(row),
			   PLOT_RIGHT);
		address_label(d, row, at);
	}
}

static void draw_bands(struct doc *d, const struct timeline *t)
{
	for (size_t i = 0; i < t->n_bands; i++) {
		const struct timeline_band *b = &t->bands[i];

		doc_printf(d,
			   "<rect class=\"panel\" x=\"%d\" y=\"%.1f\" width=\"%d\" "
			   "height=\"%.1f\"/>",
			   PLOT_LEFT, y_of(b->high), PLOT_RIGHT - PLOT_LEFT,
			   y_of(b->low) - y_of(b->high));
		draw_band_axis(d, b);
		if (i)
			doc_printf(
				d,
				"<text class=\"soft small halo\" text-anchor=\"middle\" x=\"%d\" "
				"y=\"%.1f\">nothing was captured in between</text>",
				(PLOT_LEFT + PLOT_RIGHT) / 2, y_of(b->low) + BREAK_ROWS + 4.0);
	}
}

static unsigned lane_series(uint32_t kind)
{
	switch (kind) {
	case RSZ_KIND_TABLES_BEFORE:
		return legends[TIMELINE_BEFORE].series;
	case RSZ_KIND_TABLES_AFTER:
		return legends[TIMELINE_AFTER].series;
	case RSZ_KIND_MEMORY:
		return legends[TIMELINE_MEMORY].series;
	default:
		return 7;
	}
}

/* On a plate of its own, for the bar has a pattern. */
static void lane_label_inside(struct doc *d, double right, double y, const char *time)
{
	const double width = svg_width(time, 11) + 8;

	doc_printf(d,
		   "<rect class=\"back\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" "
		   "height=\"12\"/>",
		   right - width - 4, y, width);
	svg_text(d, right - width / 2 - 4, y + 10, "middle", "small", time);
}

static void draw_lane(struct doc *d, const struct timeline_lane *l, const struct scale *x,
		      const struct timeline *t, double y)
{
	const double left = scale_at(x, (double)l->start - (double)t->start);
	const double right = fmax(scale_at(x, (double)l->end - (double)t->start), left + 1.5);
	char time[NUMBER_MAX];

	number_duration(l->end - l->start, time);
	doc_printf(d, "<text class=\"small\" x=\"%d\" y=\"%.1f\" text-anchor=\"end\">",
		   PLOT_LEFT - 7, y + 10);
	doc_text_cut(d, l->name, 18);
	doc_printf(d,
		   "</text><rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"12\" "
		   "fill=\"url(#p%u)\"/>",
		   left, y, right - left, lane_series(l->kind));
	if (right + svg_width(time, 11) + 8 < PLOT_RIGHT)
		svg_text(d, right + 5, y + 10, "start", "small halo", time);
	else if (left - svg_width(time, 11) - 8 > PLOT_LEFT)
		svg_text(d, left - 5, y + 10, "end", "small halo", time);
	else
		lane_label_inside(d, right, y, time);
}

static double draw_lanes(struct doc *d, const struct timeline *t, const struct timeline_lane *lanes,
			 size_t n, const struct scale *x, double y)
{
	for (size_t i = 0; i < n; i++) {
		if (!lanes[i].end)
			continue;
		draw_lane(d, &lanes[i], x, t, y);
		y += LANE_PITCH;
	}
	return y;
}

static size_t count_lanes(const struct timeline_lane *lanes, size_t n)
{
	size_t timed = 0;

	for (size_t i = 0; i < n; i++)
		timed += lanes[i].end != 0;
	return timed;
}

void timeline_draw(struct doc *d, const struct timeline *t, const struct timeline_lane *lanes,
		   size_t n_lanes, bool alone)
{
	const double span = fmax((double)(t->end - t->start), 1);
	const struct scale x = { .to = span, .low = PLOT_LEFT, .high = PLOT_RIGHT };
	const double bottom = PLOT_BOTTOM + 10 + LANE_PITCH * (double)count_lanes(lanes, n_lanes);
	struct svg_legend shown[TIMELINE_KINDS];
	double ticks[TICKS_MAX];
	const size_t n_ticks = ticks_linear(0, span, 8, ticks);
	size_t n = 0;

	svg_begin(d, SVG_WIDTH, bottom + 44, "Physical address against capture time", alone);
	for (unsigned i = 0; i < TIMELINE_KINDS; i++)
		if (t->has[i])
			shown[n++] = legends[i];
	doc_put(d, "<g>");
	svg_text(d, PLOT_LEFT, PLOT_TOP - 12, "end", "soft", "physical address ");
	svg_legend(d, PLOT_LEFT + 20, 16, shown, n);
	doc_put(d, "</g>");
	draw_bands(d, t);
	svg_axis_x(d, &x, PLOT_TOP, bottom, ticks, n_ticks, TICK_NS,
		   "time since the first capture");
	for (unsigned i = 0; i < TIMELINE_KINDS; i++)
		if (t->has[i])
			draw_cells(d, t, i);
	draw_lanes(d, t, lanes, n_lanes, &x, PLOT_BOTTOM + 8);
	svg_end(d);
}
