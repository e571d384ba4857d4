/* SPDX-License-Identifier: Apache-2.0 */
/*
 * SetThreadExecutionState(), winbase.h, Microsoft Learn: activities that are not detected by
 * themselves include disk and processor; "back-up agents" are told to use both flags. The display
 * may go dark.
 */
#include "agent/shared/program/stay_awake.h"

#ifndef WIN32_LEAN_AND_MEAN
#define WIN32_LEAN_AND_MEAN
#endif
#include <windows.h>

static bool is_on;

bool stay_awake_begin(void)
{
	/* 0 is failure: a thread's state always had one flag at least. */
	is_on = SetThreadExecutionState(ES_CONTINUOUS | ES_SYSTEM_REQUIRED) != 0;
	return is_on;
}

void stay_awake_end(void)
{
	if (is_on)
		SetThreadExecutionState(ES_CONTINUOUS);
	is_on = false;
}

bool stay_awake_is_on(void)
{
	return is_on;
}
