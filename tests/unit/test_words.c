/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/test.h"

#include <string.h>

#include "formats/base/words.h"

static const char *word_at(const void *of, size_t i)
{
	return ((const char *const *)of)[i];
}

static const char *const all[] = { "acquire", "verify", "kcore", "concurrent", "raw", "elf",
				   "tables",  "table",  "19",    "lab",        "fob", NULL };

static void check_nearest(const char *text, const char *word)
{
	const char *near = words_nearest(word_at, all, text, strlen(text));

	if (word) {
		assert_non_null(near);
		assert_string_equal(near, word);
	} else {
		assert_null(near);
	}
}

TEST(a_slip_of_the_finger_is_near)
{
	check_nearest("acqire", "acquire");   /* left out */
	check_nearest("acquuire", "acquire"); /* twice */
	check_nearest("aquire", "acquire");
	check_nearest("verfiy", "verify"); /* exchanged: one mistake, not two */
	check_nearest("kdore", "kcore");   /* another key */
	check_nearest("VERIFY", "verify");
	check_nearest("rwa", "raw");
	check_nearest("fab", "fob"); /* "lab" comes first */
}

TEST(what_is_too_far_is_not_guessed)
{
	check_nearest("nonsense", NULL);
	check_nearest("xyz", NULL);
	check_nearest("wer", NULL);
	check_nearest("elephant", NULL);
	check_nearest("", NULL);
	check_nearest("1", NULL);
	check_nearest("199", NULL); /* numbers are no words */
}

TEST(a_beginning_is_near_if_only_one_word_has_it)
{
	check_nearest("conc", "concurrent");
	check_nearest("v", "verify");
	check_nearest("tabl", "table"); /* two begin so: the nearer one */
	check_nearest("tablse", "tables");
}

TEST(words_of_any_length_are_taken)
{
	static char longer[5000];

	memset(longer, 'v', sizeof(longer) - 1);
	check_nearest(longer, NULL);
	longer[40] = '\0';
	check_nearest(longer, NULL);
	assert_string_equal(words_nearest(word_at, all, "kcor:/proc/kcore", 4), "kcore");
}

TEST(a_hint_is_the_end_of_a_message_or_nothing)
{
	char hint[WORDS_HINT_MAX];

	words_hint(word_at, all, "--", "verfy", 5, hint);
	assert_string_equal(hint, " (did you mean --verify?)");
	words_hint(word_at, all, "--", "nonsense", 8, hint);
	assert_string_equal(hint, "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_slip_of_the_finger_is_near),
		cmocka_unit_test(what_is_too_far_is_not_guessed),
		cmocka_unit_test(a_beginning_is_near_if_only_one_word_has_it),
		cmocka_unit_test(words_of_any_length_are_taken),
		cmocka_unit_test(a_hint_is_the_end_of_a_message_or_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
