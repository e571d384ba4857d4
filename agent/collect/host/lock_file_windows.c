/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/collect/host/lock_file.h"

#include <stdlib.h>
#include <string.h>

#include "formats/base/win32.h"

/*
 * Who only looks is in the way for a moment: a file that is shared for reading alone cannot be
 * opened for writing. So that is tried again for this long.
 */
#define TRIES    20
#define PAUSE_MS 25

struct lock_file {
	HANDLE file;
};

/* Follows no link; a new file is ours alone. */
static HANDLE open_to_hold(const wchar_t *path)
{
	SECURITY_ATTRIBUTES attributes;
	HANDLE ret = INVALID_HANDLE_VALUE;
	DWORD failed = 0;

	if (!win32_private_begin(&attributes))
		return ret;
	for (int i = 0; i < TRIES && ret == INVALID_HANDLE_VALUE; i++) {
		ret = CreateFileW(path, GENERIC_READ | GENERIC_WRITE, FILE_SHARE_READ, &attributes,
				  OPEN_ALWAYS, FILE_FLAG_OPEN_REPARSE_POINT, NULL);
		failed = GetLastError();
		if (ret == INVALID_HANDLE_VALUE && failed != ERROR_SHARING_VIOLATION)
			break;
		if (ret == INVALID_HANDLE_VALUE)
			Sleep(PAUSE_MS);
	}
	SetLastError(failed);
	win32_private_end(&attributes);
	return ret;
}

static enum status check_plain(HANDLE file, const char *path, struct err *e)
{
	BY_HANDLE_FILE_INFORMATION info;

	if (GetFileInformationByHandle(file, &info) && info.nNumberOfLinks == 1 &&
	    !(info.dwFileAttributes & (FILE_ATTRIBUTE_REPARSE_POINT | FILE_ATTRIBUTE_DIRECTORY)))
		return ST_OK;
	return err_set(e, ST_OUTPUT, "%s: was not made by ramseal", path);
}

/* All that we write into one is the path of a state. */
static enum status check_lock(HANDLE file, const char *path, struct err *e)
{
	char first[2];
	DWORD n = 0;

	if (ReadFile(file, first, sizeof(first), &n, NULL) &&
	    SetFilePointer(file, 0, NULL, FILE_BEGIN) == 0 &&
	    (n == 0 || (n == 2 && (first[1] == ':' || first[0] == '\\'))))
		return ST_OK;
	return err_set(e, ST_OUTPUT, "%s: is not a lock file of ramseal", path);
}

enum status lock_file_take(const char *path, const char *text, struct lock_file **ret,
			   struct err *e)
{
	_cleanup_free_ wchar_t *wide = win32_path(path);
	_cleanup_free_ struct lock_file *l = malloc(sizeof(*l));
	DWORD done;
	enum status st;

	*ret = NULL;
	if (!wide || !l)
		return err_nomem(e);
	l->file = open_to_hold(wide);
	if (l->file == INVALID_HANDLE_VALUE && GetLastError() == ERROR_SHARING_VIOLATION)
		return err_set(e, ST_RUNNING, "%s: is locked", path);
	if (l->file == INVALID_HANDLE_VALUE)
		return err_from_win32(e, ST_OUTPUT, GetLastError(), "%s", path);
	st = check_plain(l->file, path, e);
	if (!st)
		st = check_lock(l->file, path, e);
	if (st) {
		CloseHandle(l->file);
		return st;
	}
	if (SetEndOfFile(l->file))
		WriteFile(l->file, text, (DWORD)strlen(text), &done, NULL);
	*ret = l;
	l = NULL;
	return ST_OK;
}

void lock_file_release(struct lock_file *l)
{
	if (!l)
		return;
	CloseHandle(l->file);
	free(l);
}

enum status lock_file_look(const char *path, struct lock_holder *ret, struct err *e)
{
	_cleanup_free_ wchar_t *wide = win32_path(path);
	HANDLE h;
	DWORD failed;

	*ret = (struct lock_holder){ .lives = false };
	if (!wide)
		return err_nomem(e);
	h = CreateFileW(wide, GENERIC_READ, FILE_SHARE_READ | FILE_SHARE_DELETE, NULL,
			OPEN_EXISTING, FILE_FLAG_OPEN_REPARSE_POINT, NULL);
	failed = GetLastError();
	if (h != INVALID_HANDLE_VALUE) {
		CloseHandle(h);
		return ST_OK;
	}
	ret->lives = failed == ERROR_SHARING_VIOLATION;
	if (ret->lives || failed == ERROR_FILE_NOT_FOUND || failed == ERROR_PATH_NOT_FOUND)
		return ST_OK;
	return err_from_win32(e, ST_INPUT, failed, "%s", path);
}

enum status lock_file_signal(const char *path, uint64_t pid, struct err *e)
{
	return err_set(e, ST_SYSTEM, "Windows has no signals");
}
