/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is called safe, for every moment at which something can change: a machine of two mappings,
 * two frames and a slot, whose tables and pages are read in every order, page by page, while one
 * thing happens at one of the moments between two readings. Whether a mapping is right is known
 * from the machine, and what can be known of it from the readings that were made; both are worked
 * out here, in the plainest way.
 */
#include "tests/unit/test.h"

#include "agent/shared/program/clock.h"
#include "tests/unit/sealed_machine.h"

#define TICK     (2 * SECOND) /* from one reading to the next: longer than a slot takes to settle */
#define OTHER_PT UINT64_C(0x110000)
#define THE_SLOT 5

/* What is read at one go. Tables are read from the root down, or from the page tables up. */
enum event { BEFORE, FIRST, MIDDLE, LAST, AFTER, FRAME_0, FRAME_1, SLOT_5, EVENTS };

static const uint64_t tables[] = { ROOT, 0x101000, 0x102000, 0x103000, OTHER_PT };

#define TABLES ARRAY_SIZE(tables)

/* The machine before the change, and behind it. */
static struct machine world[2];

struct change_kind {
	const char *name;
	uint64_t entry[2][2]; /* of VA(0) and VA(1), before and behind */
	uint64_t way[2];      /* the page table, before and behind */
};

static const struct change_kind kinds[] = {
	{ "a frame is given away",
	  { { FRAME(0) | P, 0 }, { 0, FRAME(0) | P } },
	  { 0x103000, 0x103000 } },
	{ "a page moves", { { FRAME(0) | P, 0 }, { FRAME(1) | P, 0 } }, { 0x103000, 0x103000 } },
	{ "two pages change places",
	  { { FRAME(0) | P, FRAME(1) | P }, { FRAME(1) | P, FRAME(0) | P } },
	  { 0x103000, 0x103000 } },
	{ "a page goes to its slot, and another takes the frame",
	  { { FRAME(0) | P, 0 }, { SWAP(THE_SLOT), FRAME(0) | P } },
	  { 0x103000, 0x103000 } },
	{ "a page comes from its slot",
	  { { SWAP(THE_SLOT), 0 }, { FRAME(0) | P, 0 } },
	  { 0x103000, 0x103000 } },
	{ "a page table is replaced",
	  { { FRAME(0) | P, FRAME(1) | P }, { FRAME(1) | P, FRAME(0) | P } },
	  { 0x103000, OTHER_PT } },
	{ "a page table is replaced by one like it",
	  { { FRAME(0) | P, FRAME(1) | P }, { FRAME(0) | P, FRAME(1) | P } },
	  { 0x103000, OTHER_PT } },
};

static void make_worlds(const struct change_kind *k)
{
	for (size_t w = 0; w < 2; w++) {
		world[w] = (struct machine){ .levels = 4, .next = ROOT + 0x1000 };
		machine_page(&world[w], ROOT);
		machine_entry(&world[w], ROOT, VA(0), 1);
		machine_page(&world[w], OTHER_PT);
		machine_u64(&world[w], 0x102000, k->way[w] | P);
		for (size_t i = 0; i < 2; i++)
			machine_u64(&world[w], k->way[w] + VA(i) / 512, k->entry[w][i]);
	}
	/*
	 * A page table that takes another's place has been filled before; so is what it replaces.
	 */
	if (k->way[0] != k->way[1])
		for (size_t w = 0; w < 2; w++)
			for (size_t i = 0; i < 2; i++)
				machine_u64(&world[w], k->way[!w] + VA(i) / 512, k->entry[!w][i]);
}

/*
 * The schedule: events, and when each of their readings was made
 */

struct schedule {
	enum event at[8];
	size_t count;
	bool up; /* the image's tables are read from the page tables up */
};

struct reading {
	enum event event;
	uint64_t pa; /* or the slot's offset */
	size_t tick;
};

static struct reading readings[64];
static size_t n_readings;
static size_t change_at, back_at; /* ticks; what is read at that tick or behind it sees it */

static bool is_tables(enum event e)
{
	return e <= AFTER;
}

/* The memory has them: all but those of the passes. */
static bool is_image(enum event e)
{
	return e == FIRST || e == MIDDLE || e == LAST;
}

static void lay_out(const struct schedule *s)
{
	n_readings = 0;
	for (size_t i = 0; i < s->count; i++) {
		const enum event e = s->at[i];

		for (size_t k = 0; k < (is_tables(e) ? TABLES : 1); k++, n_readings++)
			readings[n_readings] = (struct reading){
				.event = e,
				.pa = is_tables(e)
					      ? tables[is_image(e) && s->up ? TABLES - 1 - k : k]
				      : e == SLOT_5 ? THE_SLOT * PAGE_SIZE
						    : FRAME(e - FRAME_0),
				.tick = n_readings,
			};
	}
}

static size_t world_at(size_t tick)
{
	return tick >= change_at && tick < back_at;
}

/* When each reading began and ended, if the clock of the program says so (counter_goes_back()). */
static struct rsz_times moments[64];
static bool by_clock;

static uint64_t time_of(size_t tick)
{
	return by_clock ? moments[tick].start : 1000 + tick * TICK;
}

/*
 * The container
 */

static void seal_reading(uint32_t stream, const struct reading *r)
{
	const uint8_t *bytes =
		is_tables(r->event) ? page_of(&world[world_at(r->tick)], r->pa) : NULL;

	build_chunk(b, stream, time_of(r->tick));
	build_extent(b, r->pa, is_tables(r->event) ? "t" : "d");
	if (by_clock)
		b->chunk.end = b->extents[0].end = moments[r->tick].end;
	if (bytes)
		memcpy(b->data, bytes, PAGE_SIZE);
	build_put(b);
}

static void seal_events(uint32_t stream, unsigned events)
{
	for (size_t i = 0; i < n_readings; i++)
		if (events >> readings[i].event & 1)
			seal_reading(stream, &readings[i]);
}

static void seal_schedule(void)
{
	struct err e = ERR_INIT;
	uint32_t file;

	b = calloc(1, sizeof(*b));
	build_begin(b, 1, 1);
	seal_events(build_stream(b, RSZ_KIND_TABLES_BEFORE, "before"), 1U << BEFORE);
	seal_events(build_stream(b, RSZ_KIND_MEMORY, "memory"),
		    1U << FIRST | 1U << MIDDLE | 1U << LAST | 1U << FRAME_0 | 1U << FRAME_1);
	CHECK_OK(rsz_writer_stream(b->writer, RSZ_KIND_PAGEFILE, "/dev/vdb", slots_meta, &file, &e),
		 &e);
	build_chunk(b, file, 500);
	build_extent(b, 0, "----------------");
	build_put(b);
	seal_events(file, 1U << SLOT_5);
	seal_events(build_stream(b, RSZ_KIND_TABLES_AFTER, "after"), 1U << AFTER);
	seal_manifest();
	build_close(b);
}

static struct smear_row rows[16];
static size_t n_rows;

static enum status keep_row(void *context, const struct smear_row *row, struct err *e)
{
	(void)context;
	(void)e;
	assert_true(n_rows < ARRAY_SIZE(rows));
	rows[n_rows++] = *row;
	return ST_OK;
}

static void measure(void)
{
	struct smear_plan plan = { .row = keep_row, .row_pid = 7, .cached = 1 };
	struct err e = ERR_INIT;
	struct rsz_reader *r;
	struct mem_blob blob;
	json_t *manifest;
	struct smear s;

	seal_schedule();
	mem_blob_init(&blob, b->out.at, b->out.len);
	CHECK_OK(rsz_reader_open(&blob.blob, RSZ_TRUST_NOTHING, &r, &e), &e);
	manifest = read_manifest(r);
	plan.in = &blob.blob;
	plan.reader = r;
	plan.manifest = manifest;
	n_rows = 0;
	CHECK_OK(smear_analyse(&plan, &s, &e), &e);
	smear_deinit(&s);
	json_decref(manifest);
	rsz_reader_close(r);
	build_deinit(b);
	free(b);
}

/*
 * What is true, and what can be known
 */

/* The tables on the way and the entry, as one reading of them shows it; and when that was. */
struct seen {
	bool there;
	uint64_t way[4];
	uint64_t raw;
	size_t first, last; /* ticks */
};

static struct seen see(enum event e, uint64_t va)
{
	struct seen s = { .there = true, .first = SIZE_MAX };
	uint64_t table = ROOT;

	for (unsigned level = 4; level; level--) {
		const struct reading *r = NULL;

		s.way[level - 1] = table;
		for (size_t i = 0; i < n_readings; i++)
			if (readings[i].event == e && readings[i].pa == table)
				r = &readings[i];
		if (!r)
			return (struct seen){ 0 };
		s.first = r->tick < s.first ? r->tick : s.first;
		s.last = r->tick > s.last ? r->tick : s.last;
		s.raw = machine_get(&world[world_at(r->tick)],
				    table + 8 * (va >> (3 + 9 * level) & 511));
		table = s.raw & ~UINT64_C(0xfff);
	}
	return s;
}

static bool same(const struct seen *a, const struct seen *x)
{
	return a->there && x->there && !memcmp(a->way, x->way, sizeof(a->way)) && a->raw == x->raw;
}

static bool captures(const struct reading *r, uint64_t raw)
{
	return !is_tables(r->event) &&
	       (raw & 1 ? r->event != SLOT_5 && r->pa == (raw & ~UINT64_C(0xfff))
			: r->event == SLOT_5 && raw == SWAP(THE_SLOT));
}

/* Observations that a copy's entry may rest on, in their order. */
static size_t list(enum copy copy, uint64_t va, struct seen ret[static 5], size_t *mine)
{
	static const enum event order[] = { BEFORE, FIRST, MIDDLE, LAST, AFTER };
	size_t n = 0;

	for (size_t i = 0; i < ARRAY_SIZE(order); i++) {
		const struct seen s = see(order[i], va);

		if ((is_image(order[i]) && copy != COPY_IMAGE) || !s.there)
			continue;
		if (order[i] == (copy == COPY_BEFORE ? BEFORE : copy == COPY_IMAGE ? LAST : AFTER))
			*mine = n;
		ret[n++] = s;
	}
	return n;
}

/* Two observations around the capture that agree with the entry, and all between them and it. */
static bool can_be_known(enum copy copy, uint64_t va, const struct reading *r)
{
	struct seen s[5];
	size_t mine = 0, n = list(copy, va, s, &mine);

	for (size_t i = 0; i <= mine; i++) {
		for (size_t k = mine; k < n; k++) {
			bool all = true;

			for (size_t x = i; x <= k; x++)
				all &= same(&s[x], &s[mine]);
			if (all && s[i].last < r->tick && r->tick < s[k].first)
				return true;
		}
	}
	return false;
}

/* Whose page was there when it was captured. */
static bool is_right(uint64_t va, uint64_t raw, const struct reading *r)
{
	struct machine *w = &world[world_at(r->tick)];
	uint64_t table = ROOT;

	for (unsigned level = 4; level > 1; level--)
		table = machine_get(w, table + 8 * (va >> (3 + 9 * level) & 511)) &
			~UINT64_C(0xfff);
	return machine_get(w, table + va / 512 % 4096) == raw;
}

static const struct reading *taken_at(uint64_t start)
{
	for (size_t i = 0; i < n_readings; i++)
		if (time_of(readings[i].tick) == start)
			return &readings[i];
	return NULL;
}

static struct {
	size_t rows, safe, older;
	size_t wrong, wrong_newest; /* of the image's */
} sums;

static void count(const struct smear_row *row, const struct reading *chosen)
{
	const struct reading *newest = chosen;

	for (size_t i = 0; i < n_readings; i++)
		if (captures(&readings[i], row->raw))
			newest = &readings[i];
	sums.rows++;
	sums.safe += row->verdict == VERDICT_SAFE;
	sums.older += row->older != NULL;
	assert_int_equal(row->older != NULL, newest != chosen);
	if (row->copy != COPY_IMAGE)
		return;
	sums.wrong += !is_right(row->va, row->raw, chosen);
	sums.wrong_newest += !is_right(row->va, row->raw, newest);
}

static void check_row(const struct change_kind *k, const struct smear_row *row)
{
	const struct reading *chosen = taken_at(row->content.start);
	bool known = false;

	if (!row->captured)
		return;
	assert_non_null(chosen);
	assert_true(captures(chosen, row->raw));
	for (size_t i = 0; i < n_readings; i++)
		known |= captures(&readings[i], row->raw) &&
			 can_be_known(row->copy, row->va, &readings[i]);
	if (row->verdict == VERDICT_SAFE && !is_right(row->va, row->raw, chosen))
		fail_msg("%s at %zu: safe, and wrong", k->name, change_at);
	if ((row->verdict == VERDICT_SAFE) != known)
		fail_msg("%s at %zu, copy %d: %s, and could be known: %d", k->name, change_at,
			 (int)row->copy, verdict_name(row->verdict), known);
	count(row, chosen);
}

/*
 * Every order
 */

typedef void schedule_fn(const struct schedule *s);

/* All orders of what is left of `events`, a bit each time it is to come, between both passes. */
static void permute(struct schedule *s, unsigned left[static EVENTS], schedule_fn *fn)
{
	bool any = false;

	for (size_t e = 0; e < EVENTS; e++) {
		if (!left[e] || (e == MIDDLE && left[FIRST]) ||
		    (e == LAST && (left[FIRST] || left[MIDDLE])))
			continue;
		any = true;
		left[e]--;
		s->at[s->count++] = (enum event)e;
		permute(s, left, fn);
		s->count--;
		left[e]++;
	}
	if (any)
		return;
	s->at[s->count++] = AFTER;
	for (int up = 0; up < 2; up++) {
		s->up = up;
		fn(s);
	}
	s->count--;
}

static void every_change(void)
{
	static size_t rows_begun;

	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		make_worlds(&kinds[i]);
		change_at = 1 + rows_begun++ % test_step();
		for (; change_at < n_readings; change_at += test_step()) {
			measure();
			for (size_t r = 0; r < n_rows; r++)
				check_row(&kinds[i], &rows[r]);
		}
		machine_free(&world[0]);
		machine_free(&world[1]);
	}
}

static void every_moment(const struct schedule *s)
{
	lay_out(s);
	every_change();
}

/* What was read at another tick than the order of records says: by a reader beside the first. */
static void move_in_time(struct reading *moved, size_t tick)
{
	for (size_t i = 0; i < n_readings; i++)
		readings[i].tick -= readings[i].tick > moved->tick;
	for (size_t i = 0; i < n_readings; i++)
		readings[i].tick += &readings[i] != moved && readings[i].tick >= tick;
	moved->tick = tick;
}

static struct reading *find_reading(enum event e)
{
	size_t i = 0;

	while (readings[i].event != e)
		i++;
	return &readings[i];
}

/* Anywhere between the passes: before, behind, and while the image's tables are read. */
static void every_moment_beside(const struct schedule *s)
{
	lay_out(s);
	for (size_t tick = TABLES; tick < n_readings - TABLES; tick += 2) {
		lay_out(s);
		move_in_time(find_reading(FRAME_0), tick);
		every_change();
	}
}

static void run(unsigned left[static EVENTS], schedule_fn *fn)
{
	struct schedule s = { .at = { BEFORE }, .count = 1 };

	set_up_machine();
	back_at = SIZE_MAX;
	memset(&sums, 0, sizeof(sums));
	permute(&s, left, fn);
	tear_down_machine();
}

/* Memory in any order: each way that needs no first reading. */
TEST(one_change_at_any_moment_with_tables_read_once)
{
	unsigned left[EVENTS] = { [LAST] = 1, [FRAME_0] = 1, [FRAME_1] = 1, [SLOT_5] = 1 };

	run(left, every_moment);
	assert_true(sums.safe > 0 && sums.safe < sums.rows);
	assert_int_equal(sums.older, 0);
}

/*
 * Several readers: a frame is captured at any moment beside the tables, and stands in the container
 * where its address has it.
 */
TEST(one_change_at_any_moment_with_two_readers)
{
	unsigned left[EVENTS] = { [LAST] = 1, [FRAME_0] = 1 };

	run(left, every_moment_beside);
	assert_true(sums.safe > 0 && sums.safe < sums.rows);
}

/* Memory by its tables: they are read twice. */
TEST(one_change_at_any_moment_with_tables_read_twice)
{
	unsigned left[EVENTS] = { [FIRST] = 1, [LAST] = 1, [FRAME_0] = 1, [SLOT_5] = 1 };

	run(left, every_moment);
	assert_true(sums.safe > 0 && sums.safe < sums.rows);
}

/* And three times, so that some of the readings may agree and others may not. */
TEST(one_change_at_any_moment_with_tables_read_three_times)
{
	unsigned left[EVENTS] = {
		[FIRST] = 1, [MIDDLE] = 1, [LAST] = 1, [FRAME_0] = 1, [SLOT_5] = 1
	};

	run(left, every_moment);
	assert_true(sums.safe > 0 && sums.safe < sums.rows);
}

/* A frame is captured a second time: the capture that is taken is not worse than the newest. */
TEST(one_change_at_any_moment_with_a_frame_captured_again)
{
	unsigned left[EVENTS] = { [FIRST] = 1, [LAST] = 1, [FRAME_0] = 2 };

	run(left, every_moment);
	assert_true(sums.older > 0);
	assert_true(sums.wrong < sums.wrong_newest);
}

TEST(one_change_at_any_moment_with_a_slot_captured_again)
{
	unsigned left[EVENTS] = { [LAST] = 1, [FRAME_0] = 1, [SLOT_5] = 2 };

	run(left, every_moment);
	assert_true(sums.older > 0);
	assert_true(sums.wrong <= sums.wrong_newest);
}

/*
 * Changed, and changed back: the limit that METHOD.md states is all that is left. Something that is
 * safe and wrong changed and changed back between two observations that follow each other.
 */

static bool was_observed(enum copy copy, uint64_t va)
{
	struct seen s[5];
	size_t mine = 0, n = list(copy, va, s, &mine);

	for (size_t i = 0; i < n; i++)
		if (!same(&s[i], &s[mine]))
			return true;
	return false;
}

static void there_and_back(const struct schedule *s)
{
	lay_out(s);
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		make_worlds(&kinds[i]);
		for (change_at = 1; change_at < n_readings; change_at += 2 * test_step()) {
			for (back_at = change_at + 1; back_at < n_readings; back_at += 2) {
				measure();
				for (size_t r = 0; r < n_rows; r++) {
					const struct reading *t = taken_at(rows[r].content.start);

					if (rows[r].verdict != VERDICT_SAFE)
						continue;
					if (is_right(rows[r].va, rows[r].raw, t))
						continue;
					sums.wrong++;
					assert_false(was_observed(rows[r].copy, rows[r].va));
				}
			}
		}
		machine_free(&world[0]);
		machine_free(&world[1]);
	}
	back_at = SIZE_MAX;
}

TEST(change_and_change_back_must_both_be_unseen)
{
	unsigned left[EVENTS] = { [FIRST] = 1, [LAST] = 1, [FRAME_0] = 1 };

	run(left, there_and_back);
	assert_true(sums.wrong > 0); /* it is a limit */
}

/*
 * A counter that goes back at any moment: what is called safe is right all the same, and there is
 * as much of it as with a sound one.
 */

#define STEP_BACK 7000000 /* a few readings, which take a millisecond each */

static uint64_t asked, steps_at; /* how often the counter was; when it goes back */

static uint64_t counter_that_goes_back(void)
{
	const uint64_t now = NS_PER_SECOND + 1000000 * asked;

	return asked++ < steps_at ? now : now - STEP_BACK;
}

static uint64_t tick_of_it(void)
{
	return (NS_PER_SECOND + 1000000 * asked) / 16000000 * 16000000;
}

static void read_by_the_clock(void)
{
	clock__forget();
	asked = 0;
	for (size_t i = 0; i < n_readings; i++) {
		moments[i].start = clock_mono_ns();
		moments[i].end = clock_mono_ns();
	}
}

static size_t count_safe(const struct change_kind *k)
{
	size_t n = 0;

	measure();
	for (size_t i = 0; i < n_rows; i++) {
		if (rows[i].verdict != VERDICT_SAFE)
			continue;
		n++;
		if (!is_right(rows[i].va, rows[i].raw, taken_at(rows[i].content.start)))
			fail_msg("%s at %zu: safe, and wrong", k->name, change_at);
	}
	return n;
}

static void counter_goes_back(const struct schedule *s)
{
	lay_out(s);
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i += 2 * test_step()) {
		make_worlds(&kinds[i]);
		for (change_at = 1 + s->count % 3; change_at < n_readings; change_at += 3) {
			size_t sound;

			steps_at = UINT64_MAX;
			read_by_the_clock();
			sound = count_safe(&kinds[i]);
			steps_at = 2 * (change_at + 1);
			read_by_the_clock();
			assert_int_equal(count_safe(&kinds[i]), sound);
			sums.safe += sound;
		}
		machine_free(&world[0]);
		machine_free(&world[1]);
	}
}

TEST(one_change_beside_a_counter_that_goes_back)
{
	unsigned left[EVENTS] = { [FIRST] = 1, [LAST] = 1, [FRAME_0] = 1, [FRAME_1] = 1 };

	clock__counter = counter_that_goes_back;
	clock__tick = tick_of_it;
	by_clock = true;
	run(left, counter_goes_back);
	assert_true(sums.safe > 0);
	by_clock = false;
	clock__counter = clock__counter_ns;
	clock__tick = clock__tick_ns;
	clock__forget();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_change_at_any_moment_with_tables_read_once),
		cmocka_unit_test(one_change_at_any_moment_with_two_readers),
		cmocka_unit_test(one_change_at_any_moment_with_tables_read_twice),
		cmocka_unit_test(one_change_at_any_moment_with_tables_read_three_times),
		cmocka_unit_test(one_change_at_any_moment_with_a_frame_captured_again),
		cmocka_unit_test(one_change_at_any_moment_with_a_slot_captured_again),
		cmocka_unit_test(change_and_change_back_must_both_be_unseen),
		cmocka_unit_test(one_change_beside_a_counter_that_goes_back),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
