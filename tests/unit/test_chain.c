/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/test.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#include "tests/gen/images.h"
#include "tests/unit/fake_drv.h"

#define PAGES 600 /* more than one retry of the chain */
#define LAST  (PAGES * PAGE_SIZE - 1)

static struct fake one, two, three;
static size_t opened;
static uint8_t buffer[PAGES * PAGE_SIZE];
static struct page_status status[PAGES];

/* The fakes outlive the chain; opening only hands them over. */
static enum status open_one(const char *path, struct drv **ret, struct err *e)
{
	*ret = &one.drv;
	opened++;
	return ST_OK;
}

static enum status open_two(const char *path, struct drv **ret, struct err *e)
{
	*ret = &two.drv;
	opened++;
	return ST_OK;
}

static enum status open_three(const char *path, struct drv **ret, struct err *e)
{
	*ret = &three.drv;
	opened++;
	return ST_OK;
}

static enum status open_locked(const char *path, struct drv **ret, struct err *e)
{
	return err_set(e, ST_NO_PRIVILEGE, "%s: locked", path);
}

static enum status open_absent(const char *path, struct drv **ret, struct err *e)
{
	return err_set(e, ST_NO_SOURCE, "%s: absent", path);
}

#define OPS(name_, open_)                                                                          \
	{ .name = (name_),                                                                         \
	  .default_path = "/dev/" name_,                                                           \
	  .automatic = true,                                                                       \
	  .read_max = 64 * PAGE_SIZE,                                                              \
	  .open = (open_),                                                                         \
	  .read = fake_read,                                                                       \
	  .close = fake_close }

static const struct drv_ops one_ops = OPS("one", open_one), two_ops = OPS("two", open_two),
			    three_ops = OPS("three", open_three),
			    locked_ops = OPS("locked", open_locked),
			    absent_ops = OPS("absent", open_absent);
static const struct drv_ops manual_ops = { .name = "manual", .open = open_absent };

static const struct drv_ops *const all[] = { &absent_ops, &one_ops,   &manual_ops,
					     &two_ops,    &three_ops, NULL };

static int setup(void **state)
{
	(void)state;
	fake_init(&one, &one_ops, 0, LAST);
	fake_init(&two, &two_ops, 0, LAST);
	fake_init(&three, &three_ops, 0, LAST);
	memset(buffer, 0xAA, sizeof(buffer));
	memset(status, 0xAA, sizeof(status));
	opened = 0;
	return 0;
}

/* Not all of them were opened, and closed. */
static int teardown(void **state)
{
	(void)state;
	fake_deinit(&one);
	fake_deinit(&two);
	fake_deinit(&three);
	return 0;
}

static struct drv *open_all(void)
{
	struct err e = ERR_INIT;
	struct drv *d = NULL;

	CHECK_OK(chain_open(all, &d, &e), &e);
	drv_note_parts(d, true);
	return d;
}

static void check_data(size_t from, size_t to)
{
	uint8_t want[PAGE_SIZE];

	for (size_t i = from; i < to; i++) {
		assert_int_equal(status[i].state, PAGE_DATA);
		pattern(want, i * PAGE_SIZE, PAGE_SIZE);
		assert_memory_equal(buffer + i * PAGE_SIZE, want, PAGE_SIZE);
	}
}

static void check_part(const struct drv *d, size_t n, const char *source, uint64_t first_page,
		       uint64_t last_page)
{
	size_t count = 0;
	const struct drv_part *p = drv_parts(d, &count);

	assert_in_range(n, 0, count - 1);
	assert_string_equal(p[n].source, source);
	assert_int_equal(p[n].range.first, first_page * PAGE_SIZE);
	assert_int_equal(p[n].range.last, (last_page + 1) * PAGE_SIZE - 1);
}

static size_t count_parts(const struct drv *d)
{
	size_t count = 0;

	drv_parts(d, &count);
	return count;
}

TEST(first_source_alone_is_asked_while_it_works)
{
	struct err e = ERR_INIT;
	struct drv *d = open_all();

	for (size_t i = 0; i < PAGES; i += 100)
		CHECK_OK(drv_read_pages(d, i * PAGE_SIZE, buffer + i * PAGE_SIZE, 100, status + i,
					&e),
			 &e);
	check_data(0, PAGES);
	assert_int_equal(opened, 1);
	assert_int_equal(count_parts(d), 1);
	check_part(d, 0, "one", 0, PAGES - 1);
	drv_close(d);
}

static void withhold_page_7(struct drv *d, uint64_t addr, size_t pages, struct page_status *ret)
{
	(void)d;
	for (size_t i = 0; i < pages; i++)
		ret[i] = addr / PAGE_SIZE + i == 7
				 ? (struct page_status){ PAGE_SKIPPED, SKIP_NOT_MAPPED }
				 : (struct page_status){ PAGE_DATA, 0 };
}

/* A page that must not be read is nothing that the next source could help with. */
TEST(next_source_is_opened_when_there_is_something_left_to_read)
{
	struct drv_ops knows = one_ops;
	struct err e = ERR_INIT;
	struct drv *d;

	knows.withhold = withhold_page_7;
	one.drv.ops = &knows;
	one.drv.info.withholds = true;
	d = open_all();
	assert_true(d->info.withholds);
	CHECK_OK(drv_read_pages(d, 0, buffer, 20, status, &e), &e);
	check_data(0, 7);
	check_data(8, 20);
	assert_int_equal(status[7].state, PAGE_SKIPPED);
	assert_int_equal(opened, 1);

	one.fails = fake_fails_at_k;
	one.k = 9;
	CHECK_OK(drv_read_pages(d, 0, buffer, 20, status, &e), &e);
	check_data(8, 20);
	assert_int_equal(status[7].state, PAGE_SKIPPED);
	assert_int_equal(opened, 2);
	assert_int_equal(two.bytes, PAGE_SIZE);
	drv_close(d);
}

static struct drv_result fail_otherwise_behind_page_7(struct drv *d, uint64_t addr, void *buf,
						      size_t len)
{
	struct drv_result r = fake_read(d, addr, buf, len);

	if (r.error && (addr + r.good) / PAGE_SIZE > 7)
		r.error = 5;
	return r;
}

/*
 * As /dev/mem behind /proc/kcore: what the one cannot read because Linux's direct map lacks it, the
 * other cannot read either, and is not even opened for it.
 */
TEST(hole_of_the_direct_map_is_not_asked_of_who_reads_through_that)
{
	struct drv_ops fails = one_ops, mapped = two_ops;
	const struct drv_ops *const table[] = { &fails, &mapped, &three_ops, NULL };
	struct err e = ERR_INIT;
	struct drv *d = NULL;

	fails.by_direct_map = mapped.by_direct_map = true;
	fails.read = fail_otherwise_behind_page_7;
	one.drv.ops = &fails;
	two.drv.ops = &mapped;
	one.exact = true;
	one.fails = fake_fails_at_k_and_k2;
	one.k = one.k2 = 5;
	CHECK_OK(chain_open(table, &d, &e), &e);
	CHECK_OK(drv_read_pages(d, 0, buffer, 20, status, &e), &e);
	assert_int_equal(opened, 1);
	assert_int_equal(status[5].state, PAGE_UNREADABLE);
	assert_int_equal(status[5].detail, DRV_UNMAPPED);

	/* Another page opens it; and who comes next may have a map of its own. */
	one.k2 = 9;
	CHECK_OK(drv_read_pages(d, 0, buffer, 20, status, &e), &e);
	check_data(0, 20);
	assert_int_equal(opened, 3);
	assert_int_equal(two.bytes, PAGE_SIZE);
	assert_int_equal(three.bytes, PAGE_SIZE);
	drv_close(d);
}

/*
 * The next source continues where the first failed, and nowhere else. In AVML one bad page ends a
 * source, and the next one starts over (snapshot.rs, 633424c, lines 276-307).
 */
TEST(next_source_is_asked_for_what_failed_and_nothing_else)
{
	struct err e = ERR_INIT;
	struct drv *d = open_all();

	one.fails = fake_fails_at_k_and_k2;
	one.exact = true;
	one.k = 0;
	one.k2 = 77;
	CHECK_OK(drv_read_pages(d, 0, buffer, 100, status, &e), &e);
	CHECK_OK(
		drv_read_pages(d, 100 * PAGE_SIZE, buffer + 100 * PAGE_SIZE, 100, status + 100, &e),
		&e);
	check_data(0, 200);
	assert_int_equal(two.bytes, 2 * PAGE_SIZE);
	assert_int_equal(count_parts(d), 4);
	check_part(d, 0, "two", 0, 0);
	check_part(d, 1, "one", 1, 76);
	check_part(d, 2, "two", 77, 77);
	check_part(d, 3, "one", 78, 199);
	drv_close(d);
}

TEST(page_that_nobody_can_read_keeps_the_first_error)
{
	struct err e = ERR_INIT;
	struct drv *d = open_all();

	one.fails = two.fails = three.fails = fake_fails_at_k;
	one.k = two.k = three.k = 5;
	two.exact = two.not_offered = true;
	CHECK_OK(drv_read_pages(d, 0, buffer, 10, status, &e), &e);
	check_data(0, 5);
	check_data(6, 10);
	assert_int_equal(status[5].state, PAGE_UNREADABLE);
	assert_int_equal(status[5].detail, FAKE_ERROR);
	drv_close(d);
}

TEST(dead_source_is_dropped_and_the_next_goes_on)
{
	struct err e = ERR_INIT;
	struct drv *d = open_all();

	one.dies_at = 300;
	one.exact = true;
	two.dies_at = 500;
	two.exact = true;
	CHECK_OK(drv_read_pages(d, 0, buffer, PAGES, status, &e), &e);
	check_data(0, PAGES);
	assert_int_equal(count_parts(d), 3);
	check_part(d, 0, "one", 0, 299);
	check_part(d, 1, "two", 300, 499);
	check_part(d, 2, "three", 500, PAGES - 1);

	/* The fakes abort if they are asked again after death. */
	CHECK_OK(drv_read_pages(d, 0, buffer, PAGES, status, &e), &e);
	check_data(0, PAGES);
	drv_close(d);
}

TEST(when_all_are_dead_the_rest_is_skipped)
{
	struct err e = ERR_INIT;
	struct drv *d = open_all();

	one.dies_at = two.dies_at = three.dies_at = 40;
	one.exact = true;
	CHECK_STATUS(drv_read_pages(d, 0, buffer, 100, status, &e), ST_SOURCE_FAILED, &e);
	check_data(0, 40);
	for (size_t i = 40; i < 100; i++) {
		assert_int_equal(status[i].state, PAGE_SKIPPED);
		assert_int_equal(status[i].detail, SKIP_SOURCE_FAILED);
	}
	CHECK_STATUS(drv_read_pages(d, 0, buffer, 1, status, &e), ST_SOURCE_FAILED, &e);
	drv_close(d);
}

/* That a source died says nothing of pages that another one does not have: that one is believed. */
TEST(page_that_no_living_source_has_is_not_offered)
{
	struct err e = ERR_INIT;
	struct drv *d;

	one.dies_at = 20;
	one.exact = true;
	two.fails = three.fails = fake_fails_from_k;
	two.k = three.k = 30;
	two.k2 = three.k2 = 39;
	two.exact = three.exact = two.not_offered = three.not_offered = true;
	d = open_all();
	CHECK_OK(drv_read_pages(d, 0, buffer, 40, status, &e), &e);
	check_data(0, 30);
	for (size_t i = 30; i < 40; i++) {
		assert_int_equal(status[i].state, PAGE_SKIPPED);
		assert_int_equal(status[i].detail, SKIP_NOT_MAPPED);
	}
	drv_close(d);
}

/* A zero page and an unreadable page never look alike, whoever was asked last. */
TEST(silent_source_does_not_turn_failures_into_zeros)
{
	struct err e = ERR_INIT;
	struct drv *d;

	two.drv.info.silent = three.drv.info.silent = true;
	d = open_all();
	assert_false(d->info.silent);
	one.fails = fake_fails_from_k;
	one.k = 10;
	one.k2 = 19;
	two.fails = fake_fails_from_k;
	two.zero_fills = true;
	two.k = 15;
	two.k2 = 19;
	three.fails = fake_fails_from_k;
	three.zero_fills = true;
	three.k = 0;
	three.k2 = PAGES;
	CHECK_OK(drv_read_pages(d, 0, buffer, 30, status, &e), &e);
	check_data(0, 15);
	for (size_t i = 15; i < 20; i++)
		assert_int_equal(status[i].state, PAGE_UNREADABLE);
	check_data(20, 30);
	assert_true(d->info.silent);
	assert_int_equal(count_parts(d), 3);
	check_part(d, 1, "two", 10, 14);
	check_part(d, 2, "one", 20, 29);
	drv_close(d);
}

TEST(page_is_of_the_source_that_delivered_it_last)
{
	struct err e = ERR_INIT;
	struct drv *d = open_all();

	CHECK_OK(drv_read_pages(d, 0, buffer, 10, status, &e), &e);
	assert_int_equal(count_parts(d), 1);
	one.fails = fake_fails_at_k;
	one.k = 5;
	CHECK_OK(drv_read_pages(d, 0, buffer, 10, status, &e), &e);
	check_data(0, 10);
	assert_int_equal(count_parts(d), 3);
	check_part(d, 0, "one", 0, 4);
	check_part(d, 1, "two", 5, 5);
	check_part(d, 2, "one", 6, 9);
	drv_close(d);
}

TEST(page_outside_the_first_map_comes_from_the_next)
{
	struct err e = ERR_INIT;
	struct drv *d;

	fake_deinit(&one);
	fake_init(&one, &one_ops, 0, 10 * PAGE_SIZE - 1);
	d = open_all();
	assert_int_equal(d->info.n_maps, 1);
	CHECK_OK(drv_read_pages(d, 0, buffer, 20, status, &e), &e);
	assert_int_equal(d->info.n_maps, 2);
	check_data(0, 20);
	assert_int_equal(count_parts(d), 1); /* parts are those of the first map */
	check_part(d, 0, "one", 0, 9);
	drv_close(d);
}

TEST(what_the_sources_know_is_joined)
{
	struct err e = ERR_INIT;
	struct drv *d;

	one.drv.info.note = "first note";
	two.drv.info.note = "second note";
	two.drv.info.has_cr3 = three.drv.info.has_cr3 = true;
	two.drv.info.cr3 = 0x1000;
	three.drv.info.cr3 = 0x2000;
	one.fails = two.fails = fake_fails_at_k;
	d = open_all();
	assert_string_equal(d->info.source, "auto");
	assert_string_equal(d->info.path, "one");
	assert_string_equal(d->info.note, "one: first note");
	CHECK_OK(drv_read_pages(d, 0, buffer, 1, status, &e), &e);
	assert_string_equal(d->info.path, "one, two, three");
	assert_string_equal(d->info.note, "one: first note; two: second note");
	assert_int_equal(d->info.cr3, 0x1000);
	assert_int_equal(d->info.n_maps, 1); /* all three say the same */
	drv_close(d);
}

TEST(when_none_answers_each_says_why)
{
	static const struct drv_ops *const locked[] = { &absent_ops, &locked_ops, NULL };
	static const struct drv_ops *const absent[] = { &absent_ops, NULL };
	static const struct drv_ops *const manual[] = { &manual_ops, NULL };
	struct err e = ERR_INIT;
	struct drv *d = NULL;

	CHECK_STATUS(chain_open(locked, &d, &e), ST_NO_PRIVILEGE, &e);
	if (drv__lacks())
		CHECK_HAS(e.message, drv__lacks());
	else
		CHECK_HAS(e.message, "locked: /dev/locked: locked; absent: /dev/absent: absent");
	CHECK_STATUS(chain_open(absent, &d, &e), ST_NO_SOURCE, &e);
	CHECK_HAS(e.message, "no source of memory is usable: absent: /dev/absent: absent");
	CHECK_STATUS(chain_open(manual, &d, &e), ST_NO_SOURCE, &e);
	assert_null(d);
}

/*
 * Several readers. The first source takes them all, and reads no odd page; the second takes one.
 */

#define READERS 4

static atomic_uint inside, most;
static atomic_bool hangs;

static struct drv_result two_read(struct drv *d, uint64_t addr, void *buf, size_t len)
{
	const unsigned now = atomic_fetch_add(&inside, 1) + 1;
	struct drv_result r;

	if (now > most)
		most = now;
	while (hangs)
		usleep(1000);
	usleep(1000);
	r = fake_read(d, addr, buf, len);
	atomic_fetch_sub(&inside, 1);
	return r;
}

static struct drv_result one_read(struct drv *d, unsigned reader, uint64_t addr, void *buf,
				  size_t len)
{
	(void)reader;
	pattern(buf, addr, len);
	for (uint64_t at = 0; at < len; at += PAGE_SIZE)
		if ((addr + at) / PAGE_SIZE % 2)
			return (struct drv_result){ .good = at,
						    .error = FAKE_ERROR,
						    .exact = true };
	return (struct drv_result){ .good = len };
}

static enum status open_two_for_one(const char *path, struct drv **ret, struct err *e)
{
	usleep(10000); /* others come and want it, too */
	two.drv.info.parallel = NULL;
	return open_two(path, ret, e);
}

static enum status open_one_for_all(const char *path, struct drv **ret, struct err *e)
{
	one.drv.info.parallel = "a test";
	return open_one(path, ret, e);
}

static const struct drv_ops one_for_all_ops = { .name = "one",
						.default_path = "/dev/one",
						.automatic = true,
						.read_max = 64 * PAGE_SIZE,
						.open = open_one_for_all,
						.read = fake_read,
						.read_beside = one_read,
						.close = fake_close },
			    two_for_one_ops = { .name = "two",
						.default_path = "/dev/two",
						.automatic = true,
						.read_max = 64 * PAGE_SIZE,
						.open = open_two_for_one,
						.read = two_read,
						.close = fake_close };

static struct drv *open_for_all(void)
{
	static const struct drv_ops *const table[] = { &one_for_all_ops, &two_for_one_ops, NULL };
	struct err e = ERR_INIT;
	struct drv *d = NULL;

	fake_deinit(&one);
	fake_deinit(&two);
	fake_init(&one, &one_for_all_ops, 0, LAST);
	fake_init(&two, &two_for_one_ops, 0, LAST);
	most = 0;
	inside = 0;
	CHECK_OK(chain_open(table, &d, &e), &e);
	assert_string_equal(d->info.parallel, "a test");
	drv_note_parts(d, true);
	return d;
}

struct chain_thread {
	pthread_t id;
	struct drv *d;
	unsigned reader;
	enum status st;
};

static void *read_a_part(void *arg)
{
	struct chain_thread *t = arg;
	const size_t part = PAGES / READERS, from = t->reader * part;

	for (size_t i = from; i < from + part && !t->st; i += 10)
		t->st = drv_read_pages_beside(t->d, t->reader, i * PAGE_SIZE,
					      buffer + i * PAGE_SIZE, 10, status + i, NULL);
	return NULL;
}

static void start_readers(struct drv *d, struct chain_thread at[static READERS])
{
	for (unsigned i = 0; i < READERS; i++) {
		at[i] = (struct chain_thread){ .d = d, .reader = i };
		assert_int_equal(pthread_create(&at[i].id, NULL, read_a_part, &at[i]), 0);
	}
}

TEST(source_for_one_reader_is_read_by_one_at_a_time)
{
	struct chain_thread at[READERS];
	struct drv *d = open_for_all();

	start_readers(d, at);
	for (unsigned i = 0; i < READERS; i++) {
		pthread_join(at[i].id, NULL);
		assert_int_equal(at[i].st, ST_OK);
	}
	check_data(0, PAGES);
	assert_int_equal(opened, 2);
	assert_int_equal(most, 1);
	assert_int_equal(count_parts(d), PAGES);
	check_part(d, 0, "one", 0, 0);
	check_part(d, 1, "two", 1, 1);
	drv_close(d);
}

/* Who waits for a source that hangs does not wait for ever. */
TEST(read_that_is_given_up_frees_those_who_wait_behind_it)
{
	struct chain_thread at[READERS];
	struct drv *d = open_for_all();
	struct drv_request q = { 0 };
	unsigned hung = READERS;

	hangs = true;
	start_readers(d, at);
	while (!atomic_load(&inside))
		usleep(1000);
	for (unsigned i = 0; i < READERS; i++) {
		q = drv_reading_beside(d, i);
		if (!q.number || q.addr / PAGE_SIZE % 2 == 0)
			continue; /* it waits, or is in the first, which is asked for even pages */
		assert_int_equal(hung, READERS);
		assert_true(drv_abandon_beside(d, i, q.number));
		hung = i;
	}
	assert_true(hung < READERS);
	for (unsigned i = 0; i < READERS; i++)
		if (i != hung) {
			pthread_join(at[i].id, NULL);
			assert_int_equal(at[i].st, ST_SOURCE_FAILED);
		}
	pthread_detach(at[hung].id); /* it is in the source, and uses the chain */
	drv_close(d);
}

#define CHAIN_TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CHAIN_TEST(first_source_alone_is_asked_while_it_works),
		CHAIN_TEST(next_source_is_opened_when_there_is_something_left_to_read),
		CHAIN_TEST(hole_of_the_direct_map_is_not_asked_of_who_reads_through_that),
		CHAIN_TEST(next_source_is_asked_for_what_failed_and_nothing_else),
		CHAIN_TEST(page_that_nobody_can_read_keeps_the_first_error),
		CHAIN_TEST(dead_source_is_dropped_and_the_next_goes_on),
		CHAIN_TEST(when_all_are_dead_the_rest_is_skipped),
		CHAIN_TEST(page_that_no_living_source_has_is_not_offered),
		CHAIN_TEST(silent_source_does_not_turn_failures_into_zeros),
		CHAIN_TEST(page_is_of_the_source_that_delivered_it_last),
		CHAIN_TEST(page_outside_the_first_map_comes_from_the_next),
		CHAIN_TEST(what_the_sources_know_is_joined),
		CHAIN_TEST(when_none_answers_each_says_why),
		CHAIN_TEST(source_for_one_reader_is_read_by_one_at_a_time),
		/* The last: its thread never ends. */
		CHAIN_TEST(read_that_is_given_up_frees_those_who_wait_behind_it),
	};

	return cmocka_run_group_tests_name("chain", tests, NULL, NULL);
}
