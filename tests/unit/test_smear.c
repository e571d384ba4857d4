/* SPDX-License-Identifier: Apache-2.0 */
/* Small machines that are sealed, and what is counted of them. */
#include "tests/unit/test.h"

#include <string.h>

#include "agent/examine/smear/print.h"
#include "formats/base/bytes.h"
#include "tests/gen/text_file.h"
#include "tests/unit/sealed_machine.h"

static struct smear s;
static struct smear_row rows[64];
static size_t n_rows;
static uint64_t trust[TRUSTS];
static char sentence[SMEAR_SENTENCE_MAX], advice[SMEAR_ADVICE_MAX];

static void set_up(void)
{
	set_up_machine();
	n_rows = 0;
}

static enum status keep_row(void *context, const struct smear_row *row, struct err *e)
{
	(void)context;
	(void)e;
	if (n_rows < ARRAY_SIZE(rows))
		rows[n_rows++] = *row;
	return ST_OK;
}

static enum status measure(struct err *e)
{
	struct smear_plan plan = { .row = keep_row, .row_pid = 7, .cached = 1 };
	struct rsz_reader *r;
	struct mem_blob blob;
	json_t *manifest;
	enum status st;

	seal_machine();
	mem_blob_init(&blob, b->out.at, b->out.len);
	CHECK_OK(rsz_reader_open(&blob.blob, RSZ_TRUST_NOTHING, &r, e), e);
	manifest = read_manifest(r);
	plan.in = &blob.blob;
	plan.reader = r;
	plan.manifest = manifest;
	st = smear_analyse(&plan, &s, e);
	json_decref(manifest);
	rsz_reader_close(r);
	build_deinit(b);
	free(b);
	return st;
}

static void measure_ok(void)
{
	struct err e = ERR_INIT;

	CHECK_OK(measure(&e), &e);
}

static void tear_down(void)
{
	smear_deinit(&s);
	tear_down_machine();
}

/* All changes of a pair, those that are not named being 0. */
#define CHECK_CHANGES(space, pair_, ...)                                                           \
	do {                                                                                       \
		const uint64_t want_[CHANGES] = { __VA_ARGS__ };                                   \
		for (size_t i_ = 0; i_ < CHANGES; i_++)                                            \
			if ((space)->pair[pair_].change[i_] != want_[i_])                          \
				fail_msg("%s: %llu, wanted %llu", change_name((enum change)i_),    \
					 (unsigned long long)(space)->pair[pair_].change[i_],      \
					 (unsigned long long)want_[i_]);                           \
	} while (0)

#define CHECK_VERDICTS(got, ...)                                                                   \
	do {                                                                                       \
		const uint64_t want_[VERDICTS] = { __VA_ARGS__ };                                  \
		for (size_t i_ = 0; i_ < VERDICTS; i_++)                                           \
			if ((got)[i_] != want_[i_])                                                \
				fail_msg(#got " %s: %llu, wanted %llu",                            \
					 verdict_name((enum verdict)i_),                           \
					 (unsigned long long)(got)[i_],                            \
					 (unsigned long long)want_[i_]);                           \
	} while (0)

static void put_every_change(void)
{
	put_entries(0, FRAME(0) | P, FRAME(0) | (P & ~UINT64_C(0x60))); /* accessed and dirty */
	put_entries(1, FRAME(1) | P, FRAME(2) | P);
	put_entries(2, FRAME(3) | P, SWAP(5));
	put_entries(3, SWAP(6), FRAME(4) | P);
	put_entries(4, 0, FRAME(5) | P);
	put_entries(5, FRAME(6) | P, 0);
	put_entries(6, FRAME(7) | P, FRAME(7) | (P & ~UINT64_C(2))); /* not writable any more */
	put_entries(7, SWAP(7), SWAP(8));
	put_entries(8, FRAME(8) | P, FRAME(8) | P);
	put_entry(COPY_IMAGE, VA(8), FRAME(9) | P);
	put_entries(9, UINT64_C(0xfee00000) | P, UINT64_C(0xfee00000) | P);
	put_entries(10, FRAME(10) | P, FRAME(10) | P);
	captured[32 + 10] = '?';
	put_entries(11, FRAME(11) | P, FRAME(11) | P);
	captured[32 + 11] = '-';
	put_entries(12, SWAP(9), SWAP(9));
	put_entries(13, FRAME(13) | P, FRAME(13) | P);
	captured[32 + 13] = '!';
}

TEST(every_change_has_its_class)
{
	const struct smear_space *p;

	set_up();
	put_every_change();
	measure_ok();
	assert_int_equal(s.count, 1);
	p = &s.at[0];
	assert_int_equal(p->id.pid, 7);
	CHECK_CHANGES(p, PAIR_BEFORE_AFTER, [CHANGE_STABLE] = 7, [CHANGE_RIGHTS] = 1,
		      [CHANGE_REMAPPED] = 1, [CHANGE_PAGED_OUT] = 1, [CHANGE_PAGED_IN] = 1,
		      [CHANGE_MOVED] = 1, [CHANGE_APPEARED] = 1, [CHANGE_GONE] = 1);
	CHECK_CHANGES(p, PAIR_BEFORE_IMAGE, [CHANGE_STABLE] = 12, [CHANGE_REMAPPED] = 1);
	CHECK_CHANGES(p, PAIR_IMAGE_AFTER, [CHANGE_STABLE] = 6, [CHANGE_RIGHTS] = 1,
		      [CHANGE_REMAPPED] = 2, [CHANGE_PAGED_OUT] = 1, [CHANGE_PAGED_IN] = 1,
		      [CHANGE_MOVED] = 1, [CHANGE_APPEARED] = 1, [CHANGE_GONE] = 1);
	assert_int_equal(p->tables.kept, 4);
	assert_int_equal(p->tables.freed + p->tables.created, 0);
	tear_down();
}

TEST(every_verdict_has_its_reason)
{
	const struct smear_space *p;

	set_up();
	put_every_change();
	measure_ok();
	p = &s.at[0];
	/*
	 * What is torn in the image changed, and changed back: the passes' own entries are no
	 * better.
	 */
	CHECK_VERDICTS(p->copy[COPY_BEFORE].frames, [VERDICT_SAFE] = 1, [VERDICT_OUT_OF_TIME] = 1,
		       [VERDICT_CHANGED] = 4, [VERDICT_OUTSIDE] = 1, [VERDICT_UNREADABLE] = 1,
		       [VERDICT_MISSING] = 2);
	CHECK_VERDICTS(p->copy[COPY_IMAGE].frames, [VERDICT_SAFE] = 1, [VERDICT_CHANGED] = 4,
		       [VERDICT_TORN] = 1, [VERDICT_OUTSIDE] = 1, [VERDICT_UNREADABLE] = 1,
		       [VERDICT_MISSING] = 2);
	CHECK_VERDICTS(p->copy[COPY_AFTER].frames, [VERDICT_SAFE] = 1, [VERDICT_OUT_OF_TIME] = 1,
		       [VERDICT_CHANGED] = 4, [VERDICT_OUTSIDE] = 1, [VERDICT_UNREADABLE] = 1,
		       [VERDICT_MISSING] = 2);
	for (size_t c = 0; c < COPIES; c++)
		CHECK_VERDICTS(p->copy[c].slots, [VERDICT_SAFE] = 1, [VERDICT_CHANGED] = 2);
	copy_trust(&s.total.copy[COPY_IMAGE], trust);
	assert_int_equal(trust[TRUST_SAFE], 2);
	assert_int_equal(trust[TRUST_AT_RISK], 7);
	assert_int_equal(trust[TRUST_WRONG], 4);
	assert_int_equal(p->copy[COPY_IMAGE].state[PTE_VALID], 10);
	assert_int_equal(p->copy[COPY_IMAGE].state[PTE_SWAP], 3);
	tear_down();
}

#define DIRECT UINT64_C(0xffff888000000000)

/* The kernel maps all of RAM in its direct map; here its root is the process's, too. */
static void map_directly(void)
{
	begin_line = LINUX_MAPPED_BEGIN;
	kernel_root = ROOT;
	for (size_t c = 0; c < COPIES; c++)
		for (uint64_t pa = ROOT; pa < ROOT + RAM_PAGES * PAGE_SIZE; pa += PAGE_SIZE)
			put_entry((enum copy)c, DIRECT + pa, pa | P);
}

static void put_zeros(size_t k)
{
	put_entries(k, FRAME(k) | P, FRAME(k) | P);
	captured[32 + k] = '.';
}

/* memfd_secret, acquired before it was known what /proc/kcore does. */
static void put_holes(void)
{
	set_up();
	map_directly();
	put_zeros(0);
	put_zeros(1);
	put_entry(COPY_BEFORE, DIRECT + FRAME(1), FRAME(1));
	put_zeros(2);
	put_entry(COPY_AFTER, DIRECT + FRAME(2), 0);
	put_zeros(3);
	put_entry(COPY_IMAGE, DIRECT + FRAME(3), FRAME(0) | P);
	/* Has content, and so was mapped when it was read. */
	put_entries(4, FRAME(4) | P, FRAME(4) | P);
	for (size_t c = 0; c < COPIES; c++)
		put_entry((enum copy)c, DIRECT + FRAME(4), 0);
}

TEST(zeros_of_a_hole_of_the_direct_map_are_never_safe)
{
	put_holes();
	measure_ok();
	for (size_t c = 0; c < COPIES; c++)
		CHECK_VERDICTS(s.at[0].copy[c].frames, [VERDICT_SAFE] = 2, [VERDICT_UNMAPPED] = 3);
	assert_int_equal(rows[3 * 1 + COPY_IMAGE].verdict, VERDICT_UNMAPPED);
	assert_true(rows[3 * 1 + COPY_IMAGE].captured);
	tear_down();
}

/* Where the source does not say where the map is, its tables do. */
TEST(direct_map_is_found_by_its_tables)
{
	put_holes();
	begin_line = LINUX_BEGIN;
	measure_ok();
	CHECK_VERDICTS(s.at[0].copy[COPY_IMAGE].frames, [VERDICT_SAFE] = 2, [VERDICT_UNMAPPED] = 3);
	tear_down();
}

/* A map that does not even have the root in it says nothing of other pages. */
TEST(direct_map_that_does_not_prove_itself_is_none)
{
	put_holes();
	for (size_t c = 0; c < COPIES; c++)
		put_entry((enum copy)c, DIRECT + ROOT, 0);
	measure_ok();
	CHECK_VERDICTS(s.at[0].copy[COPY_IMAGE].frames, [VERDICT_SAFE] = 5);
	tear_down();
}

TEST(zeros_of_a_hole_are_at_risk_in_an_image_too)
{
	put_holes();
	begin_line = IMAGE_BEGIN;
	measure_ok();
	CHECK_VERDICTS(
		s.at[0].copy[COPY_IMAGE].frames, [VERDICT_IMAGE] = 4, [VERDICT_UNMAPPED] = 1);
	tear_down();
}

TEST(windows_span_entry_and_frame)
{
	const struct window_summary *w;

	set_up();
	put_entries(0, FRAME(0) | P, FRAME(0) | P); /* captured at 13200-13210 */
	put_entries(1, FRAME(1) | P, FRAME(1) | P); /* 13300-13310 */
	put_entries(2, SWAP(5), SWAP(5));           /* a slot, which is counted apart */
	measure_ok();
	/* The page table is the fourth: 1060-1070 before, 10300-10310 in the image. */
	w = &s.at[0].copy[COPY_BEFORE].window[WINDOW_FRAMES];
	assert_int_equal(w->pages, 2);
	assert_int_equal(w->max, 13310 - 1060);
	assert_int_equal(w->octave[13], 2); /* 8192 to 16383 */
	w = &s.at[0].copy[COPY_IMAGE].window[WINDOW_FRAMES];
	assert_int_equal(w->max, 13310 - 10300);
	assert_int_equal(w->median, 13210 - 10300);
	w = &s.at[0].copy[COPY_AFTER].window[WINDOW_FRAMES];
	assert_int_equal(w->max, 3 * SECOND + 70 - 13200);
	assert_int_equal(s.total.copy[COPY_IMAGE].window[WINDOW_FRAMES].max, 3010);
	w = &s.total.copy[COPY_IMAGE].window[WINDOW_SLOTS];
	assert_int_equal(w->pages, 1);
	assert_in_range(w->max, 2 * SECOND - 10300, 2 * SECOND);
	tear_down();
}

TEST(rows_tell_of_single_mappings)
{
	set_up();
	put_entries(0, FRAME(0) | P, FRAME(0) | P);
	put_entries(3, SWAP(6), FRAME(4) | P);
	measure_ok();
	assert_int_equal(n_rows, 6);
	assert_int_equal(rows[1].copy, COPY_IMAGE);
	assert_int_equal(rows[1].va, VA(0));
	assert_int_equal(rows[1].pte.frame, FRAME(0));
	assert_int_equal(rows[1].verdict, VERDICT_SAFE);
	assert_int_equal(rows[1].window, 2910);
	assert_int_equal(rows[4].pte.slot, 6);
	assert_int_equal(rows[4].verdict, VERDICT_CHANGED);
	assert_int_equal(rows[5].change, CHANGE_PAGED_IN);
	tear_down();
}

/* Linux 6.15 and later: type at 59, inverted offset at 9. */
#define SPECIAL(type, n) (SWAP(n) | (uint64_t)(type) << 59)

static void check_row(size_t i, uint64_t va, enum pte_state state, enum verdict verdict)
{
	assert_int_equal(rows[i].va, va);
	assert_string_equal(pte_state_name(rows[i].pte.state), pte_state_name(state));
	assert_string_equal(verdict_name(rows[i].verdict), verdict_name(verdict));
}

static void check_line(const struct smear_row *r, const char *want)
{
	FILE *f = text_file_open();
	char *line;

	smear_print_row(r, f);
	line = text_file_close(f);
	assert_string_equal(line, want);
	free(line);
}

/* Of Linux, what names neither a frame nor a slot has a row all the same; it is in no count. */
TEST(rows_tell_of_entries_without_a_place)
{
	json_t *o;

	set_up();
	begin_line = LINUX_73_BEGIN;
	found = FOUND_73("true");
	put_entries(0, SPECIAL(24, FRAME(0) >> 12), SPECIAL(24, FRAME(0) >> 12));
	put_entries(1, SPECIAL(31, 5), SPECIAL(31, 5));
	put_entries(2, SPECIAL(31, 0), SPECIAL(31, 0));
	put_entries(3, SPECIAL(31, 4), FRAME(3) | P);
	measure_ok();
	assert_int_equal(n_rows, 12);
	check_row(1, VA(0), PTE_POISONED, VERDICT_NO_CONTENT);
	check_row(4, VA(1), PTE_MARKER, VERDICT_NO_CONTENT);
	check_row(7, VA(2), PTE_UNKNOWN, VERDICT_UNKNOWN);
	check_row(10, VA(3), PTE_MARKER, VERDICT_CHANGED);
	check_line(&rows[4], "image,0x11000,1,marker,0xfffffffffffff400,,,,stable,not-applicable,"
			     "no-content,0,,uffd-wp+guard\n");
	o = smear_row_json(&rows[4]);
	assert_string_equal(json_string_value(json_object_get(o, "marker")), "uffd-wp+guard");
	assert_string_equal(json_string_value(json_object_get(o, "trust")), "not-applicable");
	assert_null(json_object_get(o, "slot"));
	json_decref(o);
	copy_trust(&s.total.copy[COPY_IMAGE], trust);
	assert_int_equal(trust[TRUST_SAFE] + trust[TRUST_AT_RISK] + trust[TRUST_WRONG], 0);
	assert_int_equal(s.total.copy[COPY_IMAGE].state[PTE_MARKER], 2);
	tear_down();
}

static const char *unknown_of(void)
{
	static char text[SMEAR_UNKNOWN_MAX];

	smear_unknown_text(&s, text);
	return text;
}

/* With CONFIG_DEVICE_PRIVATE 27 is migration, and without it poison; nothing tells. */
TEST(entries_that_may_be_one_thing_or_another_are_unknown)
{
	set_up();
	begin_line = LINUX_73_BEGIN;
	put_entries(0, SPECIAL(27, FRAME(0) >> 12), SPECIAL(27, FRAME(0) >> 12));
	put_entries(1, FRAME(1) | P, FRAME(1) | P);
	measure_ok();
	assert_int_equal(s.layout.device_private, OPTION_UNTOLD);
	check_row(1, VA(0), PTE_UNKNOWN, VERDICT_UNKNOWN);
	assert_int_equal(verdict_trust(rows[1].verdict), TRUST_AT_RISK);
	assert_int_equal(s.total.copy[COPY_IMAGE].state[PTE_UNKNOWN], 1);
	CHECK_HAS(unknown_of(), "1 page has an entry of unknown meaning");
	CHECK_HAS(unknown_of(), "CONFIG_DEVICE_PRIVATE");
	assert_string_equal(s.layout.doubt, "");
	tear_down();

	set_up();
	begin_line = LINUX_73_BEGIN;
	found = FOUND_73("true");
	put_entries(0, SPECIAL(27, FRAME(0) >> 12), SPECIAL(27, FRAME(0) >> 12));
	measure_ok();
	check_row(1, VA(0), PTE_MIGRATION, VERDICT_MOVING);
	assert_string_equal(unknown_of(), "");
	tear_down();
}

/* In the directories' entries of level 2 or 3; the copies have the same. */
static void put_large(unsigned level, uint64_t raw)
{
	for (size_t c = 0; c < COPIES; c++)
		machine_u64(&m[c], level == 2 ? 0x102008 : 0x101008, raw);
}

/* hugetlb has poisoned pages and markers of 2 MiB and 1 GiB, and a device 2 MiB. */
TEST(large_pages_without_a_place_are_counted_as_pages)
{
	static const struct {
		unsigned level;
		enum pte_state state; /* PTE_EMPTY: it is none */
		uint64_t raw;
	} v[] = {
		{ 2, PTE_POISONED, SPECIAL(24, FRAME(3) >> 12) },
		{ 3, PTE_POISONED, SPECIAL(24, FRAME(3) >> 12) },
		{ 3, PTE_EMPTY, SPECIAL(24, 0x40000) }, /* no RAM: a torn table */
		{ 2, PTE_MARKER, SPECIAL(31, 1) },
		{ 3, PTE_MARKER, SPECIAL(31, 2) },
		{ 2, PTE_DEVICE, SPECIAL(28, 0x3ffffff00) },
		{ 3, PTE_EMPTY, SPECIAL(28, 0x3ffffff00) },
		{ 2, PTE_EMPTY, SWAP(5) },
		{ 3, PTE_EMPTY, UINT64_C(0x6162636465666770) },
	};

	for (size_t i = 0; i < ARRAY_SIZE(v); i++) {
		const uint64_t pages = v[i].level == 2 ? 512 : 512 * 512;
		const struct copy_sums *c = &s.total.copy[COPY_IMAGE];

		set_up();
		begin_line = LINUX_73_BEGIN;
		found = FOUND_73("true");
		put_large(v[i].level, v[i].raw);
		measure_ok();
		assert_int_equal(n_rows, v[i].state ? 3 : 0);
		assert_int_equal(c->away, !v[i].state);
		if (v[i].state) {
			assert_int_equal(rows[1].pages, pages);
			assert_int_equal(rows[1].pte.state, v[i].state);
			assert_int_equal(c->state[v[i].state], pages);
		}
		tear_down();
	}
}

/* A program of Linux can be told any version; the memory has the kernel's own. */
TEST(version_that_was_told_and_that_in_memory_are_compared)
{
	set_up();
	found = FOUND_73("true");
	put_entries(0, SWAP(5), SWAP(5));
	measure_ok();
	assert_string_equal(s.layout.name, "6.15");
	CHECK_HAS(s.layout.doubt, "Linux 6.1, and its memory that it is 7.3");
	/* And what is true of 6.1 alone makes no slot safe. */
	CHECK_HAS(s.slots_doubt, "since Linux 6.12");
	tear_down();

	set_up();
	put_entries(0, SWAP(5), SWAP(5));
	measure_ok();
	assert_string_equal(s.layout.doubt, "");
	assert_null(s.slots_doubt);
	tear_down();
}

/* The way to the entry was read from 1000 to 1070 before, and from 3 s on after. */
TEST(frames_must_be_captured_between_the_passes)
{
	static const struct {
		uint64_t taken;
		enum verdict want;
	} cases[] = {
		{ 1069, VERDICT_OUT_OF_TIME },       { 1070, VERDICT_SAFE },
		{ 3 * SECOND - 10, VERDICT_SAFE },   { 3 * SECOND - 9, VERDICT_OUT_OF_TIME },
		{ 4 * SECOND, VERDICT_OUT_OF_TIME },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		set_up();
		put_entries(0, FRAME(0) | P, FRAME(0) | P);
		taken[32] = cases[i].taken;
		measure_ok();
		assert_int_equal(s.at[0].copy[COPY_IMAGE].frames[cases[i].want], 1);
		tear_down();
	}
}

/* Behind tables that were read nobody knows when there may be anything. */
TEST(tables_without_a_time_make_nothing_safe)
{
	set_up();
	put_entries(0, FRAME(0) | P, FRAME(0) | P);
	before_taken = 0;
	measure_ok();
	CHECK_VERDICTS(s.at[0].copy[COPY_IMAGE].frames, [VERDICT_OUT_OF_TIME] = 1);
	CHECK_VERDICTS(s.at[0].copy[COPY_BEFORE].frames, [VERDICT_OUT_OF_TIME] = 1);
	tear_down();
}

/* 0x110000 is read behind the page table, from 1080 to 1090: only then is the way known. */
TEST(whole_way_must_have_been_seen_before)
{
	for (int late = 0; late < 2; late++) {
		set_up();
		put_entries(0, FRAME(0) | P, FRAME(0) | P);
		for (size_t c = 0; c < COPIES; c++) {
			machine_u64(&m[c], 0x110000, UINT64_C(0x102000) | P);
			machine_u64(&m[c], ROOT, UINT64_C(0x110000) | P);
		}
		taken[32] = late ? 1090 : 1089;
		measure_ok();
		assert_int_equal(s.at[0].copy[COPY_IMAGE].frames[VERDICT_SAFE], late);
		tear_down();
	}
}

/*
 * The frame of VA(0) at 13200, and again behind the pass after: what was captured in time is taken.
 */
TEST(capture_that_was_made_in_time_counts)
{
	for (int late = 0; late < 2; late++) {
		set_up();
		put_entries(0, FRAME(0) | P, FRAME(0) | P);
		put_entries(1, FRAME(1) | P, FRAME(1) | P);
		taken_again = (late ? 4 : 1) * SECOND;
		measure_ok();
		CHECK_VERDICTS(s.at[0].copy[COPY_IMAGE].frames, [VERDICT_SAFE] = 2);
		/* Where both were, that which is nearer to the table: at 10300 in the image. */
		assert_int_equal(rows[1].content.start, 13200);
		assert_non_null(rows[1].older);
		assert_int_equal(rows[1].captures, 2);
		/* And for the pass after, that which is nearer to it. */
		assert_int_equal(rows[2].content.start, late ? 13200 : 1 * SECOND);
		assert_null(rows[4].older);
		assert_int_equal(rows[4].captures, 1);
		tear_down();
	}
}

/* None was made in time: the shortest window. */
TEST(capture_with_the_shortest_window_is_taken)
{
	for (int near = 0; near < 2; near++) {
		set_up();
		put_entries(0, FRAME(0) | P, FRAME(1) | P);
		taken[3] = 5 * SECOND; /* the page table */
		taken_again = (near ? 6 : 60) * SECOND;
		measure_ok();
		CHECK_VERDICTS(s.at[0].copy[COPY_IMAGE].frames, [VERDICT_CHANGED] = 1);
		assert_int_equal(rows[1].copy, COPY_IMAGE);
		assert_int_equal(rows[1].older == NULL, near);
		tear_down();
	}
}

/* A page that could not be read when it was captured again could be read before. */
TEST(capture_that_could_be_read_is_taken)
{
	set_up();
	put_entries(0, FRAME(0) | P, FRAME(0) | P);
	taken_again = 1 * SECOND;
	again = '?';
	measure_ok();
	CHECK_VERDICTS(s.at[0].copy[COPY_IMAGE].frames, [VERDICT_SAFE] = 1);
	assert_int_equal(rows[1].captures, 1);
	assert_non_null(rows[1].older);
	tear_down();
}

/*
 * Memory read by its tables: those were read at 12000 to 12070, and again at 20000 to 20310. VA(0)
 * and VA(1) are two that came after the first pass, so that the passes themselves say nothing of
 * them.
 */
static void set_up_around(void)
{
	set_up();
	first = (struct machine){ .levels = 4, .next = ROOT + 0x1000 };
	machine_page(&first, ROOT);
	for (size_t k = 0; k < 2; k++) {
		put_entry(COPY_IMAGE, VA(k), FRAME(k) | P);
		machine_u64(&first, machine_entry(&first, ROOT, VA(k), 1), FRAME(k) | P);
	}
	first_taken = 12000;
	for (size_t i = 0; i < 4; i++)
		taken[i] = 20000 + 100 * i;
}

static void check_around(uint64_t safe, uint64_t changed)
{
	measure_ok();
	CHECK_VERDICTS(s.at[0].copy[COPY_IMAGE].frames, [VERDICT_SAFE] = safe,
		       [VERDICT_CHANGED] = changed);
	tear_down();
}

TEST(entry_that_stood_around_its_frame_is_safe)
{
	set_up_around();
	taken[32] = 12500; /* nearer to the first reading */
	taken[33] = 19900; /* and to the second one */
	measure_ok();
	CHECK_VERDICTS(s.at[0].copy[COPY_IMAGE].frames, [VERDICT_SAFE] = 2);
	assert_int_equal(s.at[0].copy[COPY_IMAGE].window[WINDOW_FRAMES].max, 12510 - 12060);
	assert_int_equal(s.at[0].copy[COPY_IMAGE].window[WINDOW_FRAMES].median, 20310 - 19900);
	tear_down();

	/* Accessed and dirty are the processor's. */
	set_up_around();
	machine_u64(&first, machine_entry(&first, ROOT, VA(0), 1),
		    (FRAME(0) | P) & ~UINT64_C(0x60));
	check_around(2, 0);
}

TEST(around_is_not_claimed_without_both_readings)
{
	/* The entry, or one on the way to it, named something else at first. */
	set_up_around();
	machine_u64(&first, machine_entry(&first, ROOT, VA(0), 1), FRAME(5) | P);
	check_around(1, 1);
	set_up_around();
	machine_u64(&first, machine_entry(&first, ROOT, VA(0), 1), FRAME(0) | (P & ~UINT64_C(2)));
	check_around(1, 1);
	set_up_around();
	machine_u64(&first, ROOT + 0x1000, FRAME(6) | P);
	check_around(0, 2);
	/*
	 * The frame was captured before the first reading of the whole way, or behind the second.
	 */
	set_up_around();
	taken[32] = 12069;
	check_around(1, 1);
	set_up_around();
	taken[33] = 20000 - 9;
	check_around(1, 1);
	set_up_around();
	taken[0] = 13000; /* the root again, before either frame */
	check_around(0, 2);
	set_up_around();
	first_taken = 0;
	check_around(0, 2);
	/*
	 * Before the memory and behind it VA(0) names the frame, and in between it was seen to name
	 * another: what was captured before it came back is not certain.
	 */
	set_up_around();
	put_entries(0, FRAME(0) | P, FRAME(0) | P);
	machine_u64(&first, machine_entry(&first, ROOT, VA(0), 1), FRAME(5) | P);
	taken[32] = 12500;
	measure_ok();
	CHECK_VERDICTS(
		s.at[0].copy[COPY_IMAGE].frames, [VERDICT_SAFE] = 1, [VERDICT_OUT_OF_TIME] = 1);
	tear_down();
}

/* One record has the page twice: SPEC.md, section 7. */
TEST(later_extent_of_a_record_is_the_newer_capture)
{
	static const char *const states[2] = { "AB", "C" };
	struct stream_captures c;
	const struct older_page *o;
	struct capture newest;
	struct err e = ERR_INIT;
	struct rsz_reader *r;
	struct mem_blob blob;
	size_t n;

	b = calloc(1, sizeof(*b));
	build_begin(b, 1, 1);
	build_chunk(b, build_stream(b, RSZ_KIND_MEMORY, "memory"), 1000);
	build_extent(b, ROOT, states[0]);
	build_extent(b, ROOT + PAGE_SIZE, states[1]);
	build_put(b);
	build_close(b);
	mem_blob_init(&blob, b->out.at, b->out.len);
	CHECK_OK(rsz_reader_open(&blob.blob, RSZ_TRUST_NOTHING, &r, &e), &e);
	CHECK_OK(stream_captures_load(&c, &blob.blob, r, &e), &e);
	assert_true(captures_from(&c.streams[0], ROOT, UINT64_MAX, &newest));
	assert_int_equal(newest.start, 1000);
	assert_true(captures_from(&c.streams[0], ROOT + PAGE_SIZE, UINT64_MAX, &newest));
	assert_int_equal(newest.start, 1010);
	assert_null(captures_older(&c.streams[0], ROOT, &n));
	o = captures_older(&c.streams[0], ROOT + PAGE_SIZE, &n);
	assert_int_equal(n, 1);
	assert_int_equal(o->start, 1000);
	assert_int_equal(o->data, PAGE_SIZE);
	stream_captures_deinit(&c);
	rsz_reader_close(r);
	build_deinit(b);
	free(b);
}

static void check_capture(const struct captures *c, uint64_t page, uint64_t to, uint16_t state,
			  uint64_t start)
{
	struct capture x;

	assert_true(captures_from(c, page * PAGE_SIZE, UINT64_MAX, &x));
	assert_int_equal(x.range.first, page * PAGE_SIZE);
	assert_int_equal(x.range.last, to * PAGE_SIZE + PAGE_SIZE - 1);
	assert_int_equal(x.state, state);
	assert_int_equal(x.start, start);
	assert_int_equal(x.end, start + 10);
}

/* Pages of one state are one capture, within an extent and across them, if the times are equal. */
TEST(captures_are_as_long_as_state_and_time_are_the_same)
{
	const uint64_t late = UINT64_MAX - 20;
	struct stream_captures c;
	struct err e = ERR_INIT;
	struct rsz_reader *r;
	struct mem_blob blob;
	struct capture x;

	b = calloc(1, sizeof(*b));
	build_begin(b, 1, 1);
	build_chunk(b, build_stream(b, RSZ_KIND_MEMORY, "memory"), 1000);
	build_extent(b, 0, "AB.?C");
	build_extent(b, 5 * PAGE_SIZE, "DE");
	build_extent(b, 7 * PAGE_SIZE, "F");
	build_extent(b, 9 * PAGE_SIZE, "?G");
	b->extents[1].start = 1000;
	b->extents[1].end = 1010;
	b->extents[3].start = late;
	b->extents[3].end = late + 10;
	b->chunk.end = late + 10;
	build_put(b);
	build_close(b);
	mem_blob_init(&blob, b->out.at, b->out.len);
	CHECK_OK(rsz_reader_open(&blob.blob, RSZ_TRUST_NOTHING, &r, &e), &e);
	CHECK_OK(stream_captures_load(&c, &blob.blob, r, &e), &e);
	check_capture(&c.streams[0], 0, 1, PAGE_DATA, 1000);
	check_capture(&c.streams[0], 1, 1, PAGE_DATA, 1000);
	check_capture(&c.streams[0], 2, 2, PAGE_ZERO, 1000);
	check_capture(&c.streams[0], 3, 3, PAGE_UNREADABLE, 1000);
	check_capture(&c.streams[0], 4, 6, PAGE_DATA, 1000);
	check_capture(&c.streams[0], 6, 6, PAGE_DATA, 1000);
	check_capture(&c.streams[0], 7, 7, PAGE_DATA, 1020);
	check_capture(&c.streams[0], 9, 9, PAGE_UNREADABLE, late);
	check_capture(&c.streams[0], 10, 10, PAGE_DATA, late);
	assert_true(captures_from(&c.streams[0], 8 * PAGE_SIZE, UINT64_MAX, &x));
	assert_int_equal(x.range.first, 9 * PAGE_SIZE);
	assert_false(captures_from(&c.streams[0], 8 * PAGE_SIZE, 9 * PAGE_SIZE - 1, &x));
	assert_false(captures_from(&c.streams[0], 11 * PAGE_SIZE, UINT64_MAX, &x));
	assert_true(captures_from(&c.streams[0], 4 * PAGE_SIZE, 6 * PAGE_SIZE - 1, &x));
	assert_int_equal(x.range.last, 6 * PAGE_SIZE - 1);
	assert_int_equal(c.streams[0].times.start, 1000);
	assert_int_equal(c.streams[0].times.end, late + 10);
	stream_captures_deinit(&c);
	rsz_reader_close(r);
	build_deinit(b);
	free(b);
}

TEST(pages_of_one_extent_are_told_apart)
{
	set_up();
	put_entries(0, SWAP(2), SWAP(2));
	put_entries(1, SWAP(3), SWAP(3));
	put_entries(2, SWAP(4), SWAP(4));
	put_entries(3, SWAP(16), SWAP(16));
	slots = "sss?ssssssssssss";
	measure_ok();
	CHECK_VERDICTS(s.at[0].copy[COPY_IMAGE].slots, [VERDICT_SAFE] = 2, [VERDICT_UNREADABLE] = 1,
		       [VERDICT_OUTSIDE] = 1);
	tear_down();
}

/* The same entry in the same place of a table that lies elsewhere now. */
TEST(replaced_table_is_a_reason_for_doubt)
{
	set_up();
	put_entries(0, FRAME(0) | P, FRAME(0) | P);
	machine_u64(&m[COPY_AFTER], 0x102000, UINT64_C(0x110000) | P);
	put_entry(COPY_AFTER, VA(0), FRAME(0) | P);
	measure_ok();
	CHECK_VERDICTS(s.at[0].copy[COPY_IMAGE].frames, [VERDICT_PATH] = 1);
	CHECK_CHANGES(&s.at[0], PAIR_BEFORE_AFTER, [CHANGE_STABLE] = 1);
	assert_int_equal(s.at[0].tables.kept, 3);
	assert_int_equal(s.at[0].tables.freed, 1);
	assert_int_equal(s.at[0].tables.created, 1);
	tear_down();
}

/* A table above it was replaced by a copy: the page table itself is where it was. */
TEST(replaced_upper_table_is_a_reason_for_doubt)
{
	set_up();
	put_entries(0, FRAME(0) | P, FRAME(0) | P);
	machine_u64(&m[COPY_AFTER], 0x101000, UINT64_C(0x110000) | P);
	machine_u64(&m[COPY_AFTER], 0x110000, UINT64_C(0x103000) | P);
	measure_ok();
	CHECK_VERDICTS(s.at[0].copy[COPY_IMAGE].frames, [VERDICT_PATH] = 1);
	assert_int_equal(s.at[0].tables.kept, 3);
	tear_down();
}

TEST(table_that_is_gone_takes_its_entries_along)
{
	set_up();
	put_entries(0, FRAME(0) | P, FRAME(0) | P);
	put_entries(1, FRAME(1) | P, FRAME(1) | P);
	machine_u64(&m[COPY_AFTER], 0x102000, 0);
	machine_forget(&m[COPY_AFTER], 0x103000);
	measure_ok();
	CHECK_CHANGES(&s.at[0], PAIR_BEFORE_AFTER, [CHANGE_GONE] = 2);
	CHECK_VERDICTS(s.at[0].copy[COPY_IMAGE].frames, [VERDICT_CHANGED] = 2);
	assert_int_equal(s.at[0].tables.freed, 1);
	assert_int_equal(s.at[0].tables.created, 0);
	tear_down();
}

#define SPACE(pid, dtb)                                                                            \
	"{\"listed\":true,\"kernel\":false,\"pid\":" #pid ",\"name\":\"p\",\"dtb\":" #dtb "}"

/* Entries of the kernel's half, the same in all roots but for one. */
static void put_kernel_half(enum copy copy, uint64_t names)
{
	for (uint64_t i = 0; i < 5; i++)
		machine_u64(&m[copy], ROOT + 8 * (256 + 40 * i),
			    (names + (i == 4 ? 0x1000 * copy : 0x1000 * i)) | P);
}

TEST(a_root_that_is_something_else_by_then_has_no_image)
{
	/* The image's page is a page of data by then, but would lead somewhere. */
	static const struct {
		uint64_t kernel;
		bool there;
	} cases[] = { { FRAME(20), true }, { FRAME(25), false } };

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		set_up();
		put_entries(0, FRAME(0) | P, FRAME(0) | P);
		put_kernel_half(COPY_BEFORE, FRAME(20));
		put_kernel_half(COPY_IMAGE, cases[i].kernel);
		put_kernel_half(COPY_AFTER, FRAME(20));
		measure_ok();
		assert_int_equal(s.at[0].copy[COPY_IMAGE].no_root, !cases[i].there);
		assert_int_equal(s.at[0].copy[COPY_IMAGE].entries, cases[i].there);
		assert_int_equal(s.at[0].copy[COPY_AFTER].entries, 1);
		assert_int_equal(s.cohorts[COHORT_OTHER_ROOT].spaces, !cases[i].there);
		assert_int_equal(s.cohorts[COHORT_LIVED].trust[COPY_IMAGE][TRUST_SAFE],
				 cases[i].there);
		assert_int_equal(s.cohorts[COHORT_LIVED].trust[COPY_BEFORE][TRUST_SAFE], 1);
		tear_down();
	}
}

TEST(processes_are_born_and_end)
{
	set_up();
	put_entries(0, FRAME(0) | P, FRAME(0) | P);
	before_spaces = SPACE(7, 1048576) ",{\"listed\":false,\"kernel\":true,\"dtb\":4096}";
	after_spaces = SPACE(9, 1114112); /* 0x110000 */
	machine_u64(&m[COPY_AFTER], 0x110000, UINT64_C(0x101000) | P);
	measure_ok();
	assert_int_equal(s.count, 2);
	assert_int_equal(s.at[0].id.fate, FATE_ENDED);
	assert_int_equal(s.at[1].id.fate, FATE_BORN);
	assert_int_equal(s.at[1].id.pid, 9);
	assert_int_equal(s.at[0].copy[COPY_BEFORE].frames[VERDICT_CHANGED], 1);
	assert_int_equal(s.at[0].copy[COPY_AFTER].entries, 0);
	assert_int_equal(s.at[1].copy[COPY_AFTER].frames[VERDICT_CHANGED], 1);
	CHECK_CHANGES(&s.total, PAIR_BEFORE_AFTER, 0);
	assert_int_equal(s.fates[FATE_BORN], 1);
	assert_int_equal(s.fates[FATE_ENDED], 1);
	/* Nobody lived, so that the headline has nothing to say. */
	assert_int_equal(s.cohorts[COHORT_LIVED].spaces, 0);
	assert_int_equal(s.cohorts[COHORT_ENDED].trust[COPY_BEFORE][TRUST_AT_RISK], 1);
	assert_int_equal(s.cohorts[COHORT_BORN].trust[COPY_AFTER][TRUST_AT_RISK], 1);
	smear_trust(&s, COPY_AFTER, trust);
	assert_int_equal(trust[TRUST_AT_RISK], 0);
	smear_sentence(&s, COPY_IMAGE, sentence);
	CHECK_HAS(sentence, "no user pages, nothing can be said");
	smear_advice_text(&s, COPY_IMAGE, advice);
	assert_string_equal(advice, "");
	tear_down();
}

/*
 * The image has a table where neither pass has one, and nobody read it before: what hangs from it
 * is not spoken of in the headline.
 */
TEST(torn_tables_are_counted_apart)
{
	for (int read_before = 0; read_before < 2; read_before++) {
		set_up();
		put_entries(0, FRAME(0) | P, FRAME(0) | P);
		machine_u64(&m[COPY_IMAGE], 0x102000 + 8, UINT64_C(0x110000) | P);
		put_entry(COPY_IMAGE, 0x200000, FRAME(1) | P);
		put_entry(COPY_IMAGE, 0x201000, UINT64_C(0xfee00000) | P);
		if (read_before) {
			first = (struct machine){ .levels = 4, .next = ROOT + 0x1000 };
			machine_page(&first, ROOT);
			machine_entry(&first, ROOT, VA(0), 1);
			machine_u64(&first, 0x102000 + 8, UINT64_C(0x110000) | P);
			first_taken = 12000;
		}
		measure_ok();
		assert_int_equal(s.cohorts[COHORT_TORN].spaces, !read_before);
		assert_int_equal(s.cohorts[COHORT_TORN].trust[COPY_IMAGE][TRUST_AT_RISK],
				 !read_before);
		assert_int_equal(s.cohorts[COHORT_TORN].trust[COPY_IMAGE][TRUST_WRONG],
				 !read_before);
		assert_int_equal(s.cohorts[COHORT_LIVED].trust[COPY_IMAGE][TRUST_WRONG],
				 read_before);
		/* In all of the image they stay. */
		copy_trust(&s.total.copy[COPY_IMAGE], trust);
		assert_int_equal(trust[TRUST_WRONG], 1);
		tear_down();
	}
}

/* Of 20 pages so many changed, and the first was captured again at `retaken`, if that is not 0. */
static void advise(size_t changed, uint64_t retaken, const char *line)
{
	set_up();
	file_line = line;
	for (size_t k = 0; k < 20; k++)
		put_entries(k, FRAME(k) | P, (k < changed ? 0 : FRAME(k)) | P);
	taken_again = retaken;
	measure_ok();
	smear_advice_text(&s, COPY_IMAGE, advice);
	tear_down();
}

TEST(advice_is_by_what_is_at_risk)
{
	static const char guided[] = "{\"event\":\"end\",\"order\":{\"name\":\"guided\"}}\n";

	advise(0, 0, "");
	CHECK_HAS(advice, "1 of 1 processes that lived can be used as they are");
	CHECK_HAS(advice, "); a second acquisition is not worth it.");
	/* Nothing is at risk, but of 20 pages a flat image has one as another mapping wants it. */
	advise(0, 4 * SECOND, "");
	CHECK_HAS(advice, "0 of 1 processes that lived can be used as they are");
	CHECK_HAS(advice,
		  "use `ramseal read` for 1 page of which a flat image has another capture; ");
	CHECK_HAS(advice, "a second acquisition is not worth it.");
	/* 2 of 20 are 10 %, and 3 are 15. */
	advise(2, 4 * SECOND, "");
	CHECK_HAS(advice, "0 of 1 processes that lived can be used as they are");
	CHECK_HAS(advice,
		  "use `ramseal read` for the 2 pages at risk in the others and 1 page of which ");
	CHECK_HAS(advice, "a second acquisition is not worth it.");
	advise(3, 4 * SECOND, "");
	CHECK_HAS(advice, "a second acquisition is worth it, with --order guided.");
	advise(3, 4 * SECOND, guided);
	CHECK_HAS(advice, "a second acquisition is worth it once the machine is less busy.");
}

TEST(root_that_changed_hands_is_two_spaces)
{
	set_up();
	put_entries(0, FRAME(0) | P, FRAME(0) | P);
	after_spaces = SPACE(8, 1048576);
	measure_ok();
	assert_int_equal(s.count, 2);
	assert_int_equal(s.total.copy[COPY_IMAGE].frames[VERDICT_CHANGED], 1);
	assert_int_equal(s.total.copy[COPY_IMAGE].frames[VERDICT_SAFE], 0);
	tear_down();
}

TEST(processes_with_one_root_are_counted_once)
{
	set_up();
	put_entries(0, FRAME(0) | P, FRAME(0) | P);
	before_spaces = after_spaces = SPACE(8, 1048576) "," ONE_SPACE;
	measure_ok();
	assert_int_equal(s.count, 1);
	assert_int_equal(s.at[0].id.pid, 7);
	assert_int_equal(s.at[0].id.sharers, 1);
	assert_int_equal(s.total.copy[COPY_IMAGE].frames[VERDICT_SAFE], 1);
	tear_down();
}

/* 2 MiB from 0 on, of which 64 pages are RAM; afterwards the same frames in 512 entries. */
TEST(large_page_that_was_split_is_compared_by_page)
{
	set_up();
	for (size_t c = 0; c < COPIES; c++)
		machine_map(&m[c], ROOT, 0x200000, 0, 2);
	machine_u64(&m[COPY_AFTER], 0x102008, 0);
	for (uint64_t i = 0; i < 512; i++)
		put_entry(COPY_AFTER, 0x200000 + i * 0x1000, i * 0x1000 | P);
	measure_ok();
	CHECK_CHANGES(&s.at[0], PAIR_BEFORE_AFTER, [CHANGE_RIGHTS] = 512);
	CHECK_CHANGES(&s.at[0], PAIR_BEFORE_IMAGE, [CHANGE_STABLE] = 512);
	CHECK_VERDICTS(
		s.at[0].copy[COPY_IMAGE].frames, [VERDICT_OUTSIDE] = 448, [VERDICT_CHANGED] = 64);
	assert_int_equal(s.at[0].copy[COPY_IMAGE].entries, 1);
	assert_int_equal(s.at[0].copy[COPY_AFTER].entries, 512);
	tear_down();
}

TEST(large_page_is_judged_by_its_captures)
{
	set_up();
	for (size_t c = 0; c < COPIES; c++)
		machine_map(&m[c], ROOT, 0x200000, 0, 2);
	captured[40] = '?';
	taken[50] = 4 * SECOND;
	measure_ok();
	CHECK_VERDICTS(s.at[0].copy[COPY_IMAGE].frames, [VERDICT_OUTSIDE] = 448,
		       [VERDICT_SAFE] = 62, [VERDICT_UNREADABLE] = 1, [VERDICT_OUT_OF_TIME] = 1);
	assert_int_equal(s.at[0].copy[COPY_IMAGE].window[WINDOW_FRAMES].pages, 63);
	tear_down();
}

#define GIB         UINT64_C(0x40000000)
#define FAR         UINT64_C(0x7f0000000000)
#define SMALLER(at) (GIB + (at) * UINT64_C(0x100000))

static size_t count_rows(enum copy copy, uint64_t from, uint64_t to)
{
	size_t n = 0;

	for (size_t i = 0; i < n_rows; i++)
		n += rows[i].copy == copy && rows[i].va >= from && rows[i].va <= to;
	return n;
}

/*
 * A page of 1 GiB before, two of 2 MiB in its place afterwards, 80 and 900 MiB in: further apart
 * than what is walked at once. And something at the far end of the user half.
 */
TEST(large_page_is_compared_with_all_that_came_in_its_place)
{
	set_up();
	for (size_t c = 0; c < COPIES; c++)
		put_entry((enum copy)c, FAR, FRAME(1) | P);
	machine_map(&m[COPY_BEFORE], ROOT, GIB, GIB, 3);
	machine_map(&m[COPY_IMAGE], ROOT, GIB, GIB, 3);
	machine_map(&m[COPY_AFTER], ROOT, SMALLER(80), SMALLER(80), 2);
	machine_map(&m[COPY_AFTER], ROOT, SMALLER(900), SMALLER(900), 2);
	measure_ok();
	CHECK_CHANGES(&s.at[0], PAIR_BEFORE_AFTER, [CHANGE_STABLE] = 1, [CHANGE_RIGHTS] = 1024,
		      [CHANGE_GONE] = 262144 - 1024);
	CHECK_CHANGES(&s.at[0], PAIR_BEFORE_IMAGE, [CHANGE_STABLE] = 262145);
	CHECK_VERDICTS(
		s.at[0].copy[COPY_IMAGE].frames, [VERDICT_OUTSIDE] = 262144, [VERDICT_SAFE] = 1);
	assert_int_equal(s.at[0].copy[COPY_BEFORE].entries, 2);
	assert_int_equal(s.at[0].copy[COPY_AFTER].entries, 3);
	assert_int_equal(s.at[0].copy[COPY_BEFORE].tables + 1, s.at[0].copy[COPY_AFTER].tables);
	assert_int_equal(s.at[0].tables.created, 1);
	assert_int_equal(count_rows(COPY_BEFORE, GIB, 2 * GIB - 1), 5);
	assert_int_equal(count_rows(COPY_IMAGE, GIB, 2 * GIB - 1), 5);
	assert_int_equal(count_rows(COPY_AFTER, GIB, 2 * GIB - 1), 2);
	assert_int_equal(count_rows(COPY_IMAGE, FAR, FAR), 1);
	tear_down();
}

TEST(frames_and_slots_named_twice_are_counted)
{
	set_up();
	put_entries(0, FRAME(0) | P, FRAME(0) | P);
	put_entries(1, FRAME(0) | P, FRAME(0) | P);
	put_entries(2, FRAME(0) | P, FRAME(0) | P);
	put_entries(3, FRAME(1) | P, FRAME(1) | P);
	put_entries(4, SWAP(3), SWAP(3));
	put_entries(5, SWAP(3), SWAP(3));
	measure_ok();
	assert_int_equal(s.frames.named, 2);
	assert_int_equal(s.frames.several, 1);
	assert_int_equal(s.slots.named, 1);
	assert_int_equal(s.slots.several, 1);
	tear_down();
}

/* The verdict on a slot that never changed, in the image's tables. */
static void check_slot(enum verdict want)
{
	if (!machine_get(&m[COPY_BEFORE], machine_entry(&m[COPY_BEFORE], ROOT, VA(0), 1)))
		put_entries(0, SWAP(9), SWAP(9));
	measure_ok();
	if (s.at[0].copy[COPY_IMAGE].slots[want] != 1)
		fail_msg("the slot is not %s", verdict_name(want));
	/* A flat image has the slot, and not what the swap cache had. */
	assert_int_equal(s.at[0].copy[COPY_IMAGE].older, want == VERDICT_CACHE_FRAME);
	tear_down();
}

TEST(slots_are_doubted_where_linux_may_keep_the_page_elsewhere)
{
	set_up();
	check_slot(VERDICT_SAFE);
	set_up(); /* captured at once: the page may still have been on its way */
	slots_taken = SECOND;
	check_slot(VERDICT_SLOT);
	set_up(); /* and so it may until a second has passed since the entry was seen, at 1070, */
	slots_taken = 1070 + SECOND - 1;
	check_slot(VERDICT_SLOT); /* however long the read took then */
	set_up();
	slots_taken = 1070 + SECOND;
	check_slot(VERDICT_SAFE);
	set_up();
	slots_meta = "{\"number\":0,\"number_origin\":\"assumed\"}";
	check_slot(VERDICT_SAFE); /* only 0 is named, and the first in the list is here */
	set_up();
	slots_meta = "{\"number\":0,\"number_origin\":\"assumed\"}";
	put_entries(1, SWAP(9) | UINT64_C(1) << 59, SWAP(9) | UINT64_C(1) << 59);
	check_slot(VERDICT_SLOT);
	set_up();
	slots_meta = "{\"number\":1,\"number_origin\":\"assumed\"}";
	put_entries(0, SWAP(9) | UINT64_C(1) << 59, SWAP(9) | UINT64_C(1) << 59);
	check_slot(VERDICT_SLOT);
	set_up();
	slots_meta = NULL;
	check_slot(VERDICT_NO_FILE);
	set_up();
	begin_line = "{\"event\":\"begin\",\"os\":{\"kernel_release\":\"6.1.0\"}}\n";
	check_slot(VERDICT_SLOT);
	set_up();
	begin_line = "{\"event\":\"begin\",\"os\":{\"kernel_release\":\"6.12.1\"},"
		     "\"memory\":{\"zswap\":\"N\"}}\n";
	check_slot(VERDICT_SLOT);
	set_up();
	begin_line = "{\"event\":\"begin\",\"os\":{\"kernel_release\":\"6.1.0\"},"
		     "\"memory\":{\"zswap\":\"Y\"}}\n";
	check_slot(VERDICT_SLOT);
}

/* A counter that went back may have gone forward before: less than a second may have passed. */
TEST(second_of_a_counter_that_went_back_is_longer)
{
	for (uint64_t ns = 4999; ns <= 5000; ns++) {
		set_up();
		begin_line = LINUX_BEGIN
			"{\"event\":\"end\",\"clock_steps\":[{\"count\":1,\"back_ns\":2000},"
			"{\"count\":2,\"back_ns\":3000}]}\n";
		slots_taken = 1070 + SECOND + ns;
		check_slot(ns < 5000 ? VERDICT_SLOT : VERDICT_SAFE);
	}
}

/* The slot is read at `read`; up to two looks before or behind that. */
static void set_up_looks(uint64_t read, uint64_t time, char state, uint64_t time2, char state2)
{
	set_up();
	slots_taken = read;
	looks[0].time = time;
	looks[0].state = state;
	looks[1].time = time2;
	looks[1].state = state2;
}

/* The entry stands from 1060 on, when its pass before was over, to 3 s. */
TEST(swap_cache_tells_whether_a_slot_was_written)
{
	set_up_looks(SECOND / 2, 2000, '_', 0, 0);
	check_slot(VERDICT_SAFE); /* within the first second, too */
	set_up_looks(SECOND / 2, SECOND / 2 + 1, '_', 0, 0);
	check_slot(VERDICT_SLOT); /* too late */
	set_up_looks(SECOND / 2, SECOND / 2 - 5, '_', 0, 0);
	check_slot(VERDICT_SLOT); /* it was written while it was being read */
	set_up_looks(SECOND / 2, SECOND / 2 - 10, '_', 0, 0);
	check_slot(VERDICT_SAFE);
	set_up_looks(SECOND / 2, 1000, '_', 0, 0);
	check_slot(VERDICT_SLOT); /* before the entry was seen */
	set_up_looks(2 * SECOND, 2000, '?', 0, 0);
	check_slot(VERDICT_SWAP_CACHE); /* behind the first second, too */
	set_up_looks(2 * SECOND, 1000, '?', 0, 0);
	check_slot(VERDICT_SAFE); /* of another time: by the second that has passed */
	set_up_looks(SECOND / 2, 2000, '?', 3000, '_');
	check_slot(VERDICT_SAFE);
	set_up_looks(SECOND / 2, 2000, '_', 3000, '?');
	check_slot(VERDICT_SAFE); /* read again from the slot */
	set_up_looks(SECOND / 2, 2000, '_', 0, 0);
	looks_meta = "{\"number\":1}"; /* another area's */
	check_slot(VERDICT_SLOT);
	set_up_looks(SECOND / 2, 2000, '_', 0, 0);
	begin_line = "{\"event\":\"begin\",\"os\":{\"kernel_release\":\"6.1.0\"},"
		     "\"memory\":{\"zswap\":\"Y\"}}\n";
	check_slot(VERDICT_SLOT); /* written, but to where? */
}

#define LINUX_6_12                                                                                 \
	"{\"event\":\"begin\",\"os\":{\"kernel_release\":\"6.12.1\"},"                             \
	"\"memory\":{\"zswap\":\"N\"}}\n"

/* As set_up_looks(), and since 6.12: a look tells whether the page is zeros, or it does not. */
static void set_up_zeros(const char *meta, uint64_t read, uint64_t time, char state)
{
	set_up_looks(read, time, state, 0, 0);
	begin_line = LINUX_6_12;
	looks_meta = meta;
}

#define TELLS_ZEROS "{\"number\":0,\"zeros\":true}"

TEST(looks_tell_zeros_that_were_not_written)
{
	set_up_zeros(TELLS_ZEROS, SECOND / 2, 2000, '_');
	check_slot(VERDICT_SAFE); /* written, and not zeros only */
	set_up_zeros("{\"number\":0,\"zeros\":false}", SECOND / 2, 2000, '_');
	check_slot(VERDICT_SLOT);
	set_up_zeros("{\"number\":0}", SECOND / 2, 2000, '_');
	check_slot(VERDICT_SLOT); /* of a ramseal that did not look for them */
	set_up_zeros(TELLS_ZEROS, SECOND / 2, 2000, '.');
	check_slot(VERDICT_CACHE_FRAME);
	set_up_zeros(TELLS_ZEROS, SECOND / 2, 1000, '_');
	check_slot(VERDICT_SLOT); /* before the entry was seen */
	set_up_zeros(TELLS_ZEROS, 2 * SECOND, 1000, '_');
	check_slot(VERDICT_SLOT); /* and waiting does not make up for it, */
	set_up_zeros(TELLS_ZEROS, 2 * SECOND, 0, 0);
	check_slot(VERDICT_SLOT); /* nor does a look at other slots */
	set_up_zeros(TELLS_ZEROS, 2 * SECOND, 2000, '?');
	check_slot(VERDICT_SWAP_CACHE);
	set_up_zeros(TELLS_ZEROS, SECOND / 2, 2000, '_');
	begin_line = "{\"event\":\"begin\",\"memory\":{\"zswap\":\"N\"}}\n";
	check_slot(VERDICT_SAFE); /* whichever version that is */
}

static void check_doubt(bool looked, const char *text)
{
	put_entries(0, SWAP(9), SWAP(9));
	measure_ok();
	assert_int_equal(s.slots_doubt_looked, looked);
	if (text)
		CHECK_HAS(s.slots_doubt, text);
	else
		assert_null(s.slots_doubt);
	tear_down();
}

/* The reason that holds, and what one can do about it. */
TEST(the_doubt_about_slots_says_what_it_is)
{
	set_up();
	check_doubt(false, NULL);
	set_up();
	begin_line = LINUX_6_12;
	check_doubt(false, "--pagefile guided");
	set_up();
	begin_line = LINUX_6_12;
	file_line = "{\"event\":\"end\",\"order\":{\"slots\":{\"swap_cache_problem\":"
		    "\"the moon\"}}}\n";
	check_doubt(false, "not examined: the moon");
	set_up_zeros("{\"number\":0}", 2 * SECOND, 2000, '_');
	check_doubt(false, "did not find out which");
	set_up_zeros(TELLS_ZEROS, 2 * SECOND, 2000, '_');
	check_doubt(true, "since Linux 6.12");
	set_up_zeros(TELLS_ZEROS, 2 * SECOND, 2000, '_');
	more_looks_meta = "{\"number\":1}";
	check_doubt(false, "did not find out which");
	set_up_zeros(TELLS_ZEROS, 2 * SECOND, 2000, '_');
	begin_line = LINUX_BEGIN;
	check_doubt(false, NULL);
	set_up();
	begin_line = "{\"event\":\"begin\",\"memory\":{\"zswap\":\"N\"}}\n";
	check_doubt(false, "the kernel's version");
}

/* zram gives zeros for a slot that is freed: no disk does, until it is written to again. */
TEST(zeros_of_zram_are_not_safe)
{
	static const char *const metas[] = {
		"{\"number\":0,\"number_origin\":\"known\",\"pagefile_kind\":\"swap on zram\"}",
		"{\"number\":0,\"number_origin\":\"known\",\"pagefile_kind\":\"swap partition\"}",
	};

	for (size_t i = 0; i < ARRAY_SIZE(metas); i++) {
		set_up();
		slots_meta = metas[i];
		check_slot(VERDICT_SAFE);
		set_up();
		slots_meta = metas[i];
		slots = "sssssssss.ssssss";
		check_slot(i ? VERDICT_SAFE : VERDICT_SLOT);
	}
}

TEST(swap_cache_has_the_page_itself)
{
	set_up_looks(SECOND / 2, 2000, 'h', 0, 0);
	check_slot(VERDICT_CACHE_FRAME);
	set_up_looks(2 * SECOND, 2000, 'h', 0, 0);
	check_slot(VERDICT_CACHE_FRAME);
	set_up_looks(SECOND / 2, 2000, 'h', 4 * SECOND, 'i');
	check_slot(VERDICT_CACHE_FRAME); /* the older of the two */
	set_up_looks(2 * SECOND, 4 * SECOND, 'h', 0, 0);
	check_slot(VERDICT_SAFE); /* behind the entry: by the second that has passed */
	set_up_looks(SECOND / 2, 4 * SECOND, 'h', 0, 0);
	check_slot(VERDICT_SLOT);
	set_up_looks(2 * SECOND, 2000, 'h', 0, 0);
	slots = "sssssssss?ssssss";
	check_slot(VERDICT_CACHE_FRAME);
	set_up_looks(2 * SECOND, 2000, 'h', 0, 0);
	begin_line = "{\"event\":\"begin\",\"os\":{\"kernel_release\":\"6.12.1\"},"
		     "\"memory\":{\"zswap\":\"Y\"}}\n";
	check_slot(VERDICT_CACHE_FRAME); /* wherever it would be written to */
	set_up_looks(2 * SECOND, 2000, 'h', 0, 0);
	put_entries(0, SWAP(9), FRAME(1) | P);
	check_slot(VERDICT_CACHE_FRAME); /* from the pass before to the image it stood */
	set_up_looks(2 * SECOND, 2000, 'h', 0, 0);
	put_entries(0, SWAP(8), SWAP(9));
	put_entry(COPY_IMAGE, VA(0), SWAP(9));
	check_slot(VERDICT_SAFE); /* it came later: by the second that has passed */
}

/*
 * Whatever moved in the machine, its image does not: nothing is safe, and nothing is at risk of
 * that.
 */
TEST(image_has_one_moment)
{
	static const char *const begin[] = {
		IMAGE_BEGIN, /* and by this one */
		"{\"event\":\"begin\",\"source\":{\"name\":\"x\",\"image\":true,\"still\":true},"
		"\"maps\":[{\"ranges\":[{\"first\":1048576,\"last\":1310719}]}]}\n"
	};

	for (size_t i = 0; i < ARRAY_SIZE(begin); i++) {
		set_up();
		put_every_change();
		begin_line = begin[i];
		measure_ok();
		assert_true(s.still);
		CHECK_VERDICTS(
			s.at[0].copy[COPY_IMAGE].frames, [VERDICT_IMAGE] = 6, [VERDICT_OUTSIDE] = 1,
			[VERDICT_UNREADABLE] = 1, [VERDICT_MISSING] = 2);
		/* Nobody says that zswap of the other machine was off. */
		CHECK_VERDICTS(s.at[0].copy[COPY_IMAGE].slots, [VERDICT_SLOT] = 3);
		assert_int_equal(s.at[0].copy[COPY_BEFORE].entries, 0);
		assert_int_equal(s.at[0].copy[COPY_IMAGE].window[WINDOW_FRAMES].pages, 0);
		CHECK_CHANGES(&s.total, PAIR_BEFORE_IMAGE, [CHANGE_STABLE] = 0);
		assert_int_equal(s.at[0].id.fate, FATE_NOT_APPLICABLE);
		assert_int_equal(s.fates[FATE_BORN] + s.fates[FATE_ENDED] + s.fates[FATE_LIVED], 0);
		for (size_t k = 0; k < n_rows; k++)
			assert_int_equal(rows[k].copy, COPY_IMAGE);
		smear_sentence(&s, COPY_IMAGE, sentence);
		CHECK_HAS(sentence, "Not applicable: an image file does not change");
		CHECK_HAS(sentence, "46.2 % are in this container, and 30.8 % are not");
		CHECK_HAS(sentence,
			  " Not there: 1 at addresses that the image does not have (it is "
			  "cut off, or parts of it are not in their places), 1 unreadable, "
			  "2 not captured.");
		tear_down();
	}
}

/* Its tables bracketed their frames in the file, which says nothing of the machine. */
TEST(image_read_by_its_tables_is_not_safe_either)
{
	set_up_around();
	begin_line = IMAGE_BEGIN;
	measure_ok();
	CHECK_VERDICTS(s.at[0].copy[COPY_IMAGE].frames, [VERDICT_IMAGE] = 2);
	tear_down();
}

TEST(space_that_only_one_pass_over_an_image_found_is_not_born)
{
	set_up();
	put_entries(0, FRAME(0) | P, FRAME(0) | P);
	begin_line = IMAGE_BEGIN;
	before_spaces = "";
	measure_ok();
	assert_int_equal(s.count, 1);
	assert_int_equal(s.at[0].id.fate, FATE_NOT_APPLICABLE);
	CHECK_VERDICTS(s.at[0].copy[COPY_IMAGE].frames, [VERDICT_IMAGE] = 1);
	tear_down();
}

TEST(image_that_was_changed_is_measured)
{
	static const char *const begin[] = {
		/* Somebody had it open; it was another file in the end; it was no file at all. */
		"{\"event\":\"begin\",\"source\":{\"image\":true,\"still\":false}}\n",
		("{\"event\":\"begin\",\"source\":{\"image\":true,\"still\":true}}\n"
		 "{\"event\":\"end\",\"still\":false}\n"),
		"{\"event\":\"begin\",\"source\":{\"name\":\"file\",\"path\":\"/proc/kcore\"}}\n",
	};

	for (size_t i = 0; i < ARRAY_SIZE(begin); i++) {
		set_up();
		put_entries(0, FRAME(0) | P, FRAME(0) | P);
		begin_line = begin[i];
		measure_ok();
		assert_false(s.still);
		CHECK_VERDICTS(s.at[0].copy[COPY_IMAGE].frames, [VERDICT_SAFE] = 1);
		tear_down();
	}
}

#define SWAP_FILE "\"number\":0,\"number_origin\":\"known\",\"pagefile_kind\":\"swap file\""
#define FILE_LINE "{\"event\":\"file\",\"number\":0"

/* As check_slot(), of a swap file; `why` in the doubt, or NULL if there is to be none. */
static void check_swap_file(const char *meta, const char *line, enum verdict want, const char *why)
{
	set_up();
	slots_meta = meta;
	file_line = line;
	put_entries(0, SWAP(9), SWAP(9));
	measure_ok();
	if (s.at[0].copy[COPY_IMAGE].slots[want] != 1)
		fail_msg("the slot is not %s", verdict_name(want));
	assert_int_equal(s.n_file_doubts, why != NULL);
	if (why) {
		assert_string_equal(s.file_doubts[0].file, "/dev/vdb");
		CHECK_HAS(s.file_doubts[0].why, why);
	}
	tear_down();
}

TEST(slots_of_a_swap_file_are_safe_only_where_their_places_are_known)
{
	check_swap_file("{" SWAP_FILE ",\"slots\":16}",
			FILE_LINE ",\"slots\":16,\"slots_held\":true}\n", VERDICT_SAFE, NULL);
	/* What an older ramseal has written says nothing of slots. */
	check_swap_file("{" SWAP_FILE "}", FILE_LINE "}\n", VERDICT_SLOT_MAP, "older");
	check_swap_file("{" SWAP_FILE "}", "", VERDICT_SLOT_MAP, "older");
	check_swap_file("{" SWAP_FILE ",\"slots\":16}", "", VERDICT_SLOT_MAP, "ended before");
	check_swap_file("{" SWAP_FILE ",\"slots\":16}", FILE_LINE ",\"slots\":16}\n",
			VERDICT_SLOT_MAP, "ended before");
	check_swap_file("{" SWAP_FILE ",\"slots\":16}",
			FILE_LINE ",\"slots\":16,\"slots_held\":false,"
				  "\"slots_problem\":\"lie elsewhere\"}\n",
			VERDICT_SLOT_MAP, "lie elsewhere");
	check_swap_file("{" SWAP_FILE ",\"slots_problem\":\"FIEMAP: no\"}", "", VERDICT_SLOT_MAP,
			"FIEMAP: no");
	/* The line is another file's. */
	check_swap_file("{" SWAP_FILE ",\"slots\":16}",
			"{\"event\":\"file\",\"number\":1,\"slots\":16,\"slots_held\":true}\n",
			VERDICT_SLOT_MAP, "ended before");
	/* What lies behind the slots is a part of the file, and no slot. */
	check_swap_file("{" SWAP_FILE ",\"slots\":9}",
			FILE_LINE ",\"slots\":9,\"slots_held\":true}\n", VERDICT_OUTSIDE, NULL);
	check_swap_file("{" SWAP_FILE ",\"slots\":10}",
			FILE_LINE ",\"slots\":10,\"slots_held\":true}\n", VERDICT_SAFE, NULL);
	/* A partition's slots are numbered by their offset. */
	check_swap_file("{\"number\":0,\"number_origin\":\"known\","
			"\"pagefile_kind\":\"swap partition\"}",
			"", VERDICT_SAFE, NULL);
}

/* Windows 10 1607: Transition at 11, Protection at 5, PageFileLow at 1, PageFileHigh at 32. */
#define TRANSITION_TO(n) (FRAME(n) | UINT64_C(0x880))
#define IN_FILE(slot)    ((uint64_t)(slot) << 32 | UINT64_C(0x2080))

/* As ReactOS, which says that it is build 3790, has pages that are in its page file. */
TEST(entries_of_a_windows_that_is_not_known_are_never_safe)
{
	json_t *headline;

	set_up();
	os = "windows";
	begin_line = "{\"event\":\"begin\",\"os\":{\"build\":3790},"
		     "\"maps\":[{\"ranges\":[{\"first\":1048576,\"last\":1310719}]}]}\n";
	put_entries(0, FRAME(0) | 0x800, FRAME(0) | 0x800);
	put_entries(1, FRAME(1) | P, FRAME(1) | P);
	measure_ok();
	assert_false(s.layout.found);
	CHECK_HAS(s.layout.reason, "build 3790");
	for (size_t c = 0; c < COPIES; c++) {
		assert_int_equal(s.total.copy[c].state[PTE_UNKNOWN], 1);
		assert_int_equal(s.total.copy[c].frames[VERDICT_SAFE], 1);
	}
	headline = smear_headline_json(&s, COPY_BEFORE);
	CHECK_HAS(json_string_value(json_object_get(headline, "sentence")),
		  "How this system writes entries of pages that are not present is not known");
	json_decref(headline);
	tear_down();
}

TEST(windows_trims_and_recalls)
{
	set_up();
	os = "windows";
	begin_line = WINDOWS_BEGIN;
	put_entries(0, FRAME(0) | P, TRANSITION_TO(0));
	put_entries(1, TRANSITION_TO(1), FRAME(1) | P);
	put_entries(2, TRANSITION_TO(2), IN_FILE(4));
	put_entries(3, IN_FILE(5), FRAME(3) | P);
	put_entries(4, TRANSITION_TO(4), TRANSITION_TO(4));
	put_entries(5, FRAME(5) | P, FRAME(5) | P | UINT64_C(3) << 56); /* WsleAge */
	put_entries(6, UINT64_C(0x80), FRAME(6) | P);                   /* demand zero */
	put_entries(7, FRAME(7) | P, TRANSITION_TO(8));
	put_entries(8, IN_FILE(6), IN_FILE(6));
	for (size_t c = 0; c < COPIES; c++) /* a page table that is itself in transition */
		machine_u64(&m[c], 0x102010, TRANSITION_TO(20));
	measure_ok();
	assert_string_equal(s.layout.name, "10-1507");
	CHECK_CHANGES(&s.at[0], PAIR_BEFORE_AFTER, [CHANGE_TRIMMED] = 1, [CHANGE_RECALLED] = 1,
		      [CHANGE_PAGED_OUT] = 1, [CHANGE_PAGED_IN] = 1, [CHANGE_STABLE] = 3,
		      [CHANGE_APPEARED] = 1, [CHANGE_REMAPPED] = 1);
	CHECK_VERDICTS(s.at[0].copy[COPY_IMAGE].frames, [VERDICT_SAFE] = 2, [VERDICT_CHANGED] = 4);
	CHECK_VERDICTS(s.at[0].copy[COPY_IMAGE].slots, [VERDICT_SAFE] = 1, [VERDICT_CHANGED] = 1);
	assert_int_equal(s.at[0].copy[COPY_IMAGE].state[PTE_TRANSITION], 3);
	assert_int_equal(s.at[0].copy[COPY_IMAGE].state[PTE_DEMAND_ZERO], 1);
	assert_int_equal(s.at[0].copy[COPY_IMAGE].away, 1);
	tear_down();
}

/* The same layout, with the file's number: PageFileLow at 1. */
#define IN_FILE_OF(n, slot) (IN_FILE(slot) | (uint64_t)(n) << 1)
#define BEGIN_1511                                                                                 \
	"{\"event\":\"begin\",\"os\":{\"build\":10586},"                                           \
	"\"maps\":[{\"ranges\":[{\"first\":1048576,\"last\":1310719}]}]}\n"
#define STORE_PROCESS                                                                              \
	",{\"listed\":true,\"kernel\":false,\"pid\":9,\"name\":\"MemCompression\",\"dtb\":"        \
	"1064960}"
/* What follows the list of spaces in the line. */
#define TABLE(files)   "],\"paging_files\":[" files
#define PAGEFILE_ENTRY "{\"number\":0,\"name\":\"p\",\"store\":false}"
#define STORE_ENTRY    "{\"number\":2,\"name\":null,\"store\":true}"

static bool old_build; /* 1511, where System has the store */
static bool lost_file; /* number 2 could not be copied, and has a line */

/*
 * Entries of a standard client: few in the page file, number 0, and most in the store, number 2.
 * What they come to: `store` pages there, `missing` ones of a file that nobody has.
 */
static void check_store(const char *spaces, uint64_t store, uint64_t missing, int number,
			const char *by)
{
	os = "windows";
	begin_line = old_build   ? BEGIN_1511
		     : lost_file ? WINDOWS_BEGIN "{\"event\":\"file\",\"number\":2}\n"
				 : WINDOWS_BEGIN;
	before_spaces = after_spaces = spaces;
	put_entries(0, IN_FILE(4), IN_FILE(4));
	for (size_t k = 1; k < 9; k++)
		put_entries(k, IN_FILE_OF(2, 0x30000 + k), IN_FILE_OF(2, 0x30000 + k));
	measure_ok();
	assert_string_equal(s.layout.name, "10-1507");
	assert_int_equal(s.store, number);
	if (by)
		assert_string_equal(s.store_by, by);
	else
		assert_null(s.store_by);
	CHECK_VERDICTS(s.at[0].copy[COPY_IMAGE].slots, [VERDICT_SAFE] = slots_meta ? 1 : 0,
		       [VERDICT_STORE] = store, [VERDICT_NO_FILE] = missing);
	assert_int_equal(s.at[0].copy[COPY_IMAGE].state[PTE_COMPRESSED], store);
	tear_down();
}

TEST(pages_in_the_compression_store_are_not_wrong)
{
	set_up();
	check_store(ONE_SPACE STORE_PROCESS, 8, 0, 2, "inferred");
	set_up();
	check_store(ONE_SPACE TABLE(PAGEFILE_ENTRY "," STORE_ENTRY), 8, 0, 2, "kernel");
	/* No process is its own. */
	set_up();
	old_build = true;
	check_store(ONE_SPACE, 8, 0, 2, "inferred");
	old_build = false;
}

TEST(store_is_not_made_up)
{
	/* Nothing runs that would hold it. */
	set_up();
	check_store(ONE_SPACE, 0, 8, -1, NULL);
	/* The kernel knows better. */
	set_up();
	check_store(ONE_SPACE STORE_PROCESS TABLE(PAGEFILE_ENTRY), 0, 8, -1, "kernel");
	/* No page file is known: number 2 may be one as well. */
	set_up();
	slots_meta = NULL;
	check_store(ONE_SPACE STORE_PROCESS, 0, 9, -1, NULL);
	/* It is a file's, of which only the manifest tells. */
	set_up();
	lost_file = true;
	check_store(ONE_SPACE STORE_PROCESS, 0, 8, -1, NULL);
	lost_file = false;
	/* Two numbers are nobody's. */
	set_up();
	put_entries(10, IN_FILE_OF(5, 1), IN_FILE_OF(5, 1));
	check_store(ONE_SPACE STORE_PROCESS, 0, 9, -1, NULL);
}

TEST(missing_second_pass_is_said)
{
	struct err e = ERR_INIT;

	set_up();
	without_after = true;
	CHECK_STATUS(measure(&e), ST_INPUT, &e);
	CHECK_HAS(e.message, "--pagetables=both");
	assert_int_equal(status_exit_code(ST_INPUT), 9);
	tear_down();
}

TEST(machine_without_tables_is_said)
{
	struct err e = ERR_INIT;

	set_up();
	begin_line = "{\"event\":\"tables\",\"when\":\"before\",\"spaces\":[]}\n";
	CHECK_STATUS(measure(&e), ST_INPUT, &e);
	CHECK_HAS(e.message, "no page tables were found");
	tear_down();
}

TEST(manifest_may_say_anything)
{
	set_up();
	put_entries(0, FRAME(0) | P, FRAME(0) | P);
	before_spaces =
		"1,null,\"x\",[],{},{\"dtb\":-1,\"listed\":true},{\"dtb\":\"1048576\"},"
		"{\"dtb\":9223372036854775807},{\"dtb\":0,\"listed\":true,\"name\":[]}," ONE_SPACE;
	after_spaces = "{\"user_dtb\":1048576,\"listed\":true,\"pid\":7},{\"dtb\":1048577}";
	begin_line = "{\"event\":\"begin\",\"maps\":[{\"ranges\":[{\"first\":-1,\"last\":5},"
		     "{\"first\":9,\"last\":1},{\"last\":\"x\"},7]}],\"os\":{\"kernel_release\":"
		     "\"x\"}}\n";
	measure_ok();
	assert_int_equal(s.count, 3); /* roots 0, 0x100000 and the far one; low bits are flags */
	assert_int_equal(s.fates[FATE_LIVED], 1);
	assert_int_equal(s.at[1].copy[COPY_IMAGE].frames[VERDICT_SAFE], 1);
	tear_down();
}

static uint64_t seed;

static uint64_t next_random(void)
{
	seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return seed ^ seed >> 29;
}

static uint64_t hostile_entry(void)
{
	const uint64_t r = next_random();

	if (r % 16 == 0)
		return UINT64_MAX;
	if (r % 4 == 0)
		return r;
	return (ROOT + (r >> 20) % RAM_PAGES * PAGE_SIZE) | (r & 0xfe7) | (r % 3 != 0);
}

/* Every mapping is counted once, whatever the tables say. */
/* Whatever else the copies say: these are roots of one machine. */
static void share_kernel_half(uint64_t root)
{
	for (uint64_t pa = root + PAGE_SIZE / 2; pa < root + PAGE_SIZE; pa += 8)
		for (size_t c = 1; c < COPIES; c++)
			machine_u64(&m[c], pa, get_le64(page_of(&m[0], root) + pa % PAGE_SIZE));
}

TEST(hostile_tables_end_and_add_up)
{
	for (uint64_t round = 1; round <= 6; round++) {
		set_up();
		seed = round;
		if (round % 3 == 0)
			os = "windows";
		for (size_t c = 0; c < COPIES; c++)
			for (uint64_t i = 0; i < 12 * 512; i++)
				machine_u64(&m[c], ROOT + 8 * i, hostile_entry());
		share_kernel_half(ROOT);
		share_kernel_half(ROOT + PAGE_SIZE);
		n_rows = 0;
		before_spaces = after_spaces = SPACE(1, 1048576) "," SPACE(2, 1052672);
		measure_ok();
		for (size_t c = 0; c < COPIES; c++) {
			const struct copy_sums *x = &s.total.copy[c];
			uint64_t named;

			copy_trust(x, trust);
			named = x->state[PTE_VALID] + x->state[PTE_TRANSITION] +
				x->state[PTE_PROT_NONE] + x->state[PTE_MIGRATION] +
				x->state[PTE_PAGE_FILE] + x->state[PTE_SWAP];
			assert_int_equal(trust[0] + trust[1] + trust[2], named);
			assert_true(x->tables <= 2 * RAM_PAGES);
			assert_true(named > 0);
		}
		assert_false(s.cut);
		tear_down();
	}
}

TEST(report_says_what_was_measured)
{
	char *text, *whole;
	struct err e = ERR_INIT;
	FILE *out;
	json_t *doc, *o;

	set_up();
	put_every_change();
	before_spaces = after_spaces =
		"{\"listed\":true,\"pid\":7,\"name\":\"=a\\\"b\",\"dtb\":1048576}";
	measure_ok();
	out = text_file_open();
	CHECK_OK(smear_print_json(&s, "x.rsz", out, &e), &e);
	text = text_file_close(out);
	doc = json_loads(text, 0, NULL);
	assert_non_null(doc);
	whole = json_dumps(doc, JSON_INDENT(1));
	assert_memory_equal(text, whole, strlen(whole));
	assert_string_equal(text + strlen(whole), "\n");
	free(whole);
	free(text);
	o = json_object_get(json_object_get(json_object_get(doc, "total"), "copies"), "image");
	assert_int_equal(json_integer_value(json_object_get(json_object_get(o, "trust"), "safe")),
			 2);
	o = json_object_get(json_object_get(o, "frames"), "torn");
	assert_int_equal(json_integer_value(o), 1);
	assert_int_equal(json_array_size(json_object_get(doc, "spaces")), 1);
	json_decref(doc);
	out = text_file_open();
	smear_print_csv(&s, out);
	smear_print_changes(&s, out);
	smear_print_text(&s, out);
	text = text_file_close(out);
	CHECK_HAS(text, "pid,name,dtb,fate,copy,place,verdict,reason,pages\n");
	CHECK_HAS(text, "7,\"'=a\"\"b\",0x100000,lived,image,memory,at-risk,torn,1\n");
	CHECK_HAS(text, "7,\"'=a\"\"b\",0x100000,lived,before-after,valid,swap,1\n");
	CHECK_HAS(text, "15.4 % certainly belong");
	CHECK_HAS(text, "1 lived, 0 ended, 0 born");
	free(text);
	tear_down();
}

/* Whatever is to be said, a terminal of 24 lines has room for it. */
TEST(brief_text_has_a_dozen_lines)
{
	static const uint64_t many[TRUSTS] = { 20000000, 19000000, 18000000 };
	struct cohort_sums *lived;
	size_t lines = 0, wide = 0;
	char *text;
	FILE *out;

	set_up();
	put_every_change();
	measure_ok();
	lived = &s.cohorts[COHORT_LIVED];
	memcpy(lived->trust[COPY_IMAGE], many, sizeof(many));
	s.at[0].copy[COPY_IMAGE].slots[VERDICT_NO_FILE] = 17000000;
	s.at[0].copy[COPY_IMAGE].frames[VERDICT_OUTSIDE] = 1000000;
	s.at[0].copy[COPY_IMAGE].older = 1000000;
	s.total.copy[COPY_IMAGE].state[PTE_UNKNOWN] = 1;
	s.layout.doubt[0] = 'x';
	s.slots_doubt = strdup("x");
	s.cut = s.numbers_unasked = true;
	out = text_file_open();
	smear_print_short(&s, out);
	text = text_file_close(out);
	for (const char *at = text; *at; at += strcspn(at, "\n") + 1) {
		lines++;
		wide += strcspn(at, "\n") > 80;
	}
	if (lines > 12 || wide)
		fail_msg("%zu lines, %zu wide:\n%s", lines, wide, text);
	CHECK_HAS(text, "safe       35.1 %   20000000  certainly belong there\n");
	CHECK_HAS(text, "17000000 in page files");
	CHECK_HAS(text, "in doubt    how entries are to be read; ");
	CHECK_HAS(text, "usable      0 of 1 processes as they are");
	CHECK_HAS(text, "a second acquisition is worth it");
	free(text);
	tear_down();
}

TEST(quantiles_are_members)
{
	static struct windows w, more;
	struct window_summary sum;

	for (uint64_t i = 1; i <= 20; i++)
		windows_add(&w, i, 1);
	windows_summary(&w, &sum);
	assert_int_equal(sum.median, 10);
	assert_int_equal(sum.p95, 19);
	assert_int_equal(sum.max, 20);
	assert_int_equal(sum.octave[0], 1);
	assert_int_equal(sum.octave[4], 5); /* 16 to 20 */
	windows_add(&more, UINT64_MAX, 1);
	windows_add(&more, 1000003, 60);
	windows_merge(&w, &more);
	assert_int_equal(w.total, 81);
	assert_int_equal(windows_quantile(&w, 50), 1000003);
	assert_int_equal(windows_quantile(&w, 100), UINT64_MAX);
}

/* The middle one of three, and of two that differ by more than a thirty-second the smaller. */
TEST(quantiles_are_rounded_up_to_a_page_and_tell_windows_apart)
{
	static struct windows w;

	for (uint64_t i = 1; i <= 3; i++)
		windows_add(&w, i, 1);
	assert_int_equal(windows_quantile(&w, 50), 2);
	assert_int_equal(windows_quantile(&w, 67), 3);
	for (uint64_t x = 0; x < 72; x++)
		for (uint64_t y = x + 1 + x / 32; y < 144; y++) {
			memset(&w, 0, sizeof(w));
			windows_add(&w, x, 1);
			windows_add(&w, y, 1);
			assert_int_equal(windows_quantile(&w, 50), x);
			assert_int_equal(windows_quantile(&w, 100), y);
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_change_has_its_class),
		cmocka_unit_test(every_verdict_has_its_reason),
		cmocka_unit_test(zeros_of_a_hole_of_the_direct_map_are_never_safe),
		cmocka_unit_test(direct_map_is_found_by_its_tables),
		cmocka_unit_test(direct_map_that_does_not_prove_itself_is_none),
		cmocka_unit_test(zeros_of_a_hole_are_at_risk_in_an_image_too),
		cmocka_unit_test(windows_span_entry_and_frame),
		cmocka_unit_test(rows_tell_of_single_mappings),
		cmocka_unit_test(rows_tell_of_entries_without_a_place),
		cmocka_unit_test(entries_that_may_be_one_thing_or_another_are_unknown),
		cmocka_unit_test(large_pages_without_a_place_are_counted_as_pages),
		cmocka_unit_test(version_that_was_told_and_that_in_memory_are_compared),
		cmocka_unit_test(frames_must_be_captured_between_the_passes),
		cmocka_unit_test(tables_without_a_time_make_nothing_safe),
		cmocka_unit_test(whole_way_must_have_been_seen_before),
		cmocka_unit_test(capture_that_was_made_in_time_counts),
		cmocka_unit_test(capture_with_the_shortest_window_is_taken),
		cmocka_unit_test(capture_that_could_be_read_is_taken),
		cmocka_unit_test(later_extent_of_a_record_is_the_newer_capture),
		cmocka_unit_test(captures_are_as_long_as_state_and_time_are_the_same),
		cmocka_unit_test(entry_that_stood_around_its_frame_is_safe),
		cmocka_unit_test(around_is_not_claimed_without_both_readings),
		cmocka_unit_test(pages_of_one_extent_are_told_apart),
		cmocka_unit_test(replaced_table_is_a_reason_for_doubt),
		cmocka_unit_test(replaced_upper_table_is_a_reason_for_doubt),
		cmocka_unit_test(table_that_is_gone_takes_its_entries_along),
		cmocka_unit_test(a_root_that_is_something_else_by_then_has_no_image),
		cmocka_unit_test(processes_are_born_and_end),
		cmocka_unit_test(torn_tables_are_counted_apart),
		cmocka_unit_test(advice_is_by_what_is_at_risk),
		cmocka_unit_test(root_that_changed_hands_is_two_spaces),
		cmocka_unit_test(processes_with_one_root_are_counted_once),
		cmocka_unit_test(large_page_that_was_split_is_compared_by_page),
		cmocka_unit_test(large_page_is_judged_by_its_captures),
		cmocka_unit_test(large_page_is_compared_with_all_that_came_in_its_place),
		cmocka_unit_test(frames_and_slots_named_twice_are_counted),
		cmocka_unit_test(slots_are_doubted_where_linux_may_keep_the_page_elsewhere),
		cmocka_unit_test(second_of_a_counter_that_went_back_is_longer),
		cmocka_unit_test(entries_of_a_windows_that_is_not_known_are_never_safe),
		cmocka_unit_test(swap_cache_tells_whether_a_slot_was_written),
		cmocka_unit_test(looks_tell_zeros_that_were_not_written),
		cmocka_unit_test(the_doubt_about_slots_says_what_it_is),
		cmocka_unit_test(zeros_of_zram_are_not_safe),
		cmocka_unit_test(swap_cache_has_the_page_itself),
		cmocka_unit_test(image_has_one_moment),
		cmocka_unit_test(image_read_by_its_tables_is_not_safe_either),
		cmocka_unit_test(space_that_only_one_pass_over_an_image_found_is_not_born),
		cmocka_unit_test(image_that_was_changed_is_measured),
		cmocka_unit_test(slots_of_a_swap_file_are_safe_only_where_their_places_are_known),
		cmocka_unit_test(windows_trims_and_recalls),
		cmocka_unit_test(pages_in_the_compression_store_are_not_wrong),
		cmocka_unit_test(store_is_not_made_up),
		cmocka_unit_test(missing_second_pass_is_said),
		cmocka_unit_test(machine_without_tables_is_said),
		cmocka_unit_test(manifest_may_say_anything),
		cmocka_unit_test(hostile_tables_end_and_add_up),
		cmocka_unit_test(report_says_what_was_measured),
		cmocka_unit_test(brief_text_has_a_dozen_lines),
		cmocka_unit_test(quantiles_are_members),
		cmocka_unit_test(quantiles_are_rounded_up_to_a_page_and_tell_windows_apart),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
