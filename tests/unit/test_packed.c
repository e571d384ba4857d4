/* SPDX-License-Identifier: Apache-2.0 */
/* Tables of packed integers: every value comes back, and what differs little takes little. */
#include "tests/unit/test.h"

#include <inttypes.h>

#include "formats/base/packed.h"

#define ROWS_MAX 1200

static uint64_t wanted[ROWS_MAX][PACKED_COLUMNS_MAX];

/* Any numbers that look like chance; as many bits as asked for, 0 to 64. */
static uint64_t noise(uint64_t seed, unsigned bits)
{
	const uint64_t x = (seed + 1) * UINT64_C(0x9e3779b97f4a7c15);

	return bits ? (x ^ x >> 29) * UINT64_C(0xbf58476d1ce4e5b9) >> (64 - bits) : 0;
}

static void pack_wanted(struct packed *p, size_t rows, unsigned columns)
{
	struct err e = ERR_INIT;

	*p = (struct packed){ .columns = columns };
	for (size_t i = 0; i < rows; i++)
		CHECK_OK(packed_add(p, wanted[i], &e), &e);
	CHECK_OK(packed_finish(p, &e), &e);
	assert_int_equal(p->rows, rows);
	for (size_t i = 0; i < rows; i++)
		for (unsigned c = 0; c < columns; c++)
			if (packed_get(p, i, c) != wanted[i][c])
				fail_msg("row %zu of %zu, column %u: %" PRIx64 ", not %" PRIx64, i,
					 rows, c, packed_get(p, i, c), wanted[i][c]);
}

TEST(values_of_any_width_come_back)
{
	static const size_t rows[] = { 0, 1, 2, 7, 255, 256, 257, 512, 1200 };
	struct packed p;

	for (unsigned bits = 0; bits <= 64; bits++)
		for (size_t k = 0; k < ARRAY_SIZE(rows); k++) {
			for (size_t i = 0; i < rows[k]; i++)
				for (unsigned c = 0; c < PACKED_COLUMNS_MAX; c++)
					wanted[i][c] = noise(4 * i + c, bits);
			pack_wanted(&p, rows[k], PACKED_COLUMNS_MAX);
			packed_deinit(&p);
		}
}

TEST(ends_of_the_range_come_back)
{
	static const uint64_t ends[] = {
		0,
		1,
		UINT32_MAX,
		UINT64_C(1) << 32,
		UINT64_C(1) << 56,
		UINT64_C(1) << 57,
		UINT64_C(1) << 63,
		UINT64_MAX - 1,
		UINT64_MAX,
	};
	struct packed p;

	/* Each pair of them in one block, the lower one first and last. */
	for (size_t a = 0; a < ARRAY_SIZE(ends); a++)
		for (size_t b = 0; b < ARRAY_SIZE(ends); b++) {
			for (size_t i = 0; i < 300; i++)
				wanted[i][0] = i % 3 ? ends[a] : ends[b];
			pack_wanted(&p, 300, 1);
			packed_deinit(&p);
		}
}

TEST(zeros_at_the_end_of_all_values_are_left_out)
{
	struct packed p;

	for (size_t i = 0; i < 256; i++) {
		wanted[i][0] = (UINT64_C(1) << 50) + (i << 12); /* 8 bits */
		wanted[i][1] = 4096;                            /* none */
		wanted[i][2] = UINT64_MAX - (i << 40);          /* 8 bits */
	}
	pack_wanted(&p, 256, 3);
	assert_int_equal(p.blocks[0]->columns[0].bits, 8);
	assert_int_equal(p.blocks[0]->columns[1].bits, 0);
	assert_int_equal(p.blocks[0]->columns[2].bits, 8);
	packed_deinit(&p);
}

TEST(empty_table_can_be_filled_again)
{
	struct packed p;

	for (size_t i = 0; i < 300; i++)
		wanted[i][0] = i;
	pack_wanted(&p, 300, 1);
	packed_deinit(&p);
	assert_int_equal(p.rows, 0);
	assert_int_equal(p.columns, 1);
	pack_wanted(&p, 10, 1);
	packed_deinit(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(values_of_any_width_come_back),
		cmocka_unit_test(ends_of_the_range_come_back),
		cmocka_unit_test(zeros_at_the_end_of_all_values_are_left_out),
		cmocka_unit_test(empty_table_can_be_filled_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
