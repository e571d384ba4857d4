/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/examine/report/kit/svg.h"

#include <math.h>
#include <string.h>

#define LIGHT                                                                                      \
	"--bg:#fff;--panel:#f6f7f9;--ink:#16191d;--soft:#555c66;--grid:#dde1e6;--edge:#aab1ba;"    \
	"--link:#0058a3;--s0:#0072b2;--s1:#e69f00;--s2:#d55e00;--s3:#009e73;--s4:#cc79a7;"         \
	"--s5:#56b4e9;--s6:#f0e442;--s7:#9aa0a8;--mark:#16191d;--heat:#0072b2;--bar:#56b4e9;"      \
	"--good:#00684c;--fair:#7a5200;--bad:#a3260f"
#define DARK                                                                                       \
	"--bg:#14171b;--panel:#1d2127;--ink:#e9ecef;--soft:#a9b1bb;--grid:#333a43;--edge:#5c6570;" \
	"--link:#7cc4f5;--s0:#3d9bd9;--s1:#e69f00;--s2:#e8681a;--s3:#1fb58a;--s4:#d992b8;"         \
	"--s5:#8fcdf2;--s6:#f0e442;--s7:#7f8790;--mark:#0b0d10;--heat:#3d9bd9;--bar:#2b6d9a;"      \
	"--good:#4fd1a5;--fair:#f2bd4a;--bad:#ff8f78"

const char svg_style[] =
	":root{color-scheme:light dark;" LIGHT "}"
	"@media screen and (prefers-color-scheme:dark){:root{" DARK "}}"
	"svg text{font:12px system-ui,-apple-system,'Segoe UI',Roboto,'DejaVu Sans',sans-serif;"
	"fill:var(--ink);unicode-bidi:isolate}"
	"svg text.soft{fill:var(--soft)}svg text.title{font-size:13px;font-weight:600}"
	"svg text.strong{font-weight:600}svg text.small{font-size:11px}"
	"svg text.mono{font-family:ui-monospace,'DejaVu Sans Mono',Consolas,monospace;"
	"font-size:11px}"
	"svg text.halo{paint-order:stroke;stroke:var(--bg);stroke-width:3px}"
	"svg .grid{stroke:var(--grid);stroke-width:1}svg .axis{stroke:var(--edge);stroke-width:1}"
	"svg .mark{stroke:var(--ink);stroke-width:1.5;fill:none}"
	"svg .back{fill:var(--bg)}svg .panel{fill:var(--panel)}svg .heat{fill:var(--heat)}svg "
	".bar{fill:var(--bar)}"
	"svg .block{fill:var(--panel);stroke:var(--edge);stroke-width:.6}"
	"svg .same{fill:none;stroke:var(--ink);stroke-width:1.5}"
	"svg .cells{fill:none;stroke-width:2}svg .rough{stroke-width:3}"
	"svg .k{fill:var(--mark)}svg .edge{stroke:var(--bg);stroke-width:.5}"
	"svg .s0{fill:var(--s0)}svg .s1{fill:var(--s1)}svg .s2{fill:var(--s2)}"
	"svg .s3{fill:var(--s3)}svg .s4{fill:var(--s4)}svg .s5{fill:var(--s5)}"
	"svg .s6{fill:var(--s6)}svg .s7{fill:var(--s7)}"
	"svg .l0{stroke:var(--s0)}svg .l1{stroke:var(--s1)}svg .l2{stroke:var(--s2)}"
	"svg .l3{stroke:var(--s3)}svg .l4{stroke:var(--s4)}svg .l5{stroke:var(--s5)}"
	"svg .l6{stroke:var(--ink)}svg .l7{stroke:var(--s7)}"
	"svg .line{fill:none;stroke-width:2.2;stroke-linejoin:round}svg .thin{stroke-width:1.3}";

/* What is drawn over the colour of each series; the first one is plain. */
static const char *const patterns[SVG_SERIES] = {
	"",
	"<path class=\"k\" d=\"M0 0h1.6v6h-1.6z\"/>", /* turned, see below */
	"<path class=\"k\" d=\"M0 0h6v1.2h-6zM0 0h1.2v6h-1.2z\"/>",
	"<path class=\"k\" d=\"M2 2h2v2h-2z\"/>",
	"<path class=\"k\" d=\"M0 2h6v1.2h-6z\"/>",
	"<path class=\"k\" d=\"M2 0h1v6h-1z\"/>",
	"<path class=\"k\" d=\"M0 0h1.5v1.5h-1.5zM3 3h1.5v1.5h-1.5z\"/>",
	"<path class=\"k\" d=\"M0 0h1v1h-1z\"/>",
};

static const char *const dashes[SVG_SERIES] = {
	"", "8 4", "2 3", "12 3 2 3", "5 2 1 2 1 2", "16 4", "4 3", "6 6",
};

void svg_patterns(struct doc *d)
{
	doc_put(d, "<defs>");
	for (unsigned i = 0; i < SVG_SERIES; i++)
		doc_printf(d,
			   "<pattern id=\"p%u\" width=\"6\" height=\"6\" "
			   "patternUnits=\"userSpaceOnUse\"%s><rect width=\"6\" height=\"6\" "
			   "class=\"s%u\"/>%s</pattern>",
			   i, i == 1 ? " patternTransform=\"rotate(45)\"" : "", i, patterns[i]);
	doc_put(d, "</defs>");
}

void svg_begin(struct doc *d, enum svg_form form, double width, double height, const char *title)
{
	static const char *const classes[] = {
		[SVG_WIDE] = "fig wide",
		[SVG_NARROW] = "fig narrow",
		[SVG_ALONE] = "fig",
	};

	doc_put(d, "<svg ");
	if (form == SVG_ALONE)
		doc_put(d, "xmlns=\"http://www.w3.org/2000/svg\" ");
	doc_printf(d, "class=\"%s\" role=\"img\" viewBox=\"0 0 %.0f %.0f\"", classes[form], width,
		   height);
	if (form == SVG_ALONE)
		doc_printf(d, " width=\"%.0f\" height=\"%.0f\"", width, height);
	doc_put(d, "><title>");
	doc_text(d, title);
	doc_put(d, "</title>");
	if (form != SVG_ALONE)
		return;
	doc_printf(d, "<style>%s</style>", svg_style);
	svg_patterns(d);
	doc_printf(d, "<rect class=\"back\" width=\"%.0f\" height=\"%.0f\"/>", width, height);
}

void svg_end(struct doc *d)
{
	doc_put(d, "</svg>\n");
}

/*
 * Scales
 */

double scale_at(const struct scale *s, double value)
{
	const double from = s->log ? log10(s->from) : s->from;
	const double to = s->log ? log10(s->to) : s->to;
	double part;

	if (s->log)
		value = value > 0 ? log10(value) : from;
	if (!(to > from))
		return s->low;
	part = (value - from) / (to - from);
	return s->low + (s->high - s->low) * fmin(fmax(part, 0), 1);
}

/* 1, 2 or 5 times a power of ten. */
static double nice_above(double value)
{
	const double power = pow(10, floor(log10(value) + 1e-9));
	static const double steps[] = { 1, 2, 5, 10 };

	for (size_t i = 0; i < ARRAY_SIZE(steps); i++)
		if (steps[i] * power >= value * (1 - 1e-9))
			return steps[i] * power;
	return 10 * power;
}

double tick_above(double value)
{
	return value > 0 ? nice_above(value) : 1;
}

size_t ticks_linear(double from, double to, unsigned wanted, double ret[static TICKS_MAX])
{
	double step, first;
	size_t n = 0;

	if (!(to > from) || !wanted)
		return 0;
	step = nice_above((to - from) / wanted);
	first = ceil(from / step - 1e-9);
	for (; n < TICKS_MAX && (first + (double)n) * step <= to + step * 1e-9; n++)
		ret[n] = (first + (double)n) * step;
	return n;
}

size_t ticks_decades(double from, double to, double ret[static TICKS_MAX])
{
	double power;
	size_t n = 0;

	if (!(from > 0) || !(to >= from))
		return 0;
	power = ceil(log10(from) - 1e-9);
	for (; n < TICKS_MAX && power <= log10(to) + 1e-9; power++)
		ret[n++] = pow(10, power);
	return n;
}

static void ns_text(double ns, char ret[static NUMBER_MAX])
{
	static const struct {
		double ns;
		const char *name;
	} units[] = { { 1e9, "s" }, { 1e6, "ms" }, { 1e3, "µs" }, { 1, "ns" } };
	size_t i = 0;

	while (i + 1 < ARRAY_SIZE(units) && ns < units[i].ns * (1 - 1e-9))
		i++;
	if (ns > 0)
		snprintf(ret, NUMBER_MAX, "%.6g %s", ns / units[i].ns, units[i].name);
	else
		snprintf(ret, NUMBER_MAX, "0");
}

void tick_text(double value, enum tick_unit unit, char ret[static NUMBER_MAX])
{
	if (unit == TICK_NONE)
		*ret = '\0';
	else if (unit == TICK_NS)
		ns_text(value, ret);
	else if (unit == TICK_PERCENT)
		snprintf(ret, NUMBER_MAX, "%.6g %%", value);
	else if (value >= 1 && value < 1e15)
		number_count((uint64_t)(value + 0.5), ret);
	else
		snprintf(ret, NUMBER_MAX, "%.6g", value);
}

/*
 * Pieces
 */

void svg_text(struct doc *d, double x, double y, const char *anchor, const char *style,
	      const char *text)
{
	doc_printf(d, "<text x=\"%.1f\" y=\"%.1f\"", x, y);
	if (strcmp(anchor, "start") != 0)
		doc_printf(d, " text-anchor=\"%s\"", anchor);
	if (*style)
		doc_printf(d, " class=\"%s\"", style);
	doc_put(d, ">");
	doc_text(d, text);
	doc_put(d, "</text>");
}

static void svg_line(struct doc *d, const char *style, double x1, double y1, double x2, double y2)
{
	doc_printf(d, "<path class=\"%s\" d=\"M%.1f %.1fL%.1f %.1f\"/>", style, x1, y1, x2, y2);
}

#define LABEL_SIZE 12
#define LABEL_GAP  8 /* between two labels, at least */

/* Below its tick, or as near as the drawing's end lets it. Returns where it ends. */
static double axis_label(struct doc *d, enum svg_form form, double x, double y, double free,
			 const char *text)
{
	const double width = svg_width(text, LABEL_SIZE);
	const double most = svg_form_width(form) - width - 1;
	const double left = fmin(fmax(x - width / 2, 1), most);

	if (!*text || left < free)
		return free;
	if (left == x - width / 2)
		svg_text(d, x, y, "middle", "soft", text);
	else
		svg_text(d, left == most ? most + width : left, y, left == most ? "end" : "start",
			 "soft", text);
	return left + width + LABEL_GAP;
}

void svg_axis_x(struct doc *d, enum svg_form form, const struct scale *s, double top, double bottom,
		const double *ticks, size_t n_ticks, enum tick_unit unit, const char *title)
{
	char text[NUMBER_MAX];
	double free = 0;

	for (size_t i = 0; i < n_ticks; i++) {
		const double x = scale_at(s, ticks[i]);

		svg_line(d, "grid", x, top, x, bottom);
		svg_line(d, "axis", x, bottom, x, bottom + 4);
		tick_text(ticks[i], unit, text);
		free = axis_label(d, form, x, bottom + 17, free, text);
	}
	svg_line(d, "axis", s->low, bottom, s->high, bottom);
	if (title)
		svg_text(d, (s->low + s->high) / 2, bottom + 35, "middle", "soft", title);
}

void svg_axis_y(struct doc *d, const struct scale *s, double left, double right,
		const double *ticks, size_t n_ticks, enum tick_unit unit, const char *title)
{
	const double middle = (s->low + s->high) / 2;
	char text[NUMBER_MAX];

	for (size_t i = 0; i < n_ticks; i++) {
		const double y = scale_at(s, ticks[i]);

		svg_line(d, "grid", left, y, right, y);
		tick_text(ticks[i], unit, text);
		svg_text(d, left - 6, y + 4, "end", "soft", text);
	}
	svg_line(d, "axis", left, s->low, left, s->high);
	if (!title)
		return;
	doc_printf(d,
		   "<text class=\"soft\" text-anchor=\"middle\" "
		   "transform=\"translate(%.1f %.1f)rotate(-90)\">",
		   left - 52, middle);
	doc_text(d, title);
	doc_put(d, "</text>");
}

#define LEGEND_KEY 28 /* the colour and the space behind it */
#define LEGEND_GAP 22

/* Where an entry goes, and where the next one would. */
struct legend_place {
	double first, x, y, next;
};

static void legend_step(struct legend_place *p, enum svg_form form, const char *name)
{
	const double width = LEGEND_KEY + svg_width(name, LABEL_SIZE);

	p->x = p->next;
	if (p->x > p->first && p->x + width > svg_form_width(form)) {
		p->x = p->first;
		p->y += SVG_LEGEND_PITCH;
	}
	p->next = p->x + width + LEGEND_GAP;
}

void svg_legend(struct doc *d, enum svg_form form, double x, double y,
		const struct svg_legend *entries, size_t count)
{
	struct legend_place p = { .first = x, .y = y, .next = x };

	for (size_t i = 0; i < count; i++) {
		legend_step(&p, form, entries[i].name);
		doc_printf(d,
			   "<rect x=\"%.1f\" y=\"%.1f\" width=\"22\" height=\"12\" "
			   "fill=\"url(#p%u)\"/>",
			   p.x, p.y - 10, entries[i].series % SVG_SERIES);
		svg_text(d, p.x + LEGEND_KEY, p.y, "start", "", entries[i].name);
	}
}

double svg_legend_more(enum svg_form form, double x, const struct svg_legend *entries, size_t count)
{
	struct legend_place p = { .first = x, .next = x };

	for (size_t i = 0; i < count; i++)
		legend_step(&p, form, entries[i].name);
	return p.y;
}

const char *svg_dash(unsigned series)
{
	return dashes[series % SVG_SERIES];
}

/* In em, by the first byte of its UTF-8; from U+3000 on letters are as wide as high. */
static double letter_width(char c)
{
	if ((uint8_t)c >= 0xe3)
		return 1;
	if (strchr("fijlrtI.,:;|' ()[]", c))
		return 0.38;
	return strchr("mwMW%<>+=", c) ? 0.96 : 0.64;
}

double svg_width(const char *text, double size)
{
	double width = 0;

	for (; *text; text++)
		if ((*text & 0xc0) != 0x80)
			width += letter_width(*text);
	return width * size;
}

/* The width of markup that doc_text_cut() wrote: an entity is one letter. */
static double shown_width(const char *markup, double size)
{
	double width = 0;

	for (const char *at = markup; at && *at; at++) {
		if (*at == '&') {
			width += 0.96;
			at = strchr(at, ';');
		} else if ((*at & 0xc0) != 0x80) {
			width += letter_width(*at);
		}
		if (!at)
			break;
	}
	return width * size;
}

size_t svg_fit(const char *text, size_t most, double size, double room)
{
	for (; most > 1; most--) {
		_cleanup_doc_ struct doc d = { 0 };

		doc_text_cut(&d, text, most);
		if (!d.at || shown_width(d.at, size) <= room)
			return most;
	}
	return 1;
}
