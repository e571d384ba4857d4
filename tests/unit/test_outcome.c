/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `acquire` from its command line to its end, of a source that fails in its ways, or gets more
 * memory meanwhile: what it returns, and what the container says.
 */
#include "tests/unit/test.h"

#include <string.h>
#ifndef _WIN32
#include <signal.h>
#include <sys/resource.h>
#endif

#include "agent/collect/acquire/summary.h"
#include "agent/commands/commands.h"
#include "agent/shared/container/container.h"
#include "agent/shared/program/clock.h"
#include "agent/shared/program/json.h"
#include "tests/unit/fake_drv.h"
#include "tests/unit/scratch.h"

#define PAGE(n)  ((uint64_t)(n) * PAGE_SIZE)

/* Pages of RAM at first, and after it was asked where RAM is for the `grown_at`-th time. */
#define AT_FIRST 64
#define GROWN    96

static struct scratch dir;
static unsigned asked, grown_at, opened;
static bool grows;
static void (*prepare)(struct fake *f);
/* Each that is opened, and what is opened again behind it. */
static struct fake fakes[4];

static uint64_t ram(void)
{
	return grown_at && asked >= grown_at ? GROWN : AT_FIRST;
}

static enum status open_fake(const char *path, struct drv **ret, struct err *e);

static enum status maps_again(struct drv *d, struct drv_maps *ret, struct err *e)
{
	_cleanup_ranges_ struct range_list l = { 0 };
	enum status st;

	(void)d;
	asked++;
	st = range_list_add(&l, 0, PAGE(ram()) - 1, e);
	return st ? st : drv__maps_add(ret, "fake", &l, e);
}

static const struct drv_ops fake_ops = { .name = "fake",
					 .kind = DRV_DEAD,
					 .read_max = 16 * PAGE_SIZE,
					 .open = open_fake,
					 .read = fake_read,
					 .maps_again = maps_again,
					 .close = fake_close };

static enum status open_fake(const char *path, struct drv **ret, struct err *e)
{
	struct fake *f = &fakes[opened++];

	(void)path;
	(void)e;
	fake_init(f, &fake_ops, 0, PAGE(ram()) - 1);
	f->drv.info.grows = grows;
	if (prepare)
		prepare(f);
	*ret = &f->drv;
	return ST_OK;
}

static const struct drv_ops *const table[] = { &fake_ops, NULL };

static int setup(void **state)
{
	(void)state;
	scratch_init(&dir);
	drv_table = table;
	grows = false;
	prepare = NULL;
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	drv_table = drv_system_table;
	scratch_deinit(&dir);
	return 0;
}

/* `grown`: what grown_at is this time. `more`: two words of the command line. */
static enum status acquire(const char *name, unsigned grown, const char *const more[2],
			   struct err *e)
{
	static const struct command *const commands[] = { &command_acquire };
	static const struct program program = { .name = "ramseal",
						.commands = commands,
						.n_commands = ARRAY_SIZE(commands) };
	const char *words[] = { "ramseal",
				"acquire",
				"-q",
				"--fast",
				"-t1",
				"-f",
				"--no-pagefile",
				"-s",
				"fake:machine",
				more[0],
				more[1],
				"-o",
				scratch_path(&dir, name),
				NULL };
	_cleanup_cli_ struct cli cli;

	asked = opened = 0;
	grown_at = grown;
	CHECK_OK(cli_parse(&program, ARRAY_SIZE(words) - 1, (char **)(uintptr_t)words, &cli, e), e);
	return cli.command->run(&cli, e);
}

static const char *const container[] = { "--pagetables", "none" }, *const raw[] = { "-F", "raw" };

static void open_container(const char *name, struct container *ret)
{
	struct err e = ERR_INIT;

	CHECK_OK(container_open(scratch_path(&dir, name), NULL, ret, &e), &e);
	assert_int_equal(ret->end.end, RSZ_END_SEALED);
}

static json_t *end_of(const struct container *c, const char *key)
{
	return json_object_get(container_event(c, "end"), key);
}

/* One range from address 0 on. */
static void check_memory(const struct container *c, uint64_t pages)
{
	_cleanup_ranges_ struct range_list l = { 0 };
	struct err e = ERR_INIT;
	uint32_t stream;

	CHECK_OK(container_find_kind(c, RSZ_KIND_MEMORY, &stream, &e), &e);
	CHECK_OK(rsz_reader_ranges(c->reader, stream, &l, &e), &e);
	assert_int_equal(l.count, 1);
	assert_int_equal(l.at[0].first, 0);
	assert_int_equal(l.at[0].last, PAGE(pages) - 1);
}

TEST(memory_that_stays_is_complete)
{
	struct err e = ERR_INIT;
	struct container c;

	CHECK_OK(acquire("a.rsz", 0, container, &e), &e);
	open_container("a.rsz", &c);
	assert_int_equal(json_integer_value(end_of(&c, "exit_code")), EXIT_COMPLETE);
	assert_null(end_of(&c, "memory_changes"));
	check_memory(&c, AT_FIRST);
	container_close(&c);
	CHECK_OK(acquire("a.raw", 0, raw, &e), &e);
}

/* It is named, but not there, and that alone is why the acquisition has gaps. */
TEST(memory_that_was_added_and_not_acquired_is_a_gap)
{
	for (unsigned when = 1; when <= 2; when++) {
		struct err e = ERR_INIT;
		struct container c;
		json_t *missing, *range;

		CHECK_STATUS(acquire("a.rsz", when, container, &e), ST_UNREADABLE, &e);
		CHECK_HAS(e.message, "128.0 KiB of memory was added");
		open_container("a.rsz", &c);
		assert_int_equal(json_integer_value(end_of(&c, "exit_code")), EXIT_GAPS);
		check_memory(&c, AT_FIRST);
		missing = json_object_get(end_of(&c, "memory_changes"), "missing");
		assert_int_equal(json_array_size(missing), 1);
		range = json_array_get(missing, 0);
		assert_int_equal(json_integer_value(json_object_get(range, "first")),
				 PAGE(AT_FIRST));
		assert_int_equal(json_integer_value(json_object_get(range, "last")),
				 PAGE(GROWN) - 1);
		container_close(&c);
	}
}

TEST(memory_that_an_image_lacks_is_a_gap)
{
	struct err e = ERR_INIT;

	CHECK_STATUS(acquire("a.raw", 1, raw, &e), ST_UNREADABLE, &e);
	CHECK_HAS(e.message, "128.0 KiB of memory was added");
	assert_true(scratch_has(&dir, "a.raw"));
}

/* While the memory was read, or only after it, while page tables were. */
TEST(memory_that_was_added_is_acquired)
{
	grows = true;
	for (unsigned when = 1; when <= 2; when++) {
		struct err e = ERR_INIT;
		struct container c;

		CHECK_OK(acquire("a.rsz", when, container, &e), &e);
		open_container("a.rsz", &c);
		assert_int_equal(json_integer_value(end_of(&c, "exit_code")), EXIT_COMPLETE);
		check_memory(&c, GROWN);
		container_close(&c);
	}
}

/* Another that names RAM, and more of it. */
static void add_map(struct fake *f)
{
	struct range_list l = { 0 };
	struct err e = ERR_INIT;

	CHECK_OK(range_list_add(&l, 0, PAGE(GROWN) - 1, &e), &e);
	CHECK_OK(drv__add_map(&f->drv, "other", &l, &e), &e);
}

TEST(every_map_is_recorded)
{
	struct err e = ERR_INIT;
	struct container c;
	json_t *maps, *other;

	prepare = add_map;
	CHECK_OK(acquire("a.rsz", 0, container, &e), &e);
	open_container("a.rsz", &c);
	maps = json_object_get(container_event(&c, "begin"), "maps");
	assert_int_equal(json_array_size(maps), 2);
	other = json_array_get(maps, 1);
	assert_string_equal(json_string_value(json_object_get(other, "origin")), "other");
	assert_int_equal(json_integer_value(json_object_get(other, "bytes")), PAGE(GROWN));
	container_close(&c);
}

static void offer_no_page_5(struct fake *f)
{
	f->fails = fake_fails_at_k;
	f->k = 5;
	f->exact = f->not_offered = true;
}

TEST(pages_that_are_not_offered_are_a_gap)
{
	struct err e = ERR_INIT;

	prepare = offer_no_page_5;
	CHECK_STATUS(acquire("a.rsz", 0, container, &e), ST_UNREADABLE, &e);
	CHECK_HAS(e.message, "0 pages were unreadable and 1 not offered by the source");
}

static void lose_something(struct fake *f)
{
	f->drv.info.lost = "its end is missing";
}

static void be_silent(struct fake *f)
{
	f->drv.info.silent = true;
}

/* All pages were read, and still it is not known to be all. */
TEST(source_that_does_not_tell_all_is_a_gap)
{
	struct err e = ERR_INIT;

	prepare = lose_something;
	CHECK_STATUS(acquire("a.rsz", 0, container, &e), ST_UNREADABLE, &e);
	CHECK_HAS(e.message, "its end is missing");
	CHECK_STATUS(acquire("a.raw", 0, raw, &e), ST_UNREADABLE, &e);
	prepare = be_silent;
	CHECK_STATUS(acquire("a.rsz", 0, container, &e), ST_UNREADABLE, &e);
	CHECK_HAS(e.message, "unreadable pages cannot be detected");
	CHECK_STATUS(acquire("a.raw", 0, raw, &e), ST_UNREADABLE, &e);
}

static void die_at_page_40(struct fake *f)
{
	f->dies_at = 40;
	f->exact = true;
}

/* How the pages are told that are missing: all of them, for one reason. */
static void check_skipped(const struct container *c, uint64_t pages, const char *reason)
{
	json_t *list = json_object_get(end_of(c, "memory"), "skipped"), *gap;

	assert_int_equal(json_array_size(list), 1);
	gap = json_array_get(list, 0);
	assert_int_equal(json_integer_value(json_object_get(gap, "pages")), pages);
	assert_string_equal(json_string_value(json_object_get(gap, "reason")), reason);
}

TEST(source_that_fails_midway_is_told)
{
	struct err e = ERR_INIT;
	struct container c;

	prepare = die_at_page_40;
	CHECK_STATUS(acquire("a.rsz", 0, container, &e), ST_SOURCE_FAILED, &e);
	open_container("a.rsz", &c);
	assert_int_equal(json_integer_value(end_of(&c, "exit_code")), EXIT_SOURCE_FAILED);
	check_skipped(&c, AT_FIRST - 40, "the source had failed");
	container_close(&c);
	CHECK_STATUS(acquire("a.raw", 0, raw, &e), ST_SOURCE_FAILED, &e);
}

#ifndef _WIN32
/* The source could have given all of it. */
TEST(what_a_full_disk_has_no_room_for_is_not_the_sources_fault)
{
	struct rlimit was, limit;
	struct err e = ERR_INIT;
	struct container c;

	signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &was), 0);
	limit = was;
	limit.rlim_cur =
		900 << 10; /* less than the memory, and the room that is kept for the end */
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
	CHECK_STATUS(acquire("a.rsz", 0, container, &e), ST_OUTPUT, &e);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &was), 0);
	CHECK_HAS(e.message, "sealed, but without 64 of 64 pages of memory");
	open_container("a.rsz", &c);
	assert_int_equal(json_integer_value(end_of(&c, "exit_code")), EXIT_OUTPUT);
	check_skipped(&c, AT_FIRST, "interrupted");
	container_close(&c);
}
#endif

/* Somebody may set the clock meanwhile, which is what the day in 1970 stands for. */
TEST(duration_is_none_of_the_wall_clock)
{
	const struct json_field none = { .key = NULL };
	const struct summary_begun begun = { .wall = NS_PER_SECOND, .mono = clock_mono_ns() };
	struct cli cli = { .argc = 0 };
	struct summary s = { .cli = &cli };

	summary_tell(&s, ST_OK, NULL, begun, &none, "told");
	assert_string_equal(json_string_value(json_object_get(s.doc, "begin")),
			    "1970-01-01T00:00:01.000000000Z");
	assert_in_range(json_integer_value(json_object_get(s.doc, "duration_ns")), 0,
			86400 * NS_PER_SECOND);
	json_decref(s.doc);
}

#define OUTCOME_TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		OUTCOME_TEST(memory_that_stays_is_complete),
		OUTCOME_TEST(memory_that_was_added_and_not_acquired_is_a_gap),
		OUTCOME_TEST(memory_that_an_image_lacks_is_a_gap),
		OUTCOME_TEST(memory_that_was_added_is_acquired),
		OUTCOME_TEST(every_map_is_recorded),
		OUTCOME_TEST(pages_that_are_not_offered_are_a_gap),
		OUTCOME_TEST(source_that_does_not_tell_all_is_a_gap),
		OUTCOME_TEST(source_that_fails_midway_is_told),
#ifndef _WIN32
		OUTCOME_TEST(what_a_full_disk_has_no_room_for_is_not_the_sources_fault),
#endif
		OUTCOME_TEST(duration_is_none_of_the_wall_clock),
	};

	return cmocka_run_group_tests_name("outcome", tests, NULL, NULL);
}
