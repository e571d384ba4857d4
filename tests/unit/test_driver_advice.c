/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/test.h"

#include <string.h>

#include "driver-interface/driver_advice.h"

/* What the manuals of peers have users ask about; each must be told what to do. */
TEST(known_failures_say_what_to_do)
{
	static const struct {
		uint32_t error;
		const char *action;
	} known[] = {
		{ 5, "started as Administrator" },
		{ 31, "unload the other one" },
		{ 577, "use the signed WinPmem" },
		{ 1058, "ramseal driver cleanup" },
		{ 1072, "restart" },
		{ 1073, "ramseal driver cleanup" },
		{ 1275, "have its SHA-256 allowed" },
	};

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		assert_non_null(driver_advice(known[i].error));
		CHECK_HAS(driver_advice(known[i].error), known[i].action);
	}
}

TEST(advice_is_one_sentence_that_fits_an_error_message)
{
	unsigned count = 0;

	for (uint32_t error = 0; error < 70000; error++) {
		const char *text = driver_advice(error);

		if (!text)
			continue;
		count++;
		assert_in_range(strlen(text), 20, ERR_MESSAGE_MAX / 2);
		assert_null(strchr(text, '\n'));
		assert_int_not_equal(text[strlen(text) - 1], '.');
	}
	assert_in_range(count, 7, 100);
	assert_null(driver_advice(0));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(known_failures_say_what_to_do),
		cmocka_unit_test(advice_is_one_sentence_that_fits_an_error_message),
	};

	return cmocka_run_group_tests_name("driver_advice", tests, NULL, NULL);
}
