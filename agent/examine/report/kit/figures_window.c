/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Mapping windows: histograms, curves, and marks on lines; and dots, which are such marks of pages.
 */
#include <math.h>
#include <string.h>

#include "agent/examine/report/kit/figures.h"

#define AXIS_HEIGHT 44 /* with its labels and its title */

/* Of histograms and curves, whose y axis has labels and a title that is turned. */
static double plot_left(enum svg_form form)
{
	return form == SVG_NARROW ? 70 : 84;
}

static double plot_right(enum svg_form form)
{
	return svg_form_width(form) - (form == SVG_NARROW ? 8 : 24);
}

/*
 * The octaves that any of them has, as a scale; at least a few, so that a single one has a place.
 */
static struct scale window_scale(const struct figure_window *at, size_t count, enum svg_form form)
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
		.low = plot_left(form),
		.high = plot_right(form),
		.log = true,
	};
}

/*
 * Histograms
 */

#define PANEL_HEIGHT 118
#define PANEL_BELOW  12 /* between it and the head of the next */
#define HEAD_LINE    16

/* The head has a title and, on the same line or below it, what the marks are. */
static double head_height(enum svg_form form)
{
	return form == SVG_NARROW ? 28 + 2 * HEAD_LINE : 28;
}

static double panel_pitch(enum svg_form form)
{
	return head_height(form) + PANEL_HEIGHT + PANEL_BELOW;
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

static void mark_text(const struct window_summary *w, size_t i, char ret[static 2 * NUMBER_MAX])
{
	const uint64_t at[] = { w->median, w->p95, w->max };
	char time[NUMBER_MAX];

	number_duration(at[i], time);
	snprintf(ret, 2 * NUMBER_MAX, "%s %s", marks[i].name, time);
}

static void draw_key(struct doc *d, size_t i, double x, double y)
{
	doc_printf(d, "<path class=\"mark\" stroke-dasharray=\"%s\" d=\"M%.1f %.1fh26\"/>",
		   marks[i].dash, x, y - 4);
}

/* What the lines are, at the right end of the title. */
static void draw_keys_right(struct doc *d, const struct window_summary *w, double right, double y)
{
	for (size_t i = ARRAY_SIZE(marks); i-- > 0;) {
		char text[2 * NUMBER_MAX];

		mark_text(w, i, text);
		svg_text(d, right, y, "end", "", text);
		right -= svg_width(text, 12) + 34;
		draw_key(d, i, right, y);
		right -= 18;
	}
}

/* Below the title, in as many rows as it takes; two are enough for any time. */
static void draw_keys_below(struct doc *d, const struct window_summary *w, double y)
{
	double x = 0;

	for (size_t i = 0; i < ARRAY_SIZE(marks); i++) {
		char text[2 * NUMBER_MAX];
		double width;

		mark_text(w, i, text);
		width = 32 + svg_width(text, 12);
		if (x + width > SVG_WIDTH_NARROW) {
			x = 0;
			y += HEAD_LINE;
		}
		draw_key(d, i, x, y);
		svg_text(d, x + 32, y, "start", "", text);
		x += width + 14;
	}
}

static void draw_marks(struct doc *d, const struct window_summary *w, const struct scale *s,
		       double top, enum svg_form form)
{
	const uint64_t at[] = { w->median, w->p95, w->max };

	for (size_t i = 0; i < ARRAY_SIZE(marks); i++)
		doc_printf(d, "<path class=\"mark\" stroke-dasharray=\"%s\" d=\"M%.1f %.1fv%d\"/>",
			   marks[i].dash, scale_at(s, (double)at[i]), top, PANEL_HEIGHT);
	if (form == SVG_NARROW)
		draw_keys_below(d, w, top - 9 - HEAD_LINE);
	else
		draw_keys_right(d, w, s->high, top - 9);
}

static void draw_title(struct doc *d, const struct figure_window *f, double top, enum svg_form form)
{
	const bool narrow = form == SVG_NARROW;
	char count[NUMBER_MAX];

	number_count(f->w->pages, count);
	doc_printf(d, "<text class=\"title\" x=\"%.0f\" y=\"%.1f\">", narrow ? 0 : plot_left(form),
		   top - 9 - (narrow ? 2 * HEAD_LINE : 0));
	doc_text_cut(d, f->name, svg_fit(f->name, FIGURE_NAME_MAX, 13, 230));
	doc_printf(d, ": %s pages</text>", count);
}

static void draw_octaves(struct doc *d, const struct window_summary *w, const struct scale *x,
			 const struct scale *y)
{
	for (int k = 0; w->pages && k < WINDOW_OCTAVES; k++) {
		const double left = scale_at(x, ldexp(1, k)), right = scale_at(x, ldexp(1, k + 1));
		const double share = 100 * (double)w->octave[k] / (double)w->pages;
		const double high = fmin(scale_at(y, share), y->low - 1);

		if (w->octave[k])
			doc_printf(d,
				   "<rect class=\"bar\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" "
				   "height=\"%.1f\"/>",
				   left + .75, high, right - left - 1.5, y->low - high);
	}
}

static void draw_panel(struct doc *d, const struct figure_window *f, const struct scale *x,
		       double top, double most, bool last, enum svg_form form)
{
	static const char *const titles[] = {
		[SVG_WIDE] = "mapping window (logarithmic; a bar is a doubling of time)",
		[SVG_NARROW] = "mapping window (logarithmic)",
		[SVG_ALONE] = "mapping window (logarithmic; a bar is a doubling of time)",
	};
	const double bottom = top + PANEL_HEIGHT;
	const struct scale y = { .to = most, .low = bottom, .high = top };
	double ticks[TICKS_MAX];
	size_t n = ticks_linear(0, most, 4, ticks);

	draw_title(d, f, top, form);
	svg_axis_y(d, &y, x->low, x->high, ticks, n, TICK_PERCENT, "share of pages");
	n = ticks_decades(x->from, x->to, ticks);
	svg_axis_x(d, form, x, top, bottom, ticks, n, last ? TICK_NS : TICK_NONE,
		   last ? titles[form] : NULL);
	draw_octaves(d, f->w, x, &y);
	if (f->w->pages)
		draw_marks(d, f->w, x, top, form);
	else
		svg_text(d, (x->low + x->high) / 2, top + 60, "middle", "soft",
			 "no mapping whose content was captured");
}

void figure_windows(struct doc *d, const struct figure_window *at, size_t count, enum svg_form form)
{
	const struct scale x = window_scale(at, count, form);
	const double most = fmax(1.08 * highest_share(at, count), 1), pitch = panel_pitch(form);

	svg_begin(d, form, svg_form_width(form), (double)count * pitch - PANEL_BELOW + AXIS_HEIGHT,
		  "Distribution of mapping windows");
	for (size_t i = 0; i < count; i++)
		draw_panel(d, &at[i], &x, head_height(form) + (double)i * pitch, most,
			   i + 1 == count, form);
	svg_end(d);
}

/*
 * Shares
 */

#define SHARES_HEIGHT 110
#define SHARES_TOP    12

static double highest_part(const struct figure_shares *f)
{
	double most = 1;

	for (size_t i = 0; i < f->count; i++)
		if (f->at[i].whole)
			most = fmax(most, 100 * (double)f->at[i].part / (double)f->at[i].whole);
	return fmin(1.08 * most, 100);
}

void figure_shares(struct doc *d, const struct figure_shares *f, enum svg_form form)
{
	const double bottom = SHARES_TOP + SHARES_HEIGHT, most = highest_part(f);
	const struct scale x = { .to = fmax((double)f->span, 1),
				 .low = plot_left(form),
				 .high = plot_right(form) };
	const struct scale y = { .to = most, .low = bottom, .high = SHARES_TOP };
	const double width = (x.high - x.low) / (double)f->count;
	double ticks[TICKS_MAX];
	size_t n = ticks_linear(0, most, 4, ticks);

	svg_begin(d, form, svg_form_width(form), bottom + AXIS_HEIGHT, f->title);
	svg_axis_y(d, &y, x.low, x.high, ticks, n, TICK_PERCENT, f->of);
	n = ticks_linear(0, (double)f->span, form == SVG_NARROW ? 3 : 8, ticks);
	svg_axis_x(d, form, &x, SHARES_TOP, bottom, ticks, n, TICK_NS, f->unit);
	for (size_t i = 0; i < f->count; i++) {
		const double left = x.low + width * (double)i;
		double share, high;

		if (!f->at[i].whole)
			continue;
		share = 100 * (double)f->at[i].part / (double)f->at[i].whole;
		/* None of it is a line, nothing to measure is not. */
		high = fmin(scale_at(&y, share), bottom - 1);
		doc_printf(d,
			   "<rect class=\"%s\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" "
			   "height=\"%.1f\"/>",
			   f->at[i].part ? "s1" : "s0", left + .5, high, width - 1, bottom - high);
	}
	svg_end(d);
}

/*
 * Names
 */

/* What is drawn of, as far as lines go: each begins with its name. */
struct named {
	const void *at;
	size_t size; /* of one */
};

static const char *row_name_of(const struct named *n, size_t i)
{
	const char *name;

	memcpy(&name, (const char *)n->at + i * n->size, sizeof(name));
	return name;
}

/* The first of those that have that name. */
static size_t first_of_name(const struct named *n, size_t i)
{
	size_t first = 0;

	while (strcmp(row_name_of(n, first), row_name_of(n, i)) != 0)
		first++;
	return first;
}

/* How many names there are before the i-th gets its own, or has it. */
static size_t row_line_of(const struct named *n, size_t i)
{
	const size_t first = first_of_name(n, i);
	size_t lines = 0;

	for (size_t k = 0; k < first; k++)
		lines += first_of_name(n, k) == k;
	return lines;
}

static size_t lines_of(const struct named *n, size_t count)
{
	size_t lines = 0;

	for (size_t i = 0; i < count; i++)
		lines = MAX(lines, row_line_of(n, i) + 1);
	return lines;
}

/*
 * Curves
 */

#define CURVES_HEIGHT 300

static void draw_curve(struct doc *d, const struct window_summary *w, unsigned series, bool thin,
		       const struct scale *x, const struct scale *y)
{
	uint64_t sum = 0;
	bool begun = false;

	if (!w->pages)
		return;
	doc_printf(d, "<path class=\"line%s l%u\" stroke-dasharray=\"%s\" d=\"",
		   thin ? " thin" : "", series % SVG_SERIES, svg_dash(series));
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

/* The first of the i-th one's name that has a curve; `count`: none has. */
static size_t first_drawn(const struct named *names, const struct figure_window *at, size_t count,
			  size_t i)
{
	size_t ret = i;

	while (ret < count &&
	       (!at[ret].w->pages || first_of_name(names, ret) != first_of_name(names, i)))
		ret++;
	return ret;
}

/* The number of a family, on its first curve; each at a height of its own, so that none meet. */
static void number_curve(struct doc *d, const struct window_summary *w, size_t line, size_t lines,
			 const struct scale *x, const struct scale *y)
{
	const double percent = lines > 1 ? 15 + 70 * (double)line / (double)(lines - 1) : 50;
	char text[NUMBER_MAX];

	if (!w->pages)
		return;
	number_count(line + 1, text);
	svg_text(d, curve_at(w, percent, x), scale_at(y, percent) + 4, "middle", "strong halo",
		 text);
}

/* On a small screen, what it says of a curve has a line of its own. */
static double curve_pitch(enum svg_form form)
{
	return form == SVG_NARROW ? 36 : 18;
}

/* Of all curves with that name: the smallest and the largest. */
struct curve_span {
	size_t runs, measured;
	uint64_t median[2], p95[2];
};

static struct curve_span curve_span_of(const struct figure_window *at, size_t count, size_t first)
{
	struct curve_span s = { .median = { UINT64_MAX }, .p95 = { UINT64_MAX } };

	for (size_t i = first; i < count; i++) {
		if (strcmp(at[i].name, at[first].name) != 0)
			continue;
		s.runs++;
		if (!at[i].w->pages)
			continue;
		s.measured++;
		s.median[0] = MIN(s.median[0], at[i].w->median);
		s.median[1] = MAX(s.median[1], at[i].w->median);
		s.p95[0] = MIN(s.p95[0], at[i].w->p95);
		s.p95[1] = MAX(s.p95[1], at[i].w->p95);
	}
	return s;
}

/* "1.1 ms", or "1.1 ms to 1.2 ms". */
static void span_text(const uint64_t of[static 2], char ret[static 2 * NUMBER_MAX])
{
	char low[NUMBER_MAX], high[NUMBER_MAX];

	number_duration(of[0], low);
	number_duration(of[1], high);
	if (!strcmp(low, high))
		snprintf(ret, 2 * NUMBER_MAX, "%s", low);
	else
		snprintf(ret, 2 * NUMBER_MAX, "%.34s to %.34s", low, high);
}

static void curve_legend(struct doc *d, const struct figure_window *at, size_t count, size_t first,
			 unsigned line, double y, enum svg_form form)
{
	const struct curve_span s = curve_span_of(at, count, first);
	const bool narrow = form == SVG_NARROW;
	const double left = narrow ? 0 : plot_left(form);
	char median[2 * NUMBER_MAX], p95[2 * NUMBER_MAX], text[4 * NUMBER_MAX + 40];

	span_text(s.median, median);
	span_text(s.p95, p95);
	snprintf(text, sizeof(text), "median %s, 95 %% %s", median, p95);
	doc_printf(d,
		   "<path class=\"line l%u\" stroke-dasharray=\"%s\" d=\"M%.0f %.1fh46\"/>"
		   "<text class=\"strong\" x=\"%.0f\" y=\"%.1f\">%u</text>"
		   "<text x=\"%.0f\" y=\"%.1f\">",
		   line % SVG_SERIES, svg_dash(line), left, y - 4, left + 56, y, line + 1,
		   left + 78, y);
	doc_text_cut(d, at[first].name,
		     svg_fit(at[first].name, 48, 12,
			     narrow       ? 220
			     : s.runs > 1 ? 260
					  : 480));
	if (s.runs > 1)
		doc_printf(d, ", %zu runs", s.runs);
	if (narrow)
		doc_printf(d, "</text><text class=\"soft\" x=\"%.0f\" y=\"%.1f\">",
			   s.runs > 1 ? left : left + 78, y + 16);
	else
		doc_put(d, ": ");
	doc_text(d, s.measured ? text : "nothing to measure");
	doc_put(d, "</text>");
}

void figure_curves(struct doc *d, const struct figure_window *at, size_t count, enum svg_form form)
{
	static const double shares[] = { 0, 25, 50, 75, 95, 100 };
	const struct named names = { at, sizeof(*at) };
	const size_t lines = lines_of(&names, count);
	const double pitch = curve_pitch(form);
	const double top = 24 + pitch * (double)lines, bottom = top + CURVES_HEIGHT;
	const struct scale x = window_scale(at, count, form);
	const struct scale y = { .to = 100, .low = bottom, .high = top };
	double ticks[TICKS_MAX];
	const size_t n = ticks_decades(x.from, x.to, ticks);

	svg_begin(d, form, svg_form_width(form), bottom + AXIS_HEIGHT,
		  "Mapping windows of several acquisitions");
	for (size_t i = 0; i < count; i++)
		if (first_of_name(&names, i) == i)
			curve_legend(d, at, count, i, (unsigned)row_line_of(&names, i),
				     16 + pitch * (double)row_line_of(&names, i), form);
	svg_axis_y(d, &y, x.low, x.high, shares, ARRAY_SIZE(shares), TICK_PERCENT,
		   "pages with at most that window");
	svg_axis_x(d, form, &x, top, bottom, ticks, n, TICK_NS, "mapping window (logarithmic)");
	for (size_t i = 0; i < count; i++)
		draw_curve(d, at[i].w, (unsigned)row_line_of(&names, i), lines < count, &x, &y);
	for (size_t i = 0; i < count; i++) {
		const size_t shown = first_drawn(&names, at, count, i);

		if (first_of_name(&names, i) == i && shown < count)
			number_curve(d, at[shown].w, row_line_of(&names, i), lines, &x, &y);
	}
	svg_end(d);
}

/*
 * The spread
 */

#define SPREAD_TOP 34 /* the legend */

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

/* On a small screen a name stands above its line. */
static double line_pitch(enum svg_form form)
{
	return form == SVG_NARROW ? 40 : 30;
}

static double line_y(const struct named *n, size_t i, enum svg_form form)
{
	return SPREAD_TOP + line_pitch(form) * (double)row_line_of(n, i) +
	       (form == SVG_NARROW ? 28 : 15);
}

/* The name in front of the line, once. */
static void name_line(struct doc *d, const struct named *n, size_t i, enum svg_form form)
{
	const double y = line_y(n, i, form);

	if (first_of_name(n, i) != i)
		return;
	if (form == SVG_NARROW)
		doc_printf(d, "<text x=\"0\" y=\"%.1f\">", y - 13);
	else
		doc_printf(d, "<text text-anchor=\"end\" x=\"%d\" y=\"%.1f\">", FIGURE_NAMES - 8,
			   y + 4);
	doc_text_cut(d, row_name_of(n, i),
		     svg_fit(row_name_of(n, i), FIGURE_NAME_MAX, 12,
			     form == SVG_NARROW ? SVG_WIDTH_NARROW : FIGURE_NAMES - 8));
	doc_put(d, "</text>");
}

static void mark_legend(struct doc *d, double left, const char *const *names, size_t count)
{
	double x = left + 6;

	for (size_t i = 0; i < count; i++) {
		draw_spread_mark(d, (enum spread_mark)i, x, 12);
		svg_text(d, x + 12, 16, "start", "", names[i]);
		x += 12 + svg_width(names[i], 12) + 26;
	}
}

void figure_spread(struct doc *d, const struct figure_window *at, size_t count, enum svg_form form)
{
	static const char *const names[SPREAD_MARKS] = { "median", "95 %", "maximum" };
	const struct named lines = { at, sizeof(*at) };
	const double bottom = SPREAD_TOP + line_pitch(form) * (double)lines_of(&lines, count);
	struct scale x = window_scale(at, count, form);
	double ticks[TICKS_MAX];
	size_t n;

	x.low = form == SVG_NARROW ? 8 : FIGURE_NAMES;
	n = ticks_decades(x.from, x.to, ticks);
	svg_begin(d, form, svg_form_width(form), bottom + AXIS_HEIGHT,
		  "Median, 95 % and maximum of mapping windows");
	mark_legend(d, form == SVG_NARROW ? 0 : FIGURE_NAMES, names, SPREAD_MARKS);
	svg_axis_x(d, form, &x, SPREAD_TOP - 4, bottom, ticks, n, TICK_NS,
		   "mapping window (logarithmic)");
	for (size_t i = 0; i < count; i++) {
		const struct window_summary *w = at[i].w;
		const uint64_t marks_at[SPREAD_MARKS] = { w->median, w->p95, w->max };

		name_line(d, &lines, i, form);
		for (unsigned k = 0; w->pages && k < SPREAD_MARKS; k++)
			draw_spread_mark(d, (enum spread_mark)k, scale_at(&x, (double)marks_at[k]),
					 line_y(&lines, i, form));
	}
	svg_end(d);
}

/*
 * Dots
 */

/* None has a place of its own, left of the logarithmic axis. */
#define DOTS_NONE (FIGURE_NAMES + 14)
#define DOTS_LEFT (FIGURE_NAMES + 44)

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

	svg_axis_x(d, SVG_ALONE, x, SPREAD_TOP - 4, bottom, ticks, n, TICK_COUNT, f->unit);
	doc_printf(d, "<path class=\"grid\" d=\"M%d %dV%.1f\"/>", DOTS_NONE, SPREAD_TOP - 4,
		   bottom);
	svg_text(d, DOTS_NONE, bottom + 16, "middle", "soft", "none");
}

void figure_dots(struct doc *d, const struct figure_dots *f)
{
	const struct named lines = { f->at, sizeof(*f->at) };
	const double bottom =
		SPREAD_TOP + line_pitch(SVG_ALONE) * (double)lines_of(&lines, f->count);
	const struct scale x = {
		.from = 1,
		.to = tick_above((double)highest_dot(f)),
		.low = DOTS_LEFT,
		.high = plot_right(SVG_ALONE),
		.log = true,
	};

	svg_begin(d, SVG_ALONE, SVG_WIDTH, bottom + AXIS_HEIGHT, f->title);
	mark_legend(d, FIGURE_NAMES, f->series, f->n_series);
	dots_axis(d, f, &x, bottom);
	for (size_t i = 0; i < f->count; i++) {
		name_line(d, &lines, i, SVG_ALONE);
		for (size_t k = 0; k < f->n_series; k++)
			draw_spread_mark(d, (enum spread_mark)k, dot_at(&x, f->at[i].parts[k]),
					 line_y(&lines, i, SVG_ALONE));
	}
	svg_end(d);
}
