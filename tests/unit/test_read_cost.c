/* SPDX-License-Identifier: Apache-2.0 */
/* What a request costs, by the reads that there were. */
#include "tests/unit/test.h"

#include "agent/collect/order/read_cost.h"

#define UNKNOWN 77

/* Reads of 1 to 16 pages. */
static void add_reads(struct read_cost *c, size_t n, uint64_t request, uint64_t page)
{
	for (size_t i = 0; i < n; i++)
		read_cost_add(c, 1 + i % 16, request + (1 + i % 16) * page);
}

TEST(a_request_is_worth_so_many_pages)
{
	static const struct {
		uint64_t request, page;
		size_t gap;
	} costs[] = {
		{ 5000, 4096, 1 },    { 8191, 4096, 1 },     { 8192, 4096, 2 }, { 20000, 400, 8 },
		{ 10000, 51200, 0 },  { 100000, 20000, 5 },  { 0, 1000, 0 },    { 3000, 0, 8 },
		{ 4000, 1000000, 0 }, { 600000, 100000, 6 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(costs); i++) {
		struct read_cost c = { 0 };

		add_reads(&c, 3000, costs[i].request, costs[i].page);
		assert_int_equal(read_cost_gap(&c, 8, UNKNOWN), costs[i].gap);
		assert_int_equal(read_cost_gap(&c, 0, UNKNOWN), 0);
	}
}

TEST(too_few_reads_or_all_of_one_length_say_nothing)
{
	struct read_cost few = { 0 }, alike = { 0 };

	add_reads(&few, 63, 20000, 4096);
	assert_int_equal(read_cost_gap(&few, 8, UNKNOWN), UNKNOWN);
	add_reads(&few, 1, 20000, 4096);
	assert_int_not_equal(read_cost_gap(&few, 8, UNKNOWN), UNKNOWN);
	for (size_t i = 0; i < 1000; i++)
		read_cost_add(&alike, 4, 20000 + i);
	assert_int_equal(read_cost_gap(&alike, 8, UNKNOWN), UNKNOWN);
}

TEST(long_reads_are_left_out)
{
	struct read_cost c = { 0 };

	for (size_t i = 0; i < 200; i++)
		read_cost_add(&c, 257 + i, 1);
	assert_int_equal(read_cost_gap(&c, 8, UNKNOWN), UNKNOWN);
}

TEST(what_was_long_ago_is_forgotten)
{
	struct read_cost c = { 0 };

	add_reads(&c, 5000, 40000, 10000);
	assert_int_equal(read_cost_gap(&c, 8, UNKNOWN), 4);
	add_reads(&c, 5000, 40000, 50000);
	assert_int_equal(read_cost_gap(&c, 8, UNKNOWN), 0);
}

/* The largest sums that there can be; the sanitizers see an overflow. */
TEST(nothing_overflows)
{
	struct read_cost c = { 0 };

	for (size_t i = 0; i < 5000; i++)
		read_cost_add(&c, i % 2 ? 256 : 255, UINT64_MAX);
	assert_in_range(read_cost_gap(&c, 8, UNKNOWN), 0, 8);
	for (size_t i = 0; i < 511; i++)
		read_cost_add(&c, 256, UINT64_MAX);
	read_cost_add(&c, 1, 0);
	assert_int_equal(read_cost_gap(&c, 8, UNKNOWN), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_request_is_worth_so_many_pages),
		cmocka_unit_test(too_few_reads_or_all_of_one_length_say_nothing),
		cmocka_unit_test(long_reads_are_left_out),
		cmocka_unit_test(what_was_long_ago_is_forgotten),
		cmocka_unit_test(nothing_overflows),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
