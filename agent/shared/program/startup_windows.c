/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/shared/program/startup.h"

#include <errno.h>
#include <fcntl.h>
#include <io.h>
#include <stdio.h>
#include <stdlib.h>

#include "formats/base/win32.h"

/* werapi.h has it; mingw-w64's needs WINVER's newest to be included alone. */
#ifndef WER_FAULT_REPORTING_FLAG_NOHEAP
#define WER_FAULT_REPORTING_FLAG_NOHEAP 1
#endif

/* Of the C library; mingw-w64 has it in a header of its own (internal.h). */
struct startup_info {
	int new_mode;
};

_CRTIMP int __cdecl __wgetmainargs(int *argc, wchar_t ***argv, wchar_t ***environment,
				   int expand_wildcards, struct startup_info *info);

static UINT old_output_page;

/* The console outlives us: a cmd.exe that stayed in UTF-8 would surprise what runs next in it. */
static void restore_console(void)
{
	SetConsoleOutputCP(old_output_page);
}

static void set_console(void)
{
	old_output_page = GetConsoleOutputCP();
	if (old_output_page && old_output_page != CP_UTF8 && SetConsoleOutputCP(CP_UTF8))
		atexit(restore_console);
}

/*
 * The C library makes argv from the command line by the code page of the system, and what that has
 * no letter for is lost. The manifest asks for UTF-8, but Windows before 10.0.18362 does not know
 * that.
 */
static void take_wide_arguments(int *argc, char ***argv)
{
	wchar_t **wide = NULL, **environment = NULL;
	struct startup_info start = { 0 };
	int n = 0, i = 0;
	char **ret;

	/* What main() would get if it were wmain(); wildcards stay as they are. */
	if (__wgetmainargs(&n, &wide, &environment, 0, &start) || n < 1)
		return;
	ret = calloc((size_t)n + 1, sizeof(*ret));
	while (ret && i < n && (ret[i] = win32_utf8(wide[i])))
		i++;
	if (!ret || i < n) { /* no memory: what the C library made must do */
		free(ret);
		return;
	}
	*argc = n;
	*argv = ret;
}

/*
 * A closed standard handle has a descriptor that is closed too, whose number the next file would
 * get; see startup_linux.c.
 */
static void keep_standard_descriptors(void)
{
	for (int fd = 0; fd < 3; fd++) {
		int other;

		if (_get_osfhandle(fd) != -1 && _get_osfhandle(fd) != -2)
			continue;
		other = _open("NUL", (fd ? _O_RDONLY : _O_WRONLY) | _O_BINARY);
		if (other >= 0 && other != fd) {
			_dup2(other, fd);
			_close(other);
		}
	}
}

void startup_drop_streams(void)
{
	const int nothing = _open("NUL", _O_RDWR | _O_BINARY);

	for (int fd = 0; fd < 3; fd++)
		_dup2(nothing, fd);
	if (nothing > 2)
		_close(nothing);
}

/* An invalid descriptor is EBADF, and no reason to end the program with a crash report. */
static void ignore_parameter(const wchar_t *expression, const wchar_t *function,
			     const wchar_t *file, unsigned line, uintptr_t reserved)
{
}

/*
 * A dump would hold keys and the memory of the host. SEM_NOGPFAULTERRORBOX, set beside this, ends
 * who crashes without Windows Error Reporting (R. Chen, "The unintentionally-expanding scope of the
 * SEM_NOGPFAULTERRORBOX flag", The Old New Thing, 27 February 2023), and so also without the files
 * of its LocalDumps. What is reported all the same, a __fastfail() for one, of which no filter in
 * this process hears, has no heap in it (WerSetFlags(), Vista and later). Its stacks stay in it.
 */
static void leave_no_dump(void)
{
	HRESULT(WINAPI * set_flags)
	(DWORD) = (HRESULT(WINAPI *)(DWORD))(void (*)(void))win32_function(L"kernel32.dll",
									   "WerSetFlags");

	if (set_flags)
		set_flags(WER_FAULT_REPORTING_FLAG_NOHEAP);
}

void startup(int *argc, char ***argv)
{
	/*
	 * DLLs that are loaded from now on (bcrypt's providers, for one) come from System32, never
	 * from the folder that we or the user happen to be in. Windows 7 may lack it (KB2533623).
	 */
	BOOL(WINAPI * set_directories)
	(DWORD) = (BOOL(WINAPI *)(DWORD))(void (*)(void))win32_function(L"kernel32.dll",
									"SetDefaultDllDirectories");

	if (set_directories)
		set_directories(LOAD_LIBRARY_SEARCH_SYSTEM32);
	SetDllDirectoryW(L"");
	/* No message box for a drive without a medium: nobody may be there to click it away. */
	SetErrorMode(SEM_FAILCRITICALERRORS | SEM_NOOPENFILEERRORBOX | SEM_NOGPFAULTERRORBOX);
	leave_no_dump();
	_set_invalid_parameter_handler(ignore_parameter);
	keep_standard_descriptors();
	for (int fd = 0; fd < 3; fd++)
		_setmode(fd, _O_BINARY);
	set_console();
	take_wide_arguments(argc, argv);
}
