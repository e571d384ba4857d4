/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/test.h"

#include <string.h>

#include "agent/collect/capture/sleep_watch.h"

#define SECOND NS_PER_SECOND

static uint64_t slept;

static uint64_t asleep(void)
{
	return slept;
}

TEST(sleep_is_told_with_when_and_how_long)
{
	struct sleep_watch w = { .mono = 10 * SECOND, .asleep = 5 * SECOND };
	struct sleep s;

	/* Noise of the clocks, forth and back. */
	assert_false(sleep_watch_add(&w, 11 * SECOND, 5 * SECOND + SLEEP_LEAST - 1, &s));
	assert_false(sleep_watch_add(&w, 12 * SECOND, 5 * SECOND - 1000, &s));
	assert_true(sleep_watch_add(&w, 13 * SECOND, 3605 * SECOND, &s));
	assert_int_equal(s.from, 12 * SECOND);
	assert_int_equal(s.to, 13 * SECOND);
	assert_int_equal(s.ns, 3600 * SECOND);
	assert_false(sleep_watch_add(&w, 14 * SECOND, 3605 * SECOND, &s));
	assert_int_equal(w.count, 1);
	assert_int_equal(w.total, 3600 * SECOND);
}

/* Many short ones that stay below the bound each are one in the end. */
TEST(noise_does_not_hide_what_adds_up)
{
	struct sleep_watch w = { .asleep = 0 };
	struct sleep s;
	uint64_t at = 0;

	for (unsigned i = 0; i < 100; i++)
		sleep_watch_add(&w, i, at += SLEEP_LEAST / 4, &s);
	assert_int_equal(w.total, at);
}

TEST(more_sleeps_than_fit_are_counted)
{
	struct sleep_watch w = { .asleep = 0 };
	struct sleep s;
	json_t *list;

	for (unsigned i = 1; i <= SLEEPS_MAX + 3; i++)
		assert_true(sleep_watch_add(&w, i, i * SECOND, &s));
	assert_int_equal(w.count, SLEEPS_MAX);
	assert_int_equal(w.more, 3);
	assert_int_equal(w.total, (SLEEPS_MAX + 3) * SECOND);
	list = sleep_watch_json(&w);
	assert_int_equal(json_array_size(list), SLEEPS_MAX);
	json_decref(list);
}

TEST(list_is_said_in_a_clause)
{
	json_t *none = json_array();
	json_t *two = json_loads("[{\"asleep_ns\": 61000000000}, {\"asleep_ns\": 3600000000000}]",
				 0, NULL);
	char text[SLEEP_TEXT_MAX];

	assert_false(sleep_watch_text(NULL, text));
	assert_false(sleep_watch_text(none, text));
	assert_true(sleep_watch_text(two, text));
	assert_string_equal(text, "the machine slept 2 times meanwhile, for 1:01:01");
	json_decref(none);
	json_decref(two);
}

TEST(clocks_are_looked_at)
{
	struct sleep_watch w;

	clock__asleep = asleep;
	slept = 7 * SECOND;
	sleep_watch_begin(&w);
	sleep_watch_sample(&w);
	assert_int_equal(w.count, 0);
	slept += 90 * SECOND;
	sleep_watch_sample(&w);
	assert_int_equal(w.count, 1);
	assert_int_equal(w.at[0].ns, 90 * SECOND);
	assert_true(w.at[0].from <= w.at[0].to);
	clock__asleep = clock__slept_ns;
}

/* Nobody sends this machine to sleep while the test runs. */
TEST(machine_that_is_awake_has_no_sleep)
{
	struct sleep_watch w;

	sleep_watch_begin(&w);
	for (unsigned i = 0; i < 1000; i++)
		sleep_watch_sample(&w);
	assert_int_equal(w.count, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sleep_is_told_with_when_and_how_long),
		cmocka_unit_test(noise_does_not_hide_what_adds_up),
		cmocka_unit_test(more_sleeps_than_fit_are_counted),
		cmocka_unit_test(list_is_said_in_a_clause),
		cmocka_unit_test(clocks_are_looked_at),
		cmocka_unit_test(machine_that_is_awake_has_no_sleep),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
