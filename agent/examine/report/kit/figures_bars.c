/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bars, and the matrix, which on a small screen becomes bars.
 */
#include <math.h>
#include <string.h>

#include "agent/examine/report/kit/figures.h"

/*
 * Bars
 */

#define BARS_TOP    34 /* the legend */
#define BARS_AXIS   44
#define BARS_COLUMN 82 /* a number of the line */
#define BARS_HEADS  14 /* the line above them */

/* Names stand left of their bars and notes right of them; on a small screen both stand above. */
struct bars_layout {
	bool above;
	double left, right; /* of the bars */
	double pitch;       /* from one to the next */
	double bar, height; /* where it begins below that, and how high it is */
};

static struct bars_layout lay_out_bars(enum svg_form form)
{
	if (form == SVG_NARROW)
		return (struct bars_layout){ true, 1, SVG_WIDTH_NARROW - 1, 38, 17, 13 };
	return (struct bars_layout){ false, FIGURE_NAMES, 660, 22, 0, 15 };
}

static double bar_sum(const struct figure_bar *b, size_t n)
{
	double sum = 0;

	for (size_t i = 0; i < n; i++)
		sum += (double)b->parts[i];
	return sum;
}

static void draw_bar_name(struct doc *d, const struct figure_bar *b, const struct bars_layout *l,
			  double y)
{
	const double whole = l->above ? SVG_WIDTH_NARROW - svg_width(b->note, 12) - 8 : l->left - 8;
	const double room = whole - svg_width(b->suffix, 12);

	if (l->above)
		doc_printf(d, "<text x=\"0\" y=\"%.1f\">", y + 12);
	else
		doc_printf(d, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"end\">", l->left - 8,
			   y + 12);
	doc_text_cut(d, b->name, svg_fit(b->name, FIGURE_NAME_MAX, 12, room));
	doc_text(d, b->suffix);
	doc_put(d, "</text>");
}

/* What is there can be seen. */
#define PART_LEAST 1.2

/* The widths of its parts. In percent, what the smallest get more the largest gives. */
static void lay_out_parts(const struct figure_bars *f, const struct figure_bar *b,
			  const struct scale *s, double ret[static SVG_SERIES])
{
	const double whole = s->high - s->low, sum = bar_sum(b, f->n_series);
	double all = 0, before = 0;
	size_t largest = 0;

	for (size_t i = 0; i < f->n_series; i++) {
		const double upto = before + (double)b->parts[i];
		const double exact = f->percent ? whole * (double)b->parts[i] / fmax(sum, 1)
						: scale_at(s, upto) - scale_at(s, before);

		before = upto;
		ret[i] = b->parts[i] ? fmax(exact, PART_LEAST) : 0;
		all += ret[i];
		largest = ret[i] > ret[largest] ? i : largest;
	}
	if (f->percent && all > whole)
		ret[largest] -= all - whole;
}

static void draw_columns(struct doc *d, const struct figure_bars *f, const struct figure_bar *b,
			 const struct bars_layout *l, double y)
{
	for (size_t i = 0; i < f->n_columns; i++)
		svg_text(d, l->right + BARS_COLUMN * (double)(i + 1), y, "end", "soft",
			 b ? b->columns[i] : f->columns[i]);
}

static void draw_bar(struct doc *d, const struct figure_bars *f, const struct figure_bar *b,
		     const struct bars_layout *l, const struct scale *s, double y)
{
	double widths[SVG_SERIES], x = s->low;

	draw_bar_name(d, b, l, y);
	lay_out_parts(f, b, s, widths);
	for (size_t i = 0; i < f->n_series; i++) {
		if (!b->parts[i])
			continue;
		doc_printf(d,
			   "<rect class=\"edge\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" "
			   "height=\"%.0f\" fill=\"url(#p%u)\"/>",
			   x, y + l->bar, widths[i], l->height, f->series[i].series % SVG_SERIES);
		x += widths[i];
	}
	if (l->above)
		svg_text(d, SVG_WIDTH_NARROW, y + 12, "end", "soft", b->note);
	else if (f->n_columns)
		draw_columns(d, f, b, l, y + 12);
	else
		svg_text(d, l->right + 12, y + 12, "start", "soft", b->note);
}

void figure_bars(struct doc *d, const struct figure_bars *f, enum svg_form form)
{
	struct bars_layout l = lay_out_bars(form);
	const bool columns = f->n_columns && !l.above;
	const double top = BARS_TOP + (columns ? BARS_HEADS : 0) +
			   svg_legend_more(form, l.above ? 0 : l.left, f->series, f->n_series);
	const double bottom = top + (double)f->count * l.pitch + 4;
	struct scale s = { .low = l.left, .to = f->percent ? 100 : 1 };
	double ticks[TICKS_MAX];
	size_t n;

	if (columns)
		l.right = SVG_WIDTH - BARS_COLUMN * (double)f->n_columns - 2;
	s.high = l.right;
	for (size_t i = 0; i < f->count && !f->percent; i++)
		s.to = fmax(s.to, bar_sum(&f->at[i], f->n_series));
	n = ticks_linear(0, s.to, l.above ? 4 : 6, ticks);
	svg_begin(d, form, svg_form_width(form), bottom + BARS_AXIS, f->title);
	svg_legend(d, form, l.above ? 0 : l.left, 16, f->series, f->n_series);
	svg_axis_x(d, form, &s, top - 6, bottom, ticks, n, f->percent ? TICK_PERCENT : TICK_COUNT,
		   f->unit);
	if (columns)
		draw_columns(d, f, NULL, &l, top - 10);
	for (size_t i = 0; i < f->count; i++)
		draw_bar(d, f, &f->at[i], &l, &s, top + (double)i * l.pitch);
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
static double cell_opacity(uint64_t count, uint64_t most)
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
	const double h = n ? cell_opacity(n, most) : 0;
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
			   cell_opacity((uint64_t)ticks[i], most), x, y - 10);
		svg_text(d, x + 27, y, "start", "soft", text);
		x += 27 + svg_width(text, 12) + 14;
	}
	svg_text(d, x, y, "start", "soft", "pages");
	svg_text(d, MATRIX_LEFT, y + 19, "start", "soft",
		 "colour: the logarithm of the number; frame: the state is the same");
}

static void draw_matrix(struct doc *d, const struct figure_matrix *f, enum svg_form form)
{
	const double room = (SVG_WIDTH - MATRIX_LEFT - 20) / (double)MAX(f->n, 1);
	const double width = fmin(fmax(room, CELL_WIDTH_MIN), CELL_WIDTH_MAX);
	const double top = f->n <= HEADS_LEVEL ? 44 : 96;
	const double bottom = top + (double)f->n * CELL_HEIGHT;
	uint64_t most = 1;

	for (size_t i = 0; i < f->n * f->n; i++)
		most = MAX(most, f->cells[i]);
	svg_begin(d, form, fmax(SVG_WIDTH, MATRIX_LEFT + (double)f->n * width + 20), bottom + 52,
		  f->title);
	draw_heads(d, f, width, top);
	for (size_t i = 0; i < f->n * f->n; i++)
		draw_cell(d, f->cells[i], most, i / f->n == i % f->n,
			  MATRIX_LEFT + (double)(i % f->n) * width,
			  top + (double)(i / f->n) * CELL_HEIGHT, width);
	draw_scale(d, most, bottom + 24);
	svg_end(d);
}

/*
 * The same where a matrix has no room: a bar for each pair of different states, the largest first,
 * and one for all others.
 */
#define PAIRS_SHOWN 12

struct state_bar {
	size_t from, to;
	uint64_t pages;
};

static int compare_pages(const void *a, const void *b)
{
	const struct state_bar *x = a, *y = b;

	if (x->pages != y->pages)
		return x->pages < y->pages ? 1 : -1;
	return x->from != y->from ? (x->from > y->from) - (x->from < y->from)
				  : (x->to > y->to) - (x->to < y->to);
}

/* Those that have any pages; *same is what stayed. */
static size_t find_pairs(const struct figure_matrix *f, struct state_bar *ret, uint64_t *same)
{
	size_t n = 0;

	*same = 0;
	for (size_t i = 0; i < f->n * f->n; i++) {
		if (i / f->n == i % f->n)
			*same += f->cells[i];
		else if (f->cells[i])
			ret[n++] = (struct state_bar){ i / f->n, i % f->n, f->cells[i] };
	}
	qsort(ret, n, sizeof(*ret), compare_pages);
	return n;
}

struct pair_bars {
	struct figure_bar at[PAIRS_SHOWN + 1];
	char names[PAIRS_SHOWN + 1][80];
	char unit[120];
	size_t count;
};

static void make_pair_bars(struct pair_bars *b, const struct figure_matrix *f,
			   const struct state_bar *pairs, size_t n, uint64_t same)
{
	char number[NUMBER_MAX];

	b->count = n > PAIRS_SHOWN ? PAIRS_SHOWN + 1 : n;
	for (size_t i = 0; i < n; i++)
		b->at[MIN(i, PAIRS_SHOWN)].parts[0] += pairs[i].pages;
	for (size_t i = 0; i < b->count; i++) {
		if (i < PAIRS_SHOWN)
			snprintf(b->names[i], sizeof(b->names[i]), "%s → %s",
				 f->names[pairs[i].from], f->names[pairs[i].to]);
		else
			snprintf(b->names[i], sizeof(b->names[i]), "%zu others", n - PAIRS_SHOWN);
		b->at[i].name = b->names[i];
		number_count(b->at[i].parts[0], b->at[i].note);
	}
	number_count(same, number);
	snprintf(b->unit, sizeof(b->unit), "pages; of %s more the state is the same", number);
}

static void draw_pairs(struct doc *d, const struct figure_matrix *f, enum svg_form form)
{
	const struct svg_legend legend[] = { { f->change, 5 } };
	_cleanup_free_ struct state_bar *pairs = calloc(MAX(f->n * f->n, 1), sizeof(*pairs));
	_cleanup_free_ struct pair_bars *b = calloc(1, sizeof(*b));
	uint64_t same;
	size_t n;

	if (!pairs || !b) {
		d->lost = true;
		return;
	}
	n = find_pairs(f, pairs, &same);
	make_pair_bars(b, f, pairs, n, same);
	figure_bars(d,
		    &(struct figure_bars){ f->title,
					   b->unit,
					   legend,
					   ARRAY_SIZE(legend),
					   b->at,
					   b->count,
					   false,
					   { NULL },
					   0 },
		    form);
}

void figure_matrix(struct doc *d, const struct figure_matrix *f, enum svg_form form)
{
	if (form == SVG_NARROW)
		draw_pairs(d, f, form);
	else
		draw_matrix(d, f, form);
}
