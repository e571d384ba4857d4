/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files, volumes and disks on Windows. Volumes and disks are read past the cache
 * (FILE_FLAG_NO_BUFFERING), for the reasons in reader_linux.c: then offset, length and buffer must
 * be multiples of the sector ("File Buffering", Microsoft Learn), and what does not fit goes
 * through a buffer that does. Reads are overlapped, so that each carries its offset and the handle
 * has no file pointer to share.
 *
 * Of an encrypted volume (BitLocker) the volume yields plaintext and the disk does not: page files
 * are read through \\.\X: or \\?\Volume{GUID}.
 */
#include "tsk-extract/reader.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>
#include <wchar.h>

#include "formats/base/bytes.h"
#include "formats/base/os.h"
#include "formats/base/win32.h"
#include "tsk-extract/boot.h"

#include <winioctl.h>

#define BOUNCE_SIZE ((size_t)256 << 10)
/* One read at most; larger ones gain nothing and need as much locked memory. */
#define READ_MAX    ((size_t)4 << 20)

struct file_reader {
	struct reader reader;
	HANDLE handle;
	HANDLE done; /* devices and shared handles: the event of the read under way */
	/*
	 * A handle of another process may have a completion port, which must not hear of our reads:
	 * the event's lowest bit says so (GetQueuedCompletionStatus(), Microsoft Learn).
	 */
	bool quiet;
	wchar_t *path;   /* as it was opened */
	uint8_t *bounce; /* devices */
};

/* One read of at most READ_MAX bytes. 0, or an error of Win32; *got may be short at the end. */
static DWORD read_overlapped(const struct file_reader *f, uint64_t off, void *buf, size_t len,
			     DWORD *got)
{
	OVERLAPPED at = {
		.Offset = (DWORD)off,
		.OffsetHigh = (DWORD)(off >> 32),
		.hEvent = (HANDLE)((uintptr_t)f->done | f->quiet),
	};

	*got = 0;
	if (ReadFile(f->handle, buf, (DWORD)MIN(len, READ_MAX), got, &at))
		return 0;
	if (GetLastError() != ERROR_IO_PENDING)
		return GetLastError();
	return GetOverlappedResult(f->handle, &at, got, TRUE) ? 0 : GetLastError();
}

/* Until `len`, the end or an error. */
static uint32_t read_until_error(const struct file_reader *f, uint64_t off, void *buf, size_t len,
				 size_t *good)
{
	while (*good < len) {
		DWORD got;
		const DWORD failed =
			read_overlapped(f, off + *good, (uint8_t *)buf + *good, len - *good, &got);

		if (failed == ERROR_HANDLE_EOF || (!failed && !got))
			return READ_PAST_END;
		if (failed)
			return (uint32_t)win32_errno(failed);
		*good += got;
	}
	return 0;
}

static uint32_t file_read(struct reader *r, uint64_t off, void *buf, size_t len, size_t *good)
{
	return read_until_error((struct file_reader *)r, off, buf, len, good);
}

static uint32_t device_read(struct reader *r, uint64_t off, void *buf, size_t len, size_t *good)
{
	const struct bounce bounce = { ((struct file_reader *)r)->bounce, BOUNCE_SIZE, file_read };

	return reader__read_aligned(r, &bounce, off, buf, len, good);
}

static void file_close(struct reader *r)
{
	struct file_reader *f = (struct file_reader *)r;

	if (f->handle != INVALID_HANDLE_VALUE)
		CloseHandle(f->handle);
	if (f->done)
		CloseHandle(f->done);
	os_buffer_free(f->bounce);
	free(f->path);
	free(f);
}

static const struct reader_ops file_ops = { .kind = "file",
					    .read = file_read,
					    .close = file_close };
static const struct reader_ops shared_ops = { .kind = "handle",
					      .read = device_read,
					      .close = file_close };
static const struct reader_ops device_ops = { .kind = "device",
					      .read = device_read,
					      .close = file_close };

/* --- which device -------------------------------------------------------------------------- */

static bool has_prefix(const wchar_t *path, const wchar_t *prefix)
{
	return _wcsnicmp(path, prefix, wcslen(prefix)) == 0;
}

/*
 * The name of the device that a path means, for free(); NULL for a file, or if out of memory:
 *
 *	\\.\C:  //./C:  C:            a volume by its letter
 *	\\.\PhysicalDrive0            a disk
 *	\\?\Volume{GUID}  ...{GUID}\  a volume; with the backslash Windows would open its root
 *	                              folder
 *	\\?\GLOBALROOT\Device\...     a shadow copy
 */
static wchar_t *device_name(const char *path)
{
	wchar_t *name = win32_wide(path);
	const size_t len = name ? wcslen(name) : 0;

	for (size_t i = 0; i < len; i++)
		if (name[i] == '/')
			name[i] = '\\';
	if (len == 2 && iswalpha(name[0]) && name[1] == ':') {
		wchar_t *longer = realloc(name, 7 * sizeof(*name));

		if (!longer) {
			free(name);
			return NULL;
		}
		memmove(longer + 4, longer, 3 * sizeof(*longer));
		memcpy(longer, L"\\\\.\\", 4 * sizeof(*longer));
		return longer;
	}
	if (name && has_prefix(name, L"\\\\?\\Volume{") && name[len - 1] == '\\' &&
	    wcschr(name, '}') == name + len - 2)
		name[len - 1] = '\0';
	if (name &&
	    (has_prefix(name, L"\\\\.\\") || has_prefix(name, L"\\\\?\\GLOBALROOT\\Device\\") ||
	     (has_prefix(name, L"\\\\?\\Volume{") && !wcschr(name + 4, '\\'))))
		return name;
	free(name);
	return NULL;
}

static bool ask_device(struct file_reader *f, DWORD code, const void *in, size_t in_size, void *ret,
		       size_t size)
{
	OVERLAPPED at = { .hEvent = f->done };
	DWORD got = 0;

	if (DeviceIoControl(f->handle, code, (void *)(uintptr_t)in, (DWORD)in_size, ret,
			    (DWORD)size, &got, &at))
		return got >= size;
	return GetLastError() == ERROR_IO_PENDING &&
	       GetOverlappedResult(f->handle, &at, &got, TRUE) && got >= size;
}

/* Bytes of the logical sector; 4096 suits every device that does not say. */
static uint32_t sector_of(struct file_reader *f)
{
	STORAGE_PROPERTY_QUERY query = { .PropertyId = StorageAccessAlignmentProperty };
	STORAGE_ACCESS_ALIGNMENT_DESCRIPTOR alignment = { 0 };
	DISK_GEOMETRY geometry = { 0 };
	DWORD sector = 0;

	if (ask_device(f, IOCTL_STORAGE_QUERY_PROPERTY, &query, sizeof(query), &alignment,
		       sizeof(alignment)))
		sector = alignment.BytesPerLogicalSector;
	else if (ask_device(f, IOCTL_DISK_GET_DRIVE_GEOMETRY, NULL, 0, &geometry, sizeof(geometry)))
		sector = geometry.BytesPerSector;
	return sector >= 512 && sector <= PAGE_SIZE && !(sector & (sector - 1)) ? sector
										: PAGE_SIZE;
}

/*
 * What the device says, else what the boot sector of an NTFS volume says: its sectors, and the one
 * behind them that holds the copy of the boot sector.
 */
static uint64_t reader_size_of(struct file_reader *f)
{
	GET_LENGTH_INFORMATION length = { 0 };
	struct ntfs_boot boot;
	size_t good = 0;

	if (ask_device(f, IOCTL_DISK_GET_LENGTH_INFO, NULL, 0, &length, sizeof(length)) &&
	    length.Length.QuadPart > 0)
		return (uint64_t)length.Length.QuadPart;
	read_until_error(f, 0, f->bounce, MAX((size_t)VOLUME_PROBE_SIZE, PAGE_SIZE), &good);
	if (good < VOLUME_PROBE_SIZE || ntfs_boot_parse(f->bounce, &boot, NULL))
		return 0;
	return (get_le64(f->bounce + 40) + 1) * boot.sector;
}

static enum status device_init(struct file_reader *f, const char *path, struct err *e)
{
	f->bounce = os_buffer(BOUNCE_SIZE);
	f->done = CreateEventW(NULL, TRUE, FALSE, NULL);
	if (!f->bounce || !f->done)
		return err_nomem(e);
	f->handle = CreateFileW(f->path, GENERIC_READ,
				FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE, NULL,
				OPEN_EXISTING, FILE_FLAG_NO_BUFFERING | FILE_FLAG_OVERLAPPED, NULL);
	if (f->handle == INVALID_HANDLE_VALUE) {
		const DWORD failed = GetLastError();

		return err_from_win32(e, ST_INPUT, failed, "%s%s", path,
				      failed == ERROR_ACCESS_DENIED
					      ? ": volumes and disks need an elevated prompt"
					      : "");
	}
	/* The file system may call its volume smaller than the partition is: show all of it. */
	ask_device(f, FSCTL_ALLOW_EXTENDED_DASD_IO, NULL, 0, NULL, 0);
	f->reader = (struct reader){ .ops = &device_ops, .device = true };
	f->reader.sector = sector_of(f);
	f->reader.size = reader_size_of(f);
	if (!f->reader.size)
		return err_set(e, ST_INPUT, "%s: the device does not report its size", path);
	return ST_OK;
}

static enum status file_init(struct file_reader *f, const char *path, struct err *e)
{
	BY_HANDLE_FILE_INFORMATION info;
	LARGE_INTEGER size;

	f->handle = CreateFileW(f->path, GENERIC_READ,
				FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE, NULL,
				OPEN_EXISTING, FILE_FLAG_BACKUP_SEMANTICS, NULL);
	if (f->handle == INVALID_HANDLE_VALUE)
		return err_from_win32(e, ST_INPUT, GetLastError(), "%s", path);
	if (GetFileType(f->handle) != FILE_TYPE_DISK ||
	    (GetFileInformationByHandle(f->handle, &info) &&
	     (info.dwFileAttributes & FILE_ATTRIBUTE_DIRECTORY)))
		return err_set(e, ST_INPUT, "%s: is neither a file nor a volume", path);
	if (!GetFileSizeEx(f->handle, &size))
		return err_from_win32(e, ST_INPUT, GetLastError(), "%s: size", path);
	f->reader =
		(struct reader){ .ops = &file_ops, .size = (uint64_t)size.QuadPart, .sector = 512 };
	return ST_OK;
}

enum status reader__open_system(const char *path, struct reader **ret, struct err *e)
{
	struct file_reader *f = calloc(1, sizeof(*f));
	enum status st;
	bool device;

	if (!f)
		return err_nomem(e);
	f->handle = INVALID_HANDLE_VALUE;
	f->path = device_name(path);
	device = f->path != NULL;
	if (!device)
		f->path = win32_path(path);
	if (!f->path)
		st = err_nomem(e);
	else
		st = device ? device_init(f, path, e) : file_init(f, path, e);
	if (st) {
		file_close(&f->reader);
		return st;
	}
	*ret = &f->reader;
	return ST_OK;
}

enum status reader__open_handle(void *handle, const char *path, struct reader **ret, struct err *e)
{
	struct file_reader *f = calloc(1, sizeof(*f));
	LARGE_INTEGER size = { 0 };
	enum status st = ST_OK;

	if (!f) {
		CloseHandle(handle);
		return err_nomem(e);
	}
	f->handle = handle;
	f->quiet = true;
	f->bounce = os_buffer(BOUNCE_SIZE);
	f->done = CreateEventW(NULL, TRUE, FALSE, NULL);
	if (!f->bounce || !f->done)
		st = err_nomem(e);
	else if (!GetFileSizeEx(handle, &size))
		st = err_from_win32(e, ST_INPUT, GetLastError(), "%s: size", path);
	if (st) {
		file_close(&f->reader);
		return st;
	}
	f->reader = (struct reader){ .ops = &shared_ops,
				     .size = (uint64_t)size.QuadPart,
				     .sector = PAGE_SIZE,
				     .device = true };
	*ret = &f->reader;
	return ST_OK;
}

/* --- what an output could do --------------------------------------------------------------- */

/* "\\?\Volume{GUID}\" of the volume that a path lies on, whether the file exists or not. */
static bool volume_of_path(const wchar_t *path, wchar_t ret[static 64])
{
	wchar_t root[MAX_PATH];

	return GetVolumePathNameW(path, root, ARRAY_SIZE(root)) &&
	       GetVolumeNameForVolumeMountPointW(root, ret, 64);
}

/* The same of an open device: \\.\C: is a letter with a volume, \\?\Volume{GUID} says it itself. */
static bool volume_of_device(const struct file_reader *f, wchar_t ret[static 64])
{
	const wchar_t root[] = { f->path[4], ':', '\\', '\0' };

	if (wcslen(f->path) == 6 && f->path[5] == ':')
		return GetVolumeNameForVolumeMountPointW(root, ret, 64);
	if (!has_prefix(f->path, L"\\\\?\\Volume{") || wcslen(f->path) > 62)
		return false;
	wcscpy(ret, f->path);
	wcscat(ret, L"\\");
	return true;
}

/* The disks that a volume lies on, as far as they fit. */
struct disks {
	VOLUME_DISK_EXTENTS extents;
	DISK_EXTENT more[31];
};

static bool is_on_disk(const wchar_t *volume, DWORD number)
{
	_cleanup_free_ wchar_t *name = _wcsdup(volume);
	_cleanup_handle_ HANDLE h = INVALID_HANDLE_VALUE;
	struct disks d = { 0 };
	DWORD got;

	if (!name)
		return false;
	name[wcslen(name) - 1] = '\0'; /* the volume, not its root folder */
	h = CreateFileW(name, 0, FILE_SHARE_READ | FILE_SHARE_WRITE, NULL, OPEN_EXISTING, 0, NULL);
	if (h == INVALID_HANDLE_VALUE || !DeviceIoControl(h, IOCTL_VOLUME_GET_VOLUME_DISK_EXTENTS,
							  NULL, 0, &d, sizeof(d), &got, NULL))
		return false;
	for (DWORD i = 0; i < d.extents.NumberOfDiskExtents && i < 32; i++)
		if (d.extents.Extents[i].DiskNumber == number)
			return true;
	return false;
}

static bool is_same_file(HANDLE a, const wchar_t *path)
{
	_cleanup_handle_ HANDLE b =
		CreateFileW(path, 0, FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE, NULL,
			    OPEN_EXISTING, FILE_FLAG_BACKUP_SEMANTICS, NULL);
	BY_HANDLE_FILE_INFORMATION x, y;

	return b != INVALID_HANDLE_VALUE && GetFileInformationByHandle(a, &x) &&
	       GetFileInformationByHandle(b, &y) &&
	       x.dwVolumeSerialNumber == y.dwVolumeSerialNumber &&
	       x.nFileIndexHigh == y.nFileIndexHigh && x.nFileIndexLow == y.nFileIndexLow;
}

enum target_risk reader__system_target_risk(const struct reader *r, const char *path)
{
	const struct file_reader *f = (const struct file_reader *)r;
	_cleanup_free_ wchar_t *wide = win32_path(path);
	const wchar_t disk[] = L"\\\\.\\PhysicalDrive";
	wchar_t ours[64], theirs[64];

	if (!wide)
		return TARGET_SAFE;
	if (r->ops == &file_ops)
		return is_same_file(f->handle, wide) ? TARGET_IS_SOURCE : TARGET_SAFE;
	if (r->ops != &device_ops)
		return TARGET_SAFE;
	if (_wcsicmp(wide, f->path) == 0)
		return TARGET_IS_SOURCE;
	if (!volume_of_path(wide, theirs))
		return TARGET_SAFE;
	if (has_prefix(f->path, disk))
		return is_on_disk(theirs, wcstoul(f->path + ARRAY_SIZE(disk) - 1, NULL, 10))
			       ? TARGET_ON_SOURCE
			       : TARGET_SAFE;
	return volume_of_device(f, ours) && _wcsicmp(ours, theirs) == 0 ? TARGET_ON_SOURCE
									: TARGET_SAFE;
}
