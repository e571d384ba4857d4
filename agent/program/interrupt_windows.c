/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/program/interrupt.h"

#include <stdatomic.h>
#include <stddef.h>

#include "formats/base/win32.h"

/* The event plus one; 0: none so far. Handlers run on a thread of their own. */
static atomic_int first_event;

static BOOL WINAPI on_event(DWORD event)
{
	const bool final = event == CTRL_CLOSE_EVENT || event == CTRL_LOGOFF_EVENT ||
			   event == CTRL_SHUTDOWN_EVENT;
	int none = 0;
	const bool first = atomic_compare_exchange_strong(&first_event, &none, (int)event + 1);

	/*
	 * When this returns, the process ends; and it ends anyway after some seconds (5 for a closed
	 * console, HungAppTimeout). Until then main() seals what it has, and ends it by itself.
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

bool interrupted(void)
{
	return atomic_load(&first_event) != 0;
}

const char *interrupt_name(void)
{
	switch (atomic_load(&first_event) - 1) {
	case -1:
		return NULL;
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
