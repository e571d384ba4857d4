/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What all figures are drawn with: scales, ticks, axes, legends, and one palette that people who
 * are colour-blind can tell apart (M. Okabe and K. Ito, "Color Universal Design", 2008), each
 * colour with a pattern of its own.
 *
 * Lengths are in the units of the drawing's viewBox, 12 of them to the height of a letter. Colours
 * are variables of SVG_STYLE, which stands once in a page, or in each drawing that is a file of its
 * own; so are the patterns, SVG_PATTERNS.
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

/* Colours for light and dark, print is light; then what figures share. */
extern const char svg_style[];

/* The fills of SVG_SERIES series: class "s0" or, with its pattern, fill="url(#p0)". */
#define SVG_SERIES 8
void svg_patterns(struct doc *d);

/* A file of its own has style, patterns and background. `title` is for screen readers. */
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

/* What lies outside is put at the nearer end; so is everything if there is no extent. */
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
	TICK_NONE,    /* nothing is written */
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
 * label that would reach over the drawing's end is moved inwards; one that would touch the one
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

/* From x on, in as many rows as it takes; the first one's letters stand on y. */
#define SVG_LEGEND_PITCH 18
void svg_legend(struct doc *d, enum svg_form form, double x, double y,
		const struct svg_legend *entries, size_t count);
/* What its rows but the first add to the height. */
double svg_legend_more(enum svg_form form, double x, const struct svg_legend *entries,
		       size_t count);

/* The dashes by which lines differ that have no pattern; "" is a line without. */
const char *svg_dash(unsigned series);

/*
 * How many characters of a stranger's text, `most` of them, are shown in so much room (at least
 * one): what doc_text() writes in other words takes more.
 */
size_t svg_fit(const char *text, size_t most, double size, double room);

/* About how wide a text of that size will be, in the widest of the usual fonts (DejaVu Sans). */
double svg_width(const char *text, double size);

#endif
