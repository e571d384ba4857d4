/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The border to Win32: its error numbers as our errors, its UTF-16 as our UTF-8. Windows only.
 */
#ifndef RAMSEAL_BASE_WIN32_H
#define RAMSEAL_BASE_WIN32_H

#include <stdbool.h>
#include <windows.h>

#include "formats/base/err.h"

/* "context: what Windows calls it (error 5)", in English where Windows has it. */
enum status err_from_win32(struct err *e, enum status st, DWORD code, const char *fmt, ...)
	PRINTF_LIKE(4, 5);

/* The errno that the C library would have for it; EIO for what it does not know. */
int win32_errno(DWORD code);

/*
 * For free(); NULL if out of memory. Bytes that are no UTF-8, and lone surrogates, become U+FFFD.
 */
wchar_t *win32_wide(const char *utf8);
char *win32_utf8(const wchar_t *wide);

/*
 * A path for the W functions, for free(); NULL if out of memory: slashes become backslashes, and
 * what is too long for a function that counts to MAX_PATH gets the prefix that lifts the limit
 * (\\?\; it wants a full path without "." and ".."). Paths that begin with \\?\ or \\.\ stay as
 * they are.
 */
wchar_t *win32_path(const char *utf8);

/* The opposite, for people and files: without the prefix. */
char *win32_plain_path(const wchar_t *wide);

/* A function of a system DLL that older versions of Windows may lack; NULL then. */
FARPROC win32_function(const wchar_t *dll, const char *name);

/*
 * What NtQuerySystemInformation() answers in a class whose answer has no fixed size, for free().
 * NULL: Windows does not tell, or more than `most` bytes.
 */
uint8_t *win32_query_system(int class, ULONG most, ULONG *ret_size);

/* For what only we may read: 0600, in Windows' terms. For LocalFree(); NULL if there is none. */
PSECURITY_DESCRIPTOR win32_private_descriptor(void);

/*
 * The same as what CreateFile() and the like take. False, and GetLastError(): there is none, and
 * then nothing must be made: without one it would have what the folder above passes on, or the
 * default of whoever runs this.
 */
bool win32_private_begin(SECURITY_ATTRIBUTES *ret);
void win32_private_end(SECURITY_ATTRIBUTES *a); /* GetLastError() stays */

/* A test sets it: then there is none. */
extern bool win32_no_descriptor;

/* Made by the administrators, the system, or the one who runs this program. */
bool win32_owner_is_trusted(PSECURITY_DESCRIPTOR d);

#define _cleanup_handle_ CLEANUP(cleanup_handle)

static inline void cleanup_handle(HANDLE *h)
{
	if (*h && *h != INVALID_HANDLE_VALUE)
		CloseHandle(*h);
}

/*
 * A DLL of Windows' own, by its full path, whatever lies beside the program: Windows 7 may not know
 * LOAD_LIBRARY_SEARCH_SYSTEM32. NULL: see GetLastError(). It stays loaded.
 */
HMODULE win32_load_system_dll(const wchar_t *name);

#endif
