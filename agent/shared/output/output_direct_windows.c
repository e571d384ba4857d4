/* SPDX-License-Identifier: Apache-2.0 */
/*
 * New files past the cache: FILE_FLAG_NO_BUFFERING, as file systems on disks and shares of Windows
 * take it. What does not is found out by the first unit.
 */
#include "agent/shared/output/output_windows.h"

#include <errno.h>
#include <io.h>

#include "agent/shared/output/direct_file.h"
#include "agent/shared/program/log.h"
#include "formats/base/os.h"

struct windows_direct {
	struct direct_io io;
	const struct target *target; /* borrowed */
};

static enum status direct_write(struct direct_io *io, uint64_t at, const void *p, size_t len,
				struct err *e)
{
	const struct target *t = ((const struct windows_direct *)io)->target;
	const uint8_t *from = p;

	while (len) {
		OVERLAPPED where = { .Offset = (DWORD)at, .OffsetHigh = (DWORD)(at >> 32) };
		DWORD done = 0;

		if (!WriteFile((HANDLE)_get_osfhandle(t->fd), from, (DWORD)len, &done, &where))
			return err_from_win32(e, ST_OUTPUT, GetLastError(), "%s: write", t->shown);
		if (!done)
			return err_set(e, ST_OUTPUT, "%s: write: nothing was written", t->shown);
		from += done;
		at += done;
		len -= done;
	}
	return ST_OK;
}

static enum status direct_read(struct direct_io *io, uint64_t at, void *p, size_t len, size_t *got,
			       struct err *e)
{
	const struct target *t = ((const struct windows_direct *)io)->target;
	const ssize_t n = os_pread(t->fd, p, len, at);

	if (n < 0)
		return err_from_errno(e, ST_INPUT, errno, "%s: read", t->shown);
	*got = (size_t)n;
	return ST_OK;
}

static enum status direct_resize(struct direct_io *io, uint64_t size, struct err *e)
{
	const struct target *t = ((const struct windows_direct *)io)->target;

	if (os_truncate(t->fd, size))
		return err_from_errno(e, ST_OUTPUT, errno, "%s: set its length", t->shown);
	return ST_OK;
}

/*
 * Multiples of it must do for the disk's sectors: 512 bytes or 4 KiB, rarely more. A share does not
 * tell, and does not mind.
 */
static size_t direct_unit(HANDLE h)
{
	FILE_STORAGE_INFO info = { 0 };
	size_t unit = DIRECT_UNIT;

	if (!GetFileInformationByHandleEx(h, FileStorageInfo, &info, sizeof(info)))
		return unit; /* Windows 7 */
	while (unit < info.LogicalBytesPerSector ||
	       unit < info.FileSystemEffectivePhysicalBytesPerSectorForAtomicity)
		unit *= 2;
	return unit;
}

bool windows__refuse_direct;

/* An error that says that it is the way of writing that does not do. */
static bool is_refusal(DWORD failed)
{
	return failed == ERROR_INVALID_PARAMETER || failed == ERROR_NOT_SUPPORTED ||
	       failed == ERROR_INVALID_FUNCTION || failed == ERROR_CALL_NOT_IMPLEMENTED;
}

/* A unit of zeros, which goes again: a full disk is for who writes what matters. */
static DWORD try_direct(HANDLE h, size_t unit)
{
	void *zeros = VirtualAlloc(NULL, unit, MEM_COMMIT | MEM_RESERVE, PAGE_READWRITE);
	FILE_END_OF_FILE_INFO empty = { 0 };
	OVERLAPPED front = { 0 };
	DWORD done = 0, failed = 0;

	if (windows__refuse_direct)
		failed = ERROR_INVALID_PARAMETER;
	else if (!zeros)
		failed = GetLastError();
	else if (!WriteFile(h, zeros, (DWORD)unit, &done, &front))
		failed = GetLastError();
	else if (!SetFileInformationByHandle(h, FileEndOfFileInfo, &empty, sizeof(empty)))
		failed = GetLastError();
	if (zeros)
		VirtualFree(zeros, 0, MEM_RELEASE);
	return is_refusal(failed) ? failed : 0;
}

bool windows__can_direct(HANDLE h, const char *name)
{
	const size_t unit = direct_unit(h);
	const DWORD failed = unit > DIRECT_UNIT_MAX ? ERROR_NOT_SUPPORTED : try_direct(h, unit);

	if (failed)
		windows__tell_buffered(name, failed);
	return !failed;
}

void windows__tell_buffered(const char *name, DWORD failed)
{
	struct err why = ERR_INIT;

	err_from_win32(&why, ST_OUTPUT, failed, "%s", name);
	log_warning(
		"output-buffered",
		"%s: its file system takes no unbuffered writes, so that the output goes through "
		"the system's cache: that overwrites free memory, up to as much as the output "
		"has",
		why.message);
}

enum status direct__begin(struct target *t, struct err *e)
{
	struct windows_direct *d = calloc(1, sizeof(*d));
	enum status st;

	if (!d)
		return err_nomem(e);
	d->io = (struct direct_io){ direct_write, direct_read, direct_resize };
	d->target = t;
	st = direct_file_create(&d->io, direct_unit((HANDLE)_get_osfhandle(t->fd)), &t->direct, e);
	if (st) {
		free(d);
		return st;
	}
	t->direct_io = &d->io;
	return ST_OK;
}
