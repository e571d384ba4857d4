/* SPDX-License-Identifier: Apache-2.0 */
#undef open
#include "open.h"

#include <windows.h>

#include <errno.h>
#include <stdlib.h>

/* UTF-16, for free(). */
static wchar_t *wide(const char *path)
{
	const int n = MultiByteToWideChar(CP_UTF8, MB_ERR_INVALID_CHARS, path, -1, NULL, 0);
	wchar_t *ret = n > 0 ? calloc((size_t)n, sizeof(*ret)) : NULL;

	if (ret)
		MultiByteToWideChar(CP_UTF8, MB_ERR_INVALID_CHARS, path, -1, ret, n);
	return ret;
}

int shim_open(const char *path, int flags, ...)
{
	wchar_t *name;
	HANDLE h;
	int fd;

	if ((flags & (O_WRONLY | O_RDWR)) != 0) { /* libhivex writes hives; we do not */
		errno = EROFS;
		return -1;
	}
	name = wide(path);
	if (!name) {
		errno = EINVAL;
		return -1;
	}
	h = CreateFileW(name, GENERIC_READ, FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE,
			NULL, OPEN_EXISTING, 0, NULL);
	free(name);
	if (h == INVALID_HANDLE_VALUE) {
		errno = GetLastError() == ERROR_ACCESS_DENIED ? EACCES : ENOENT;
		return -1;
	}
	fd = _open_osfhandle((intptr_t)h, O_RDONLY | O_BINARY);
	if (fd < 0)
		CloseHandle(h);
	return fd;
}
