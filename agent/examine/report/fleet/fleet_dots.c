/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How long each host took and how much was read of it, as one drawing: what is unlike the others
 * stands apart. Each outcome has a colour and a shape.
 */
#include <math.h>
#include <string.h>

#include "agent/examine/report/fleet/fleet_internal.h"
#include "agent/examine/report/kit/svg.h"

#define DOTS_TOP    34 /* the legend */
#define DOTS_AXIS   44
#define DOTS_LEFT   84
#define DOTS_NAMED  4   /* so many of the slowest have their name beside them */
#define DOTS_TITLES 500 /* more would make the page as large as its tables */

struct dots {
	enum svg_form form;
	struct scale x, y;
	struct ranked slowest;
	/* One mark for all that would lie on each other, so that the drawing has a bounded size. */
	bool taken[RATING_BAD + 1][SVG_WIDTH / 3][SVG_WIDTH / 3];
};

static bool has_dot(const struct fleet_host *h)
{
	return h->duration != FLEET_UNKNOWN && h->duration && h->memory != FLEET_UNKNOWN &&
	       h->memory;
}

static int compare_slowest(const void *a, const void *b)
{
	return fleet_falling(fleet_host_at(a)->duration, fleet_host_at(b)->duration, a, b);
}

static double gib_of(const struct fleet_host *h)
{
	return (double)h->memory / (double)(1 << 30);
}

/* A logarithmic scale whose ends are 1, 2 or 5 times a power of ten. */
static struct scale scale_around(double low, double high, double at_low, double at_high)
{
	const double below = 1 / tick_above(1 / low); /* one over 2 is 5 times a power of ten */

	return (struct scale){ .from = below,
			       .to = tick_above(fmax(high, below * 2)),
			       .low = at_low,
			       .high = at_high,
			       .log = true };
}

static void draw_shape(struct doc *d, enum rating j, double x, double y)
{
	if (j == RATING_GOOD)
		doc_printf(d, "<circle class=\"s3 edge\" cx=\"%.1f\" cy=\"%.1f\" r=\"4.5\"/>", x,
			   y);
	else if (j == RATING_FAIR)
		doc_printf(d, "<path class=\"s1 edge\" d=\"M%.1f %.1fl6 6l-6 6l-6 -6z\"/>", x,
			   y - 6);
	else
		doc_printf(d, "<path class=\"line l2\" d=\"M%.1f %.1fl9 9m0 -9l-9 9\"/>", x - 4.5,
			   y - 4.5);
}

static void draw_host(struct doc *d, struct dots *s, const struct fleet_host *h, bool titled)
{
	const double x = scale_at(&s->x, gib_of(h)), y = scale_at(&s->y, (double)h->duration);
	const enum rating j = fleet_rating(h);
	bool *taken = &s->taken[j][(size_t)x / 3][(size_t)y / 3];

	if (*taken && !titled)
		return;
	*taken = true;
	if (titled) {
		doc_put(d, "<g><title>");
		doc_text_cut(d, fleet_name(h), 60);
		doc_put(d, ": ");
		doc_span(d, h->duration);
		doc_put(d, ", ");
		doc_size(d, h->memory);
		doc_put(d, "</title>");
	}
	draw_shape(d, j, x, y);
	if (titled)
		doc_put(d, "</g>");
}

/* Beside its mark, on the side that has more room. */
static void name_dot(struct doc *d, const struct dots *s, const struct fleet_host *h)
{
	const double x = scale_at(&s->x, gib_of(h)), y = scale_at(&s->y, (double)h->duration);
	const bool left = x > (s->x.low + s->x.high) / 2;

	doc_printf(d, "<text class=\"small halo\" x=\"%.1f\" y=\"%.1f\"%s>", x + (left ? -9 : 9),
		   y + 4, left ? " text-anchor=\"end\"" : "");
	doc_text_cut(d, fleet_name(h),
		     svg_fit(fleet_name(h), s->form == SVG_NARROW ? 16 : 32, 11,
			     (left ? x - s->x.low : s->x.high - x) - 12));
	doc_put(d, "</text>");
}

/* The slowest by name, but for those whose names would meet. */
static void name_slowest(struct doc *d, const struct dots *s)
{
	double before = -1;

	for (size_t i = 0; i < MIN(s->slowest.count, (size_t)DOTS_NAMED); i++) {
		const double y = scale_at(&s->y, (double)s->slowest.at[i]->duration);

		if (before >= 0 && y - before < 14)
			continue;
		before = y;
		name_dot(d, s, s->slowest.at[i]);
	}
}

/* Times people know: seconds, minutes, hours. */
static void draw_times(struct doc *d, const struct dots *s)
{
	static const double seconds[] = { 1e-3, 1e-2, .1,    1,     2,    5,    10,
					  30,   60,   120,   300,   600,  1200, 1800,
					  3600, 7200, 14400, 36000, 86400 };
	double before = 1e9;

	for (size_t i = 0; i < ARRAY_SIZE(seconds); i++) {
		const double y = scale_at(&s->y, seconds[i] * 1e9);
		char text[NUMBER_MAX];

		if (seconds[i] * 1e9 < s->y.from || seconds[i] * 1e9 > s->y.to || before - y < 20)
			continue;
		before = y;
		if (seconds[i] < 60)
			tick_text(seconds[i] * 1e9, TICK_NS, text);
		else if (seconds[i] < 3600)
			snprintf(text, sizeof(text), "%.0f min", seconds[i] / 60);
		else
			snprintf(text, sizeof(text), "%.0f h", seconds[i] / 3600);
		doc_printf(d, "<path class=\"grid\" d=\"M%.1f %.1fH%.1f\"/>", s->x.low, y,
			   s->x.high);
		svg_text(d, s->x.low - 6, y + 4, "end", "soft", text);
	}
	doc_printf(
		d,
		"<path class=\"axis\" d=\"M%.1f %.1fV%.1f\"/><text class=\"soft\" "
		"text-anchor=\"middle\" transform=\"translate(%.1f %.1f)rotate(-90)\">took</text>",
		s->x.low, s->y.low, s->y.high, s->x.low - 58, (s->y.low + s->y.high) / 2);
}

static void draw_sizes(struct doc *d, const struct dots *s)
{
	static const double steps[] = { 1, 2, 5 };
	double free = 0;

	for (double power = 1e-6; power < 1e9; power *= 10) {
		for (size_t i = 0; i < ARRAY_SIZE(steps); i++) {
			const double gib = steps[i] * power, x = scale_at(&s->x, gib);
			char text[NUMBER_MAX];

			if (gib < s->x.from * (1 - 1e-9) || gib > s->x.to * (1 + 1e-9) || x < free)
				continue;
			snprintf(text, sizeof(text), "%.6g", gib);
			free = x + svg_width(text, 12) + 10;
			doc_printf(d, "<path class=\"grid\" d=\"M%.1f %.1fV%.1f\"/>", x, s->y.low,
				   s->y.high);
			if (x + svg_width(text, 12) / 2 < svg_form_width(s->form))
				svg_text(d, x, s->y.low + 17, "middle", "soft", text);
		}
	}
	doc_printf(d, "<path class=\"axis\" d=\"M%.1f %.1fH%.1f\"/>", s->x.low, s->y.low,
		   s->x.high);
	svg_text(d, (s->x.low + s->x.high) / 2, s->y.low + 35, "middle", "soft",
		 "memory read, in GiB (both axes are logarithmic)");
}

static void draw_dots_legend(struct doc *d, const struct dots *s)
{
	static const struct {
		enum rating of;
		const char *name;
	} entries[] = { { RATING_GOOD, "complete" },
			{ RATING_FAIR, "with gaps" },
			{ RATING_BAD, "not complete" } };
	double x = s->form == SVG_NARROW ? 6 : s->x.low + 6;

	for (size_t i = 0; i < ARRAY_SIZE(entries); i++) {
		draw_shape(d, entries[i].of, x, 12);
		svg_text(d, x + 12, 16, "start", "", entries[i].name);
		x += 12 + svg_width(entries[i].name, 12) + 22;
	}
}

static void draw_dots(struct doc *d, struct dots *s, enum svg_form form)
{
	const double height = form == SVG_NARROW ? 210 : 280, right = svg_form_width(form) - 12;
	double low = INFINITY, high = 0, least = INFINITY, most = 0;

	for (size_t i = 0; i < s->slowest.count; i++) {
		least = fmin(least, (double)s->slowest.at[i]->duration);
		most = fmax(most, (double)s->slowest.at[i]->duration);
		low = fmin(low, gib_of(s->slowest.at[i]));
		high = fmax(high, gib_of(s->slowest.at[i]));
	}
	s->form = form;
	s->x = scale_around(low, high, DOTS_LEFT, right);
	s->y = scale_around(least, most, DOTS_TOP + height, DOTS_TOP);
	memset(s->taken, 0, sizeof(s->taken));
	svg_begin(d, form, svg_form_width(form), DOTS_TOP + height + DOTS_AXIS,
		  "Time and memory of each host, by outcome");
	draw_dots_legend(d, s);
	draw_times(d, s);
	draw_sizes(d, s);
	/* From the fastest to the slowest: those that are asked about lie on top. */
	for (size_t i = s->slowest.count; i-- > 0;)
		draw_host(d, s, s->slowest.at[i], s->slowest.count <= DOTS_TITLES);
	name_slowest(d, s);
	svg_end(d);
}

static void put_dots_caption(struct doc *d, const struct fleet *f, size_t shown)
{
	doc_put(d,
		"<figcaption>A host far above the others of its size was slow. The numbers stand "
		"<a href=\"#hosts\">in the list of all hosts</a>.");
	if (shown < f->count) {
		doc_put(d, " Not shown: ");
		doc_count(d, f->count - shown);
		doc_put(d, " whose time or size is not known, or none.");
	}
	doc_put(d, "</figcaption></figure>\n");
}

bool fleet_has_dots(const struct fleet *f)
{
	for (size_t i = 0; i < f->count; i++)
		if (has_dot(&f->hosts[i]))
			return true;
	return false;
}

void fleet_put_dots(struct doc *d, const struct fleet *f)
{
	_cleanup_free_ struct dots *s = calloc(1, sizeof(*s));

	if (!s) {
		d->lost = true;
		return;
	}
	s->slowest = fleet_ranked(d, f, has_dot, compare_slowest);
	if (s->slowest.count) {
		doc_put(d, "<figure>");
		draw_dots(d, s, SVG_WIDE);
		draw_dots(d, s, SVG_NARROW);
		put_dots_caption(d, f, s->slowest.count);
	}
	free(s->slowest.at);
}
