/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The parts that all figures share: scales, ticks, axes, legends, and one palette whose colours
 * people who are colour-blind can tell apart (M. Okabe and K. Ito, "Color Universal Design", 2008),
 * each colour with a pattern of its own.
 *
 * Lengths are in the units of the drawing's viewBox; a letter is 12 units high. The colours are
 * variables of svg_style, which a page has once and a drawing in a file of its own has as well; the
 * same goes for svg_patterns().
 */
#ifndef RAMSEAL_AGENT_EXAMINE_REPORT_KIT_SVG_H
#define RAMSEAL_AGENT_EXAMINE_REPORT_KIT_SVG_H

#include "agent/examine/report/kit/doc.h"

/* What a drawing is for. */
enum svg_form {
	SVG_WIDE,   /* in a page, where there is room */
	SVG_NARROW, /* in a page on a small screen: a page has both, and its style shows one */
	SVG_ALONE,  /* a file of its own, as wide */
};

#define SVG_WIDTH        900
#define SVG_WIDTH_NARROW 380

static inline double svg_form_width(enum svg_form f)
{
	return f == SVG_NARROW ? SVG_WIDTH_NARROW : SVG_WIDTH;
}

/* Colours for light and dark mode (print is light), and the styles that figures share. */
extern const char svg_style[];

/* The fills of SVG_SERIES series: class "s0" or, with its pattern, fill="url(#p0)". */
#define SVG_SERIES 8
void svg_patterns(struct doc *d);

/* With SVG_ALONE it has style, patterns and background. `title` is for screen readers. */
void svg_begin(struct doc *d, enum svg_form form, double width, double height, const char *title);
void svg_end(struct doc *d);

/*
 * Scales: `from`..`to` of what is shown become `low`..`high` of the drawing.
 */

struct scale {
	double from, to; /* with `log`, both above 0 */
	double low, high;
	bool log;
};

/* Values outside are put at the nearer end; without an extent every value is. */
double scale_at(const struct scale *s, double value);

#define TICKS_MAX 24

/* Multiples of 1, 2 or 5 times a power of ten within from..to, about `wanted` of them. */
size_t ticks_linear(double from, double to, unsigned wanted, double ret[static TICKS_MAX]);
/* Powers of ten within from..to. */
size_t ticks_decades(double from, double to, double ret[static TICKS_MAX]);
/* The smallest 1, 2 or 5 times a power of ten that is not below `value`; 1 for 0. */
double tick_above(double value);

enum tick_unit {
	TICK_COUNT,   /* "10,000" */
	TICK_PERCENT, /* "20 %" */
	TICK_NS,      /* a time: "10 ms" */
	TICK_NONE,    /* no label */
};

void tick_text(double value, enum tick_unit unit, char ret[static NUMBER_MAX]);

/*
 * Pieces
 */

/* `anchor`: "start", "middle" or "end". `style`: of svg_style, or "". */
void svg_text(struct doc *d, double x, double y, const char *anchor, const char *style,
	      const char *text);

/*
 * A line below (or left of) the plot with ticks, labels, lines through the plot, and a title. A
 * label that would cross the edge of the drawing is moved inwards; one that would touch the label
 * before it is left out.
 */
void svg_axis_x(struct doc *d, enum svg_form form, const struct scale *s, double top, double bottom,
		const double *ticks, size_t n_ticks, enum tick_unit unit, const char *title);
void svg_axis_y(struct doc *d, const struct scale *s, double left, double right,
		const double *ticks, size_t n_ticks, enum tick_unit unit, const char *title);

struct svg_legend {
	const char *name;
	unsigned series;
};

/* Starts at x and takes as many rows as it needs; y is the baseline of the first row. */
#define SVG_LEGEND_PITCH 18
void svg_legend(struct doc *d, enum svg_form form, double x, double y,
		const struct svg_legend *entries, size_t count);
/* The height that all rows but the first add. */
double svg_legend_more(enum svg_form form, double x, const struct svg_legend *entries,
		       size_t count);

/* The dashes that tell lines apart, which have no pattern; "" is a solid line. */
const char *svg_dash(unsigned series);

/*
 * How many characters of an untrusted text, up to `most`, fit into so much room (at least one). A
 * character that doc_text() escapes takes more room.
 */
size_t svg_fit(const char *text, size_t most, double size, double room);

/* About how wide a text of that size will be, in the widest of the usual fonts (DejaVu Sans). */
double svg_width(const char *text, double size);

#endif
