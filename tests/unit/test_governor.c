/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/collect/capture/governor.h"
#include "tests/unit/test.h"

TEST(slow_output_raises_the_level_step_by_step_to_a_limit)
{
	const struct governor_load slow = { .compress = 0.2, .write = 0.99 };
	int level = 1;

	for (int i = 0; i < 20; i++) {
		const int next = governor_next(level, slow);

		assert_true(next >= level);
		level = next;
	}
	assert_int_equal(level, 6);
}

TEST(slow_compressor_lowers_it_to_a_limit)
{
	const struct governor_load slow = { .compress = 0.99, .write = 0.1 };
	int level = 6;

	for (int i = 0; i < 20; i++)
		level = governor_next(level, slow);
	assert_int_equal(level, -5);
}

TEST(slow_source_and_balance_leave_it_alone)
{
	assert_int_equal(governor_next(3, (struct governor_load){ 0.2, 0.2 }), 3);
	assert_int_equal(governor_next(3, (struct governor_load){ 0.7, 0.9 }), 3);
	assert_int_equal(governor_next(3, (struct governor_load){ 0.9, 0.9 }), 3);
}

TEST(level_moves_only_at_the_end_of_a_window_and_only_if_it_may)
{
	for (int fixed = 0; fixed < 2; fixed++) {
		struct governor g;

		governor_init(&g, 1, fixed, 2, 0);
		for (uint64_t now = 0; now < GOVERNOR_WINDOW_NS; now += GOVERNOR_WINDOW_NS / 10) {
			governor_wrote(&g, GOVERNOR_WINDOW_NS / 10, 0, now);
			assert_int_equal(governor_level(&g), 1);
		}
		governor_wrote(&g, GOVERNOR_WINDOW_NS / 10, 0, GOVERNOR_WINDOW_NS);
		assert_int_equal(governor_level(&g), fixed ? 1 : 2);
		assert_int_equal(g.changes, fixed ? 0 : 1);
	}
}

/* What waits in a spool says that the link is slow before a write has to wait for it. */
TEST(a_full_spool_raises_the_level_though_no_write_waits)
{
	struct governor g;
	uint64_t now = 0;

	governor_init(&g, 1, false, 2, now);
	for (int i = 0; i < 20; i++)
		governor_wrote(&g, 0, 0.99, now += GOVERNOR_WINDOW_NS);
	assert_int_equal(governor_level(&g), 6);
	/* It empties, but the compressor keeps up: all is well. */
	governor_wrote(&g, 0, 0.3, now += GOVERNOR_WINDOW_NS);
	assert_int_equal(governor_level(&g), 6);
	/* It is empty, and the link waits for the compressor. */
	for (int i = 0; i < 20; i++) {
		governor_compressed(&g, 2 * GOVERNOR_WINDOW_NS);
		governor_wrote(&g, 0, 0.05, now += GOVERNOR_WINDOW_NS);
	}
	assert_int_equal(governor_level(&g), -5);
}

/* Room for a piece opens, and is filled in a burst: the spool is as good as full all the same. */
TEST(a_burst_into_a_spool_that_was_full_lowers_nothing)
{
	struct governor g;
	uint64_t now = 0;

	governor_init(&g, 4, false, 1, now);
	for (int i = 0; i < 20; i++) {
		governor_compressed(&g, GOVERNOR_WINDOW_NS);
		governor_wrote(&g, 0, 0.9, now += GOVERNOR_WINDOW_NS);
		assert_int_equal(governor_level(&g), 4);
	}
}

/* Two workers that were busy half of the time each are not the bottleneck. */
TEST(work_is_counted_per_worker)
{
	struct governor g;

	governor_init(&g, 3, false, 2, 0);
	governor_compressed(&g, GOVERNOR_WINDOW_NS);
	governor_wrote(&g, 0, 0, GOVERNOR_WINDOW_NS);
	assert_int_equal(governor_level(&g), 3);
	governor_compressed(&g, GOVERNOR_WINDOW_NS);
	governor_compressed(&g, GOVERNOR_WINDOW_NS);
	governor_wrote(&g, 0, 0, 2 * GOVERNOR_WINDOW_NS);
	assert_int_equal(governor_level(&g), 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(slow_output_raises_the_level_step_by_step_to_a_limit),
		cmocka_unit_test(slow_compressor_lowers_it_to_a_limit),
		cmocka_unit_test(slow_source_and_balance_leave_it_alone),
		cmocka_unit_test(level_moves_only_at_the_end_of_a_window_and_only_if_it_may),
		cmocka_unit_test(a_full_spool_raises_the_level_though_no_write_waits),
		cmocka_unit_test(a_burst_into_a_spool_that_was_full_lowers_nothing),
		cmocka_unit_test(work_is_counted_per_worker),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
