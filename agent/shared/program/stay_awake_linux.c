/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/shared/program/stay_awake.h"

bool stay_awake_begin(void)
{
	return false;
}

void stay_awake_end(void)
{
}

bool stay_awake_is_on(void)
{
	return false;
}
