/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs a program and delivers console events to it, closing and logoff included, which no program
 * can ask Windows for (GenerateConsoleCtrlEvent() has Ctrl-C and Ctrl-Break only). Windows delivers
 * them all in the same way: by a new thread in the program that starts in CtrlRoutine(), which
 * calls the handlers, the last one first. So does this.
 *
 * Usage: console_event PROGRAM [ARGUMENT...]
 *
 * Standard streams but stdin are the program's, too. Each line of stdin is an event, by its number
 * in wincon.h. Ends with the program's exit code, behind the end of stdin.
 */
#include <windows.h>

#include <stdio.h>
#include <stdlib.h>

#include "tests/windows/command_line.h"

static int fail(const char *what)
{
	fprintf(stderr, "console_event: %s: error %lu\n", what, (unsigned long)GetLastError());
	return 125;
}

int main(void)
{
	/* In every process at the same address, as kernel32.dll and kernelbase.dll are. */
	const HMODULE base = GetModuleHandleW(L"kernelbase.dll");
	const LPTHREAD_START_ROUTINE routine =
		(LPTHREAD_START_ROUTINE)(void (*)(void))GetProcAddress(base, "CtrlRoutine");
	STARTUPINFOW startup = { .cb = sizeof(startup), .dwFlags = STARTF_USESTDHANDLES };
	PROCESS_INFORMATION process;
	DWORD code;
	char line[16];

	startup.hStdInput = INVALID_HANDLE_VALUE;
	startup.hStdOutput = GetStdHandle(STD_OUTPUT_HANDLE);
	startup.hStdError = GetStdHandle(STD_ERROR_HANDLE);
	if (!routine)
		return fail("CtrlRoutine");
	if (!CreateProcessW(NULL, rest_of_command_line(1), NULL, NULL, TRUE, 0, NULL, NULL,
			    &startup, &process))
		return fail("CreateProcess");
	/* The program alone is to have the other end of what it writes to. */
	CloseHandle(startup.hStdOutput);
	CloseHandle(startup.hStdError);
	while (fgets(line, sizeof(line), stdin)) {
		const HANDLE thread = CreateRemoteThread(process.hProcess, NULL, 0, routine,
							 (void *)(ULONG_PTR)atoi(line), 0, NULL);

		if (!thread && WaitForSingleObject(process.hProcess, 0) != WAIT_OBJECT_0)
			return 125;
		if (thread)
			CloseHandle(thread);
	}
	WaitForSingleObject(process.hProcess, INFINITE);
	GetExitCodeProcess(process.hProcess, &code);
	return (int)code;
}
