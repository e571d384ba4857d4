/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs a program in a job, as management agents do, and ends the job when the program has ended:
 * whatever the program left running there ends with it.
 *
 * Usage: in_job allow|forbid PROGRAM [ARGUMENT...]
 *
 * allow: what asks for it (CREATE_BREAKAWAY_FROM_JOB) may leave the job. The standard streams are
 * the program's, too. Ends with its exit code; 125: it could not be run in a job.
 */
#include <windows.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/windows/command_line.h"

static int fail(const char *what)
{
	fprintf(stderr, "in_job: %s: error %lu\n", what, (unsigned long)GetLastError());
	return 125;
}

int main(int argc, char **argv)
{
	JOBOBJECT_EXTENDED_LIMIT_INFORMATION limits = {
		.BasicLimitInformation.LimitFlags = JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE,
	};
	STARTUPINFOW startup = { .cb = sizeof(startup), .dwFlags = STARTF_USESTDHANDLES };
	const HANDLE job = CreateJobObjectW(NULL, NULL);
	PROCESS_INFORMATION process;
	DWORD code;

	if (argc < 3)
		return 125;
	if (!strcmp(argv[1], "allow"))
		limits.BasicLimitInformation.LimitFlags |= JOB_OBJECT_LIMIT_BREAKAWAY_OK;
	if (!job || !SetInformationJobObject(job, JobObjectExtendedLimitInformation, &limits,
					     sizeof(limits)))
		return fail("the job");
	startup.hStdInput = GetStdHandle(STD_INPUT_HANDLE);
	startup.hStdOutput = GetStdHandle(STD_OUTPUT_HANDLE);
	startup.hStdError = GetStdHandle(STD_ERROR_HANDLE);
	if (!CreateProcessW(NULL, rest_of_command_line(2), NULL, NULL, TRUE, CREATE_SUSPENDED, NULL,
			    NULL, &startup, &process))
		return fail("CreateProcess");
	if (!AssignProcessToJobObject(job, process.hProcess)) {
		TerminateProcess(process.hProcess, 125);
		return fail("AssignProcessToJobObject");
	}
	ResumeThread(process.hThread);
	WaitForSingleObject(process.hProcess, INFINITE);
	GetExitCodeProcess(process.hProcess, &code);
	CloseHandle(job);
	return (int)code;
}
