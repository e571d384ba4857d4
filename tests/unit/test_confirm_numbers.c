/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/test.h"

#include "agent/collect/acquire/confirm_numbers.h"

#define PATHS 4

static struct pagefile at[PATHS];
static struct pagefile_list list = { .at = at };

/* As the kernel's list and the root folder give them, in that order. */
static void set_up(void)
{
	static char paths[PATHS][32] = { "D:\\pagefile.sys", "C:\\Pagefile.sys", "C:\\swapfile.sys",
					 "C:\\hiberfil.sys" };

	for (size_t i = 0; i < PATHS; i++)
		at[i] = (struct pagefile){ .path = paths[i],
					   .number = (uint32_t)i,
					   .origin = i < 3 ? NUMBER_ASSUMED : NUMBER_NONE };
	list.count = PATHS;
}

static void check(size_t i, enum number_origin origin, uint32_t number)
{
	assert_int_equal(at[i].origin, origin);
	if (origin != NUMBER_NONE)
		assert_int_equal(at[i].number, number);
}

TEST(table_gives_numbers_and_makes_them_known)
{
	const struct paging_files t = { .count = 4,
					.at = { { .name = "\\??\\C:\\pagefile.sys" },
						{ .name = "\\??\\D:\\pagefile.sys" },
						{ .store = true },
						{ .name = "\\??\\C:\\swapfile.sys",
						  .apps = true } } };

	set_up();
	confirm_numbers(&list, &t);
	check(0, NUMBER_KNOWN, 1);
	check(1, NUMBER_KNOWN, 0);
	check(2, NUMBER_KNOWN, 3);
	check(3, NUMBER_NONE, 0);
}

TEST(number_of_something_else_is_given_up)
{
	const struct paging_files t = {
		.count = 3,
		.at = { { .name = "\\??\\E:\\other.sys" }, { .name = "" }, { .store = true } }
	};

	set_up();
	confirm_numbers(&list, &t);
	check(0, NUMBER_NONE, 0);    /* E:'s */
	check(1, NUMBER_ASSUMED, 1); /* what it is called was not there to be read */
	check(2, NUMBER_NONE, 0);    /* the store's */
}

TEST(without_a_table_nothing_changes)
{
	set_up();
	confirm_numbers(&list, &(struct paging_files){ .count = 0 });
	for (uint32_t i = 0; i < 3; i++)
		check(i, NUMBER_ASSUMED, i);
	/* Names of another kind, or cut, are nobody's. */
	set_up();
	confirm_numbers(&list, &(struct paging_files){ .count = 1,
						       .at = { { .name = "C:\\pagefile.sys" } } });
	check(1, NUMBER_ASSUMED, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(table_gives_numbers_and_makes_them_known),
		cmocka_unit_test(number_of_something_else_is_given_up),
		cmocka_unit_test(without_a_table_nothing_changes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
