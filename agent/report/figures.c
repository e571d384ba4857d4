/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/report/figures.h"

#include <math.h>
#include <string.h>

/*
 * Bars
 */

#define BARS_TOP       34 /* the legend */
#define BARS_LEFT      196
#define BARS_RIGHT     660
#define BAR_PITCH      22
#define BAR_HEIGHT     15
#define NAME_MAX_SHOWN 26

static double bar_sum(const struct figure_bar *b, size_t n)
{
	double sum = 0;

	for (size_t i = 0; i < n; i++)
		sum += (double)b->parts[i];
	return sum;
}

static void draw_bar(struct doc *d, const struct figure_bars *f, const struct figure_bar *b,
		     const struct scale *s, double y)
{
	double sum = 0, x = s->low;

	doc_printf(d, "<text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">", BARS_LEFT - 8, y + 12);
	doc_text_cut(d, b->name, NAME_MAX_SHOWN - MIN(strlen(b->suffix), NAME_MAX_SHOWN / 2));
	doc_text(d, b->suffix);
	doc_put(d, "</text>");
	for (size_t i = 0; i < f->n_series; i++) {
		double end;

		if (!b->parts[i])
			continue;
		sum += (double)b->parts[i];
		/* What is there can be seen. */
		end = fmax(scale_at(s, sum), x + 1.2);
		doc_printf(d,
			   "<rect class=\"edge\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" "
			   "height=\"%d\" fill=\"url(#p%u)\"/>",
			   x, y, end - x, BAR_HEIGHT, f->series[i].series % SVG_SERIES);
		x = end;
	}
	svg_text(d, BARS_RIGHT + 12, y + 12, "start", "soft", b->note);
}

void figure_bars(struct doc *d, const struct figure_bars *f, bool alone)
{
	const double bottom = BARS_TOP + (double)f->count * BAR_PITCH + 4;
	struct scale s = { .low = BARS_LEFT, .high = BARS_RIGHT, .to = 1 };
	double ticks[TICKS_MAX];
	size_t n;

	for (size_t i = 0; i < f->count; i++)
		s.to = fmax(s.to, bar_sum(&f->at[i], f->n_series));
	n = ticks_linear(0, s.to, 6, ticks);
	svg_begin(d, SVG_WIDTH, bottom + 44, f->title, alone);
	svg_legend(d, BARS_LEFT, 16, f->series, f->n_series);
	svg_axis_x(d, &s, BARS_TOP - 6, bottom, ticks, n, TICK_COUNT, f->unit);
	for (size_t i = 0; i < f->count; i++)
		draw_bar(d, f, &f->at[i], &s, BARS_TOP + (double)i * BAR_PITCH);
	svg_end(d);
}

/*
 * Windows
 */

#define WINDOWS_LEFT  84
#define WINDOWS_RIGHT (SVG_WIDTH - 24)
#define PANEL_HEIGHT  118
#define PANEL_PITCH   (PANEL_HEIGHT + 40)
#define PANELS_TOP    28

/* The octaves that any of them has, as a scale; at least a few, so that a single one has a place. */
static struct scale window_scale(const struct figure_window *at, size_t count)
{
	int low = WINDOW_OCTAVES, high = 0;

	for (size_t i = 0; i < count; i++) {
		for (int k = 0; k < WINDOW_OCTAVES; k++) {
			if (!at[i].w->octave[k])
				continue;
			low = MIN(low, k);
			high = MAX(high, k + 1);
		}
	}
	low = MIN(low, MAX(high - 5, 0));
	return (struct scale){
		.from = ldexp(1, MAX(low - 1, 0)),
		.to = ldexp(1, MAX(high + 1, low + 6)),
		.low = WINDOWS_LEFT,
		.high = WINDOWS_RIGHT,
		.log = true,
	};
}

static double highest_share(const struct figure_window *at, size_t count)
{
	double most = 0;

	for (size_t i = 0; i < count; i++)
		for (size_t k = 0; at[i].w->pages && k < WINDOW_OCTAVES; k++)
			most = fmax(most,
				    100 * (double)at[i].w->octave[k] / (double)at[i].w->pages);
	return most;
}

/* What is marked in each panel, and by which dashes. */
static const struct {
	const char *name, *dash;
} marks[] = { { "median", "" }, { "95 %", "7 4" }, { "maximum", "2 3" } };

/* The lines, and what they are at the right end of the title. */
static void draw_marks(struct doc *d, const struct window_summary *w, const struct scale *s,
		       double top, double bottom)
{
	const uint64_t at[] = { w->median, w->p95, w->max };
	double left = WINDOWS_RIGHT;

	for (size_t i = ARRAY_SIZE(marks); i-- > 0;) {
		const double x = scale_at(s, (double)at[i]);
		char time[NUMBER_MAX], text[2 * NUMBER_MAX];

		number_duration(at[i], time);
		snprintf(text, sizeof(text), "%s %s", marks[i].name, time);
		svg_text(d, left, top - 9, "end", "", text);
		left -= svg_width(text, 12) + 34;
		doc_printf(d,
			   "<path class=\"mark\" stroke-dasharray=\"%s\" "
			   "d=\"M%.1f %.1fV%.1fM%.1f %.1fh26\"/>",
			   marks[i].dash, x, top, bottom, left, top - 13);
		left -= 18;
	}
}

static void draw_panel(struct doc *d, const struct figure_window *f, const struct scale *x,
		       double top, double most, bool last)
{
	const double bottom = top + PANEL_HEIGHT;
	const struct scale y = { .to = most, .low = bottom, .high = top };
	double ticks[TICKS_MAX];
	char count[NUMBER_MAX];
	size_t n = ticks_linear(0, most, 4, ticks);

	number_count(f->w->pages, count);
	doc_printf(d, "<text class=\"title\" x=\"%d\" y=\"%.1f\">", WINDOWS_LEFT, top - 9);
	doc_text_cut(d, f->name, NAME_MAX_SHOWN);
	doc_printf(d, ": %s pages</text>", count);
	svg_axis_y(d, &y, WINDOWS_LEFT, WINDOWS_RIGHT, ticks, n, TICK_PERCENT, "share of pages");
	n = ticks_decades(x->from, x->to, ticks);
	svg_axis_x(d, x, top, bottom, ticks, n, last ? TICK_NS : TICK_NONE,
		   last ? "mapping window (logarithmic; a bar is a doubling of time)" : NULL);
	for (int k = 0; f->w->pages && k < WINDOW_OCTAVES; k++) {
		const double left = scale_at(x, ldexp(1, k)), right = scale_at(x, ldexp(1, k + 1));
		const double share = 100 * (double)f->w->octave[k] / (double)f->w->pages;
		const double high = fmin(scale_at(&y, share), bottom - 1);

		if (f->w->octave[k])
			doc_printf(d,
				   "<rect class=\"bar\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" "
				   "height=\"%.1f\"/>",
				   left + .75, high, right - left - 1.5, bottom - high);
	}
	if (!f->w->pages) {
		svg_text(d, (WINDOWS_LEFT + WINDOWS_RIGHT) / 2.0, top + 60, "middle", "soft",
			 "no mapping whose content was captured");
		return;
	}
	draw_marks(d, f->w, x, top, bottom);
}

void figure_windows(struct doc *d, const struct figure_window *at, size_t count, bool alone)
{
	const struct scale x = window_scale(at, count);
	const double most = fmax(1.08 * highest_share(at, count), 1);

	svg_begin(d, SVG_WIDTH, PANELS_TOP + (double)count * PANEL_PITCH + 8,
		  "How mapping windows are distributed", alone);
	for (size_t i = 0; i < count; i++)
		draw_panel(d, &at[i], &x, PANELS_TOP + (double)i * PANEL_PITCH, most,
			   i + 1 == count);
	svg_end(d);
}

#define CURVES_HEIGHT 300

static void draw_curve(struct doc *d, const struct window_summary *w, unsigned series,
		       const struct scale *x, const struct scale *y)
{
	uint64_t sum = 0;
	bool begun = false;

	if (!w->pages)
		return;
	doc_printf(d, "<path class=\"line l%u\" stroke-dasharray=\"%s\" d=\"", series % SVG_SERIES,
		   svg_dash(series));
	for (int k = 0; k < WINDOW_OCTAVES && sum < w->pages; k++) {
		if (!begun && w->octave[k])
			doc_printf(d, "M%.1f %.1f", scale_at(x, ldexp(1, k)), scale_at(y, 0));
		begun = begun || w->octave[k];
		sum += w->octave[k];
		if (begun)
			doc_printf(d, "L%.1f %.1f", scale_at(x, ldexp(1, k + 1)),
				   scale_at(y, 100 * (double)sum / (double)w->pages));
	}
	doc_printf(d, "H%.1f\"/>", x->high);
}

/* The time that so many percent do not exceed, as the curve has it. */
static double curve_at(const struct window_summary *w, double percent, const struct scale *x)
{
	const double wanted = percent / 100 * (double)w->pages;
	double sum = 0, left, right;
	int k = 0;

	while (k < WINDOW_OCTAVES - 1 && sum + (double)w->octave[k] < wanted)
		sum += (double)w->octave[k++];
	left = scale_at(x, ldexp(1, k));
	right = scale_at(x, ldexp(1, k + 1));
	return left + (right - left) * (wanted - sum) / fmax((double)w->octave[k], 1);
}

/* The number of a curve, on it; each at a height of its own, so that no two can meet. */
static void number_curve(struct doc *d, const struct figure_window *at, size_t i, size_t count,
			 const struct scale *x, const struct scale *y)
{
	const double percent = count > 1 ? 15 + 70 * (double)i / (double)(count - 1) : 50;
	char text[NUMBER_MAX];

	if (!at[i].w->pages)
		return;
	number_count(i + 1, text);
	svg_text(d, curve_at(at[i].w, percent, x), scale_at(y, percent) + 4, "middle",
		 "strong halo", text);
}

static void curve_legend(struct doc *d, const struct figure_window *f, unsigned series, double y)
{
	char median[NUMBER_MAX], p95[NUMBER_MAX], text[200];

	number_duration(f->w->median, median);
	number_duration(f->w->p95, p95);
	doc_printf(d,
		   "<path class=\"line l%u\" stroke-dasharray=\"%s\" d=\"M%d %.1fh46\"/>"
		   "<text class=\"strong\" x=\"%d\" y=\"%.1f\">%u</text>"
		   "<text x=\"%d\" y=\"%.1f\">",
		   series % SVG_SERIES, svg_dash(series), WINDOWS_LEFT, y - 4, WINDOWS_LEFT + 56, y,
		   series + 1, WINDOWS_LEFT + 78, y);
	doc_text_cut(d, f->name, 48);
	snprintf(text, sizeof(text), ": median %s, 95 %% %s", median, p95);
	doc_text(d, f->w->pages ? text : ": nothing to measure");
	doc_put(d, "</text>");
}

void figure_curves(struct doc *d, const struct figure_window *at, size_t count, bool alone)
{
	static const double shares[] = { 0, 25, 50, 75, 95, 100 };
	const double top = 24 + 18 * (double)count, bottom = top + CURVES_HEIGHT;
	const struct scale x = window_scale(at, count);
	const struct scale y = { .to = 100, .low = bottom, .high = top };
	double ticks[TICKS_MAX];
	const size_t n = ticks_decades(x.from, x.to, ticks);

	svg_begin(d, SVG_WIDTH, bottom + 44, "Mapping windows of several acquisitions", alone);
	for (size_t i = 0; i < count; i++)
		curve_legend(d, &at[i], (unsigned)i, 16 + 18 * (double)i);
	svg_axis_y(d, &y, WINDOWS_LEFT, WINDOWS_RIGHT, shares, ARRAY_SIZE(shares), TICK_PERCENT,
		   "pages with at most that window");
	svg_axis_x(d, &x, top, bottom, ticks, n, TICK_NS, "mapping window (logarithmic)");
	for (size_t i = 0; i < count; i++)
		draw_curve(d, at[i].w, (unsigned)i, &x, &y);
	for (size_t i = 0; i < count; i++)
		number_curve(d, at, i, count, &x, &y);
	svg_end(d);
}

/*
 * The spread
 */

#define SPREAD_TOP   34
#define SPREAD_PITCH 30

enum spread_mark { SPREAD_MEDIAN, SPREAD_P95, SPREAD_MAX, SPREAD_MARKS };

/* A disc, a square on its corner and an upright line: told apart without colour. */
static void draw_spread_mark(struct doc *d, enum spread_mark mark, double x, double y)
{
	if (mark == SPREAD_MEDIAN)
		doc_printf(d, "<circle class=\"s0 edge\" cx=\"%.1f\" cy=\"%.1f\" r=\"5\"/>", x, y);
	else if (mark == SPREAD_P95)
		doc_printf(d, "<path class=\"s1 edge\" d=\"M%.1f %.1fl6 6l-6 6l-6 -6z\"/>", x,
			   y - 6);
	else
		doc_printf(d, "<path class=\"line l2\" d=\"M%.1f %.1fv12\"/>", x, y - 6);
}

/* What is drawn of, as far as lines go: each begins with its name. */
struct named {
	const void *at;
	size_t size; /* of one */
};

static const char *name_of(const struct named *n, size_t i)
{
	const char *name;

	memcpy(&name, (const char *)n->at + i * n->size, sizeof(name));
	return name;
}

/* The first of those that have that name. */
static size_t first_of(const struct named *n, size_t i)
{
	size_t first = 0;

	while (strcmp(name_of(n, first), name_of(n, i)) != 0)
		first++;
	return first;
}

/* How many names there are before the i-th gets its own, or has it. */
static size_t line_of(const struct named *n, size_t i)
{
	const size_t first = first_of(n, i);
	size_t lines = 0;

	for (size_t k = 0; k < first; k++)
		lines += first_of(n, k) == k;
	return lines;
}

static size_t lines_of(const struct named *n, size_t count)
{
	size_t lines = 0;

	for (size_t i = 0; i < count; i++)
		lines = MAX(lines, line_of(n, i) + 1);
	return lines;
}

static double line_y(const struct named *n, size_t i)
{
	return SPREAD_TOP + SPREAD_PITCH * ((double)line_of(n, i) + .5);
}

/* The name in front of the line, once. */
static void name_line(struct doc *d, const struct named *n, size_t i)
{
	if (first_of(n, i) != i)
		return;
	doc_printf(d, "<text text-anchor=\"end\" x=\"%d\" y=\"%.1f\">", BARS_LEFT - 8,
		   line_y(n, i) + 4);
	doc_text_cut(d, name_of(n, i), NAME_MAX_SHOWN);
	doc_put(d, "</text>");
}

static void mark_legend(struct doc *d, const char *const *names, size_t count)
{
	double x = BARS_LEFT + 6;

	for (size_t i = 0; i < count; i++) {
		draw_spread_mark(d, (enum spread_mark)i, x, 12);
		svg_text(d, x + 12, 16, "start", "", names[i]);
		x += 12 + svg_width(names[i], 12) + 26;
	}
}

void figure_spread(struct doc *d, const struct figure_window *at, size_t count, bool alone)
{
	static const char *const names[SPREAD_MARKS] = { "median", "95 %", "maximum" };
	const struct named lines = { at, sizeof(*at) };
	struct scale x = window_scale(at, count);
	double ticks[TICKS_MAX], bottom;
	size_t n;

	x.low = BARS_LEFT;
	bottom = SPREAD_TOP + SPREAD_PITCH * (double)lines_of(&lines, count);
	n = ticks_decades(x.from, x.to, ticks);
	svg_begin(d, SVG_WIDTH, bottom + 44, "Median, 95 % and maximum of mapping windows", alone);
	mark_legend(d, names, SPREAD_MARKS);
	svg_axis_x(d, &x, SPREAD_TOP - 4, bottom, ticks, n, TICK_NS,
		   "mapping window (logarithmic)");
	for (size_t i = 0; i < count; i++) {
		const struct window_summary *w = at[i].w;
		const uint64_t marks_at[SPREAD_MARKS] = { w->median, w->p95, w->max };

		name_line(d, &lines, i);
		for (unsigned k = 0; w->pages && k < SPREAD_MARKS; k++)
			draw_spread_mark(d, (enum spread_mark)k, scale_at(&x, (double)marks_at[k]),
					 line_y(&lines, i));
	}
	svg_end(d);
}

/*
 * Dots
 */

/* None has a place of its own, left of the logarithmic axis. */
#define DOTS_NONE (BARS_LEFT + 14)
#define DOTS_LEFT (BARS_LEFT + 44)

static double dot_at(const struct scale *x, uint64_t n)
{
	return n ? scale_at(x, (double)n) : DOTS_NONE;
}

static uint64_t highest_dot(const struct figure_dots *f)
{
	uint64_t most = 10;

	for (size_t i = 0; i < f->count; i++)
		for (size_t k = 0; k < f->n_series; k++)
			most = MAX(most, f->at[i].parts[k]);
	return most;
}

static void dots_axis(struct doc *d, const struct figure_dots *f, const struct scale *x,
		      double bottom)
{
	double ticks[TICKS_MAX];
	const size_t n = ticks_decades(x->from, x->to, ticks);

	svg_axis_x(d, x, SPREAD_TOP - 4, bottom, ticks, n, TICK_COUNT, f->unit);
	doc_printf(d, "<path class=\"grid\" d=\"M%d %dV%.1f\"/>", DOTS_NONE, SPREAD_TOP - 4,
		   bottom);
	svg_text(d, DOTS_NONE, bottom + 16, "middle", "soft", "none");
}

void figure_dots(struct doc *d, const struct figure_dots *f, bool alone)
{
	const struct named lines = { f->at, sizeof(*f->at) };
	const double bottom = SPREAD_TOP + SPREAD_PITCH * (double)lines_of(&lines, f->count);
	const struct scale x = {
		.from = 1,
		.to = tick_above((double)highest_dot(f)),
		.low = DOTS_LEFT,
		.high = WINDOWS_RIGHT,
		.log = true,
	};

	svg_begin(d, SVG_WIDTH, bottom + 44, f->title, alone);
	mark_legend(d, f->series, f->n_series);
	dots_axis(d, f, &x, bottom);
	for (size_t i = 0; i < f->count; i++) {
		name_line(d, &lines, i);
		for (size_t k = 0; k < f->n_series; k++)
			draw_spread_mark(d, (enum spread_mark)k, dot_at(&x, f->at[i].parts[k]),
					 line_y(&lines, i));
	}
	svg_end(d);
}

/*
 * The matrix
 */

#define MATRIX_LEFT    120
#define HEADS_LEVEL    8 /* so many names stand side by side; more are turned */
#define CELL_HEIGHT    28
#define CELL_WIDTH_MIN 46
#define CELL_WIDTH_MAX 92

/* An opacity that leaves the number readable, in light and in dark. */
static double heat(uint64_t count, uint64_t most)
{
	return 0.08 + 0.52 * log10((double)count + 1) / log10((double)most + 1);
}

/* "12,345", or "12.3 M" where that has no room. */
static void cell_text(uint64_t n, double width, char ret[static NUMBER_MAX])
{
	static const char units[] = "kMGTPE";
	double amount = (double)n / 1000;
	size_t unit = 0;

	number_count(n, ret);
	if (svg_width(ret, 11.5) <= width - 4)
		return;
	for (; amount >= 999.5 && units[unit + 1]; unit++)
		amount /= 1000;
	snprintf(ret, NUMBER_MAX, "%.3g %c", amount, units[unit]);
}

static void draw_cell(struct doc *d, uint64_t n, uint64_t most, bool same, double x, double y,
		      double width)
{
	const double h = n ? heat(n, most) : 0;
	char text[NUMBER_MAX];

	doc_printf(d, "<rect class=\"panel\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%d\"/>",
		   x + 1, y + 1, width - 2, CELL_HEIGHT - 2);
	if (n) {
		doc_printf(d,
			   "<rect class=\"heat\" fill-opacity=\"%.2f\" x=\"%.1f\" y=\"%.1f\" "
			   "width=\"%.1f\" height=\"%d\"/>",
			   h, x + 1, y + 1, width - 2, CELL_HEIGHT - 2);
		cell_text(n, width, text);
		svg_text(d, x + width / 2, y + 18, "middle", "", text);
	}
	if (same)
		doc_printf(d,
			   "<rect class=\"same\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" "
			   "height=\"%d\"/>",
			   x + 1.5, y + 1.5, width - 3, CELL_HEIGHT - 3);
}

static void draw_heads(struct doc *d, const struct figure_matrix *f, double width, double top)
{
	for (size_t i = 0; i < f->n; i++) {
		const double x = MATRIX_LEFT + ((double)i + .5) * width;

		svg_text(d, MATRIX_LEFT - 8, top + ((double)i + .5) * CELL_HEIGHT + 4, "end", "",
			 f->names[i]);
		if (f->n <= HEADS_LEVEL) {
			svg_text(d, x, top - 8, "middle", "", f->names[i]);
			continue;
		}
		doc_printf(d, "<text transform=\"translate(%.1f %.1f)rotate(-40)\">", x - 4,
			   top - 6);
		doc_text(d, f->names[i]);
		doc_put(d, "</text>");
	}
	svg_text(d, MATRIX_LEFT + (double)f->n * width / 2, 14, "middle", "strong", f->to);
	doc_printf(d,
		   "<text class=\"strong\" text-anchor=\"middle\" "
		   "transform=\"translate(14 %.1f)rotate(-90)\">",
		   top + (double)f->n * CELL_HEIGHT / 2);
	doc_text(d, f->from);
	doc_put(d, "</text>");
}

static void draw_scale(struct doc *d, uint64_t most, double y)
{
	double ticks[TICKS_MAX], x = MATRIX_LEFT;
	const size_t n = ticks_decades(1, (double)most, ticks);
	char text[NUMBER_MAX];

	for (size_t i = 0; i < n && i < 8; i++) {
		number_count((uint64_t)ticks[i], text);
		doc_printf(d,
			   "<rect class=\"heat\" fill-opacity=\"%.2f\" x=\"%.1f\" y=\"%.1f\" "
			   "width=\"22\" height=\"12\"/>",
			   heat((uint64_t)ticks[i], most), x, y - 10);
		svg_text(d, x + 27, y, "start", "soft", text);
		x += 27 + svg_width(text, 12) + 14;
	}
	svg_text(d, x, y, "start", "soft", "pages");
	svg_text(d, MATRIX_LEFT, y + 19, "start", "soft",
		 "colour by the logarithm of the number; framed: the state is the same");
}

void figure_matrix(struct doc *d, const struct figure_matrix *f, bool alone)
{
	const double room = (SVG_WIDTH - MATRIX_LEFT - 20) / (double)MAX(f->n, 1);
	const double width = fmin(fmax(room, CELL_WIDTH_MIN), CELL_WIDTH_MAX);
	const double top = f->n <= HEADS_LEVEL ? 44 : 96;
	const double bottom = top + (double)f->n * CELL_HEIGHT;
	uint64_t most = 1;

	for (size_t i = 0; i < f->n * f->n; i++)
		most = MAX(most, f->cells[i]);
	svg_begin(d, fmax(SVG_WIDTH, MATRIX_LEFT + (double)f->n * width + 20), bottom + 52,
		  f->title, alone);
	draw_heads(d, f, width, top);
	for (size_t i = 0; i < f->n * f->n; i++)
		draw_cell(d, f->cells[i], most, i / f->n == i % f->n,
			  MATRIX_LEFT + (double)(i % f->n) * width,
			  top + (double)(i / f->n) * CELL_HEIGHT, width);
	draw_scale(d, most, bottom + 24);
	svg_end(d);
}
