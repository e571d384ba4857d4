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
		{ 31, "unload the other driver" },
		{ 127, "another version" },
		{ 182, "another version" },
		{ 577, "use the signed WinPmem" },
		{ 1058, "ramseal driver cleanup" },
		{ 1072, "restart" },
		{ 1073, "ramseal driver cleanup" },
		{ 1275, "have its SHA-256 allowed" },
		{ 4551, "have its SHA-256 allowed" },
		{ 0xc0000262, "another version" },
		{ 0xc0000263, "another version" },
		{ 0xc000036c, "have its SHA-256 allowed" },
		{ 0xc0000428, "driver inspect" },
		{ 0xc0000603, "hypervisor" },
		{ 0xc0e90002, "have its SHA-256 allowed" },
	};

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		assert_non_null(driver_advice(known[i].error));
		CHECK_HAS(driver_advice(known[i].error), known[i].action);
	}
}

static unsigned check_sentence(uint32_t error)
{
	const char *text = driver_advice(error);

	if (!text)
		return 0;
	assert_in_range(strlen(text), 20, ERR_MESSAGE_MAX / 2);
	assert_null(strpbrk(text, "\n%"));
	assert_int_not_equal(text[strlen(text) - 1], '.');
	return 1;
}

TEST(advice_is_one_sentence_that_fits_an_error_message)
{
	unsigned count = 0, statuses = 0;

	for (uint32_t error = 0; error < 70000; error++) {
		count += check_sentence(error);
		statuses += check_sentence(0xc0000000 + error);
	}
	assert_in_range(count, 20, 100);
	assert_in_range(statuses, 10, 100);
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
