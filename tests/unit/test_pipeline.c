/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/shared/program/pipeline.h"

#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/test.h"

#define NEVER     SIZE_MAX
#define LENGTH    ((size_t)20)
#define ITEMS_MAX (PIPELINE_WORKERS_MAX + 2)

struct item {
	size_t number;
	size_t worked; /* what work() made of it */
};

/* A run of `length` items in which one step of one item may fail. */
struct line {
	size_t length;
	size_t bad_fill, bad_work, bad_drain;
	size_t filled;
	size_t drained;
	unsigned workers;
};

static enum status fill(void *arg, void *item, struct err *e)
{
	struct line *l = arg;
	struct item *it = item;

	if (l->filled == l->bad_fill)
		return err_set(e, ST_SOURCE_FAILED, "fill %zu", l->filled);
	if (l->filled == l->length)
		return ST_END;
	*it = (struct item){ .number = l->filled++ };
	return ST_OK;
}

/*
 * Even items take longer, so that a later one is often done first. On a busy machine a yield costs
 * a time slice of each other process.
 */
static enum status work(void *arg, unsigned worker, void *item, struct err *e)
{
	const struct line *l = arg;
	struct item *it = item;

	assert_true(worker < l->workers);
	for (int i = it->number % 2 ? 0 : 5; i--;)
		sched_yield();
	if (it->number == l->bad_work)
		return err_set(e, ST_SYSTEM, "work %zu", it->number);
	it->worked += it->number * it->number + 1;
	return ST_OK;
}

static enum status drain(void *arg, void *item, struct err *e)
{
	struct line *l = arg;
	const struct item *it = item;

	assert_int_equal(it->number, l->drained);
	assert_int_equal(it->worked, it->number * it->number + 1);
	if (it->number == l->bad_drain)
		return err_set(e, ST_OUTPUT, "drain %zu", it->number);
	l->drained++;
	return ST_OK;
}

static const struct pipeline_ops ops = { .fill = fill, .work = work, .drain = drain };

static enum status run(struct line *l, unsigned workers, size_t n_items, struct err *e)
{
	struct item items[ITEMS_MAX] = { 0 };
	void *pointers[ITEMS_MAX];

	for (size_t i = 0; i < n_items; i++)
		pointers[i] = &items[i];
	l->workers = workers;
	return pipeline_run(&ops, l, pointers, n_items, workers, e);
}

static struct line good(size_t length)
{
	return (struct line){
		.length = length, .bad_fill = NEVER, .bad_work = NEVER, .bad_drain = NEVER
	};
}

TEST(items_are_drained_in_the_order_in_which_they_were_filled)
{
	for (unsigned workers = 1; workers <= 8; workers++)
		for (size_t length = 0; length <= LENGTH; length++) {
			struct line l = good(length);
			struct err e = ERR_INIT;

			CHECK_OK(run(&l, workers, pipeline_items(workers), &e), &e);
			assert_int_equal(l.drained, length);
		}
}

TEST(one_slot_is_enough)
{
	for (unsigned workers = 1; workers <= 8; workers++) {
		struct line l = good(LENGTH);
		struct err e = ERR_INIT;

		CHECK_OK(run(&l, workers, 1, &e), &e);
		assert_int_equal(l.drained, LENGTH);
	}
}

/* Fails the step whose item number is at `offset` of a line, at each of its
 * items in turn, with any number of threads. */
static void check_failures(size_t offset, size_t items, enum status want, const char *what)
{
	for (unsigned workers = 1; workers <= 8; workers++)
		for (size_t k = 0; k < items; k++) {
			struct line l = good(LENGTH);
			struct err e = ERR_INIT;

			memcpy((char *)&l + offset, &k, sizeof(k));
			CHECK_STATUS(run(&l, workers, pipeline_items(workers), &e), want, &e);
			assert_int_equal(l.drained, k);
			CHECK_HAS(e.message, what);
		}
}

/* Everything that was filled before is still drained. */
TEST(failing_fill_ends_the_run_behind_all_items)
{
	check_failures(offsetof(struct line, bad_fill), LENGTH + 1, ST_SOURCE_FAILED, "fill");
}

TEST(failing_work_ends_the_run_at_its_item)
{
	check_failures(offsetof(struct line, bad_work), LENGTH, ST_SYSTEM, "work");
}

TEST(failing_drain_ends_the_run_at_its_item)
{
	check_failures(offsetof(struct line, bad_drain), LENGTH, ST_OUTPUT, "drain");
}

/* The failures of items come before that of fill(), and an earlier item's before a later one's. */
TEST(first_failure_in_the_order_of_the_items_is_told)
{
	for (unsigned workers = 1; workers <= 8; workers++)
		for (size_t k = 0; k + 2 < LENGTH; k++) {
			struct line l = good(LENGTH);
			struct err e = ERR_INIT;

			l.bad_work = k + 1;
			l.bad_drain = k;
			l.bad_fill = k + 2;
			CHECK_STATUS(run(&l, workers, pipeline_items(workers), &e), ST_OUTPUT, &e);
			assert_int_equal(l.drained, k);
			l = good(LENGTH);
			l.bad_work = k;
			l.bad_drain = k + 1;
			CHECK_STATUS(run(&l, workers, pipeline_items(workers), &e), ST_SYSTEM, &e);
			assert_int_equal(l.drained, k);
		}
}

TEST(nobody_needs_to_want_the_message)
{
	struct line l = good(LENGTH);

	l.bad_drain = 3;
	assert_int_equal(run(&l, 2, pipeline_items(2), NULL), ST_OUTPUT);
}

/* A source that is slower than the output: the last worker is gone when the next item is filled. */
static enum status slow_fill(void *arg, void *item, struct err *e)
{
	const enum status st = fill(arg, item, e);

	for (int i = 0; i < 3; i++)
		sched_yield();
	return st;
}

/*
 * An item that was filled just after the drain had failed was once counted, and waited for by
 * everybody, for ever. It took some thousand runs to see it, which is what `make test-long` has; a
 * hang is what the test's time limit finds.
 */
TEST(run_that_fails_while_an_item_is_being_filled_ends)
{
	const struct pipeline_ops slow = { .fill = slow_fill, .work = work, .drain = drain };
	const size_t runs = getenv("RAMSEAL_TEST_LONG") ? 20000 : 1000;

	for (size_t k = 0; k < runs; k += test_step()) {
		struct item items[ITEMS_MAX] = { 0 };
		void *at[ITEMS_MAX];
		struct line l = good(LENGTH);
		struct err e = ERR_INIT;

		for (size_t i = 0; i < ITEMS_MAX; i++)
			at[i] = &items[i];
		l.workers = 1;
		l.bad_drain = k % 4;
		CHECK_STATUS(pipeline_run(&slow, &l, at, pipeline_items(1), 1, &e), ST_OUTPUT, &e);
	}
}

#ifdef __linux__
/* Stacks that no address space has room for: from now on no thread can be started. */
static void forbid_threads(bool on)
{
	static pthread_attr_t before;
	pthread_attr_t huge;

	if (!on) {
		assert_int_equal(pthread_setattr_default_np(&before), 0);
		return;
	}
	assert_int_equal(pthread_getattr_default_np(&before), 0);
	pthread_attr_init(&huge);
	pthread_attr_setstacksize(&huge, (size_t)1 << 48);
	assert_int_equal(pthread_setattr_default_np(&huge), 0);
	pthread_attr_destroy(&huge);
}

TEST(without_threads_the_caller_does_it_all)
{
	const struct line ends[] = {
		{ .length = LENGTH, .bad_fill = NEVER, .bad_work = NEVER, .bad_drain = NEVER },
		{ .length = LENGTH, .bad_fill = 5, .bad_work = NEVER, .bad_drain = NEVER },
		{ .length = LENGTH, .bad_fill = NEVER, .bad_work = 5, .bad_drain = NEVER },
		{ .length = LENGTH, .bad_fill = NEVER, .bad_work = NEVER, .bad_drain = 5 },
	};
	static const enum status want[] = { ST_OK, ST_SOURCE_FAILED, ST_SYSTEM, ST_OUTPUT };

	forbid_threads(true);
	for (size_t i = 0; i < ARRAY_SIZE(ends); i++) {
		struct line l = ends[i];
		struct err e = ERR_INIT;

		CHECK_STATUS(run(&l, 4, pipeline_items(4), &e), want[i], &e);
		assert_int_equal(l.drained, want[i] ? 5 : LENGTH);
	}
	forbid_threads(false);
}
#endif

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(items_are_drained_in_the_order_in_which_they_were_filled),
		cmocka_unit_test(one_slot_is_enough),
		cmocka_unit_test(failing_fill_ends_the_run_behind_all_items),
		cmocka_unit_test(failing_work_ends_the_run_at_its_item),
		cmocka_unit_test(failing_drain_ends_the_run_at_its_item),
		cmocka_unit_test(first_failure_in_the_order_of_the_items_is_told),
		cmocka_unit_test(nobody_needs_to_want_the_message),
		cmocka_unit_test(run_that_fails_while_an_item_is_being_filled_ends),
#ifdef __linux__
		cmocka_unit_test(without_threads_the_caller_does_it_all),
#endif
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
