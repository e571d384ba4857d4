/* SPDX-License-Identifier: Apache-2.0 */
#include "formats/base/bcrypt.h"

#include <wchar.h>

#include "formats/base/win32.h"

/* By its full path: Windows 7 may not know LOAD_LIBRARY_SEARCH_SYSTEM32. */
static HMODULE load_system_dll(const wchar_t *name)
{
	wchar_t path[MAX_PATH + 32];
	const UINT n = GetSystemDirectoryW(path, MAX_PATH);

	if (!n || n >= MAX_PATH)
		return NULL;
	path[n] = '\\';
	wcscpy(path + n + 1, name);
	return LoadLibraryExW(path, NULL, LOAD_WITH_ALTERED_SEARCH_PATH);
}

enum status bcrypt_load(struct bcrypt *ret, struct err *e)
{
	const HMODULE dll = load_system_dll(L"bcrypt.dll");

	if (!dll)
		return err_from_win32(e, ST_SYSTEM, GetLastError(), "bcrypt.dll");
#define X(name) ret->name = (__typeof__(ret->name))(void (*)(void))GetProcAddress(dll, #name);
	BCRYPT_MAP(X)
#undef X
#define X(name)                                                                                    \
	if (!ret->name)                                                                            \
		return err_from_win32(e, ST_SYSTEM, ERROR_PROC_NOT_FOUND, "bcrypt.dll: %s", #name);
	BCRYPT_MAP(X)
#undef X
	return ST_OK;
}
