/* SPDX-License-Identifier: Apache-2.0 */
/* How Windows, its kernel and we call the copy of a driver. */
#include "driver-interface/winpmem_service_internal.h"

#include <wchar.h>

#include "formats/base/win32.h"

wchar_t *winpmem__join(const wchar_t *front, const wchar_t *middle, const wchar_t *back)
{
	wchar_t *ret = calloc(wcslen(front) + wcslen(middle) + wcslen(back) + 1, sizeof(*ret));

	if (ret) {
		wcscpy(ret, front);
		wcscat(ret, middle);
		wcscat(ret, back);
	}
	return ret;
}

/* Full, so that Windows and its kernel mean the same; without a backslash at its end. */
static wchar_t *full_path(const wchar_t *path)
{
	const DWORD room = GetFullPathNameW(path, 0, NULL, NULL);
	wchar_t *ret = calloc((size_t)room + 1, sizeof(*ret));
	size_t len;

	if (!ret || !room || !GetFullPathNameW(path, room, ret, NULL)) {
		free(ret);
		return NULL;
	}
	len = wcslen(ret);
	if (len > 3 && ret[len - 1] == '\\')
		ret[len - 1] = '\0';
	return ret;
}

/* \\?\C:\... for our own calls, whatever the length. */
static wchar_t *verbatim_path(wchar_t *path)
{
	wchar_t *ret;

	if (!path || wcsncmp(path, L"\\\\", 2) == 0)
		return path;
	ret = winpmem__join(L"\\\\?\\", path, L"");
	free(path);
	return ret;
}

/*
 * Windows' own folder, where nobody but administrators can give anything another name. Not the one
 * for temporary files: that is below what the environment says, and below folders that are the
 * user's, who can put others in their place from a process without our rights. Nor is Windows' own
 * from the environment (GetSystemWindowsDirectoryW(), learn.microsoft.com/windows/win32/api/
 * sysinfoapi: "the shared Windows directory").
 */
wchar_t *winpmem__folder_above(const char *folder)
{
	_cleanup_free_ wchar_t *wide = folder ? win32_wide(folder) : calloc(MAX_PATH + 1, 2);
	UINT n;

	if (!wide)
		return NULL;
	n = folder ? 1 : GetSystemWindowsDirectoryW(wide, MAX_PATH + 1);
	if (!n || n > MAX_PATH)
		return NULL;
	return verbatim_path(full_path(wide));
}

/* What only Wine's ntdll has (wiki.winehq.org/Developer_FAQ, "How can I detect Wine?"). */
static bool is_wine(void)
{
	const HMODULE ntdll = GetModuleHandleW(L"ntdll.dll");

	return ntdll && GetProcAddress(ntdll, "wine_get_version");
}

/*
 * Where what is open really is, without links: \\?\C:\..., or by the volume's GUID where it has no
 * letter (GetFinalPathNameByHandleW(), learn.microsoft.com/windows/win32/api/fileapi). For free();
 * NULL, and GetLastError(). Wine 8.0 was seen to fail with ERROR_MORE_DATA for more than MAX_PATH
 * characters: there, where no driver is ever loaded, it is `path`, by which it was opened. Windows
 * has to tell: a path that was not asked of the handle may lead elsewhere when it is used.
 */
wchar_t *winpmem__final_path(HANDLE h, const wchar_t *path)
{
	static const DWORD ways[] = { VOLUME_NAME_DOS, VOLUME_NAME_GUID };
	DWORD error = ERROR_NOT_ENOUGH_MEMORY;

	for (size_t i = 0; i < ARRAY_SIZE(ways); i++) {
		const DWORD room = GetFinalPathNameByHandleW(h, NULL, 0, ways[i]);
		wchar_t *ret = NULL;
		DWORD n = 0;

		if (!room)
			error = GetLastError();
		else
			ret = calloc((size_t)room + 1, sizeof(*ret));
		if (ret)
			n = GetFinalPathNameByHandleW(h, ret, room + 1, ways[i]);
		if (n && n <= room)
			return ret;
		if (ret)
			error = GetLastError();
		free(ret);
	}
	if (error == ERROR_MORE_DATA && is_wine())
		return _wcsdup(path);
	SetLastError(error);
	return NULL;
}

/*
 * The name under which the kernel opens it. \??\ takes what follows as it is, spaces and all;
 * quotation marks would become part of the name (github.com/mullvad/windows-service-rs/issues/57; a
 * quoted path is how velociraptor/issues/4209 failed).
 */
wchar_t *winpmem__kernel_path(const wchar_t *path)
{
	if (wcsncmp(path, L"\\\\?\\", 4) == 0)
		return winpmem__join(L"\\??\\", path + 4, L"");
	return winpmem__join(L"\\??\\UNC\\", path + 2, L"");
}
