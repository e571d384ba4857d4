/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Draws numbers with the report's own code (agent/examine/report/kit/figures.h), as an SVG file on
 * stdout:
 *
 *	plot curves|spread		lines NAME PAGES MEDIAN P95 MAX [OCTAVE:PAGES…]
 *	plot dots TITLE UNIT SERIES…	lines NAME N…, as many numbers as series
 *
 * Lines come on stdin, their fields with tabs between them.
 */
#include <inttypes.h>
#include <string.h>

#include "agent/examine/report/kit/figures.h"

#define LINES_MAX 64
#define LINE_MAX  4096

static char lines[LINES_MAX][LINE_MAX];
static size_t count;

static int fail(const char *what)
{
	fprintf(stderr, "plot: %s\n", what);
	return 1;
}

/* The next field of a line, ended by 0; NULL behind the last. */
static char *field(char **line)
{
	return strsep(line, "\t");
}

static uint64_t number(char **line)
{
	const char *text = field(line);

	return text ? strtoull(text, NULL, 10) : 0;
}

static void read_octaves(const char *text, struct window_summary *ret)
{
	unsigned octave;
	uint64_t pages;
	int used;

	for (; text && sscanf(text, " %u:%" SCNu64 "%n", &octave, &pages, &used) == 2; text += used)
		if (octave < WINDOW_OCTAVES)
			ret->octave[octave] = pages;
}

static void draw_windows(struct doc *d, bool curves)
{
	static struct window_summary windows[LINES_MAX];
	static struct figure_window at[LINES_MAX];

	for (size_t i = 0; i < count; i++) {
		struct window_summary *w = &windows[i];
		char *line = lines[i];

		at[i] = (struct figure_window){ field(&line), w };
		w->pages = number(&line);
		w->median = number(&line);
		w->p95 = number(&line);
		w->max = number(&line);
		read_octaves(field(&line), w);
	}
	if (curves)
		figure_curves(d, at, count, SVG_ALONE);
	else
		figure_spread(d, at, count, SVG_ALONE);
}

static void draw_dots(struct doc *d, int argc, char **argv)
{
	static struct figure_dot at[LINES_MAX];
	const struct figure_dots f = {
		.title = argv[2],
		.unit = argv[3],
		.series = (const char *const *)&argv[4],
		.n_series = (size_t)(argc - 4),
		.at = at,
		.count = count,
	};

	for (size_t i = 0; i < count; i++) {
		char *line = lines[i];

		at[i].name = field(&line);
		for (size_t k = 0; k < f.n_series; k++)
			at[i].parts[k] = number(&line);
	}
	figure_dots(d, &f);
}

int main(int argc, char **argv)
{
	const char *kind = argc > 1 ? argv[1] : "";
	_cleanup_doc_ struct doc d = { 0 };

	while (count < LINES_MAX && fgets(lines[count], LINE_MAX, stdin)) {
		lines[count][strcspn(lines[count], "\n")] = '\0';
		count++;
	}
	if (!count || !feof(stdin))
		return fail("no lines, or too many");
	if (!strcmp(kind, "dots") && argc > 4 && argc - 4 <= FIGURE_DOTS_SERIES)
		draw_dots(&d, argc, argv);
	else if ((!strcmp(kind, "curves") || !strcmp(kind, "spread")) && argc == 2)
		draw_windows(&d, !strcmp(kind, "curves"));
	else
		return fail("wrong arguments; its head says what it takes");
	if (d.lost || fwrite(d.at, 1, d.len, stdout) != d.len || fflush(stdout))
		return fail("cannot write");
	return 0;
}
