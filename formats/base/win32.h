/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The border to Win32: its error numbers as our errors, its UTF-16 as our UTF-8. Windows only.
 */
#ifndef RAMSEAL_BASE_WIN32_H
#define RAMSEAL_BASE_WIN32_H

#include <stdbool.h>
#include <windows.h>

#include "formats/base/err.h"

/* "context: Windows's text (error 5)", in English if Windows has that. */
enum status err_from_win32(struct err *e, enum status st, DWORD code, const char *fmt, ...)
	PRINTF_LIKE(4, 5);

/* The errno that the C library would use; EIO for unknown codes. */
int win32_errno(DWORD code);

/* For free(); NULL if out of memory. Invalid UTF-8 and lone surrogates become U+FFFD. */
wchar_t *win32_wide(const char *utf8);
char *win32_utf8(const wchar_t *wide);

/*
 * A path for the W functions, for free(); NULL if out of memory: slashes become backslashes, and a
 * path beyond MAX_PATH gets the prefix that lifts that limit (\\?\, which needs a full path without
 * "." and ".."). Paths that begin with \\?\ or \\.\ stay as they are.
 */
wchar_t *win32_path(const char *utf8);

/* The opposite, for people and files: without the prefix. */
char *win32_plain_path(const wchar_t *wide);

/* A function of a system DLL that older versions of Windows may lack; NULL then. */
FARPROC win32_function(const wchar_t *dll, const char *name);

/*
 * What NtQuerySystemInformation() answers in a class whose answer has no fixed size, for free().
 * NULL: Windows gives no answer, or one of more than `most` bytes.
 */
uint8_t *win32_query_system(int class, ULONG most, ULONG *ret_size);

/* Access for us alone, like mode 0600. For LocalFree(); NULL on failure. */
PSECURITY_DESCRIPTOR win32_private_descriptor(void);

/*
 * The same for CreateFile() and similar functions. False, with GetLastError(), on failure: then
 * nothing must be created, because it would inherit the folder's access or get the user's default.
 */
bool win32_private_begin(SECURITY_ATTRIBUTES *ret);
void win32_private_end(SECURITY_ATTRIBUTES *a); /* GetLastError() stays */

/* Set by a test: then both fail. */
extern bool win32_no_descriptor;

/* True if the owner is the administrators, the system, or the user who runs this program. */
bool win32_owner_is_trusted(PSECURITY_DESCRIPTOR d);

/*
 * False of what lies on a file system that knows no owners (FAT, exFAT): whoever may write there at
 * all may have made it, and may change whatever else is there.
 */
bool win32_knows_owners(const wchar_t *path);
/* A test sets it: as if there were none. */
extern bool win32_no_owners;

#define _cleanup_handle_ CLEANUP(cleanup_handle)

static inline void cleanup_handle(HANDLE *h)
{
	if (*h && *h != INVALID_HANDLE_VALUE)
		CloseHandle(*h);
}

/*
 * A DLL of Windows itself, by its full path, so that one beside the program is ignored: Windows 7
 * may lack LOAD_LIBRARY_SEARCH_SYSTEM32. NULL: see GetLastError(). It stays loaded.
 */
HMODULE win32_load_system_dll(const wchar_t *name);

#endif
