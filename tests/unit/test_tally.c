/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/shared/container/tally.h"

#include "tests/unit/test.h"

static const struct page_status data = { PAGE_DATA, 0 };
static const struct page_status zero = { PAGE_ZERO, 0 };
static const struct page_status bad = { PAGE_UNREADABLE, 5 };
static const struct page_status worse = { PAGE_UNREADABLE, 14 };
static const struct page_status skipped = { PAGE_SKIPPED, SKIP_INTERRUPTED };

static void add(struct tally *t, uint64_t page, uint64_t pages, struct page_status status)
{
	tally_add(t, page * PAGE_SIZE, pages, status);
}

#define CHECK_GAP(t, i, first_page, pages, want)                                                   \
	do {                                                                                       \
		assert_int_equal((t)->gaps[i].range.first, (uint64_t)(first_page) * PAGE_SIZE);    \
		assert_int_equal(range_bytes((t)->gaps[i].range), (uint64_t)(pages) * PAGE_SIZE);  \
		assert_true(page_status_same((t)->gaps[i].status, want));                          \
	} while (0)

TEST(pages_are_counted_by_state)
{
	_cleanup_tally_ struct tally t = { 0 };

	add(&t, 0, 3, data);
	add(&t, 3, 4, zero);
	assert_false(tally_has_gaps(&t));
	add(&t, 7, 1, bad);
	assert_true(tally_has_gaps(&t));
	add(&t, 8, 2, skipped);
	assert_int_equal(t.pages[PAGE_DATA], 3);
	assert_int_equal(t.pages[PAGE_ZERO], 4);
	assert_int_equal(t.pages[PAGE_UNREADABLE], 1);
	assert_int_equal(t.pages[PAGE_SKIPPED], 2);
	assert_int_equal(tally_pages(&t), 10);
}

TEST(neighbouring_gaps_of_one_state_are_one)
{
	_cleanup_tally_ struct tally t = { 0 };

	add(&t, 0, 1, bad);
	add(&t, 1, 1, bad);
	add(&t, 2, 1, worse);
	add(&t, 3, 1, skipped);
	add(&t, 4, 1, data);
	add(&t, 5, 1, skipped);
	add(&t, 1, 1, bad);
	assert_int_equal(t.n_gaps, 5);
	CHECK_GAP(&t, 0, 0, 2, bad);
	CHECK_GAP(&t, 1, 2, 1, worse);
	CHECK_GAP(&t, 2, 3, 1, skipped);
	CHECK_GAP(&t, 3, 5, 1, skipped);
	CHECK_GAP(&t, 4, 1, 1, bad);
}

TEST(chunk_is_counted_extent_by_extent)
{
	_cleanup_tally_ struct tally t = { 0 };
	struct rsz_extent extents[] = {
		{ .address = 0x1000, .length = 3 * PAGE_SIZE },
		{ .address = 0x9000, .length = PAGE_SIZE + 1 }, /* two pages, the last one short */
	};
	struct page_status pages[] = { data, bad, bad, bad, zero };
	const struct rsz_chunk c = {
		.paged = true, .extents = extents, .n_extents = 2, .pages = pages, .n_pages = 5
	};

	tally_chunk(&t, &c);
	assert_int_equal(tally_pages(&t), 5);
	assert_int_equal(t.n_gaps, 2);
	CHECK_GAP(&t, 0, 2, 2, bad);
	CHECK_GAP(&t, 1, 9, 1, bad);
}

/* A page that was captured again is the same page, unless it could not be read this time. */
TEST(page_that_was_captured_again_counts_once)
{
	_cleanup_tally_ struct tally t = { 0 };
	struct rsz_extent extents[] = {
		{ .address = 0x1000, .length = 3 * PAGE_SIZE },
		{ .address = 0x1000, .length = 3 * PAGE_SIZE, .pass = 1 },
	};
	struct page_status pages[] = { data, data, zero, data, bad, data };
	const struct rsz_chunk c = {
		.paged = true, .extents = extents, .n_extents = 2, .pages = pages, .n_pages = 6
	};

	tally_chunk(&t, &c);
	assert_int_equal(t.pages[PAGE_DATA], 2);
	assert_int_equal(t.pages[PAGE_ZERO], 1);
	assert_int_equal(t.pages[PAGE_UNREADABLE], 1);
	assert_int_equal(t.n_gaps, 1);
	CHECK_GAP(&t, 0, 2, 1, bad);
}

TEST(pages_that_were_not_read_are_gaps_whatever_kept_them)
{
	_cleanup_tally_ struct tally t = { 0 };

	add(&t, 0, 1, skipped);
	assert_true(tally_has_gaps(&t));
}

TEST(gaps_beyond_the_limit_are_counted_only)
{
	_cleanup_tally_ struct tally t = { 0 };

	for (uint64_t i = 0; i < TALLY_GAPS_MAX + 10; i++)
		add(&t, 2 * i, 1, bad);
	assert_int_equal(t.n_gaps, TALLY_GAPS_MAX);
	assert_int_equal(t.gaps_untold, 10);
	assert_int_equal(t.pages[PAGE_UNREADABLE], TALLY_GAPS_MAX + 10);
	/* What extends the last gap that is told, is told. */
	add(&t, 2 * TALLY_GAPS_MAX - 1, 1, bad);
	assert_int_equal(t.gaps_untold, 10);
	CHECK_GAP(&t, TALLY_GAPS_MAX - 1, 2 * TALLY_GAPS_MAX - 2, 2, bad);
}

TEST(json_tells_errors_and_reasons_apart)
{
	_cleanup_tally_ struct tally t = { 0 };
	json_t *list, *states;

	add(&t, 1, 2, bad);
	add(&t, 8, 1, worse);
	add(&t, 4, 1, skipped);
	list = tally_gaps_json(&t, PAGE_UNREADABLE, 10);
	assert_int_equal(json_array_size(list), 2);
	assert_int_equal(json_integer_value(json_object_get(json_array_get(list, 0), "first")),
			 PAGE_SIZE);
	assert_int_equal(json_integer_value(json_object_get(json_array_get(list, 0), "pages")), 2);
	assert_int_equal(json_integer_value(json_object_get(json_array_get(list, 1), "error")), 14);
	json_decref(list);
	list = tally_gaps_json(&t, PAGE_UNREADABLE, 1);
	assert_int_equal(json_array_size(list), 1);
	json_decref(list);
	list = tally_gaps_json(&t, PAGE_SKIPPED, 10);
	assert_int_equal(json_array_size(list), 1);
	assert_string_equal(json_string_value(json_object_get(json_array_get(list, 0), "reason")),
			    skip_reason_name(SKIP_INTERRUPTED));
	json_decref(list);
	states = tally_states_json(&t);
	assert_int_equal(json_object_size(states), PAGE_STATES);
	assert_int_equal(json_integer_value(json_object_get(states, "unreadable")), 3);
	json_decref(states);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(pages_are_counted_by_state),
		cmocka_unit_test(neighbouring_gaps_of_one_state_are_one),
		cmocka_unit_test(chunk_is_counted_extent_by_extent),
		cmocka_unit_test(page_that_was_captured_again_counts_once),
		cmocka_unit_test(pages_that_were_not_read_are_gaps_whatever_kept_them),
		cmocka_unit_test(gaps_beyond_the_limit_are_counted_only),
		cmocka_unit_test(json_tells_errors_and_reasons_apart),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
