/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <math.h>

#include "agent/examine/report/kit/timeline.h"

#define PLOT_TOP    44 /* without further rows of the legend */
#define AXIS_HEIGHT 44
#define LANE_HEIGHT 12

/*
 * Where the plot is, and how large its cells are. On a small screen four cells are drawn as one:
 * what cannot be told apart there need not be in the file twice.
 */
struct plot {
	bool narrow;
	unsigned merge;     /* columns and rows that become one */
	double column, row; /* of the timeline's own cells */
	double left, right, top, bottom;
	double lane_pitch;
};

static struct plot plot_of(enum svg_form form, double legend)
{
	const bool narrow = form == SVG_NARROW;
	struct plot p = {
		.narrow = narrow,
		.merge = narrow ? 2 : 1,
		.column = narrow ? 280. / TIMELINE_COLUMNS : 2,
		.row = narrow ? 1.5 : 2,
		.left = narrow ? 96 : 118,
		.top = PLOT_TOP + legend,
		.lane_pitch = narrow ? 32 : 20,
	};

	p.right = p.left + p.column * TIMELINE_COLUMNS;
	p.bottom = p.top + p.row * TIMELINE_ROWS;
	return p;
}

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

/* Whether any of the cells that are drawn as one is. */
static bool any_set(const struct timeline *t, unsigned kind, unsigned row, unsigned column,
		    unsigned merge)
{
	for (unsigned i = 0; i < merge * merge; i++)
		if (is_set(t, kind, row * merge + i / merge, column * merge + i % merge))
			return true;
	return false;
}

/* The runs of each row, as lines as thick as a cell. */
static void draw_cells(struct doc *d, const struct timeline *t, unsigned kind, const struct plot *p)
{
	const unsigned rows = TIMELINE_ROWS / p->merge, columns = TIMELINE_COLUMNS / p->merge;
	const double width = p->column * p->merge, height = p->row * p->merge;

	doc_printf(d, "<path class=\"cells %sl%u\" d=\"", p->narrow ? "rough " : "",
		   legends[kind].series);
	for (unsigned row = 0; row < rows; row++) {
		for (unsigned i = 0, end; i < columns; i = end + 1) {
			for (end = i; end < columns && any_set(t, kind, row, end, p->merge);)
				end++;
			if (end > i)
				doc_printf(d, "M%.6g %.6gh%.6g", p->left + width * i,
					   p->bottom - height * (row + .5), width * (end - i));
		}
	}
	doc_put(d, "\"/>");
}

static double y_of(const struct plot *p, double row)
{
	return p->bottom - p->row * row;
}

static void address_label(struct doc *d, const struct plot *p, double row, uint64_t address)
{
	char text[NUMBER_MAX];

	snprintf(text, sizeof(text), "0x%" PRIx64, address);
	doc_printf(d, "<path class=\"axis\" d=\"M%.0f %.1fh-4\"/>", p->left, y_of(p, row));
	svg_text(d, p->left - 7, y_of(p, row) + 4, "end", "mono", text);
}

/* Its ends, and round addresses between them where there is room for a label. */
static void draw_band_axis(struct doc *d, const struct timeline_band *b, const struct plot *p)
{
	const double rows = b->high - b->low, apart = 18 / p->row; /* rows to a label */
	const double step_least = (double)timeline__band_bytes(b) * 28 / p->row / rows;
	uint64_t step = PAGE_SIZE;

	while ((double)step < step_least)
		step *= 2;
	address_label(d, p, b->low, b->first);
	if (rows >= 32 / p->row)
		address_label(d, p, b->high, b->last + 1);
	for (uint64_t at = (b->first / step + 1) * step; at < b->last; at += step) {
		const double row = timeline__row(b, at);

		if (row - b->low < apart || b->high - row < apart)
			continue;
		doc_printf(d, "<path class=\"grid\" d=\"M%.0f %.1fH%.0f\"/>", p->left, y_of(p, row),
			   p->right);
		address_label(d, p, row, at);
	}
}

static void draw_bands(struct doc *d, const struct timeline *t, const struct plot *p)
{
	for (size_t i = 0; i < t->n_bands; i++) {
		const struct timeline_band *b = &t->bands[i];

		doc_printf(d,
			   "<rect class=\"panel\" x=\"%.0f\" y=\"%.1f\" width=\"%.0f\" "
			   "height=\"%.1f\"/>",
			   p->left, y_of(p, b->high), p->right - p->left,
			   y_of(p, b->low) - y_of(p, b->high));
		draw_band_axis(d, b, p);
		if (i)
			svg_text(d, (p->left + p->right) / 2,
				 y_of(p, b->low) + p->row * TIMELINE__BREAK / 2 + 4, "middle",
				 "soft small halo", "nothing captured in between");
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

/* Its name left of it, and how long it took where there is room. */
static void label_beside(struct doc *d, const struct timeline_lane *l, const struct plot *p,
			 double left, double right, double y)
{
	char time[NUMBER_MAX];

	number_duration(l->end - l->start, time);
	doc_printf(d, "<text class=\"small\" x=\"%.0f\" y=\"%.1f\" text-anchor=\"end\">",
		   p->left - 7, y + 10);
	doc_text_cut(d, l->name, svg_fit(l->name, 24, 11, p->left - 8));
	doc_put(d, "</text>");
	if (right + svg_width(time, 11) + 8 < p->right)
		svg_text(d, right + 5, y + 10, "start", "small halo", time);
	else if (left - svg_width(time, 11) - 8 > p->left)
		svg_text(d, left - 5, y + 10, "end", "small halo", time);
	else
		lane_label_inside(d, right, y, time);
}

static void label_above(struct doc *d, const struct timeline_lane *l, double y)
{
	doc_printf(d, "<text class=\"small halo\" x=\"0\" y=\"%.1f\">", y - 4);
	doc_text_cut(d, l->name, svg_fit(l->name, 48, 11, SVG_WIDTH_NARROW - 90));
	doc_put(d, ", ");
	doc_duration(d, l->end - l->start);
	doc_put(d, "</text>");
}

static void draw_lane(struct doc *d, const struct timeline_lane *l, const struct scale *x,
		      const struct timeline *t, const struct plot *p, double y)
{
	const double left = scale_at(x, (double)l->start - (double)t->start);
	const double right = fmax(scale_at(x, (double)l->end - (double)t->start), left + 1.5);

	doc_printf(d,
		   "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%d\" "
		   "fill=\"url(#p%u)\"/>",
		   left, y, right - left, LANE_HEIGHT, lane_series(l->kind));
	if (p->narrow)
		label_above(d, l, y);
	else
		label_beside(d, l, p, left, right, y);
}

static void draw_lanes(struct doc *d, const struct timeline *t, const struct timeline_lane *lanes,
		       size_t n, const struct scale *x, const struct plot *p)
{
	double y = p->bottom + p->lane_pitch - LANE_HEIGHT;

	for (size_t i = 0; i < n; i++) {
		if (!lanes[i].end)
			continue;
		draw_lane(d, &lanes[i], x, t, p, y);
		y += p->lane_pitch;
	}
}

static size_t count_lanes(const struct timeline_lane *lanes, size_t n)
{
	size_t timed = 0;

	for (size_t i = 0; i < n; i++)
		timed += lanes[i].end != 0;
	return timed;
}

static size_t legend_of(const struct timeline *t, struct svg_legend ret[static TIMELINE_KINDS])
{
	size_t n = 0;

	for (unsigned i = 0; i < TIMELINE_KINDS; i++)
		if (t->has[i])
			ret[n++] = legends[i];
	return n;
}

void timeline_draw(struct doc *d, const struct timeline *t, const struct timeline_lane *lanes,
		   size_t n_lanes, enum svg_form form)
{
	const double span = fmax((double)(t->end - t->start), 1);
	const double legend_x = form == SVG_NARROW ? 0 : 138;
	struct svg_legend shown[TIMELINE_KINDS];
	const size_t n = legend_of(t, shown);
	const struct plot p = plot_of(form, svg_legend_more(form, legend_x, shown, n));
	const struct scale x = { .to = span, .low = p.left, .high = p.right };
	const double bottom = p.bottom + 10 + p.lane_pitch * (double)count_lanes(lanes, n_lanes);
	double ticks[TICKS_MAX];
	const size_t n_ticks = ticks_linear(0, span, p.narrow ? 4 : 8, ticks);

	svg_begin(d, form, svg_form_width(form), bottom + AXIS_HEIGHT,
		  "Physical address against capture time");
	svg_legend(d, form, legend_x, 16, shown, n);
	svg_text(d, p.narrow ? 0 : 16, p.top - 12, "start", "soft", "physical address");
	draw_bands(d, t, &p);
	svg_axis_x(d, form, &x, p.top, bottom, ticks, n_ticks, TICK_NS,
		   "time since the first capture");
	for (unsigned i = 0; i < TIMELINE_KINDS; i++)
		if (t->has[i])
			draw_cells(d, t, i, &p);
	draw_lanes(d, t, lanes, n_lanes, &x, &p);
	svg_end(d);
}
