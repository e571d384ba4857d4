/* SPDX-License-Identifier: Apache-2.0 */
/* How much an acquisition takes of a machine: threads, memory, CPU time, the page cache. */
#include "tests/unit/test.h"

#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include "agent/collect/acquire/fit.h"
#include "agent/collect/host/limits.h"
#include "agent/shared/program/pipeline.h"
#include "agent/shared/program/share.h"

#define MIB UINT64_C(1048576)
#define MS  UINT64_C(1000000)

/*
 * Pauses
 */

TEST(who_is_not_kept_waiting_does_not_pause)
{
	const struct share_span s = { .cpu_ns = 10 * MS,
				      .delay_ns = MS / 2,
				      .process_ns = 10 * MS };

	assert_int_equal(share_pause_ns(10, 4, &s), 0);
}

/* Half of a CPU that another has the other half of: nine times as long as it worked. */
TEST(a_tenth_is_what_nice_10_leaves)
{
	const struct share_span s = { .cpu_ns = 10 * MS,
				      .delay_ns = 10 * MS,
				      .process_ns = 10 * MS };
	const uint64_t pause = share_pause_ns(10, 4, &s);

	assert_in_range(pause, 83 * MS, 84 * MS); /* 1.25^10 is 9.31 */
}

/* Half of the way from what may be chance to a share that others want. */
TEST(little_waiting_is_little_pausing)
{
	const struct share_span s = { .cpu_ns = 16 * MS,
				      .delay_ns = 4 * MS,
				      .process_ns = 16 * MS };

	assert_in_range(share_pause_ns(10, 4, &s), 70 * MS, 71 * MS); /* 149 / 2 - 4 */
}

/* Two threads that work on one CPU have a tenth of it together. */
TEST(threads_of_one_cpu_share_their_part)
{
	const struct share_span s = { .cpu_ns = 10 * MS,
				      .delay_ns = 30 * MS,
				      .process_ns = 20 * MS };

	assert_in_range(share_pause_ns(10, 1, &s), 156 * MS, 157 * MS); /* 186 - 30 */
	assert_in_range(share_pause_ns(10, 2, &s), 63 * MS, 64 * MS);   /* 93 - 30 */
}

/* Threads behind us hardly hold us up, however much they had while we slept. */
TEST(who_is_ahead_is_held_up_by_others)
{
	struct share_span s = { .cpu_ns = 10 * MS, .delay_ns = 8 * MS, .process_ns = 20 * MS };

	assert_int_equal(share_pause_ns(10, 1, &s), 0);
	s.ahead = true;
	assert_true(share_pause_ns(10, 1, &s) > 100 * MS);
	s.delay_ns = 3 * MS; /* what two of them take */
	assert_int_equal(share_pause_ns(10, 1, &s), 0);
}

/* The scheduler has made it wait that long already, as it does within a group. */
TEST(what_was_waited_is_not_waited_again)
{
	const struct share_span s = { .cpu_ns = 10 * MS,
				      .delay_ns = 95 * MS,
				      .process_ns = 10 * MS };

	assert_int_equal(share_pause_ns(10, 4, &s), 0);
}

/* One CPU, and nobody there but our own reading and writing threads. */
TEST(our_own_threads_are_no_others)
{
	const struct share_span s = { .cpu_ns = 10 * MS,
				      .delay_ns = 14 * MS,
				      .process_ns = 24 * MS };

	assert_int_equal(share_pause_ns(10, 1, &s), 0);
	assert_true(share_pause_ns(10, 8, &s) > 0);
}

/* A machine without work of its own: what we wait for is ourselves, and the kernel for us. */
TEST(where_nobody_works_there_are_no_others)
{
	const struct share_busy then = { 1000 * MS, 5000 * MS, 700 * MS };
	const struct share_busy alone = { 1250 * MS, 5520 * MS, 1200 * MS };
	const struct share_busy beside = { 1250 * MS, 5530 * MS, 1200 * MS };
	const struct share_busy late = { 1250 * MS, 5490 * MS, 1200 * MS }; /* ticks are late */

	assert_false(share_others_work(&then, &alone));
	assert_true(share_others_work(&then, &beside));
	assert_false(share_others_work(&then, &late));
}

/* Two times what it worked, and a second. */
TEST(what_a_thread_loses_has_an_end)
{
	struct share_span s = { .cpu_ns = 4000 * MS, .delay_ns = 5000 * MS };

	assert_int_equal(share_loss_left_ns(&s, 0), 4000 * MS);
	assert_int_equal(share_loss_left_ns(&s, 3999 * MS), MS);
	assert_int_equal(share_loss_left_ns(&s, 4000 * MS), 0);
	assert_int_equal(share_loss_left_ns(&s, UINT64_MAX), 0);
	s.delay_ns = 9001 * MS;
	assert_int_equal(share_loss_left_ns(&s, 0), 0);
	s = (struct share_span){ 0 };
	assert_int_equal(share_loss_left_ns(&s, 0), 1000 * MS);
	s.cpu_ns = UINT64_MAX;
	assert_true(share_loss_left_ns(&s, 0) >= UINT64_C(1) << 63);
}

TEST(a_pause_does_not_overflow)
{
	const struct share_span s = { .cpu_ns = UINT64_MAX / 8, .delay_ns = UINT64_MAX / 16 };

	assert_true(share_pause_ns(SHARE_NICE_MAX, 1, &s) == (UINT64_C(1) << 63) - s.delay_ns);
	assert_int_equal(share_pause_ns(10, 1, &(struct share_span){ 0 }), 0);
}

/*
 * Threads
 */

struct seen {
	json_t *fill, *work, *drain;
	unsigned left;
};

static enum status see_fill(void *arg, void *item, struct err *e)
{
	struct seen *s = arg;

	(void)item;
	(void)e;
	if (!s->left--)
		return ST_END;
	json_decref(s->fill);
	s->fill = share__thread_json();
	return ST_OK;
}

static enum status see_work(void *arg, unsigned worker, void *item, struct err *e)
{
	struct seen *s = arg;

	(void)worker;
	(void)item;
	(void)e;
	json_decref(s->work);
	s->work = share__thread_json();
	return ST_OK;
}

static enum status see_drain(void *arg, void *item, struct err *e)
{
	struct seen *s = arg;

	(void)item;
	(void)e;
	json_decref(s->drain);
	s->drain = share__thread_json();
	return ST_OK;
}

static struct seen run(void)
{
	static const struct pipeline_ops ops = { see_fill, see_work, see_drain };
	struct seen ret = { .left = 3 };
	char items[3];
	struct err e = ERR_INIT;

	CHECK_OK(pipeline_run(&ops, &ret, (void *[]){ &items[0], &items[1], &items[2] }, 3, 1, &e),
		 &e);
	return ret;
}

static void seen_deinit(struct seen *s)
{
	json_decref(s->fill);
	json_decref(s->work);
	json_decref(s->drain);
}

/* Who reads is held up by nothing; who compresses and who writes are behind. */
TEST(all_but_the_reading_thread_step_back)
{
	json_t *before = share__thread_json(), *share;
	struct seen s;

	share_begin(SHARE_NICE, false);
	s = run();
	share = share_json();
	share_end();
	assert_true(json_equal(s.fill, before));
	assert_false(json_equal(s.work, before));
	assert_true(json_equal(s.work, s.drain));
	assert_true(json_equal(json_object_get(share, "behind"), s.work));
	assert_true(json_equal(json_object_get(share, "reading"), before));
#ifdef _WIN32
	assert_int_equal(json_integer_value(json_object_get(s.work, "priority")), -2);
#else
	assert_string_equal(json_string_value(json_object_get(s.work, "policy")), "batch");
	assert_true(json_integer_value(json_object_get(s.work, "nice")) >= SHARE_NICE);
	assert_string_equal(json_string_value(json_object_get(s.work, "io")), "best-effort");
	assert_int_equal(json_integer_value(json_object_get(s.work, "io_level")), 7);
	assert_true(json_is_true(json_object_get(share, "ended_first")));
#endif
	json_decref(before);
	json_decref(share);
	seen_deinit(&s);
}

static void *step_there_and_back(void *arg)
{
	json_t **seen = arg;

	seen[0] = share__thread_json();
	share__step_back(SHARE_COMPRESSING, SHARE_NICE);
	seen[1] = share__thread_json();
	share__step_forward();
	seen[2] = share__thread_json();
	share__step_back(SHARE_COMPRESSING, SHARE_NICE);
	seen[3] = share__thread_json();
	return NULL;
}

/* Who may not raise a priority stays behind. */
TEST(who_has_lost_enough_is_as_before)
{
	json_t *seen[4] = { NULL };
	pthread_t thread;

	assert_int_equal(pthread_create(&thread, NULL, step_there_and_back, seen), 0);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_false(json_equal(seen[0], seen[1]));
#ifndef _WIN32
	if (geteuid())
		print_message("note: not root: priorities cannot be raised\n");
	else
#endif
		assert_true(json_equal(seen[0], seen[2]));
	assert_true(json_equal(seen[1], seen[3]));
	for (size_t i = 0; i < ARRAY_SIZE(seen); i++)
		json_decref(seen[i]);
}

TEST(fast_and_other_commands_step_back_for_nobody)
{
	json_t *before = share__thread_json(), *share;
	struct seen s = run();

	assert_true(json_equal(s.work, before));
	assert_true(json_equal(s.drain, before));
	seen_deinit(&s);
	share_begin(0, false);
	s = run();
	share = share_json();
	share_end();
	assert_true(json_equal(s.work, before));
	assert_true(json_equal(s.drain, before));
	assert_string_equal(json_string_value(json_object_get(share, "mode")), "fast");
	json_decref(before);
	json_decref(share);
	seen_deinit(&s);
}

TEST(half_of_the_cpus_compress)
{
	assert_int_equal(share_threads(4, false), 4);
	assert_int_equal(share_threads(64, false), 64);
	assert_int_equal(share_threads(1, true), 1);
	assert_int_equal(share_threads(2, true), 1);
	assert_int_equal(share_threads(5, true), 2);
	assert_int_equal(share_threads(64, true), 32);
	assert_int_equal(share_threads(300, false), SHARE_THREADS_MAX);
}

/*
 * Memory
 */

static struct host_limits leaving(uint64_t bytes)
{
	return (struct host_limits){ .memory = bytes, .memory_left = bytes };
}

TEST(without_a_limit_all_is_as_it_was_asked_for)
{
	const struct host_limits l = leaving(LIMIT_NONE);
	struct err less = ERR_INIT, e = ERR_INIT;
	struct fit f = { .level = 19, .threads = 8, .spool = 64 * MIB, .ram = 1 << 30 };

	CHECK_OK(fit_memory(&f, &l, &less, &e), &e);
	assert_int_equal(f.threads, 8);
	assert_int_equal(f.spool, 64 * MIB);
	assert_string_equal(less.message, "");
}

TEST(threads_go_before_it_is_refused)
{
	struct err less = ERR_INIT, e = ERR_INIT;
	struct fit f = { .level = 1, .threads = 8, .ram = 1 << 30 };
	const struct host_limits l = leaving(fit_need(&f) - 5 * MIB);

	CHECK_OK(fit_memory(&f, &l, &less, &e), &e);
	assert_int_equal(f.threads, 5);
	assert_true(fit_need(&f) <= l.memory_left);
	assert_string_equal(less.message, "the memory limit of 31.2 MiB leaves 31.2 MiB (job): "
					  "continuing with --threads 5 (not 8)");
}

TEST(the_spool_goes_before_threads)
{
	struct err less = ERR_INIT, e = ERR_INIT;
	struct fit f = { .level = 1, .threads = 2, .spool = 64 * MIB };
	const struct host_limits l = leaving(fit_need(&f) - 40 * MIB);

	CHECK_OK(fit_memory(&f, &l, &less, &e), &e);
	assert_int_equal(f.threads, 2);
	assert_int_equal(f.spool, 24 * MIB);
	assert_string_equal(less.message, "the memory limit of 48.0 MiB leaves 48.0 MiB (job): "
					  "continuing with --spool-size 24.0 MiB");
}

TEST(a_limit_that_is_too_small_is_one_clear_line)
{
	struct err less = ERR_INIT, e = ERR_INIT;
	struct fit f = { .level = 1, .threads = 4, .spool = 64 * MIB };
	const struct host_limits l = leaving(16 * MIB);

	assert_int_equal(fit_memory(&f, &l, &less, &e), ST_NOMEM);
	assert_string_equal(e.message,
			    "the memory limit of 16.0 MiB leaves 16.0 MiB (job), and this needs "
			    "38.0 MiB; raise the limit, or use --force to start anyway");
	f.force = true;
	CHECK_OK(fit_memory(&f, &l, &less, &e), &e);
	assert_int_equal(f.threads, 1);
	assert_int_equal(f.spool, SPOOL_LEAST);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(who_is_not_kept_waiting_does_not_pause),
		cmocka_unit_test(a_tenth_is_what_nice_10_leaves),
		cmocka_unit_test(little_waiting_is_little_pausing),
		cmocka_unit_test(threads_of_one_cpu_share_their_part),
		cmocka_unit_test(who_is_ahead_is_held_up_by_others),
		cmocka_unit_test(what_was_waited_is_not_waited_again),
		cmocka_unit_test(our_own_threads_are_no_others),
		cmocka_unit_test(where_nobody_works_there_are_no_others),
		cmocka_unit_test(what_a_thread_loses_has_an_end),
		cmocka_unit_test(a_pause_does_not_overflow),
		cmocka_unit_test(all_but_the_reading_thread_step_back),
		cmocka_unit_test(who_has_lost_enough_is_as_before),
		cmocka_unit_test(fast_and_other_commands_step_back_for_nobody),
		cmocka_unit_test(half_of_the_cpus_compress),
		cmocka_unit_test(without_a_limit_all_is_as_it_was_asked_for),
		cmocka_unit_test(threads_go_before_it_is_refused),
		cmocka_unit_test(the_spool_goes_before_threads),
		cmocka_unit_test(a_limit_that_is_too_small_is_one_clear_line),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
