/* SPDX-License-Identifier: Apache-2.0 */
/* --pid: a PID or a name, and which process a name means. */
#include "tests/unit/test.h"

#include "agent/examine/show/process_choice.h"
#include "agent/examine/smear/spaces.h"

static struct smear_id ids[] = {
	{ .dtb = 0x1000, .listed = true, .pid = 4, .name = (char[]){ "System" } },
	{ .dtb = 0x2000, .listed = true, .pid = 1148, .name = (char[]){ "svchost.exe" } },
	{ .dtb = 0x3000, .listed = true, .pid = 812, .name = (char[]){ "svchost.exe" } },
	{ .dtb = 0x4000,
	  .listed = true,
	  .pid = 812,
	  .name = (char[]){ "svchost.exe" } }, /* used again */
	{ .dtb = 0x5000, .listed = true, .pid = 900, .name = (char[]){ "SearchIndexer." } },
	{ .dtb = 0x6000, .listed = true, .pid = 901, .name = (char[]){ "fifteen_letters" } },
	{ .dtb = 0x7000, .listed = true, .pid = 902, .name = (char[]){ "short.exe" } },
	{ .dtb = 0x8000, .listed = false, .pid = 0, .name = NULL },
};
static const struct smear_spaces spaces = { .at = ids, .count = ARRAY_SIZE(ids) };

static void check_name(const char *name, uint32_t want)
{
	struct err e = ERR_INIT;
	uint32_t pid = 0;

	CHECK_OK(smear_spaces_pid(&spaces, name, &pid, &e), &e);
	assert_int_equal(pid, want);
}

static void check_none(const char *name)
{
	struct err e = ERR_INIT;
	uint32_t pid = 77;

	CHECK_STATUS(smear_spaces_pid(&spaces, name, &pid, &e), ST_INPUT, &e);
	CHECK_HAS(e.message, name);
	assert_int_equal(pid, 77);
}

TEST(name_is_compared_in_any_case)
{
	check_name("System", 4);
	check_name("SYSTEM", 4);
	check_name("short.EXE", 902);
	check_none("Syste");
	check_none("Systems");
}

TEST(name_that_the_kernel_cut_is_known_by_its_beginning)
{
	check_name("SearchIndexer.exe", 900);
	check_name("searchindexer.exe", 900);
	check_name("SearchIndexer.", 900);
	check_name("fifteen_letters_and_more", 901);
	check_none("SearchIndexe");
	check_none("SearchIndexing.exe");
	check_none("short.exe.exe");
}

TEST(several_of_a_name_are_listed)
{
	struct err e = ERR_INIT;
	uint32_t pid;

	CHECK_STATUS(smear_spaces_pid(&spaces, "SvcHost.exe", &pid, &e), ST_USAGE, &e);
	CHECK_HAS(e.message, "2 processes");
	CHECK_HAS(e.message, ": 812, 1148");
}

TEST(long_list_says_how_many_it_leaves_out)
{
	static char x[] = "x";
	static struct smear_id many[1000];
	const struct smear_spaces s = { .at = many, .count = ARRAY_SIZE(many) };
	struct err e = ERR_INIT;
	unsigned listed = 0, left = 0;
	uint32_t pid;

	for (uint32_t i = 0; i < ARRAY_SIZE(many); i++)
		many[i] = (struct smear_id){ .listed = true, .pid = 100000 + i, .name = x };
	CHECK_STATUS(smear_spaces_pid(&s, "x", &pid, &e), ST_USAGE, &e);
	for (const char *at = strstr(e.message, "PID: "); at; at = strchr(at + 1, ','))
		listed++;
	assert_int_equal(sscanf(strstr(e.message, " and "), " and %u more", &left), 1);
	assert_int_equal(listed + left, ARRAY_SIZE(many));
}

static void check_choice(const char *text, uint32_t pid, const char *name, const char *shown)
{
	char file[PROCESS_CHOICE_TEXT];
	struct err e = ERR_INIT;
	struct process_choice c;

	CHECK_OK(process_choice_parse(text, &c, &e), &e);
	assert_int_equal(c.pid, pid);
	assert_int_equal(c.name != NULL, name != NULL);
	if (name)
		assert_string_equal(c.name, name);
	process_choice_text(&c, file);
	assert_string_equal(file, shown);
}

TEST(numbers_are_pids_and_all_else_are_names)
{
	check_choice("0", 0, NULL, "0");
	check_choice("4294967295", UINT32_MAX, NULL, "4294967295");
	check_choice("0x47c", 1148, NULL, "1148");
	check_choice("svchost.exe", 0, "svchost.exe", "svchost.exe");
	check_choice("7z.exe", 0, "7z.exe", "7z.exe");
	check_choice("0x.exe", 0, "0x.exe", "0x.exe");
	check_choice("kworker/0:1", 0, "kworker/0:1", "kworker_0_1");
}

TEST(what_is_neither_is_refused)
{
	static const char *const bad[] = { "", "-1", "4294967296", "99999999999999999999999" };

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		struct err e = ERR_INIT;
		struct process_choice c;

		CHECK_STATUS(process_choice_parse(bad[i], &c, &e), ST_USAGE, &e);
		CHECK_HAS(e.message, "takes a number");
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(name_is_compared_in_any_case),
		cmocka_unit_test(name_that_the_kernel_cut_is_known_by_its_beginning),
		cmocka_unit_test(several_of_a_name_are_listed),
		cmocka_unit_test(long_list_says_how_many_it_leaves_out),
		cmocka_unit_test(numbers_are_pids_and_all_else_are_names),
		cmocka_unit_test(what_is_neither_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
