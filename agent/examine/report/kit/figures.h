/* SPDX-License-Identifier: Apache-2.0 */
/* The kinds of figures. They know nothing about containers, so that any numbers can be drawn. */
#ifndef RAMSEAL_AGENT_EXAMINE_REPORT_KIT_FIGURES_H
#define RAMSEAL_AGENT_EXAMINE_REPORT_KIT_FIGURES_H

#include "agent/examine/report/kit/svg.h"
#include "agent/examine/smear/window.h"

/* Names at the left of a figure end here, and have at most so many characters. */
#define FIGURE_NAMES    196
#define FIGURE_NAME_MAX 26

#define FIGURE_COLUMNS  3

/* One bar: its parts follow each other in the order of the series. */
struct figure_bar {
	const char *name;
	char suffix[32]; /* follows the name and is never cut: "" or a number */
	uint64_t parts[SVG_SERIES];
	char note[96];                    /* at the end of the line, or "" */
	char columns[FIGURE_COLUMNS][24]; /* where there is room, instead of the note */
};

struct figure_bars {
	const char *title;
	const char *unit; /* of the axis */
	const struct svg_legend *series;
	size_t n_series;
	const struct figure_bar *at;
	size_t count;
	bool percent; /* every bar is as long as the axis: its parts are shares of their sum */
	const char *columns[FIGURE_COLUMNS]; /* heads of the numbers at the end of the lines */
	size_t n_columns;
};

void figure_bars(struct doc *d, const struct figure_bars *f, enum svg_form form);

struct figure_window {
	const char *name; /* first, see figures_window.c */
	const struct window_summary *w;
};

/* Histograms below each other, over one logarithmic axis of time. */
void figure_windows(struct doc *d, const struct figure_window *at, size_t count,
		    enum svg_form form);

/* The share of pages whose window is at most the time on the axis; one line for each. */
void figure_curves(struct doc *d, const struct figure_window *at, size_t count, enum svg_form form);

/*
 * Median, 95 % and maximum of each, as marks over a logarithmic axis of time. Marks with the same
 * name share a line, which shows the spread of repeated runs.
 */
void figure_spread(struct doc *d, const struct figure_window *at, size_t count, enum svg_form form);

/*
 * Numbers of pages, as marks over a logarithmic axis that also has a place for 0. Marks with the
 * same name share a line. Always a file of its own.
 */
#define FIGURE_DOTS_SERIES 3

struct figure_dot {
	const char *name; /* first, see figures_window.c */
	uint64_t parts[FIGURE_DOTS_SERIES];
};

struct figure_dots {
	const char *title;
	const char *unit;          /* of the axis */
	const char *const *series; /* their names */
	size_t n_series;           /* up to FIGURE_DOTS_SERIES */
	const struct figure_dot *at;
	size_t count;
};

void figure_dots(struct doc *d, const struct figure_dots *f);

/* A share of each of `count` equal parts of a span of time; those without a whole stay empty. */
struct figure_share {
	uint64_t part, whole;
};

struct figure_shares {
	const char *title;
	const char *unit; /* of the axis of time */
	const char *of;   /* what the parts are */
	uint64_t span;    /* ns */
	const struct figure_share *at;
	size_t count;
};

void figure_shares(struct doc *d, const struct figure_shares *f, enum svg_form form);

/* cells[from * n + to]. On a small screen it becomes bars of the cells off the diagonal. */
struct figure_matrix {
	const char *title;
	const char *from, *to; /* what rows and columns are */
	const char *change;    /* what a page outside the diagonal is: "before → after" */
	const char *const *names;
	size_t n;
	const uint64_t *cells;
};

void figure_matrix(struct doc *d, const struct figure_matrix *f, enum svg_form form);

#endif
