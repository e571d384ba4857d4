/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/test.h"

#include "agent/collect/wire/secret.h"
#include "tests/unit/scratch.h"

static struct scratch dir;

static enum status read_as(const void *content, size_t len, struct secret *ret, struct err *e)
{
	char from[600];

	scratch_write(&dir, "secret", content, len);
	snprintf(from, sizeof(from), "@%s", scratch_path(&dir, "secret"));
	return secret_read(from, ret, e);
}

TEST(file_gives_what_stands_between_blanks)
{
	struct err e = ERR_INIT;
	struct secret s;

	CHECK_OK(read_as(" \t\r\nhttps://host/a b?x\r\n\n", 24, &s, &e), &e);
	assert_string_equal(s.text, "https://host/a b?x");
	assert_int_equal(s.len, 18);
	secret_wipe(&s);
	assert_null(s.text);
	secret_wipe(&s);
}

TEST(descriptor_is_read_and_closed)
{
	struct err e = ERR_INIT;
	struct secret s;
	char from[16];
	int fd;

	scratch_write(&dir, "secret", "word\n", 5);
	fd = open(scratch_path(&dir, "secret"), O_RDONLY);
	snprintf(from, sizeof(from), "fd:%d", fd);
	CHECK_OK(secret_read(from, &s, &e), &e);
	assert_string_equal(s.text, "word");
	assert_int_equal(close(fd), -1);
	secret_wipe(&s);
	CHECK_STATUS(secret_read(from, &s, &e), ST_INPUT, &e);
}

TEST(what_is_no_secret_is_refused)
{
	static const char *const said[] = { "",     "@",     "word",  "fd:",
					    "fd:x", "fd:-1", "fd:1x", "fd:99999999999999999999" };
	struct err e = ERR_INIT;
	struct secret s;
	char *long_one = calloc(1, SECRET_MAX + 1);

	for (size_t i = 0; i < ARRAY_SIZE(said); i++) {
		CHECK_STATUS(secret_read(said[i], &s, &e), ST_USAGE, &e);
		assert_null(strstr(e.message, "word"));
	}
	CHECK_STATUS(secret_read("@/not/there", &s, &e), ST_INPUT, &e);
	CHECK_HAS(e.message, "/not/there");
	CHECK_STATUS(read_as("", 0, &s, &e), ST_INPUT, &e);
	CHECK_STATUS(read_as(" \n", 2, &s, &e), ST_INPUT, &e);
	CHECK_STATUS(read_as("wo\0rd", 5, &s, &e), ST_INPUT, &e);
	assert_null(strstr(e.message, "rd"));
	memset(long_one, 'a', SECRET_MAX + 1);
	CHECK_STATUS(read_as(long_one, SECRET_MAX + 1, &s, &e), ST_INPUT, &e);
	CHECK_STATUS(secret_set(&s, long_one, SECRET_MAX + 1, &e), ST_USAGE, &e);
	CHECK_OK(read_as(long_one, SECRET_MAX, &s, &e), &e);
	assert_int_equal(s.len, SECRET_MAX);
	secret_wipe(&s);
	free(long_one);
}

TEST(environment_gives_what_is_set)
{
	static char set[] = "RAMSEAL_TEST_WORD=word", empty[] = "RAMSEAL_TEST_WORD=";
	struct err e = ERR_INIT;
	struct secret s;

	putenv(set);
	assert_true(secret_from_environment("RAMSEAL_TEST_WORD", &s, &e));
	assert_string_equal(s.text, "word");
	secret_wipe(&s);
	putenv(empty);
	assert_false(secret_from_environment("RAMSEAL_TEST_WORD", &s, &e));
	assert_false(secret_from_environment("RAMSEAL_TEST_NO_WORD", &s, &e));
}

TEST(wiped_bytes_are_zeros)
{
	char word[8] = "word";

	memory_wipe(word, sizeof(word));
	for (size_t i = 0; i < sizeof(word); i++)
		assert_int_equal(word[i], 0);
	memory_wipe(NULL, 0);
}

/* AddressSanitizer makes nothing of mlock(). */
#if !defined(_WIN32) && !defined(TEST_HAS_ASAN)
#define HAS_LOCKS
/* VmLck of /proc/self/status, kB. */
static long locked(void)
{
	char *text = calloc(1, 65536);
	FILE *f = fopen("/proc/self/status", "r");
	long ret;

	(void)!fread(text, 1, 65535, f);
	fclose(f);
	ret = strtol(strstr(text, "VmLck:") + 6, NULL, 10);
	free(text);
	return ret;
}

TEST(secret_is_locked_as_long_as_it_is_there)
{
	struct err e = ERR_INIT;
	const long before = locked();
	struct secret s;

	CHECK_OK(secret_set(&s, "word", 4, &e), &e);
	assert_true(locked() > before);
	secret_wipe(&s);
	assert_int_equal(locked(), before);
}
#endif

static int set_up(void **state)
{
	scratch_init(&dir);
	return 0;
}

static int tear_down(void **state)
{
	scratch_deinit(&dir);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(file_gives_what_stands_between_blanks),
		cmocka_unit_test(descriptor_is_read_and_closed),
		cmocka_unit_test(what_is_no_secret_is_refused),
		cmocka_unit_test(environment_gives_what_is_set),
		cmocka_unit_test(wiped_bytes_are_zeros),
#ifdef HAS_LOCKS
		cmocka_unit_test(secret_is_locked_as_long_as_it_is_there),
#endif
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
