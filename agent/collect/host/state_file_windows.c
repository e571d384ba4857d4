/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/collect/host/state_file.h"

#include <stdlib.h>
#include <string.h>

#include "formats/base/defs.h"
#include "formats/base/win32.h"

/* Who looks at the file has it open for a moment, and then it cannot be replaced. */
#define TRIES    20
#define PAUSE_MS 25

#define PROFILES L"SOFTWARE\\Microsoft\\Windows NT\\CurrentVersion\\ProfileList"

/* The registry's, not the variable's: whoever starts us could set that. */
static bool find_program_data(wchar_t *ret, DWORD size)
{
	DWORD bytes = size * (DWORD)sizeof(*ret);

	return !RegGetValueW(HKEY_LOCAL_MACHINE, PROFILES, L"ProgramData", RRF_RT_REG_SZ, NULL, ret,
			     &bytes) ||
	       GetEnvironmentVariableW(L"ProgramData", ret, size) - 1 < size - 1;
}

/*
 * A real folder, of the administrators', the system's or our own. Where the system's disk knows no
 * owners, nothing on it is safer than this folder, the program itself included.
 */
static bool is_trusted_folder(const wchar_t *path)
{
	const DWORD attributes = GetFileAttributesW(path);
	union {
		SECURITY_DESCRIPTOR descriptor;
		uint8_t bytes[256];
	} d;
	DWORD size;

	if (attributes == INVALID_FILE_ATTRIBUTES || !(attributes & FILE_ATTRIBUTE_DIRECTORY) ||
	    (attributes & FILE_ATTRIBUTE_REPARSE_POINT))
		return false;
	return !win32_knows_owners(path) ||
	       (GetFileSecurityW(path, OWNER_SECURITY_INFORMATION, &d, sizeof(d), &size) &&
		win32_owner_is_trusted(&d));
}

/* Every user may make folders there; one of somebody else's is not for us. */
static enum status make_state_folder(const wchar_t *path, const char *shown, struct err *e)
{
	SECURITY_ATTRIBUTES attributes;
	const bool made = win32_private_begin(&attributes) && CreateDirectoryW(path, &attributes);
	const DWORD failed = made ? 0 : GetLastError();

	win32_private_end(&attributes);
	if (!made && failed != ERROR_ALREADY_EXISTS)
		return err_from_win32(e, ST_OUTPUT, failed, "%s", shown);
	if (!made && !is_trusted_folder(path))
		return err_set(e, ST_OUTPUT, "%s: belongs to another user", shown);
	return ST_OK;
}

enum status state_folder(bool make, char **ret, struct err *e)
{
	wchar_t above[MAX_PATH];
	_cleanup_free_ char *shown = NULL, *path = NULL;
	_cleanup_free_ wchar_t *wide = NULL;
	enum status st = ST_OK;

	*ret = NULL;
	if (!find_program_data(above, ARRAY_SIZE(above)))
		return err_set(e, ST_OUTPUT, "there is no ProgramData folder");
	shown = win32_utf8(above);
	if (!shown || asprintf(&path, "%s\\ramseal", shown) < 0) {
		path = NULL;
		return err_nomem(e);
	}
	wide = win32_path(path);
	if (!wide)
		return err_nomem(e);
	if (make)
		st = make_state_folder(wide, path, e);
	else if (GetFileAttributesW(wide) != INVALID_FILE_ATTRIBUTES && !is_trusted_folder(wide))
		st = err_set(e, ST_OUTPUT, "%s: belongs to another user", path);
	if (st)
		return st;
	*ret = path;
	path = NULL;
	return ST_OK;
}

bool state_folder_is_memory(void)
{
	return false;
}

enum status state_full_path(const char *path, char **ret, struct err *e)
{
	_cleanup_free_ wchar_t *wide = win32_path(path), *full = NULL;
	DWORD size;

	*ret = NULL;
	if (!wide)
		return err_nomem(e);
	size = GetFullPathNameW(wide, 0, NULL, NULL);
	full = size ? calloc(size, sizeof(*full)) : NULL;
	if (!full || !GetFullPathNameW(wide, size, full, NULL))
		return err_set(e, ST_OUTPUT, "%s: is not a path", path);
	*ret = win32_plain_path(full);
	return *ret ? ST_OK : err_nomem(e);
}

bool state_file_is_there(const char *path)
{
	_cleanup_free_ wchar_t *wide = win32_path(path);

	return wide && GetFileAttributesW(wide) != INVALID_FILE_ATTRIBUTES;
}

static enum status write_new(const wchar_t *path, const char *shown, const char *text,
			     struct err *e)
{
	SECURITY_ATTRIBUTES attributes;
	const DWORD len = (DWORD)strlen(text);
	HANDLE h = INVALID_HANDLE_VALUE;
	DWORD done = 0, failed;
	bool ok;

	DeleteFileW(path); /* of an earlier process that had our number */
	if (win32_private_begin(&attributes))
		h = CreateFileW(path, GENERIC_WRITE, 0, &attributes, CREATE_NEW, 0, NULL);
	failed = GetLastError();
	win32_private_end(&attributes);
	if (h == INVALID_HANDLE_VALUE)
		return err_from_win32(e, ST_OUTPUT, failed, "%s", shown);
	ok = WriteFile(h, text, len, &done, NULL) && done == len;
	failed = GetLastError();
	CloseHandle(h);
	return ok ? ST_OK : err_from_win32(e, ST_OUTPUT, failed, "%s", shown);
}

static bool replace_file(const wchar_t *from, const wchar_t *to)
{
	for (int i = 0; i < TRIES; i++) {
		if (MoveFileExW(from, to, MOVEFILE_REPLACE_EXISTING))
			return true;
		if (GetLastError() != ERROR_SHARING_VIOLATION &&
		    GetLastError() != ERROR_ACCESS_DENIED)
			return false;
		Sleep(PAUSE_MS);
	}
	return false;
}

enum status state_file_write(const char *path, const char *text, struct err *e)
{
	_cleanup_free_ char *fresh = NULL;
	_cleanup_free_ wchar_t *from = NULL, *to = win32_path(path);
	enum status st;

	if (asprintf(&fresh, "%s.%lu", path, (unsigned long)GetCurrentProcessId()) < 0) {
		fresh = NULL;
		return err_nomem(e);
	}
	from = win32_path(fresh);
	if (!from || !to)
		return err_nomem(e);
	st = write_new(from, fresh, text, e);
	if (!st && !replace_file(from, to))
		st = err_from_win32(e, ST_OUTPUT, GetLastError(), "%s", path);
	if (st)
		DeleteFileW(from);
	return st;
}

enum status state_file_read(const char *path, json_t **ret, struct err *e)
{
	_cleanup_free_ char *text = malloc(STATE_FILE_MAX);
	_cleanup_free_ wchar_t *wide = win32_path(path);
	HANDLE h = INVALID_HANDLE_VALUE;
	DWORD len = 0, failed = 0;
	bool ok;

	*ret = NULL;
	if (!text || !wide)
		return err_nomem(e);
	for (int i = 0; i < TRIES && h == INVALID_HANDLE_VALUE; i++) {
		h = CreateFileW(wide, GENERIC_READ,
				FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE, NULL,
				OPEN_EXISTING, 0, NULL);
		failed = GetLastError();
		if (h == INVALID_HANDLE_VALUE && failed != ERROR_SHARING_VIOLATION)
			break;
		if (h == INVALID_HANDLE_VALUE)
			Sleep(PAUSE_MS);
	}
	if (h == INVALID_HANDLE_VALUE)
		return err_from_win32(e, ST_INPUT, failed, "%s", path);
	ok = ReadFile(h, text, (DWORD)STATE_FILE_MAX, &len, NULL);
	failed = GetLastError();
	CloseHandle(h);
	return ok ? state_file__parse(path, text, len, ret, e)
		  : err_from_win32(e, ST_INPUT, failed, "%s", path);
}
