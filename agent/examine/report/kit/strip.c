/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/examine/report/kit/strip.h"

#include <inttypes.h>
#include <string.h>

#define LANE_HEIGHT 14
#define LANE_TOP    8
#define STRIP_AXIS  40
#define TICKS       7 /* round addresses below it, at most */

void strip_deinit(struct strip *s)
{
	range_list_deinit(&s->ram);
	*s = (struct strip){ 0 };
}

void strip_set_ram(struct strip *s, struct range_list *ram)
{
	range_list_deinit(&s->ram);
	s->ram = *ram;
	*ram = (struct range_list){ 0 };
	s->bytes = range_list_bytes(&s->ram);
}

static size_t strip_cell(const struct strip *s, uint64_t offset)
{
	return (size_t)((double)offset / (double)s->bytes * STRIP_CELLS);
}

void strip_mark(struct strip *s, enum strip_lane lane, uint64_t first, uint64_t last)
{
	uint64_t before = 0; /* bytes of RAM below the range */

	for (size_t i = 0; i < s->ram.count; before += range_bytes(s->ram.at[i++])) {
		const struct range *r = &s->ram.at[i];
		size_t from, to;

		if (last < r->first || first > r->last)
			continue;
		from = strip_cell(s, before + MAX(first, r->first) - r->first);
		to = strip_cell(s, before + MIN(last, r->last) - r->first);
		memset(&s->cells[lane][MIN(from, STRIP_CELLS - 1)], 1,
		       MIN(to, STRIP_CELLS - 1) - MIN(from, STRIP_CELLS - 1) + 1);
	}
}

/* Names stand left of the lanes and notes right of them; on a small screen both stand above. */
struct strip_layout {
	bool above;
	double left, right, pitch;
};

static struct strip_layout lay_out_strip(enum svg_form form)
{
	if (form == SVG_NARROW)
		return (struct strip_layout){ true, 1, SVG_WIDTH_NARROW - 1, LANE_HEIGHT + 22 };
	return (struct strip_layout){ false, 118, 740, LANE_HEIGHT + 8 };
}

static void draw_strip_lane(struct doc *d, const uint8_t *cells, unsigned series,
			    const struct strip_layout *l, double y)
{
	const double cell = (l->right - l->left) / STRIP_CELLS;

	doc_printf(d,
		   "<rect class=\"block\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" "
		   "height=\"%d\"/>",
		   l->left, y, l->right - l->left, LANE_HEIGHT);
	for (size_t i = 0, end; i < STRIP_CELLS; i = end + 1) {
		for (end = i; end < STRIP_CELLS && cells[end];)
			end++;
		if (end > i)
			doc_printf(d,
				   "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%d\" "
				   "fill=\"url(#p%u)\"/>",
				   l->left + cell * (double)i, y, cell * (double)(end - i),
				   LANE_HEIGHT, series);
	}
}

/* Where labels still have room: from `free` on, and below `most`. */
struct label_room {
	double free, most;
};

static void strip_label(struct doc *d, const struct strip_layout *l, struct label_room *r,
			double part, double y, uint64_t address)
{
	const double x = l->left + (l->right - l->left) * part;
	char text[NUMBER_MAX];
	double width, left;

	snprintf(text, sizeof(text), "0x%" PRIx64, address);
	width = svg_width(text, 12);
	left = part <= 0 ? x : part >= 1 ? x - width : x - width / 2;
	if (left < r->free || left + width > r->most)
		return;
	r->free = left + width + 10;
	doc_printf(d, "<path class=\"axis\" d=\"M%.1f %.1fv4\"/>", x, y);
	svg_text(d, x, y + 17, part <= 0 ? "start" : part >= 1 ? "end" : "middle", "mono", text);
}

/* The ends, and round addresses between them; the last end has its place in any case. */
static void draw_strip_axis(struct doc *d, enum svg_form form, const struct strip *s,
			    const struct strip_layout *l, double y)
{
	const uint64_t end = s->ram.at[s->ram.count - 1].last + 1;
	struct label_room room = { .most = l->right - 10 };
	uint64_t before = 0, step = PAGE_SIZE;
	char text[NUMBER_MAX];

	snprintf(text, sizeof(text), "0x%" PRIx64, end);
	room.most -= svg_width(text, 12);
	while (step < s->bytes / TICKS)
		step *= 2;
	strip_label(d, l, &room, 0, y, s->ram.at[0].first);
	for (size_t i = 0; i < s->ram.count; before += range_bytes(s->ram.at[i++])) {
		const struct range *r = &s->ram.at[i];

		for (uint64_t at = (r->first + step - 1) / step * step;
		     at >= r->first && at <= r->last && at / step < UINT64_MAX / step; at += step)
			strip_label(d, l, &room,
				    (double)(before + at - r->first) / (double)s->bytes, y, at);
	}
	room.most = l->right + 1;
	strip_label(d, l, &room, 1, y, end);
	svg_text(d, (l->left + l->right) / 2, y + 34, "middle", "soft",
		 form == SVG_NARROW ? "physical address, RAM only"
				    : "physical address; what is no RAM is left out");
}

void strip_draw(struct doc *d, const struct strip *s, const char *const notes[static STRIP_LANES],
		enum svg_form form)
{
	static const struct svg_legend lanes[STRIP_LANES] = {
		[STRIP_CAPTURED] = { "captured", 0 },
		[STRIP_MISSING] = { "missing", 2 },
		[STRIP_AGAIN] = { "captured again", 1 },
	};
	const struct strip_layout l = lay_out_strip(form);
	const double bottom = LANE_TOP + (double)STRIP_LANES * l.pitch;

	svg_begin(d, form, svg_form_width(form), bottom + STRIP_AXIS, "Physical memory by address");
	for (size_t i = 0; i < STRIP_LANES; i++) {
		const double above = LANE_TOP + (double)i * l.pitch;
		const double y = l.above ? above + 17 : above;

		svg_text(d, l.above ? 0 : l.left - 8, l.above ? above + 11 : y + 11,
			 l.above ? "start" : "end", "", lanes[i].name);
		svg_text(d, l.above ? SVG_WIDTH_NARROW : l.right + 10,
			 l.above ? above + 11 : y + 11, l.above ? "end" : "start", "soft",
			 notes[i]);
		draw_strip_lane(d, s->cells[i], lanes[i].series, &l, y);
	}
	draw_strip_axis(d, form, s, &l, bottom);
	svg_end(d);
}
