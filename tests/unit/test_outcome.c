/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `acquire` from its command line to its end, of a machine that gets more memory meanwhile: what it
 * returns, and what the container says.
 */
#include "tests/unit/test.h"

#include <string.h>

#include "agent/commands/commands.h"
#include "agent/container/container.h"
#include "tests/unit/fake_drv.h"
#include "tests/unit/scratch.h"

#define PAGE(n)  ((uint64_t)(n)*PAGE_SIZE)

/* Pages of RAM at first, and after it was asked where RAM is for the `grown_at`-th time. */
#define AT_FIRST 64
#define GROWN    96

static struct scratch dir;
static unsigned asked, grown_at, opened;
static bool grows;
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

#define OUTCOME_TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		OUTCOME_TEST(memory_that_stays_is_complete),
		OUTCOME_TEST(memory_that_was_added_and_not_acquired_is_a_gap),
		OUTCOME_TEST(memory_that_an_image_lacks_is_a_gap),
		OUTCOME_TEST(memory_that_was_added_is_acquired),
	};

	return cmocka_run_group_tests_name("outcome", tests, NULL, NULL);
}
