/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/examine/report/process/process_map.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Each state has its colour and pattern; what is only reserved has none: its block stays empty. */
static const struct svg_legend states[PAGES_STATES] = {
	[PAGES_VALID] = { "valid", 0 },
	[PAGES_TRANSITION] = { "transition", 5 },
	[PAGES_PAGE_FILE] = { "page file", 1 },
	[PAGES_COMPRESSED] = { "compressed", 6 },
	[PAGES_ZEROS] = { "demand zero", 3 },
	[PAGES_FILE] = { "on disk only", 4 },
	[PAGES_RESERVED] = { "reserved", SVG_SERIES },
	[PAGES_MISSING] = { "not captured", 2 },
	[PAGES_UNKNOWN] = { "unknown", 7 },
};

const char *map_state_text(enum pages_state s)
{
	return (unsigned)s < PAGES_STATES ? states[s].name : "?";
}

void map_put_states(struct doc *d, const struct pages_counts *c)
{
	bool any = false;

	for (size_t i = 0; i < PAGES_STATES; i++) {
		if (!c->state[i])
			continue;
		doc_put(d, any ? ", " : "");
		doc_count(d, c->state[i]);
		doc_printf(d, " %s", states[i].name);
		any = true;
	}
}

/*
 * Where everything goes
 */

/* Neighbouring ranges that are drawn above each other, each in its lane. */
struct map_column {
	size_t first, count; /* of the VADs */
	double x, width;
	size_t row;
	bool apart; /* from the column before it */
};

#define APART      (UINT64_C(1) << 30) /* addresses between two areas of a map: 1 GiB */
#define APART_ROOM 9
#define LANE_NAMES 82
#define ROW_GAP    12
#define ADDRESS    18 /* height of the line of addresses below a row */
#define BLOCK_GAP  1

struct map_layout {
	enum svg_form form;
	struct map_column *columns;
	size_t count, rows;
	enum region lanes[REGIONS]; /* those that the process has */
	size_t n_lanes;
	double top, lane; /* below the legend; the height of one lane */
	size_t fold;
};

size_t map_fold(const struct report_process *r, enum svg_form form)
{
	const size_t most = form == SVG_NARROW ? MAP_COLUMNS_NARROW : MAP_COLUMNS_WIDE;

	return MAX((r->vads->count + most - 1) / most, 1);
}

/* A page is seen, and 128 TiB are not ten times as wide. */
static double natural_width(const struct report_process *r, const struct map_column *c)
{
	uint64_t pages = 0;

	for (size_t i = c->first; i < c->first + c->count; i++)
		pages += vad_pages(&r->vads->at[i]);
	return 4 + 1.2 * log2((double)MAX(pages, 1));
}

static bool is_vad_apart(const struct vad_list *l, size_t i)
{
	return i && l->at[i].start - l->at[i - 1].end > APART;
}

/* So much wider that the rows are filled, as far as that helps. */
#define WIDER_MOST 2.5

static double map_widening(const struct map_layout *l, double sum)
{
	const double room = svg_form_width(l->form) - 1 - LANE_NAMES;
	const double rows = ceil(sum / room);

	/* The last column of a row seldom ends where the row does. */
	return fmin(fmax(rows * (room - APART_ROOM * 3) / fmax(sum, 1), 1), WIDER_MOST);
}

static void make_columns(const struct report_process *r, struct map_layout *l)
{
	double sum = 0, wider;

	for (size_t first = 0; first < r->vads->count; first += l->fold) {
		struct map_column *c = &l->columns[l->count++];

		*c = (struct map_column){
			.first = first,
			.count = MIN(l->fold, r->vads->count - first),
			.apart = is_vad_apart(r->vads, first),
		};
		c->width = natural_width(r, c);
		sum += c->width + BLOCK_GAP + (c->apart ? APART_ROOM : 0);
	}
	wider = map_widening(l, sum);
	for (size_t i = 0; i < l->count; i++)
		l->columns[i].width *= wider;
}

static void place_columns(struct map_layout *l)
{
	const double right = svg_form_width(l->form) - 1;
	double x = LANE_NAMES;

	for (size_t i = 0; i < l->count; i++) {
		struct map_column *c = &l->columns[i];
		const double gap = c->apart && x > LANE_NAMES ? APART_ROOM : 0;

		if (x > LANE_NAMES && x + gap + c->width > right) {
			l->rows++;
			x = LANE_NAMES;
		}
		c->row = l->rows;
		c->x = x > LANE_NAMES ? x + gap : x;
		x = c->x + c->width + BLOCK_GAP;
	}
	l->rows++;
}

static size_t make_legend(const struct report_process *r,
			  struct svg_legend ret[static PAGES_STATES])
{
	size_t n = 0;

	for (size_t i = 0; i < PAGES_STATES; i++)
		if (i != PAGES_RESERVED && r->pages.total.state[i])
			ret[n++] = states[i];
	return n;
}

static bool lay_out_map(const struct report_process *r, enum svg_form form, struct map_layout *l)
{
	struct svg_legend legend[PAGES_STATES];
	const size_t n = make_legend(r, legend);

	*l = (struct map_layout){
		.form = form,
		.fold = map_fold(r, form),
		.top = 30 + svg_legend_more(form, 0, legend, n),
		.lane = form == SVG_NARROW ? 20 : 26,
	};
	for (size_t i = 0; i < REGIONS; i++)
		if (r->by_region[i].vads)
			l->lanes[l->n_lanes++] = (enum region)i;
	l->columns = calloc(r->vads->count / l->fold + 1, sizeof(*l->columns));
	if (!l->columns)
		return false;
	make_columns(r, l);
	place_columns(l);
	return true;
}

static double row_height(const struct map_layout *l)
{
	return (double)l->n_lanes * l->lane + ADDRESS + ROW_GAP;
}

static double row_top(const struct map_layout *l, size_t row)
{
	return l->top + (double)row * row_height(l);
}

/*
 * Drawing
 */

/* What it is, for whoever points at it. */
static void put_hint(struct doc *d, const struct report_process *r, const struct map_column *c,
		     enum region lane, const struct report_sum *sum, const struct vad *first)
{
	const struct vad *last = &r->vads->at[c->first + c->count - 1];

	doc_put(d, "<title>");
	if (c->count == 1)
		doc_printf(d, "%s 0x%" PRIx64 "-0x%" PRIx64, region_name(lane), first->start,
			   first->end);
	else
		doc_printf(d, "%s: %" PRIu64 " of the ranges in 0x%" PRIx64 "-0x%" PRIx64,
			   region_name(lane), sum->vads, r->vads->at[c->first].start, last->end);
	if (first->file && sum->vads == 1) {
		doc_put(d, " ");
		doc_text_cut(d, first->file, 80);
	}
	doc_put(d, ": ");
	map_put_states(d, &sum->pages);
	doc_put(d, "</title>");
}

/* From the bottom up; what is there can be seen, however little it is. */
static void put_fill(struct doc *d, const struct pages_counts *c, double x, double y, double width,
		     double height)
{
	const double all = fmax((double)pages_counts_sum(c), 1);
	double bottom = y + height;

	for (size_t i = 0; i < PAGES_STATES; i++) {
		double part = fmax(height * (double)c->state[i] / all, 1.2);

		if (i == PAGES_RESERVED || !c->state[i])
			continue;
		part = fmin(part, bottom - y);
		bottom -= part;
		doc_printf(d,
			   "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" "
			   "fill=\"url(#p%u)\"/>",
			   x, bottom, width, part, states[i].series);
	}
}

static void put_map_block(struct doc *d, const struct report_process *r, const struct map_layout *l,
			  const struct map_column *c, size_t lane)
{
	const double y = row_top(l, c->row) + (double)lane * l->lane;
	const struct vad *first = NULL;
	struct report_sum sum = { 0 };

	for (size_t i = c->first; i < c->first + c->count; i++) {
		if (r->regions[i].kind != l->lanes[lane])
			continue;
		first = first ? first : &r->vads->at[i];
		sum.vads++;
		pages_counts_add(&sum.pages, &r->pages.each[i]);
	}
	if (!first)
		return;
	doc_put(d, "<g>");
	if (l->form != SVG_NARROW)
		put_hint(d, r, c, l->lanes[lane], &sum, first);
	doc_printf(d,
		   "<rect class=\"block\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\"/>",
		   c->x + .5, y + 1.5, c->width - 1, l->lane - 3);
	put_fill(d, &sum.pages, c->x + .5, y + 1.5, c->width - 1, l->lane - 3);
	doc_put(d, "</g>");
}

static void put_lanes(struct doc *d, const struct map_layout *l, size_t row)
{
	const double right = svg_form_width(l->form) - 1;

	for (size_t i = 0; i <= l->n_lanes; i++) {
		const double y = row_top(l, row) + (double)i * l->lane;

		doc_printf(d, "<path class=\"%s\" d=\"M%d %.1fH%.1f\"/>",
			   i == l->n_lanes ? "axis" : "grid", LANE_NAMES, y, right);
		if (i < l->n_lanes)
			svg_text(d, LANE_NAMES - 6, y + l->lane / 2 + 4, "end", "soft",
				 region_name(l->lanes[i]));
	}
}

/* Below the first column of a row and of each area, where there is room. */
static double put_map_address(struct doc *d, const struct map_layout *l, const struct map_column *c,
			      uint64_t va, double free)
{
	const double y = row_top(l, c->row) + (double)l->n_lanes * l->lane;
	char text[32];
	double width;

	snprintf(text, sizeof(text), "0x%" PRIx64, va);
	width = 11 * .66 * (double)strlen(text);
	doc_printf(d, "<path class=\"axis\" d=\"M%.1f %.1fv4\"/>", c->x, y);
	if (c->x < free || c->x + width > svg_form_width(l->form))
		return free;
	svg_text(d, c->x, y + 15, "start", "mono soft", text);
	return c->x + width + 10;
}

static void put_rows(struct doc *d, const struct report_process *r, const struct map_layout *l)
{
	double free = 0;

	for (size_t i = 0; i < l->count; i++) {
		const struct map_column *c = &l->columns[i];
		const bool begins = !i || l->columns[i - 1].row != c->row;

		if (begins) {
			put_lanes(d, l, c->row);
			free = 0;
		}
		for (size_t k = 0; k < l->n_lanes; k++)
			put_map_block(d, r, l, c, k);
		if (begins || c->apart)
			free = put_map_address(d, l, c, r->vads->at[c->first].start, free);
	}
}

void map_draw(struct doc *d, const struct report_process *r, enum svg_form form)
{
	struct svg_legend legend[PAGES_STATES];
	const size_t n = make_legend(r, legend);
	struct map_layout l;

	if (!lay_out_map(r, form, &l)) {
		d->lost = true;
		return;
	}
	svg_begin(d, form, svg_form_width(form), row_top(&l, l.rows) - ROW_GAP + 4,
		  "Address ranges by kind, and where their pages are");
	svg_legend(d, form, 0, 14, legend, n);
	put_rows(d, r, &l);
	svg_end(d);
	free(l.columns);
}
