/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/shared/program/detach_internal.h"

#include <fcntl.h>
#include <io.h>
#include <stdlib.h>

#include "agent/shared/program/startup.h"
#include "formats/base/win32.h"

/*
 * How the new process knows what it is: the command line is the one that the container tells of,
 * and stays as it was.
 */
#define MARK        L"RAMSEAL_DETACHED"

#define FLAGS       (DETACHED_PROCESS | EXTENDED_STARTUPINFO_PRESENT)

#define STREAMS_MAX 3

static HANDLE child;

/* Of the new process, each a handle that can be inherited and is ours to close. */
struct streams {
	HANDLE in, out, err;
};

static void streams_deinit(struct streams *s)
{
	cleanup_handle(&s->in);
	cleanup_handle(&s->out);
	cleanup_handle(&s->err);
}

static HANDLE open_nul(void)
{
	SECURITY_ATTRIBUTES inherit = { .nLength = sizeof(inherit), .bInheritHandle = TRUE };

	return CreateFileW(L"NUL", GENERIC_READ | GENERIC_WRITE, FILE_SHARE_READ | FILE_SHARE_WRITE,
			   &inherit, OPEN_EXISTING, 0, NULL);
}

/* Secrets may come that way. A console is of no use to who has none. */
static HANDLE inheritable_stdin(void)
{
	const HANDLE own = GetStdHandle(STD_INPUT_HANDLE);
	const DWORD type = own && own != INVALID_HANDLE_VALUE ? GetFileType(own) : 0;
	HANDLE ret;

	if ((type == FILE_TYPE_PIPE || type == FILE_TYPE_DISK) &&
	    DuplicateHandle(GetCurrentProcess(), own, GetCurrentProcess(), &ret, 0, TRUE,
			    DUPLICATE_SAME_ACCESS))
		return ret;
	return open_nul();
}

static bool make_child_streams(struct streams *ret, HANDLE *ret_read)
{
	SECURITY_ATTRIBUTES own = { .nLength = sizeof(own) };

	*ret = (struct streams){ .in = inheritable_stdin(), .out = open_nul() };
	return CreatePipe(ret_read, &ret->err, &own, 0) &&
	       SetHandleInformation(ret->err, HANDLE_FLAG_INHERIT, HANDLE_FLAG_INHERIT);
}

/*
 * First out of the job, as management channels end with their job everything that they started;
 * then, if the job does not allow that, in it.
 */
static bool create_detached(STARTUPINFOEXW *start, PROCESS_INFORMATION *ret)
{
	wchar_t self[32768];
	_cleanup_free_ wchar_t *line = wcsdup(GetCommandLineW());
	const DWORD size = GetModuleFileNameW(NULL, self, ARRAY_SIZE(self));

	if (!size || size == ARRAY_SIZE(self) || !line) {
		SetLastError(ERROR_NOT_ENOUGH_MEMORY);
		return false;
	}
	return CreateProcessW(self, line, NULL, NULL, TRUE, FLAGS | CREATE_BREAKAWAY_FROM_JOB, NULL,
			      NULL, &start->StartupInfo, ret) ||
	       (GetLastError() == ERROR_ACCESS_DENIED &&
		CreateProcessW(self, line, NULL, NULL, TRUE, FLAGS, NULL, NULL, &start->StartupInfo,
			       ret));
}

/* The new process is given these handles and no others, whatever else can be inherited. */
static bool create_with(const struct streams *s, PROCESS_INFORMATION *ret)
{
	HANDLE list[STREAMS_MAX] = { s->in, s->out, s->err };
	STARTUPINFOEXW start = { .StartupInfo = { .cb = sizeof(start),
						  .dwFlags = STARTF_USESTDHANDLES,
						  .hStdInput = s->in,
						  .hStdOutput = s->out,
						  .hStdError = s->err } };
	SIZE_T size = 0;
	bool ok;

	InitializeProcThreadAttributeList(NULL, 1, 0, &size);
	start.lpAttributeList = malloc(size);
	if (!start.lpAttributeList ||
	    !InitializeProcThreadAttributeList(start.lpAttributeList, 1, 0, &size)) {
		free(start.lpAttributeList);
		return false;
	}
	ok = UpdateProcThreadAttribute(start.lpAttributeList, 0, PROC_THREAD_ATTRIBUTE_HANDLE_LIST,
				       list, sizeof(list), NULL, NULL) &&
	     create_detached(&start, ret);
	DeleteProcThreadAttributeList(start.lpAttributeList);
	free(start.lpAttributeList);
	return ok;
}

enum status detach__start(int *ret_pipe, struct err *e)
{
	struct streams s = { 0 };
	PROCESS_INFORMATION process;
	HANDLE pipe = NULL;
	DWORD failed;
	bool ok;

	*ret_pipe = -1;
	if (GetEnvironmentVariableW(MARK, NULL, 0)) {
		SetEnvironmentVariableW(MARK, NULL);
		return ST_OK;
	}
	SetEnvironmentVariableW(MARK, L"1");
	ok = make_child_streams(&s, &pipe) && create_with(&s, &process);
	failed = GetLastError();
	SetEnvironmentVariableW(MARK, NULL);
	streams_deinit(&s);
	if (!ok) {
		cleanup_handle(&pipe);
		return err_from_win32(e, ST_SYSTEM, failed, "a process of its own");
	}
	CloseHandle(process.hThread);
	child = process.hProcess;
	*ret_pipe = _open_osfhandle((intptr_t)pipe, _O_RDONLY | _O_BINARY | _O_NOINHERIT);
	if (*ret_pipe >= 0)
		return ST_OK;
	TerminateProcess(child, 1);
	cleanup_handle(&pipe);
	return err_set(e, ST_SYSTEM, "a pipe to the new process: too many open files");
}

/* A read of a pipe lets nobody in between. */
bool detach__wait(int pipe)
{
	const HANDLE h = (HANDLE)_get_osfhandle(pipe);
	DWORD there = 0;

	for (int i = 0; i < 10; i++) {
		if (!PeekNamedPipe(h, NULL, 0, NULL, &there, NULL) || there)
			return true;
		Sleep(50);
	}
	return false;
}

/* It has no console that an event could come from; `ramseal stop` asks it. */
void detach__stop(void)
{
}

enum status detach__end(int *ret_code, struct err *e)
{
	DWORD code = 0;

	WaitForSingleObject(child, INFINITE);
	if (!GetExitCodeProcess(child, &code))
		return err_from_win32(e, ST_SYSTEM, GetLastError(), "the detached process");
	/* Ours are small; what Windows ends a process with is an NTSTATUS. */
	if (code > 255)
		return err_set(e, ST_DIED, "the detached process died: 0x%lx", (unsigned long)code);
	*ret_code = (int)code;
	return ST_OK;
}

void detach__let_go(void)
{
	startup_drop_streams();
}

bool detach_passes_descriptors(void)
{
	return false;
}

bool detach_is_held(void)
{
	BOOL in_job = FALSE;

	return IsProcessInJob(GetCurrentProcess(), NULL, &in_job) && in_job;
}
