/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/test.h"

#include <pthread.h>
#include <stdatomic.h>

#include "agent/shared/program/clock.h"
#include "formats/base/defs.h"

#define MS     UINT64_C(1000000)
#define TICK   (16 * MS)
#define SECOND NS_PER_SECOND

/* A machine of two processors, whose counters may disagree. */
static struct {
	_Atomic uint64_t time;    /* what it is */
	_Atomic unsigned cpu;     /* which one asks */
	_Atomic int64_t wrong[2]; /* by how much each counter is */
} machine;

static uint64_t machine_counter(void)
{
	return machine.time + (uint64_t)machine.wrong[machine.cpu];
}

static uint64_t machine_tick(void)
{
	return machine.time / TICK * TICK;
}

static int begin_machine(void **state)
{
	machine.time = 1000 * SECOND;
	machine.cpu = 0;
	machine.wrong[0] = machine.wrong[1] = 0;
	clock__counter = machine_counter;
	clock__tick = machine_tick;
	clock__forget();
	return 0;
}

static int end_machine(void **state)
{
	clock__counter = clock__counter_ns;
	clock__tick = clock__tick_ns;
	clock__forget();
	return 0;
}

/* Our time goes on by what passed, and is off by no more than the tick allows. */
static void check_passes(uint64_t begin, uint64_t since, uint64_t now)
{
	const uint64_t passed = machine.time - since;

	assert_true(now > begin);
	assert_in_range(now - begin + CLOCK_SLACK_NS, passed, passed + 2 * CLOCK_SLACK_NS);
}

TEST(no_answer_is_given_twice)
{
	uint64_t last = clock_mono_ns();

	for (unsigned i = 0; i < 100; i++) {
		const uint64_t now = clock_mono_ns();

		assert_true(now > last);
		last = now;
	}
	assert_int_equal(clock_steps().count, 0);
	machine.time += SECOND;
	assert_int_equal(clock_mono_ns(), 1001 * SECOND);
}

/* Of a hundred nanoseconds: that happens on sound machines, and there is nothing to tell. */
TEST(noise_is_no_step)
{
	const uint64_t before = clock_mono_ns();

	machine.wrong[0] = -100;
	assert_true(clock_mono_ns() > before);
	assert_int_equal(clock_steps().count, 0);
}

static void check_step_back(int64_t by)
{
	uint64_t before, since;

	begin_machine(NULL);
	before = clock_mono_ns();
	since = machine.time;
	machine.wrong[0] = -by;
	for (unsigned i = 0; i < 10000; i++) {
		machine.time += MS;
		check_passes(before, since, clock_mono_ns());
	}
	assert_int_equal(clock_steps().count, 1);
	assert_in_range(clock_steps().back_ns, (uint64_t)by - 2 * MS, (uint64_t)by);
}

TEST(counter_that_goes_back_for_good_is_followed)
{
	check_step_back((int64_t)(20 * MS));
	check_step_back((int64_t)(3 * SECOND));
	check_step_back((int64_t)(900 * SECOND));
}

/* What lies between two processors must neither add up nor stop the clock. */
static void check_processors(int64_t apart, uint64_t turn)
{
	uint64_t before, since, last, ahead = 0;

	begin_machine(NULL);
	machine.wrong[1] = apart;
	before = last = clock_mono_ns();
	since = machine.time;
	for (unsigned i = 1; i < 10000; i++) {
		uint64_t now;

		machine.time += turn;
		machine.cpu = i % 2;
		now = clock_mono_ns();
		assert_true(now > last);
		if (i == 1) /* nothing tells yet that it is wrong */
			ahead = now - before - turn;
		if (i > 1)
			check_passes(before + ahead, since, now);
		last = now;
	}
	assert_true(clock_steps().count > 0);
}

TEST(processors_that_disagree_do_not_add_up)
{
	check_processors((int64_t)(30 * MS), MS);
	check_processors((int64_t)(2 * SECOND), MS);
	check_processors((int64_t)(2 * SECOND), 100 * MS);
	check_processors(-(int64_t)(2 * SECOND), MS);
}

/* Interrupts were off, or a virtual machine stood still: the tick catches up later. */
TEST(tick_that_comes_late_holds_nothing_up_for_good)
{
	uint64_t before, since;

	before = clock_mono_ns();
	machine.wrong[0] = -(int64_t)SECOND;
	clock_mono_ns();
	since = machine.time;
	machine.time += 10 * SECOND;
	check_passes(before, since, clock_mono_ns());
	machine.time += MS;
	check_passes(before, since, clock_mono_ns());
	assert_int_equal(clock_steps().count, 1);
}

#define ASKERS 3
#define ASKED  20000

static _Atomic uint64_t seen; /* the largest answer that anybody has had */

static void *ask(void *arg)
{
	const unsigned n = *(const unsigned *)arg;
	uint64_t wrong = 0;

	for (unsigned i = 0; i < ASKED; i++) {
		const uint64_t before = seen;
		const uint64_t now = clock_mono_ns();
		uint64_t was = seen;

		wrong += now <= before;
		while (was < now && !atomic_compare_exchange_weak(&seen, &was, now))
			;
		machine.time += 1000;
		if (i % 1000 == 500)
			machine.wrong[0] -= (int64_t)((n + 1) * MS);
		machine.cpu = i / 100 % 2;
	}
	return (void *)(uintptr_t)wrong;
}

/* Whoever asks after an answer was there gets a larger one, on every thread. */
TEST(threads_see_one_clock)
{
	unsigned numbers[ASKERS] = { 0, 1, 2 };
	pthread_t threads[ASKERS];

	seen = 0;
	for (unsigned i = 0; i < ASKERS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, ask, &numbers[i]), 0);
	for (unsigned i = 0; i < ASKERS; i++) {
		void *wrong = NULL;

		pthread_join(threads[i], &wrong);
		assert_null(wrong);
	}
	assert_true(clock_steps().count > 0);
}

/* This machine's own: a sound one has no steps, and its tick is its counter's. */
TEST(system_has_both_clocks)
{
	uint64_t last;

	end_machine(NULL);
	last = clock_mono_ns();
	for (unsigned i = 0; i < 1000; i++) {
		const uint64_t now = clock_mono_ns();

		assert_true(now > last);
		last = now;
	}
	assert_true(clock__tick_ns() > 0);
	assert_true(clock__tick_ns() <= clock__tick_ns());
}

#define CLOCK_TEST(name) cmocka_unit_test_setup_teardown(name, begin_machine, end_machine)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CLOCK_TEST(no_answer_is_given_twice),
		CLOCK_TEST(noise_is_no_step),
		CLOCK_TEST(counter_that_goes_back_for_good_is_followed),
		CLOCK_TEST(processors_that_disagree_do_not_add_up),
		CLOCK_TEST(tick_that_comes_late_holds_nothing_up_for_good),
		CLOCK_TEST(threads_see_one_clock),
		CLOCK_TEST(system_has_both_clocks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
