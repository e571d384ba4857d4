/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "formats/base/utc.h"
#include "formats/proof/statement.h"

#define ID   "00112233445566778899aabbccddeeff"
#define HASH "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

static const char whole[] = "ramseal statement 1\n"
			    "container: " ID "\n"
			    "root: " HASH "\n"
			    "size: 123456789\n"
			    "name: web01-20261122T134347Z.rsz\n"
			    "outcome: complete\n"
			    "source: kcore\n"
			    "host: web01\n"
			    "begin: 2026-11-22T13:43:47.000000042Z\n"
			    "end: 2026-11-22T13:45:00.500000000Z\n"
			    "begin_mono_ns: 0\n"
			    "end_mono_ns: 18446744073709551615\n"
			    "tool: ramseal 0.1.0\n"
			    "tool_sha256: " HASH "\n";

static enum status parse(const char *text, struct statement *ret, struct err *e)
{
	return statement_parse(text, strlen(text), ret, e);
}

/* The text with the first `from` replaced by `to`. */
static const char *changed(const char *from, const char *to)
{
	static char text[2 * STATEMENT_MAX];
	const char *at = strstr(whole, from);

	assert_non_null(at);
	snprintf(text, sizeof(text), "%.*s%s%s", (int)(at - whole), whole, to, at + strlen(from));
	return text;
}

static void check_refused(const char *text, const char *why)
{
	struct err e = ERR_INIT;
	struct statement s;

	CHECK_STATUS(parse(text, &s, &e), ST_INPUT, &e);
	CHECK_HAS(e.message, why);
}

TEST(a_statement_is_read_and_written_again)
{
	struct err e = ERR_INIT;
	struct statement s;
	char again[STATEMENT_MAX];

	CHECK_OK(parse(whole, &s, &e), &e);
	assert_int_equal(s.container[1], 0x11);
	assert_true(s.has_root && s.has_tool_hash);
	assert_int_equal(s.root[31], 0xef);
	assert_int_equal(s.size, 123456789);
	assert_string_equal(s.name, "web01-20261122T134347Z.rsz");
	assert_int_equal(s.outcome, STATEMENT_COMPLETE);
	assert_string_equal(s.source, "kcore");
	assert_string_equal(s.host, "web01");
	assert_int_equal(s.begin_wall, UINT64_C(1795355027000000042));
	assert_int_equal(s.end_wall - s.begin_wall, UINT64_C(73499999958));
	assert_true(s.begin_mono == 0 && s.end_mono == UINT64_MAX);
	assert_string_equal(s.tool, "ramseal 0.1.0");
	assert_int_equal(statement_write(&s, again), strlen(whole));
	assert_string_equal(again, whole);
}

TEST(a_root_is_there_unless_unsealed)
{
	struct err e = ERR_INIT;
	struct statement s;

	check_refused(changed("root: " HASH "\n", ""), "has no root");
	check_refused(changed("outcome: complete", "outcome: unsealed"), "has a root");
	CHECK_OK(parse("ramseal statement 1\ncontainer: " ID "\nsize: 1\nname: a\n"
		       "outcome: unsealed\nsource: kcore\nhost: b\n"
		       "begin: 1970-01-01T00:00:00.000000000Z\n"
		       "end: 1970-01-01T00:00:00.000000000Z\nbegin_mono_ns: 1\nend_mono_ns: 2\n"
		       "tool: ramseal 0.1.0\n",
		       &s, &e),
		 &e);
	assert_false(s.has_root || s.has_tool_hash);
}

TEST(any_name_is_one_line)
{
	static const char hostile[] = "a\\b\n\x1b[2J\x7f\xff\xc2\x9b\xc3\xa4: \xe2\x82\xac";
	struct err e = ERR_INIT;
	struct statement s, again;
	char text[STATEMENT_MAX];

	CHECK_OK(parse(whole, &s, &e), &e);
	statement_set_text(s.name, hostile);
	CHECK_OK(statement_parse(text, statement_write(&s, text), &again, &e), &e);
	assert_string_equal(again.name, hostile);
	CHECK_HAS(text, "\nname: a\\\\b\\x0a\\x1b[2J\\x7f\\xff\\xc2\\x9b\xc3\xa4: \xe2\x82\xac\n");
}

TEST(long_names_are_cut_between_characters)
{
	char name[STATEMENT_TEXT_MAX + 100];
	struct err e = ERR_INIT;
	struct statement s, again;
	char text[STATEMENT_MAX];

	CHECK_OK(parse(whole, &s, &e), &e);
	memset(name, 1, sizeof(name));
	name[sizeof(name) - 1] = '\0';
	memcpy(name + STATEMENT_TEXT_MAX - 1, "\xc3\xa4", 2);
	statement_set_text(s.name, name);
	assert_int_equal(strlen(s.name), STATEMENT_TEXT_MAX - 1);
	memset(name, 1, sizeof(name) - 1);
	statement_set_text(s.name, name);
	statement_set_text(s.host, name);
	statement_set_text(s.source, name);
	statement_set_text(s.tool, name);
	assert_true(statement_write(&s, text) < STATEMENT_MAX);
	CHECK_OK(statement_parse(text, strlen(text), &again, &e), &e);
	assert_string_equal(again.tool, s.tool);
	statement_set_text(s.host, "");
	assert_string_equal(s.host, "-");
	check_refused(changed("web01\n", "\n"), "line 8: this is no host");
}

TEST(there_is_one_way_to_write_it)
{
	static const struct {
		const char *from, *to, *why;
	} cases[] = {
		{ "statement 1", "statement 2", "a version other than" },
		{ "statement 1", "statement 10", "a version other than" },
		{ "ramseal s", "Ramseal s", "is not a statement" },
		{ "statement 1\n", "statement 1\r\n", "a version other than" },
		{ ID "\n", ID "\r\n", "line 2: this is no container" },
		{ ID, "00112233445566778899AABBCCDDEEFF", "line 2" },
		{ ID, "0011", "line 2" },
		{ "container: ", "container:", "line 2 is not \"container: ...\"" },
		{ "size: 1", "size: 01", "line 4 is not what ramseal writes" },
		{ "size: 123456789", "size: 18446744073709551616", "line 4: this is no size" },
		{ "size: 123456789", "size: ", "line 4" },
		{ "size: 1", "size: -1", "line 4" },
		{ "size: 1", "size:  1", "line 4" },
		{ "size", "length", "line 4 is not \"size: ...\"" },
		{ "size: 123456789\n", "", "line 4 is not \"size: ...\"" },
		{ "size: 123456789\n", "size: 123456789\nsize: 123456789\n", "line 5" },
		{ "outcome: complete", "outcome: Complete", "line 6: this is no outcome" },
		{ "outcome: complete", "outcome: ", "line 6" },
		{ "web01\n", "web\\x30\n", "line 8 is not what ramseal writes" },
		{ "web01\n", "web\\\n", "line 8: this is no host" },
		{ "web01\n", "web\\x0\n", "line 8: this is no host" },
		{ "web01\n", "web\\x00\n", "line 8: this is no host" },
		{ "web01\n", "web\t1\n", "line 8 is not what ramseal writes" },
		{ "web01\n", "web\xff\n", "line 8 is not what ramseal writes" },
		{ "11-22T13:43:47", "11-31T13:43:47", "line 9: this is no begin" },
		{ "T13:43:47", "T24:43:47", "line 9: this is no begin" },
		{ "T13:43:47", " 13:43:47", "line 9: this is no begin" },
		{ "2026-11-22T13:43", "2555-11-22T13:43", "line 9: this is no begin" },
		{ ".000000042Z", "Z", "line 9: this is no begin" },
		{ "tool_sha256: " HASH "\n", "tool_sha256: " HASH "\n\n", "line 15" },
		{ "tool_sha256: " HASH "\n", "tool_sha256: " HASH, "line 14" },
		{ "tool_sha256: ", "tool_md5: ", "line 14" },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		check_refused(changed(cases[i].from, cases[i].to), cases[i].why);
	check_refused("", "is not a statement");
	for (size_t len = 0; len < sizeof(whole) - 1; len++) {
		struct statement s;

		/* But for the last line, without which it is a whole one. */
		if (statement_parse(whole, len, &s, NULL) != ST_INPUT)
			assert_int_equal(len, strstr(whole, "tool_sha256") - whole);
	}
}

TEST(a_nul_is_no_part_of_it)
{
	char text[sizeof(whole)];
	struct statement s;
	struct err e = ERR_INIT;

	memcpy(text, whole, sizeof(text));
	CHECK_STATUS(statement_parse(text, sizeof(text), &s, &e), ST_INPUT, &e);
	*strstr(text, "web01") = '\0';
	CHECK_STATUS(statement_parse(text, sizeof(text) - 1, &s, &e), ST_INPUT, &e);
}

TEST(an_outcome_is_of_the_seal_and_the_exit_code)
{
	assert_int_equal(statement_outcome_of(true, EXIT_COMPLETE), STATEMENT_COMPLETE);
	assert_int_equal(statement_outcome_of(true, EXIT_GAPS), STATEMENT_GAPS);
	assert_int_equal(statement_outcome_of(true, EXIT_INTERRUPTED), STATEMENT_STOPPED);
	assert_int_equal(statement_outcome_of(false, EXIT_COMPLETE), STATEMENT_UNSEALED);
	/* A number of a container, which is no exit code, is not cut to one. */
	assert_int_equal(statement_outcome_of(true, INT64_C(1) << 32), STATEMENT_STOPPED);
	assert_int_equal(statement_outcome_of(true, -1), STATEMENT_STOPPED);
}

TEST(seconds_and_dates_agree)
{
	static const struct {
		struct utc utc;
		uint64_t seconds;
	} known[] = {
		/* date -u -d ... +%s */
		{ { 1970, 1, 1, 0, 0, 0 }, 0 },
		{ { 1972, 2, 29, 23, 59, 59 }, 68255999 },
		{ { 1999, 12, 31, 23, 59, 59 }, 946684799 },
		{ { 2000, 2, 29, 12, 0, 0 }, 951825600 },
		{ { 2026, 11, 22, 13, 43, 47 }, 1795355027 },
		{ { 2100, 3, 1, 0, 0, 0 }, UINT64_C(4107542400) },
		{ { 9999, 12, 31, 23, 59, 59 }, UINT64_C(253402300799) },
	};
	uint64_t seconds;

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		assert_true(utc_seconds(&known[i].utc, &seconds));
		assert_int_equal(seconds, known[i].seconds);
	}
	/* Every day of eight thousand years. */
	for (uint64_t day = 0; day < 2932897; day++) {
		const struct utc t = utc_of(day * 86400 + day % 86400);

		assert_true(utc_seconds(&t, &seconds));
		assert_int_equal(seconds, day * 86400 + day % 86400);
	}
	assert_int_equal(utc_of(UINT64_MAX).year, 9999);
	assert_false(utc_seconds(&(struct utc){ 2100, 2, 29, 0, 0, 0 }, &seconds));
	assert_false(utc_seconds(&(struct utc){ 2026, 13, 1, 0, 0, 0 }, &seconds));
	assert_false(utc_seconds(&(struct utc){ 2026, 0, 1, 0, 0, 0 }, &seconds));
	assert_false(utc_seconds(&(struct utc){ 2026, 4, 31, 0, 0, 0 }, &seconds));
	assert_false(utc_seconds(&(struct utc){ 1969, 12, 31, 0, 0, 0 }, &seconds));
	assert_false(utc_seconds(&(struct utc){ 2026, 1, 1, 0, 0, 60 }, &seconds));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_statement_is_read_and_written_again),
		cmocka_unit_test(a_root_is_there_unless_unsealed),
		cmocka_unit_test(any_name_is_one_line),
		cmocka_unit_test(long_names_are_cut_between_characters),
		cmocka_unit_test(there_is_one_way_to_write_it),
		cmocka_unit_test(a_nul_is_no_part_of_it),
		cmocka_unit_test(an_outcome_is_of_the_seal_and_the_exit_code),
		cmocka_unit_test(seconds_and_dates_agree),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
