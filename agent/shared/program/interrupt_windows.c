/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/shared/program/interrupt.h"

#include "formats/base/win32.h"

static const char *event_name_of(DWORD event)
{
	switch (event) {
	case CTRL_C_EVENT:
		return "Ctrl-C";
	case CTRL_BREAK_EVENT:
		return "Ctrl-Break";
	case CTRL_CLOSE_EVENT:
		return "a closed console";
	case CTRL_LOGOFF_EVENT:
		return "logoff";
	default:
		return "shutdown";
	}
}

/* Runs on a thread of its own. */
static BOOL WINAPI on_event(DWORD event)
{
	const bool final = event == CTRL_CLOSE_EVENT || event == CTRL_LOGOFF_EVENT ||
			   event == CTRL_SHUTDOWN_EVENT;
	const bool first = interrupt_ask(event_name_of(event));

	/*
	 * When this returns, the process ends; and it ends anyway after some seconds (5 for a
	 * closed console, HungAppTimeout). Until then main() seals what it has, and ends it by
	 * itself.
	 */
	if (final)
		Sleep(INFINITE);
	/* The second Ctrl-C is the system's: it ends the program at once. */
	return first;
}

void interrupt_init(void)
{
	SetConsoleCtrlHandler(on_event, TRUE);
}
