/* SPDX-License-Identifier: Apache-2.0 */
/* GetFileAttributesW() and GetDiskFreeSpaceExW(): fileapi.h, Microsoft Learn. */
#include "agent/collect/acquire/preflight.h"

#include <string.h>

#ifndef WIN32_LEAN_AND_MEAN
#define WIN32_LEAN_AND_MEAN
#endif
#include <windows.h>

/* The absolute path, for free(); NULL if it is none, or without memory. */
static wchar_t *absolute_path(const char *path)
{
	const int units = MultiByteToWideChar(CP_UTF8, MB_ERR_INVALID_CHARS, path, -1, NULL, 0);
	_cleanup_free_ wchar_t *wide = units > 0 ? calloc((size_t)units, sizeof(*wide)) : NULL;
	wchar_t *ret;
	DWORD size;

	if (!wide || MultiByteToWideChar(CP_UTF8, MB_ERR_INVALID_CHARS, path, -1, wide, units) <= 0)
		return NULL;
	size = GetFullPathNameW(wide, 0, NULL, NULL);
	ret = size ? calloc(size, sizeof(*ret)) : NULL;
	if (ret && GetFullPathNameW(wide, size, ret, NULL) < size)
		return ret;
	free(ret);
	return NULL;
}

enum preflight_target preflight_target(const char *path, uint64_t *ret_room, struct err *e)
{
	_cleanup_free_ wchar_t *full = absolute_path(path);
	wchar_t *slash = full ? wcsrchr(full, '\\') : NULL;
	ULARGE_INTEGER room;
	DWORD attributes;

	if (!slash) {
		err_set(e, ST_OUTPUT, "%s: is not a file name", path);
		return PREFLIGHT_NO;
	}
	if (!wcsncmp(full, L"\\\\.\\", 4))
		return PREFLIGHT_OTHER;
	attributes = GetFileAttributesW(full);
	if (attributes != INVALID_FILE_ATTRIBUTES && (attributes & FILE_ATTRIBUTE_DIRECTORY)) {
		err_set(e, ST_OUTPUT, "%s: is a folder", path);
		return PREFLIGHT_NO;
	}
	if (attributes != INVALID_FILE_ATTRIBUTES && (attributes & FILE_ATTRIBUTE_READONLY)) {
		err_set(e, ST_OUTPUT, "%s: is read-only and will not be replaced", path);
		return PREFLIGHT_NO;
	}
	slash[1] = '\0'; /* its folder; of a UNC name it must end in a backslash */
	if (!GetDiskFreeSpaceExW(full, &room, NULL, NULL)) {
		err_set(e, ST_OUTPUT,
			"%s: its directory does not exist or cannot be accessed (error %lu)", path,
			(unsigned long)GetLastError());
		return PREFLIGHT_NO;
	}
	*ret_room = room.QuadPart;
	return attributes == INVALID_FILE_ATTRIBUTES ? PREFLIGHT_FREE : PREFLIGHT_EXISTS;
}

const char *preflight_in_memory(const char *path)
{
	return NULL;
}

const char *preflight_encrypted_guest(void)
{
	return NULL;
}
