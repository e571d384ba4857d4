/* SPDX-License-Identifier: Apache-2.0 */
#include "formats/base/os.h"

#include <errno.h>
#include <fcntl.h>
#include <io.h>

#include "formats/base/win32.h"

static HANDLE handle_of(int fd)
{
	return (HANDLE)_get_osfhandle(fd);
}

int os_open(const char *path, int flags)
{
	_cleanup_free_ wchar_t *wide = win32_path(path);
	const bool write = (flags & (O_WRONLY | O_RDWR)) != 0;
	HANDLE h;
	BY_HANDLE_FILE_INFORMATION info;
	int fd;

	if (!wide) {
		errno = ENOMEM;
		return -1;
	}
	/* Backup semantics: folders can be opened too, and told from what is "access denied". */
	h = CreateFileW(wide, write ? GENERIC_READ | GENERIC_WRITE : GENERIC_READ,
			FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE, NULL, OPEN_EXISTING,
			FILE_FLAG_BACKUP_SEMANTICS, NULL);
	if (h == INVALID_HANDLE_VALUE) {
		errno = win32_errno(GetLastError());
		return -1;
	}
	if (GetFileInformationByHandle(h, &info) &&
	    (info.dwFileAttributes & FILE_ATTRIBUTE_DIRECTORY)) {
		CloseHandle(h);
		errno = EISDIR;
		return -1;
	}
	if (GetFileType(h) == FILE_TYPE_PIPE) {
		CloseHandle(h);
		errno = ESPIPE;
		return -1;
	}
	fd = _open_osfhandle((intptr_t)h, (write ? O_RDWR : O_RDONLY) | O_BINARY | O_NOINHERIT);
	if (fd < 0)
		CloseHandle(h);
	return fd;
}

/* The offset is in the OVERLAPPED, so that threads do not share a file pointer. */
ssize_t os_pread(int fd, void *p, size_t len, uint64_t off)
{
	OVERLAPPED at = { .Offset = (DWORD)off, .OffsetHigh = (DWORD)(off >> 32) };
	DWORD got = 0, failed;

	if (ReadFile(handle_of(fd), p, (DWORD)MIN(len, (size_t)1 << 30), &got, &at))
		return (ssize_t)got;
	failed = GetLastError();
	if (failed == ERROR_HANDLE_EOF)
		return 0;
	errno = win32_errno(failed);
	return -1;
}

int os_sync(int fd)
{
	if (FlushFileBuffers(handle_of(fd)))
		return 0;
	errno = win32_errno(GetLastError());
	return -1;
}

/*
 * Without moving the file pointer, as ftruncate(); the C library's own asks for free space first.
 */
int os_truncate(int fd, uint64_t len)
{
	FILE_END_OF_FILE_INFO end = { .EndOfFile.QuadPart = (LONGLONG)len };

	if (SetFileInformationByHandle(handle_of(fd), FileEndOfFileInfo, &end, sizeof(end)))
		return 0;
	errno = win32_errno(GetLastError());
	return -1;
}

uint32_t os_page_size(void)
{
	SYSTEM_INFO info;

	GetSystemInfo(&info);
	return info.dwPageSize;
}

bool os_exists(const char *path)
{
	_cleanup_free_ wchar_t *wide = win32_path(path);

	return wide && GetFileAttributesW(wide) != INVALID_FILE_ATTRIBUTES;
}

int os_remove(const char *path)
{
	_cleanup_free_ wchar_t *wide = win32_path(path);

	if (wide && DeleteFileW(wide))
		return 0;
	errno = wide ? win32_errno(GetLastError()) : ENOMEM;
	return -1;
}
