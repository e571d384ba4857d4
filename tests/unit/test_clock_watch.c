/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/test.h"

#include <string.h>

#include "agent/collect/capture/clock_watch.h"

#define SECOND NS_PER_SECOND

TEST(steps_are_told_with_when_and_how_far)
{
	struct clock_watch w = { .mono = 10 * SECOND, .seen = { 3, 700 } };

	assert_false(clock_watch_add(&w, 11 * SECOND, (struct clock_steps){ 3, 700 }));
	assert_true(clock_watch_add(&w, 12 * SECOND, (struct clock_steps){ 5, 700 + SECOND }));
	assert_false(clock_watch_add(&w, 13 * SECOND, (struct clock_steps){ 5, 700 + SECOND }));
	assert_int_equal(w.count, 1);
	assert_int_equal(w.at[0].from, 11 * SECOND);
	assert_int_equal(w.at[0].to, 12 * SECOND);
	assert_int_equal(w.at[0].steps.count, 2);
	assert_int_equal(w.at[0].steps.back_ns, SECOND);
}

/* None is lost: smear leaves all of them out of what it concludes. */
TEST(more_than_fit_become_one)
{
	struct clock_watch w = { .mono = 0 };
	const struct clock_span *last = &w.at[CLOCK_SPANS_MAX - 1];
	uint64_t count = 0, back = 0;

	for (uint64_t i = 1; i <= CLOCK_SPANS_MAX + 3; i++)
		assert_true(clock_watch_add(&w, i * SECOND, (struct clock_steps){ i, 10 * i }));
	assert_int_equal(w.count, CLOCK_SPANS_MAX);
	for (size_t i = 0; i < w.count; i++) {
		count += w.at[i].steps.count;
		back += w.at[i].steps.back_ns;
	}
	assert_int_equal(count, CLOCK_SPANS_MAX + 3);
	assert_int_equal(back, 10 * (CLOCK_SPANS_MAX + 3));
	assert_int_equal(last->from, (CLOCK_SPANS_MAX - 1) * SECOND);
	assert_int_equal(last->to, (CLOCK_SPANS_MAX + 3) * SECOND);
}

TEST(steps_are_said_in_a_clause)
{
	struct clock_watch w = { .mono = 0 };
	char text[CLOCK_TEXT_MAX];
	json_t *list = clock_watch_json(&w);

	assert_false(clock_watch_text(NULL, text));
	assert_false(clock_watch_text(list, text));
	json_decref(list);
	clock_watch_add(&w, 5, (struct clock_steps){ 1, SECOND / 4 });
	clock_watch_add(&w, 9, (struct clock_steps){ 3, SECOND });
	list = clock_watch_json(&w);
	assert_int_equal(json_integer_value(json_object_get(json_array_get(list, 1), "from_ns")),
			 5);
	assert_true(clock_watch_text(list, text));
	assert_string_equal(text,
			    "the machine's counter went back 3 times meanwhile, by 1.000 s in all");
	json_decref(list);
}

static uint64_t now;

static uint64_t counter(void)
{
	return now;
}

TEST(clock_is_looked_at)
{
	struct clock_watch w;

	clock__counter = counter;
	clock__tick = counter;
	clock__forget();
	now = 100 * SECOND;
	clock_watch_begin(&w);
	now += SECOND;
	clock_watch_sample(&w);
	assert_int_equal(w.count, 0);
	now -= SECOND / 2;
	clock_watch_sample(&w);
	assert_int_equal(w.count, 1);
	assert_int_equal(w.at[0].steps.back_ns, SECOND / 2);
	assert_true(w.at[0].from < w.at[0].to);
	clock__counter = clock__counter_ns;
	clock__tick = clock__tick_ns;
	clock__forget();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(steps_are_told_with_when_and_how_far),
		cmocka_unit_test(more_than_fit_become_one),
		cmocka_unit_test(steps_are_said_in_a_clause),
		cmocka_unit_test(clock_is_looked_at),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
