/* SPDX-License-Identifier: Apache-2.0 */
/* What a report is made with: escaping, numbers, scales, figures. */
#include "tests/unit/test.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "agent/examine/report/kit/figures.h"
#include "agent/examine/report/kit/glossary.h"
#include "agent/examine/report/kit/rating.h"
#include "agent/examine/report/kit/timeline.h"
#include "formats/base/utf8.h"

#define CHECK_PUT(want, ...)                                                                       \
	do {                                                                                       \
		_cleanup_doc_ struct doc d_ = { 0 };                                               \
		doc_put(&d_, "");                                                                  \
		__VA_ARGS__;                                                                       \
		assert_string_equal(d_.at, want);                                                  \
	} while (0)

#define CHECK_TEXT(text, want) CHECK_PUT(want, doc_text(&d_, text))

TEST(strange_text_cannot_be_markup)
{
	CHECK_TEXT("</title><script>x</script>", "&lt;/title&gt;&lt;script&gt;x&lt;/script&gt;");
	CHECK_TEXT("a\" onload='x", "a&quot; onload=&#39;x");
	CHECK_TEXT("&lt;", "&amp;lt;");
	CHECK_TEXT("svchost.exe", "svchost.exe");
	CHECK_TEXT("naïve — ü", "naïve — ü");
	CHECK_TEXT(NULL, "");
}

TEST(strange_text_cannot_hide_or_reorder)
{
	CHECK_TEXT("a\nb\x1b[2J\x7f", "a\\x0ab\\x1b[2J\\x7f");
	CHECK_TEXT("gpj\xe2\x80\xae.exe", "gpj\\u{202e}.exe");          /* override to the left */
	CHECK_TEXT("a\xe2\x80\x8b\xef\xbb\xbf", "a\\u{200b}\\u{feff}"); /* no width */
	CHECK_TEXT("\xc2\x85\xef\xbf\xbf", "\\u{85}\\u{ffff}");
	CHECK_TEXT("\xf3\xa0\x81\x81", "\\u{e0041}"); /* a tag */
}

TEST(bytes_that_are_no_utf8_are_shown_as_bytes)
{
	CHECK_TEXT("a\xff\xc3", "a\\xff\\xc3");
	CHECK_TEXT("\xc0\xbcscript\xed\xa0\x80", "\\xc0\\xbcscript\\xed\\xa0\\x80");
}

/* Whatever the bytes, what comes out is UTF-8 without markup and without control characters. */
TEST(no_bytes_at_all_get_through)
{
	uint32_t seed = 1;

	for (size_t round = 0; round < 2000; round++) {
		_cleanup_doc_ struct doc d = { 0 };
		char text[40];

		for (size_t i = 0; i + 1 < sizeof(text); i++) {
			seed = seed * 1664525 + 1013904223;
			text[i] = (char)((seed >> 24) ? seed >> 24 : 1);
		}
		text[sizeof(text) - 1] = '\0';
		doc_text(&d, text);
		assert_true(utf8_valid(d.at, d.len));
		assert_null(strpbrk(d.at, "<>\"'\n\t\x1b"));
	}
}

TEST(long_text_is_cut_by_characters)
{
	CHECK_PUT("abcde", doc_text_cut(&d_, "abcde", 5));
	CHECK_PUT("abcd…", doc_text_cut(&d_, "abcdef", 5));
	CHECK_PUT("äöü…", doc_text_cut(&d_, "äöüßx", 4));
	CHECK_PUT("&lt;&lt;…", doc_text_cut(&d_, "<<<<", 3));
}

TEST(documents_grow)
{
	_cleanup_doc_ struct doc d = { 0 };
	char line[1000];

	memset(line, 'x', sizeof(line) - 1);
	line[sizeof(line) - 1] = '\0';
	for (size_t i = 0; i < 500; i++)
		doc_printf(&d, "%s%c", line, '\n');
	assert_false(d.lost);
	assert_int_equal(d.len, 500 * sizeof(line));
	assert_int_equal(strlen(d.at), d.len);
}

static void check_number(void (*number)(uint64_t, char *), uint64_t n, const char *want)
{
	char text[NUMBER_MAX];

	number(n, text);
	assert_string_equal(text, want);
}

static void count(uint64_t n, char *ret)
{
	number_count(n, ret);
}

static void time_of(uint64_t n, char *ret)
{
	number_duration(n, ret);
}

static void span(uint64_t n, char *ret)
{
	number_span(n, ret);
}

static void share_of_a_million(uint64_t n, char *ret)
{
	number_share(n, 1000000, ret);
}

TEST(numbers_are_as_people_read_them)
{
	check_number(count, 0, "0");
	check_number(count, 999, "999");
	check_number(count, 1000, "1,000");
	check_number(count, 1234567, "1,234,567");
	check_number(count, UINT64_MAX, "18,446,744,073,709,551,615");
	check_number(span, 6200000, "6.2 ms");
	check_number(span, 9949999999, "9.950 s");
	check_number(span, 41400000000, "41 s");
	check_number(span, 59600000000, "1 min 0 s");
	check_number(span, UINT64_C(461000000000), "7 min 41 s");
	check_number(span, UINT64_C(7379600000000), "2 h 3 min");
	check_number(span, UINT64_MAX, "5124095 h 34 min");
	check_number(time_of, 810, "810 ns");
	check_number(time_of, 6200000, "6.2 ms");
	check_number(time_of, 4813000000, "4.813 s");
}

TEST(a_share_is_never_none_nor_all_unless_it_is)
{
	char text[NUMBER_MAX];

	check_number(share_of_a_million, 0, "0.0 %");
	check_number(share_of_a_million, 1, "<0.1 %");
	check_number(share_of_a_million, 123456, "12.3 %");
	check_number(share_of_a_million, 999999, ">99.9 %");
	check_number(share_of_a_million, 1000000, "100.0 %");
	number_share(0, 0, text);
	assert_string_equal(text, "-");
}

/*
 * Scales
 */

static bool near(double a, double b)
{
	return fabs(a - b) <= 1e-6 * fmax(1, fabs(b));
}

TEST(scales_map_ends_to_ends)
{
	const struct scale linear = { .from = 10, .to = 20, .low = 100, .high = 300 };
	const struct scale upward = { .to = 4, .low = 300, .high = 100 };
	const struct scale log = { .from = 1, .to = 1000, .low = 0, .high = 30, .log = true };
	const struct scale point = { .from = 5, .to = 5, .low = 7, .high = 9 };

	assert_true(near(scale_at(&linear, 10), 100));
	assert_true(near(scale_at(&linear, 15), 200));
	assert_true(near(scale_at(&linear, 99), 300));
	assert_true(near(scale_at(&linear, -1e300), 100));
	assert_true(near(scale_at(&upward, 1), 250));
	assert_true(near(scale_at(&log, 10), 10));
	assert_true(near(scale_at(&log, 1000), 30));
	assert_true(near(scale_at(&log, 0), 0));
	assert_true(near(scale_at(&point, 5), 7));
}

static void check_ticks(const double *got, size_t n, const double *want, size_t n_want)
{
	assert_int_equal(n, n_want);
	for (size_t i = 0; i < n; i++)
		if (!near(got[i], want[i]))
			fail_msg("tick %zu: %g, wanted %g", i, got[i], want[i]);
}

#define CHECK_TICKS(call, ...)                                                                     \
	do {                                                                                       \
		const double want_[] = { __VA_ARGS__ };                                            \
		double ticks[TICKS_MAX];                                                           \
		const size_t n_ = call;                                                            \
		check_ticks(ticks, n_, want_, ARRAY_SIZE(want_));                                  \
	} while (0)

TEST(ticks_are_round)
{
	CHECK_TICKS(ticks_linear(0, 100, 5, ticks), 0, 20, 40, 60, 80, 100);
	CHECK_TICKS(ticks_linear(0, 4163, 6, ticks), 0, 1000, 2000, 3000, 4000);
	CHECK_TICKS(ticks_linear(13, 38, 3, ticks), 20, 30);
	CHECK_TICKS(ticks_linear(0, 0.3, 3, ticks), 0, 0.1, 0.2, 0.3);
	CHECK_TICKS(ticks_decades(1e6, 2e9, ticks), 1e6, 1e7, 1e8, 1e9);
	CHECK_TICKS(ticks_decades(5, 7e1, ticks), 10);
}

TEST(ticks_of_anything_are_bounded)
{
	static const double values[] = { 0, 1e-300, 1, 3e18, 1.8e19, 1e300, NAN, INFINITY };
	double ticks[TICKS_MAX];

	for (size_t i = 0; i < ARRAY_SIZE(values); i++) {
		for (size_t k = 0; k < ARRAY_SIZE(values); k++) {
			assert_true(ticks_linear(values[i], values[k], 8, ticks) <= TICKS_MAX);
			assert_true(ticks_decades(values[i], values[k], ticks) <= TICKS_MAX);
		}
	}
	assert_int_equal(ticks_linear(5, 5, 8, ticks), 0);
	assert_int_equal(ticks_linear(0, 5, 0, ticks), 0);
}

static void check_tick(double value, enum tick_unit unit, const char *want)
{
	char text[NUMBER_MAX];

	tick_text(value, unit, text);
	assert_string_equal(text, want);
}

TEST(ticks_have_units)
{
	check_tick(0, TICK_NS, "0");
	check_tick(1, TICK_NS, "1 ns");
	check_tick(20e3, TICK_NS, "20 µs");
	check_tick(1e6, TICK_NS, "1 ms");
	check_tick(2.5e9, TICK_NS, "2.5 s");
	check_tick(1e12, TICK_NS, "1000 s");
	check_tick(40, TICK_PERCENT, "40 %");
	check_tick(20000, TICK_COUNT, "20,000");
	check_tick(0, TICK_COUNT, "0");
}

/*
 * Figures
 */

/* How often `what` occurs. */
static size_t times(const char *text, const char *what)
{
	size_t n = 0;

	for (; (text = strstr(text, what)); text += strlen(what))
		n++;
	return n;
}

/* No number in a drawing may be none. */
static void check_drawing(const struct doc *d)
{
	assert_false(d->lost);
	assert_true(utf8_valid(d->at, d->len));
	assert_int_equal(times(d->at, "nan"), 0);
	assert_int_equal(times(d->at, "inf"), 0);
	assert_int_equal(times(d->at, "<script"), 0);
	assert_int_equal(times(d->at, "<svg"), 1);
	assert_int_equal(times(d->at, "</svg>"), 1);
	assert_int_equal(times(d->at, "<text"), times(d->at, "</text>"));
}

TEST(bars_have_their_names_escaped_and_cut)
{
	static const struct svg_legend series[] = { { "safe", 0 }, { "at risk", 1 } };
	const struct figure_bar at[] = {
		{ .name = "<script>alert(1)</script>and much more",
		  .suffix = " [7]",
		  .parts = { 1, 2 } },
		{ .name = "nothing" },
		{ .name = "huge", .parts = { UINT64_MAX, UINT64_MAX } },
	};
	_cleanup_doc_ struct doc d = { 0 };

	figure_bars(&d,
		    &(struct figure_bars){ .title = "title & more",
					   .unit = "pages",
					   .series = series,
					   .n_series = 2,
					   .at = at,
					   .count = ARRAY_SIZE(at) },
		    SVG_ALONE);
	check_drawing(&d);
	CHECK_HAS(d.at, "<title>title &amp; more</title>");
	CHECK_HAS(d.at, "&lt;script&gt;alert(1)");
	CHECK_HAS(d.at, "… [7]</text>");
	CHECK_HAS(d.at, "xmlns=\"http://www.w3.org/2000/svg\"");
}

TEST(labels_of_an_axis_stay_within_and_apart)
{
	const struct scale s = { .to = 100, .low = 10, .high = SVG_WIDTH_NARROW - 4 };
	double ticks[] = { 0, 1, 2, 50, 100 };
	_cleanup_doc_ struct doc d = { 0 };

	svg_axis_x(&d, SVG_NARROW, &s, 0, 100, ticks, ARRAY_SIZE(ticks), TICK_PERCENT, NULL);
	/* A line for every tick, but a label only where there is room. */
	assert_int_equal(times(d.at, "class=\"grid\""), ARRAY_SIZE(ticks));
	assert_int_equal(times(d.at, "<text"), 3);
	CHECK_HAS(d.at, "text-anchor=\"end\" class=\"soft\">100 %</text>");
	CHECK_HAS(d.at, "text-anchor=\"middle\" class=\"soft\">50 %</text>");
	CHECK_HAS(d.at, "<text x=\"379.0\"");
}

TEST(legends_take_as_many_rows_as_they_need)
{
	static const struct svg_legend entries[] = {
		{ "page tables, before", 0 }, { "memory", 1 },     { "memory, again", 2 },
		{ "page tables, after", 3 },  { "unreadable", 4 },
	};
	const size_t n = ARRAY_SIZE(entries);
	_cleanup_doc_ struct doc d = { 0 };

	assert_true(svg_legend_more(SVG_WIDE, 138, entries, n) == 0);
	assert_true(svg_legend_more(SVG_NARROW, 0, entries, n) == 2 * SVG_LEGEND_PITCH);
	svg_legend(&d, SVG_NARROW, 0, 16, entries, n);
	assert_int_equal(times(d.at, "<text x=\"28.0\""), 3);
	assert_int_equal(times(d.at, "y=\"52.0\""), 1);
}

TEST(names_are_cut_by_what_is_shown_of_them)
{
	assert_int_equal(svg_fit("abcdef", 26, 10, 1000), 26);
	assert_int_equal(svg_fit("abcdefghijklmnopqrstuvwxyz", 26, 10, 70), 12);
	/* Each of these is shown in eight letters. */
	assert_int_equal(svg_fit("\u202e\u202e\u202e\u202e", 4, 10, 100), 2);
	assert_int_equal(svg_fit("漢字漢字", 4, 10, 31), 3);
	assert_int_equal(svg_fit("漢字漢字", 4, 10, 0), 1);
}

/* Every figure but dots has a form for small screens, in units of which one is a pixel there. */
static void check_narrow(const struct doc *d)
{
	check_drawing(d);
	CHECK_HAS(d->at, "class=\"fig narrow\" role=\"img\" viewBox=\"0 0 380 ");
}

static struct window_summary window_of(uint64_t first, uint64_t second, uint64_t pages)
{
	static struct windows w;
	struct window_summary ret;

	memset(&w, 0, sizeof(w));
	windows_add(&w, first, pages);
	windows_add(&w, second, pages);
	windows_summary(&w, &ret);
	return ret;
}

TEST(windows_are_drawn_whatever_they_are)
{
	const struct window_summary none = { 0 }, zero = window_of(0, 0, 1),
				    some = window_of(1000000, 3000000000, 500),
				    wide = window_of(1, UINT64_MAX, UINT64_MAX / 4);
	const struct figure_window at[] = {
		{ "none", &none }, { "zero", &zero }, { "some & more", &some }, { "wide", &wide }
	};

	for (size_t n = 1; n <= ARRAY_SIZE(at); n++) {
		_cleanup_doc_ struct doc histograms = { 0 }, curves = { 0 };

		figure_windows(&histograms, at, n, SVG_WIDE);
		check_drawing(&histograms);
		figure_curves(&curves, at, n, SVG_WIDE);
		check_drawing(&curves);
		assert_int_equal(times(histograms.at, "no mapping whose content"), 1);
		assert_int_equal(times(histograms.at, "xmlns"), 0);
		if (n > 2)
			CHECK_HAS(curves.at, "some &amp; more: median 1.0 ms, 95 % 3.000 s");
	}
}

TEST(small_screens_have_forms_of_their_own)
{
	static const char *const names[] = { "valid", "swap", "empty" };
	static const struct svg_legend series[] = { { "safe", 0 } };
	const uint64_t cells[] = { 1000, 1, 0, 22, 333, 4444, 0, 0, 7 };
	const struct window_summary w = window_of(1000000, 3000000000, 500);
	const struct figure_window at = { "a name that is much too long for its place", &w };
	const struct figure_bar bar = { .name = "bar", .parts = { 7 }, .note = "a note" };
	struct doc d[5] = { 0 };

	figure_windows(&d[0], &at, 1, SVG_NARROW);
	figure_curves(&d[1], &at, 1, SVG_NARROW);
	figure_spread(&d[2], &at, 1, SVG_NARROW);
	figure_bars(&d[3],
		    &(struct figure_bars){ .title = "t",
					   .unit = "pages",
					   .series = series,
					   .n_series = 1,
					   .at = &bar,
					   .count = 1 },
		    SVG_NARROW);
	figure_matrix(&d[4],
		      &(struct figure_matrix){ "t", "before", "after", "before → after", names, 3,
					       cells },
		      SVG_NARROW);
	for (size_t i = 0; i < ARRAY_SIZE(d); i++)
		check_narrow(&d[i]);
	/* Of the matrix the pairs that differ, the largest first, and how many are the same. */
	CHECK_HAS(strstr(strstr(d[4].at, "swap → empty"), "swap → valid"), "valid → swap");
	CHECK_HAS(d[4].at, "of 1,340 more the state is the same");
	for (size_t i = 0; i < ARRAY_SIZE(d); i++)
		doc_deinit(&d[i]);
}

TEST(runs_of_one_name_share_a_line)
{
	const struct window_summary fast = window_of(1000, 2000, 9), slow = window_of(900000, 1, 9);
	const struct figure_window at[] = {
		{ "linear", &slow }, { "guided", &fast }, { "linear", &fast }, { "<b>", &slow }
	};
	_cleanup_doc_ struct doc d = { 0 };

	figure_spread(&d, at, ARRAY_SIZE(at), SVG_ALONE);
	check_drawing(&d);
	assert_int_equal(times(d.at, "<circle"), 1 + ARRAY_SIZE(at)); /* one is the legend's */
	assert_int_equal(times(d.at, ">&lt;b&gt;<"), 1);
	assert_int_equal(times(d.at, ">linear<"), 1);
	/* The middle of each line: 34, and 30 from one to the next. */
	assert_int_equal(times(d.at, "cy=\"49.0\" r=\"5\""), 2);
	assert_int_equal(times(d.at, "cy=\"79.0\" r=\"5\""), 1);
	assert_int_equal(times(d.at, "cy=\"109.0\" r=\"5\""), 1);
}

TEST(no_page_has_a_place_of_its_own_among_dots)
{
	static const char *const series[] = { "valid", "slot" };
	const struct figure_dot at[] = { { "linear", { 24218, 1 } },
					 { "guided", { 0, 0 } },
					 { "linear", { UINT64_MAX, 10 } },
					 { "<b>", { 10, 0 } } };
	_cleanup_doc_ struct doc d = { 0 };

	figure_dots(&d, &(struct figure_dots){ "wrong & more", "pages", series, 2, at,
					       ARRAY_SIZE(at) });
	check_drawing(&d);
	CHECK_HAS(d.at, "<title>wrong &amp; more</title>");
	assert_int_equal(times(d.at, ">linear<"), 1);
	assert_int_equal(times(d.at, ">&lt;b&gt;<"), 1);
	assert_int_equal(times(d.at, ">none<"), 1);
	/* One line for both runs of linear, then one for each other. */
	assert_int_equal(times(d.at, "cy=\"49.0\" r=\"5\""), 2);
	assert_int_equal(times(d.at, "cx=\"210.0\" cy=\"79.0\" r=\"5\""), 1);
	assert_int_equal(times(d.at, "cy=\"109.0\" r=\"5\""), 1);
}

TEST(matrices_have_every_count)
{
	static const char *const names[] = { "valid", "swap", "empty" };
	const uint64_t cells[] = { 1234567890123, 1, 0, 22, 333, 4444, 0, 0, 0 };
	_cleanup_doc_ struct doc d = { 0 };

	figure_matrix(&d,
		      &(struct figure_matrix){ "t", "before", "after", "before → after", names, 3,
					       cells },
		      SVG_WIDE);
	check_drawing(&d);
	assert_int_equal(times(d.at, ">1.23 T<"), 1);
	assert_int_equal(times(d.at, ">22<") + times(d.at, ">333<") + times(d.at, ">4,444<"), 3);
	assert_int_equal(times(d.at, "class=\"same\""), 3);
}

/*
 * Time and address
 */

static void chunk_of(struct rsz_chunk *c, struct rsz_extent *x, struct page_status *pages,
		     uint64_t address, uint32_t length, uint64_t start, uint64_t end)
{
	*x = (struct rsz_extent){
		.address = address, .length = length, .start = start, .end = end
	};
	*c = (struct rsz_chunk){ .paged = true,
				 .extents = x,
				 .n_extents = 1,
				 .pages = pages,
				 .n_pages = length / PAGE_SIZE,
				 .length = length,
				 .start = start,
				 .end = end };
}

#define MIB UINT64_C(0x100000)
#define GIB (MIB << 10)

static struct timeline t;
static struct page_status data[256]; /* all read */

/* Every chunk of `n` both ways; `order` gives the place of the i-th that is read. */
static void make_timeline(uint64_t base, size_t n, size_t (*order)(size_t i, size_t n))
{
	struct rsz_extent x;
	struct rsz_chunk c;

	for (int marking = 0; marking < 2; marking++) {
		for (size_t i = 0; i < n; i++) {
			chunk_of(&c, &x, data, base + order(i, n) * MIB, MIB, 1000 * i + 1,
				 1000 * i + 900);
			if (marking)
				timeline_mark(&t, RSZ_KIND_MEMORY, &c);
			else
				timeline_scale(&t, RSZ_KIND_MEMORY, &c);
		}
		if (!marking)
			timeline_fix(&t);
	}
}

static size_t straight(size_t i, size_t n)
{
	(void)n;
	return i;
}

/* Every place once, far apart. */
static size_t scattered(size_t i, size_t n)
{
	return i * 7919 % n;
}

static bool cell(enum timeline_kind kind, unsigned row, unsigned column)
{
	return t.cells[kind][row][column / 64] >> column % 64 & 1;
}

TEST(linear_order_is_a_diagonal)
{
	memset(&t, 0, sizeof(t));
	make_timeline(0, 65536, straight); /* 64 GiB */
	assert_int_equal(t.n_bands, 1);
	assert_int_equal(t.bands[0].high, TIMELINE_ROWS);
	for (unsigned i = 0; i < TIMELINE_ROWS; i++) {
		const unsigned column = (unsigned)((i + 0.5) * TIMELINE_COLUMNS / TIMELINE_ROWS);

		assert_true(cell(TIMELINE_MEMORY, i, column));
		assert_false(cell(TIMELINE_MEMORY, TIMELINE_ROWS - 1 - i, column) &&
			     abs((int)(2 * i) - TIMELINE_ROWS) > 4);
	}
}

TEST(any_order_of_any_size_is_a_bounded_drawing)
{
	const struct timeline_lane lane = { "mem<ory>", RSZ_KIND_MEMORY, 1, 65536000 };
	_cleanup_doc_ struct doc d = { 0 }, narrow = { 0 };

	memset(&t, 0, sizeof(t));
	make_timeline(0, 65536, scattered);
	timeline_draw(&d, &t, &lane, 1, SVG_WIDE);
	check_drawing(&d);
	CHECK_HAS(d.at, "mem&lt;ory&gt;");
	assert_true(d.len < 1 << 20);
	timeline_draw(&narrow, &t, &lane, 1, SVG_NARROW);
	check_narrow(&narrow);
	CHECK_HAS(narrow.at, "mem&lt;ory&gt;, 65.5 ms");
	assert_true(narrow.len < d.len);
}

TEST(addresses_that_nobody_captured_are_left_out)
{
	const struct timeline_band *b = t.bands;
	_cleanup_doc_ struct doc d = { 0 };
	struct rsz_extent x;
	struct rsz_chunk c;

	memset(&t, 0, sizeof(t));
	chunk_of(&c, &x, data, 512 * GIB, MIB, 200, 300);
	timeline_scale(&t, RSZ_KIND_MEMORY, &c);
	make_timeline(4 * GIB, 1024, straight);
	timeline_mark(&t, RSZ_KIND_MEMORY, &c);
	assert_int_equal(t.n_bands, 2);
	assert_true(b[0].first <= 4 * GIB && b[0].last >= 5 * GIB - 1 && b[0].last < 6 * GIB);
	assert_true(b[1].first <= 512 * GIB && b[1].last >= 512 * GIB + MIB - 1);
	assert_true(b[0].high < b[1].low && b[1].high <= TIMELINE_ROWS);
	assert_true(cell(TIMELINE_MEMORY, b[1].low, 0));
	timeline_draw(&d, &t, NULL, 0, SVG_ALONE);
	check_drawing(&d);
	CHECK_HAS(d.at, "nothing captured in between");
}

TEST(pages_without_content_have_a_mark_of_their_own)
{
	struct page_status pages[256] = { 0 };
	struct rsz_extent x;
	struct rsz_chunk c;

	for (size_t i = 128; i < 256; i++)
		pages[i].state = i < 192 ? PAGE_UNREADABLE : PAGE_SKIPPED;
	memset(&t, 0, sizeof(t));
	chunk_of(&c, &x, pages, 0, MIB, 100, 200);
	timeline_scale(&t, RSZ_KIND_MEMORY, &c);
	timeline_fix(&t);
	timeline_mark(&t, RSZ_KIND_MEMORY, &c);
	assert_true(cell(TIMELINE_MEMORY, 20, 20) && !cell(TIMELINE_SKIPPED, 20, 20));
	assert_true(cell(TIMELINE_UNREADABLE, 110, 20) && !cell(TIMELINE_MEMORY, 110, 20));
	assert_true(cell(TIMELINE_SKIPPED, 170, 20) && !cell(TIMELINE_UNREADABLE, 170, 20));
}

TEST(nothing_captured_is_nothing_drawn)
{
	memset(&t, 0, sizeof(t));
	timeline_fix(&t);
	assert_int_equal(t.n_bands, 0);
}

TEST(wild_times_and_addresses_stay_within)
{
	struct rsz_extent x;
	struct rsz_chunk c;
	_cleanup_doc_ struct doc d = { 0 };

	memset(&t, 0, sizeof(t));
	for (int marking = 0; marking < 2; marking++) {
		for (unsigned i = 0; i < 40; i++) {
			chunk_of(&c, &x, data, (UINT64_C(1) << (12 + i)), MIB, i ? i : UINT64_MAX,
				 UINT64_MAX - i);
			(marking ? timeline_mark : timeline_scale)(&t, RSZ_KIND_MEMORY, &c);
		}
		if (!marking)
			timeline_fix(&t);
	}
	assert_true(t.n_bands >= 1 && t.n_bands <= TIMELINE_BANDS);
	for (size_t i = 0; i < t.n_bands; i++)
		assert_true(t.bands[i].low < t.bands[i].high && t.bands[i].high <= TIMELINE_ROWS);
	timeline_draw(&d, &t, NULL, 0, SVG_WIDE);
	check_drawing(&d);
}

/*
 * Judgements
 */

TEST(share_of_safe_pages_is_judged_at_95_and_50_percent)
{
	static const struct {
		uint64_t trust[TRUSTS]; /* safe, at risk, wrong */
		enum rating rating;
		const char *reason;
	} cases[] = {
		{ { 100, 0, 0 }, RATING_GOOD, "good</span>" },
		{ { 95, 5, 0 }, RATING_GOOD, "good</span>: 5.0 % may hold something else" },
		{ { 9499, 1, 500 }, RATING_FAIR, "fair</span>: 5.0 % are not in this container" },
		{ { 50, 25, 25 }, RATING_FAIR, "fair</span>: 25.0 % may hold" },
		{ { 49, 1, 50 }, RATING_BAD, "poor</span>: 50.0 % are not" },
		{ { 0, 0, 1 }, RATING_BAD, "poor</span>: 100.0 % are not" },
		{ { UINT64_MAX / 8, 1, 0 }, RATING_GOOD, "good</span>: &lt;0.1 % may" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		_cleanup_doc_ struct doc d = { 0 };

		assert_int_equal(safe_rating(cases[i].trust), cases[i].rating);
		safe_put_reason(&d, cases[i].trust);
		CHECK_HAS(d.at, cases[i].reason);
	}
}

/*
 * Words
 */

TEST(sentences_have_texts_counts_and_links)
{
	_cleanup_doc_ struct doc d = { 0 };

	glossary_say(&d, "<b>%s</b> has %" PRIu64 " pages, [%u hidden] and [%u %s].", "a < b",
		     UINT64_C(1234567), TERM_HIDDEN, TERM_FATE, "lived");
	assert_string_equal(d.at, "<b>a &lt; b</b> has 1,234,567 pages, "
				  "<a class=\"term\" href=\"#d-hidden\">hidden</a> and "
				  "<a class=\"term\" href=\"#d-fate\">lived</a>.");
}

TEST(every_word_has_one_entry_of_its_own)
{
	_cleanup_doc_ struct doc d = { 0 }, link = { 0 };

	glossary_put(&d, 0, TERMS);
#define X(name, anchor, term, text)                                                                \
	assert_int_equal(times(d.at, "id=\"d-" anchor "\""), *(anchor) ? 1 : 0);
	TERM_MAP(X)
#undef X
	assert_int_equal(times(d.at, "<dl>"), times(d.at, "</dl>"));
	glossary_link(&link, TERM_WINDOW, "it");
	assert_string_equal(link.at, "<a class=\"term\" href=\"#d-window\">it</a>");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(strange_text_cannot_be_markup),
		cmocka_unit_test(strange_text_cannot_hide_or_reorder),
		cmocka_unit_test(bytes_that_are_no_utf8_are_shown_as_bytes),
		cmocka_unit_test(no_bytes_at_all_get_through),
		cmocka_unit_test(long_text_is_cut_by_characters),
		cmocka_unit_test(documents_grow),
		cmocka_unit_test(numbers_are_as_people_read_them),
		cmocka_unit_test(a_share_is_never_none_nor_all_unless_it_is),
		cmocka_unit_test(scales_map_ends_to_ends),
		cmocka_unit_test(ticks_are_round),
		cmocka_unit_test(ticks_of_anything_are_bounded),
		cmocka_unit_test(ticks_have_units),
		cmocka_unit_test(bars_have_their_names_escaped_and_cut),
		cmocka_unit_test(labels_of_an_axis_stay_within_and_apart),
		cmocka_unit_test(legends_take_as_many_rows_as_they_need),
		cmocka_unit_test(names_are_cut_by_what_is_shown_of_them),
		cmocka_unit_test(windows_are_drawn_whatever_they_are),
		cmocka_unit_test(small_screens_have_forms_of_their_own),
		cmocka_unit_test(runs_of_one_name_share_a_line),
		cmocka_unit_test(no_page_has_a_place_of_its_own_among_dots),
		cmocka_unit_test(matrices_have_every_count),
		cmocka_unit_test(linear_order_is_a_diagonal),
		cmocka_unit_test(any_order_of_any_size_is_a_bounded_drawing),
		cmocka_unit_test(addresses_that_nobody_captured_are_left_out),
		cmocka_unit_test(pages_without_content_have_a_mark_of_their_own),
		cmocka_unit_test(nothing_captured_is_nothing_drawn),
		cmocka_unit_test(wild_times_and_addresses_stay_within),
		cmocka_unit_test(share_of_safe_pages_is_judged_at_95_and_50_percent),
		cmocka_unit_test(sentences_have_texts_counts_and_links),
		cmocka_unit_test(every_word_has_one_entry_of_its_own),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
