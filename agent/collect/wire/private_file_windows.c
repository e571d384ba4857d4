/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/collect/wire/private_file.h"

#include <errno.h>
#include <fcntl.h>
#include <io.h>

#include "formats/base/os.h"
#include "formats/base/win32.h"

/* CREATE_NEW follows no link and replaces nothing. */
static int create_private_file(const char *path, DWORD share, DWORD flags)
{
	_cleanup_free_ wchar_t *wide = win32_path(path);
	SECURITY_ATTRIBUTES attributes;
	HANDLE h = INVALID_HANDLE_VALUE;
	DWORD failed = ERROR_NOT_ENOUGH_MEMORY;
	int fd;

	if (wide && win32_private_begin(&attributes)) {
		h = CreateFileW(wide, GENERIC_READ | GENERIC_WRITE | DELETE, share, &attributes,
				CREATE_NEW, flags, NULL);
		failed = GetLastError();
		win32_private_end(&attributes);
	}
	if (h == INVALID_HANDLE_VALUE) {
		errno = win32_errno(failed);
		return -1;
	}
	fd = _open_osfhandle((intptr_t)h, O_RDWR | O_BINARY | O_NOINHERIT);
	if (fd < 0)
		CloseHandle(h);
	return fd;
}

int private_file_create(const char *path)
{
	return create_private_file(path, FILE_SHARE_READ, FILE_ATTRIBUTE_NORMAL);
}

void private_file_remove(const char *path)
{
	_cleanup_free_ wchar_t *wide = win32_path(path);

	if (wide)
		DeleteFileW(wide);
}

/* Windows takes no name away from an open file, but removes it when the last handle is closed. */
int private_file_nameless(const char *folder)
{
	static unsigned n;
	_cleanup_free_ char *path = NULL;

	if (asprintf(&path, "%s\\ramseal-%lu-%u.spool", folder,
		     (unsigned long)GetCurrentProcessId(), n++) < 0) {
		path = NULL;
		errno = ENOMEM;
		return -1;
	}
	return create_private_file(path, 0, FILE_ATTRIBUTE_TEMPORARY | FILE_FLAG_DELETE_ON_CLOSE);
}

ssize_t private_file_put(int fd, const void *p, size_t len, uint64_t at)
{
	OVERLAPPED where = { .Offset = (DWORD)at, .OffsetHigh = (DWORD)(at >> 32) };
	DWORD done = 0;

	if (WriteFile((HANDLE)_get_osfhandle(fd), p, (DWORD)MIN(len, IO_MAX), &done, &where))
		return (ssize_t)done;
	errno = win32_errno(GetLastError());
	return -1;
}

/* A handle cannot say which part of it leaves the cache. */
void private_file_begin_leave(int fd, uint64_t from, uint64_t len)
{
	(void)fd;
	(void)from;
	(void)len;
}

void private_file_leave_cache(int fd, uint64_t from, uint64_t len)
{
	(void)fd;
	(void)from;
	(void)len;
}

void private_file_drop_cache(int fd, uint64_t from, uint64_t len)
{
	(void)fd;
	(void)from;
	(void)len;
}
