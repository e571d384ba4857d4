/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/test.h"

#include <string.h>

#include "agent/shared/output/output.h"

static void check_place(const char *path, const char *name, const char *wanted)
{
	const struct output_options o = { .path = path, .name = name };
	_cleanup_free_ char *at = NULL;
	struct err e = ERR_INIT;

	CHECK_OK(output_place(&o, &at, &e), &e);
	assert_string_equal(at, wanted);
}

/* The names of streams come from the machine that was acquired, or from who forged a container. */
TEST(name_in_a_directory_leads_nowhere_else)
{
	static const struct {
		const char *name, *file;
	} names[] = {
		{ "host.raw", "/tmp/host.raw" },
		{ "C:\\dir\\pagefile.sys", "/tmp/pagefile.sys" },
		{ "/etc/passwd", "/tmp/passwd" },
		{ "../../x", "/tmp/x" },
		{ "a/..", "/tmp/_." },
		{ "..", "/tmp/_." },
		{ ".", "/tmp/_" },
		{ "", "/tmp/_" },
		{ "/", "/tmp/_" },
		{ "a/", "/tmp/a_" },
		{ ".profile", "/tmp/_profile" },
		{ "notes.txt:stream", "/tmp/notes.txt_stream" },
		{ "\x1b[31mred\n", "/tmp/_[31mred_" },
		{ "\xd0\xb6.sys", "/tmp/\xd0\xb6.sys" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		check_place("/tmp/", names[i].name, names[i].file);
		check_place("/tmp", names[i].name, names[i].file);
	}
	check_place("-", "a", "-");
	check_place("s3://bucket/folder/", "a", "s3://bucket/folder/");
	check_place("/nonexistent", "a", "/nonexistent");
}

TEST(what_is_too_long_is_cut_between_characters_and_keeps_its_suffix)
{
	char container[400] = "x";
	_cleanup_free_ char *made = NULL, *at = NULL;
	struct err e = ERR_INIT;
	size_t len;

	while (strlen(container) < 300)
		strcat(container,
		       "\xe8\xaa\x9e"); /* the first byte makes the limit fall inside of one */
	strcat(container, ".rsz");
	made = output_name_of(container, ".raw");
	CHECK_OK(output_place(&(struct output_options){ .path = "/tmp", .name = made }, &at, &e),
		 &e);
	len = strlen(at);
	assert_string_equal(at + len - 4, ".raw");
	assert_true(len < 5 + 200);
	assert_int_equal((len - 5 - 1 - 4) % 3, 0);

	free(at);
	CHECK_OK(output_place(&(struct output_options){ .path = "/tmp", .name = container }, &at,
			      &e),
		 &e);
	assert_int_equal((strlen(at) - 5 - 1) % 3, 0);
}

TEST(name_in_a_directory_is_not_too_long)
{
	char longer[1000];
	_cleanup_free_ char *at = NULL;
	struct err e = ERR_INIT;

	memset(longer, 'x', sizeof(longer) - 1);
	longer[sizeof(longer) - 1] = '\0';
	CHECK_OK(output_place(&(struct output_options){ .path = "/tmp", .name = longer }, &at, &e),
		 &e);
	assert_true(strlen(at) < 5 + 240); /* .partial and .gaps.json come behind it */
}

TEST(name_of_what_is_made_of_a_container)
{
	static const char *const paths[] = {
		"host.rsz",           "/a.b/host.rsz",        "host.rsz.age",
		"x/host.rsz.partial", "host.rsz.age.partial", "host"
	};

	for (size_t i = 0; i < ARRAY_SIZE(paths); i++) {
		_cleanup_free_ char *name = output_name_of(paths[i], ".raw");

		assert_string_equal(name, "host.raw");
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(name_in_a_directory_leads_nowhere_else),
		cmocka_unit_test(what_is_too_long_is_cut_between_characters_and_keeps_its_suffix),
		cmocka_unit_test(name_in_a_directory_is_not_too_long),
		cmocka_unit_test(name_of_what_is_made_of_a_container),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
