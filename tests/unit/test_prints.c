/* SPDX-License-Identifier: Apache-2.0 */
/* Fingerprints of page tables: each change of an entry is seen, and nothing else is. */
#include "tests/unit/test.h"

#include "agent/shared/paging/walk.h"
#include "agent/shared/kernel/prints.h"
#include "formats/base/bytes.h"

#define WINDOWS ((struct table_prints){ .entries = { .os = OS_WINDOWS } })

static uint8_t bytes[PAGE_SIZE];

static void fill(uint64_t seed)
{
	for (size_t i = 0; i < TABLE_ENTRIES; i++)
		put_le64(bytes + 8 * i,
			 ((seed + i * 7919) % 0xfffff) << PAGE_SHIFT | (i % 3 ? 0x67 : 0x880));
}

static struct printed_table table(uint64_t pa, uint64_t va)
{
	return (struct printed_table){ 1, pa, va, bytes };
}

TEST(every_bit_counts_but_the_soft_ones)
{
	struct table_prints p = WINDOWS;
	const struct printed_table t = table(0x5000, 0x200000);
	size_t missed = 0;

	fill(1);
	table_prints_add(&p, &t);
	assert_int_equal(table_prints_changed(&p, &t), 0);
	for (size_t i = 0; i < TABLE_ENTRIES; i++)
		for (unsigned bit = 0; bit < 64; bit++) {
			const uint64_t was = get_le64(bytes + 8 * i), is = was ^ UINT64_C(1) << bit;
			const bool same = entry_same_rights(&p.entries, was, is);
			uint64_t changed;

			put_le64(bytes + 8 * i, is);
			changed = table_prints_changed(&p, &t);
			if (same)
				assert_int_equal(changed, 0);
			else if (changed != UINT64_C(1) << i / 8)
				missed++;
			put_le64(bytes + 8 * i, was);
		}
	assert_in_range(missed, 0, 4); /* of 26,000, by 16 bits */
	table_prints_deinit(&p);
}

TEST(what_is_not_known_has_changed)
{
	struct table_prints p = WINDOWS;

	fill(1);
	assert_true(table_prints_changed(NULL, &(struct printed_table){ 1, 0, 0, bytes }) ==
		    UINT64_MAX);
	assert_true(table_prints_changed(&p, &(struct printed_table){ 1, 0, 0, bytes }) ==
		    UINT64_MAX);
	table_prints_add(&p, &(struct printed_table){ 1, 0x5000, 0x200000, bytes });
	assert_true(table_prints_changed(&p, &(struct printed_table){ 1, 0x6000, 0x200000,
								      bytes }) == UINT64_MAX);
	assert_true(table_prints_changed(&p, &(struct printed_table){ 1, 0x5000, 0x400000,
								      bytes }) == UINT64_MAX);
	assert_true(table_prints_changed(&p, &(struct printed_table){ 2, 0x5000, 0x200000,
								      bytes }) == UINT64_MAX);
	table_prints_deinit(&p);
}

/* More than a block, more than the first index, and the newest of one page counts. */
TEST(many_tables)
{
	struct table_prints p = WINDOWS;

	for (unsigned round = 0; round < 2; round++)
		for (uint64_t n = 0; n < 5000; n++) {
			const struct printed_table t = table(n << PAGE_SHIFT, n << 21);

			fill(n + round);
			table_prints_add(&p, &t);
		}
	assert_int_equal(p.count, 5000);
	for (uint64_t n = 0; n < 5000; n++) {
		const struct printed_table t = table(n << PAGE_SHIFT, n << 21);

		fill(n + 1);
		assert_int_equal(table_prints_changed(&p, &t), 0);
	}
	table_prints_deinit(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_bit_counts_but_the_soft_ones),
		cmocka_unit_test(what_is_not_known_has_changed),
		cmocka_unit_test(many_tables),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
