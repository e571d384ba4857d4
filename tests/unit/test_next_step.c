/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/test.h"

#include <string.h>

#include "agent/collect/host/next_step.h"
#include "formats/base/err.h"

static const char *text(bool in_container, bool locked_down)
{
	const struct next_step_facts f = { in_container, locked_down };
	const char *ret = next_step_text(&f);

	/* Beside the reasons, of which acquire keeps 270 bytes, and the names of the commands. */
	assert_true(strlen(ret) + 270 + sizeof("acquire: ; next: ") < ERR_MESSAGE_MAX);
	return ret;
}

TEST(each_host_has_its_own_next_step)
{
	assert_non_null(strstr(text(true, false), "container's host"));
	assert_non_null(strstr(text(true, true), "container's host"));
	assert_non_null(strstr(text(false, true), "lockdown=none"));
	assert_non_null(strstr(text(false, true), "hypervisor"));
	assert_non_null(strstr(text(false, false), "iomem=relaxed"));
	assert_non_null(strstr(text(false, false), "--source file:DUMP"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_host_has_its_own_next_step),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
