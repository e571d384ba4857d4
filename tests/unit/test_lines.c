/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/test.h"

#include <string.h>

#include "agent/shared/program/lines.h"
#include "agent/shared/program/table.h"
#include "tests/gen/text_file.h"

static void check_broken(const char *text, size_t width, size_t indent, const char *expected)
{
	_cleanup_free_ char *got = lines_broken(text, width, indent);

	assert_non_null(got);
	assert_string_equal(got, expected);
}

static void lines_are_broken_at_blanks(void **state)
{
	check_broken("", 10, 2, "");
	check_broken("one two", 10, 2, "one two");
	check_broken("one two three", 10, 2, "one two\n  three");
	check_broken("one two three", 7, 0, "one two\nthree");
	check_broken("one two three", 6, 0, "one\ntwo\nthree");
	check_broken("about 12 % of it", 8, 0, "about\n12 % of\nit");
}

static void columns_are_kept_where_lines_are_not_broken(void **state)
{
	check_broken("label      a value", 40, 11, "label      a value");
	check_broken("label      a value that goes on", 24, 11,
		     "label      a value that\n           goes on");
	check_broken("  note: a b", 8, 4, "  note:\n    a b");
}

static void what_cannot_be_broken_has_its_own_line(void **state)
{
	check_broken("a root 0123456789abcdef follows", 12, 2,
		     "a root\n  0123456789abcdef\n  follows");
	check_broken("0123456789abcdef", 4, 2, "0123456789abcdef");
	check_broken("file /a/very/long/path", 10, 5, "file\n     /a/very/long/path");
}

static void wide_characters_count_twice(void **state)
{
	check_broken("\xe4\xb8\xad\xe6\x96\x87 ab", 7, 0, "\xe4\xb8\xad\xe6\x96\x87 ab");
	check_broken("\xe4\xb8\xad\xe6\x96\x87 ab", 6, 0, "\xe4\xb8\xad\xe6\x96\x87\nab");
}

static void files_get_endless_lines(void **state)
{
	FILE *f = text_file_open();
	char *got;

	assert_true(lines_width(f) == LINES_ENDLESS && lines_text_width(f) == LINES_ENDLESS);
	lines_print(f, 4, "%s %0100d", "a number of a hundred digits:", 7);
	got = text_file_close(f);
	assert_int_equal(strlen(got), 29 + 1 + 100 + 1);
	assert_ptr_equal(strchr(got, '\n'), got + strlen(got) - 1);
	free(got);
}

static const struct table_column columns[] = {
	{ "name", -8, 0 },
	{ "pages", 6, 1 },
	{ "of", 4, 2 },
	{ "file", 0, 0 },
};

static char *table_in(size_t width, const char *file)
{
	FILE *f = text_file_open();
	struct table t;

	table_begin_in(&t, f, width, columns, ARRAY_SIZE(columns));
	table_cell(&t, "%s", "a");
	table_cell(&t, "%d", 17);
	table_cell(&t, "%d", 4);
	table_cell(&t, "%s", file);
	table_end(&t);
	return text_file_close(f);
}

static void check_table(size_t width, const char *file, const char *expected)
{
	_cleanup_free_ char *got = table_in(width, file);

	assert_string_equal(got, expected);
}

static void tables_leave_columns_out_and_say_so(void **state)
{
	check_table(LINES_ENDLESS, "x y z",
		    "name      pages   of file\na            17    4 x y z\n");
	check_table(25, "x y", "name      pages   of file\na            17    4 x y\n");
	check_table(24, "x y",
		    "name      pages file\na            17 x y\n"
		    "(left out to fit the terminal: of; a pipe or a file gets all columns)\n");
	check_table(9, "x",
		    "name    \n    file\na       \n    x\n"
		    "(left out to fit the terminal: pages, of; a pipe or a file gets all "
		    "columns)\n");
}

static void what_does_not_fit_a_row_has_its_own_line(void **state)
{
	check_table(25, "x y z", "name      pages   of file\na            17    4\n    x y z\n");
	check_table(25, "", "name      pages   of file\na            17    4\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lines_are_broken_at_blanks),
		cmocka_unit_test(columns_are_kept_where_lines_are_not_broken),
		cmocka_unit_test(what_cannot_be_broken_has_its_own_line),
		cmocka_unit_test(wide_characters_count_twice),
		cmocka_unit_test(files_get_endless_lines),
		cmocka_unit_test(tables_leave_columns_out_and_say_so),
		cmocka_unit_test(what_does_not_fit_a_row_has_its_own_line),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
