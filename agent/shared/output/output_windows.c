/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The same promises as output_linux.c makes, by Windows' means. There are no descriptors of folders
 * here, and none are needed: a folder with an open file in it cannot be moved away.
 */
#include "agent/shared/output/output_target.h"

#include <errno.h>
#include <fcntl.h>
#include <io.h>
#include <string.h>
#include <wchar.h>

#include "agent/shared/output/direct_file.h"
#include "agent/shared/output/output_windows.h"
#include "agent/shared/program/json.h"
#include "formats/base/os.h"
#include "formats/base/win32.h"

#include <winioctl.h> /* behind windows.h, which it does not bring along */

/* Far behind every file: a lock on Windows is on bytes, and keeps others from reading those. */
#define LOCK_OFFSET UINT64_C(0x7ffffffffffffffe)

static HANDLE output_handle_of(int fd)
{
	return (HANDLE)_get_osfhandle(fd);
}

void target_deinit(struct target *t)
{
	/* What is left unfinished keeps what was written. */
	if (t->direct && t->fd > 0)
		direct_file_settle(t->direct, NULL);
	direct__end(t);
	if (t->fd > 0)
		_close(t->fd);
	free(t->path);
	free(t->partial);
	*t = (struct target){ 0 };
}

/* The last separator, or the colon of "C:name"; NULL if there is none. */
static const char *last_separator(const char *path)
{
	const char *found = NULL;

	for (const char *c = path; *c; c++)
		if (*c == '/' || *c == '\\' || (*c == ':' && c == path + 1))
			found = c;
	return found;
}

const char *windows__last_component(const char *path)
{
	const char *at = last_separator(path);

	return at ? at + 1 : path;
}

char *target_directory_of(const char *path)
{
	const char *at = last_separator(path);
	char *ret;
	size_t len;

	if (!at)
		return strdup(".");
	/* "C:name" is in "C:", which is not "C:\"; and the root is its own folder. */
	len = (size_t)(at - path);
	if (*at == ':' || !len || path[len - 1] == ':')
		len++;
	ret = calloc(len + 1, 1);
	if (ret)
		memcpy(ret, path, len);
	return ret;
}

static enum status lock_handle(HANDLE h, bool shared, struct err *e)
{
	OVERLAPPED at = { .Offset = (DWORD)LOCK_OFFSET, .OffsetHigh = (DWORD)(LOCK_OFFSET >> 32) };
	DWORD failed;

	if (LockFileEx(h, LOCKFILE_FAIL_IMMEDIATELY | (shared ? 0 : LOCKFILE_EXCLUSIVE_LOCK), 0, 1,
		       0, &at))
		return ST_OK;
	failed = GetLastError();
	if (failed == ERROR_LOCK_VIOLATION || failed == ERROR_IO_PENDING)
		return err_set(e, ST_OUTPUT, "another process is writing or sealing it");
	return ST_OK;
}

enum status target_lock(int fd, bool shared, struct err *e)
{
	return lock_handle(output_handle_of(fd), shared, e);
}

enum status windows__check_idle(const char *path, struct err *e)
{
	_cleanup_free_ wchar_t *wide = win32_path(path);
	_cleanup_handle_ HANDLE h = INVALID_HANDLE_VALUE;

	if (!wide)
		return err_nomem(e);
	h = CreateFileW(wide, GENERIC_READ, FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE,
			NULL, OPEN_EXISTING, FILE_FLAG_OPEN_REPARSE_POINT, NULL);
	if (h == INVALID_HANDLE_VALUE)
		return ST_OK;
	return lock_handle(h, true, e);
}

/* CREATE_NEW follows no link and replaces nothing. */
static HANDLE create_new(const wchar_t *path, DWORD flags)
{
	SECURITY_ATTRIBUTES attributes;
	HANDLE h;

	if (!win32_private_begin(&attributes))
		return INVALID_HANDLE_VALUE;
	h = CreateFileW(path, GENERIC_READ | GENERIC_WRITE | DELETE, FILE_SHARE_READ, &attributes,
			CREATE_NEW, FILE_ATTRIBUTE_NORMAL | flags, NULL);
	win32_private_end(&attributes);
	return h;
}

/* Takes the handle. */
static enum status take_handle(struct target *t, HANDLE h, const char *name, struct err *e)
{
	t->fd = _open_osfhandle((intptr_t)h, O_RDWR | O_BINARY | O_NOINHERIT);
	if (t->fd >= 0)
		return ST_OK;
	CloseHandle(h);
	return err_from_errno(e, ST_OUTPUT, errno, "%s", name);
}

/*
 * *direct: past the cache, if the file system takes that, and then it stays true. The handle cannot
 * be changed later, so that a file which does not take it is made anew.
 */
static HANDLE create_lean(const wchar_t *wide, const char *partial, bool *direct)
{
	HANDLE h = *direct ? create_new(wide, FILE_FLAG_NO_BUFFERING) : INVALID_HANDLE_VALUE;

	if (h != INVALID_HANDLE_VALUE && windows__can_direct(h, partial))
		return h;
	if (h != INVALID_HANDLE_VALUE) {
		CloseHandle(h);
		DeleteFileW(wide);
	} else if (*direct && GetLastError() == ERROR_INVALID_PARAMETER) {
		windows__tell_buffered(partial, ERROR_INVALID_PARAMETER);
	} else if (*direct) {
		return h;
	}
	*direct = false;
	return create_new(wide, 0);
}

/* ST_NOT_MINE: the name is taken. */
static enum status create_one(struct target *t, char *partial, bool *direct, struct err *e)
{
	_cleanup_free_ wchar_t *wide = win32_path(partial);
	enum status st;
	HANDLE h;

	if (!wide)
		return err_nomem(e);
	h = create_lean(wide, partial, direct);
	if (h == INVALID_HANDLE_VALUE) {
		const DWORD failed = GetLastError();

		if (failed != ERROR_FILE_EXISTS && failed != ERROR_ALREADY_EXISTS)
			return err_from_win32(e, ST_OUTPUT, failed, "%s", partial);
		st = windows__check_idle(partial, e);
		return st ? err_add(e, st, "%s", partial) : ST_NOT_MINE;
	}
	st = take_handle(t, h, partial, e);
	if (!st)
		st = target_lock(t->fd, false, e);
	return st;
}

/* The first temporary name that is free. What has one already is not ours to touch. */
static enum status create_partial(struct target *t, bool direct, struct err *e)
{
	for (unsigned n = 1; n <= PARTIALS_MAX; n++) {
		_cleanup_free_ char *partial = target_partial_path(t->path, n);
		enum status st;

		if (!partial)
			return err_nomem(e);
		st = create_one(t, partial, &direct, e);
		if (st == ST_NOT_MINE)
			continue;
		if (st)
			return st;
		t->partial = take_ptr(partial);
		t->shown = t->path;
		t->name = windows__last_component(t->path);
		t->partial_name = windows__last_component(t->partial);
		if (n > 1)
			target_tell_partials(t->path, t->partial);
		return direct ? direct__begin(t, e) : ST_OK;
	}
	return err_set(e, ST_OUTPUT, "%s: has %u unfinished outputs; move them away", t->path,
		       PARTIALS_MAX);
}

/* Volume and number of the file; false if there is none, or its file system has no numbers. */
static bool identity_of(HANDLE h, BY_HANDLE_FILE_INFORMATION *ret)
{
	return GetFileInformationByHandle(h, ret) && (ret->nFileIndexHigh || ret->nFileIndexLow);
}

static bool is_same_identity(const BY_HANDLE_FILE_INFORMATION *a,
			     const BY_HANDLE_FILE_INFORMATION *b)
{
	return a->dwVolumeSerialNumber == b->dwVolumeSerialNumber &&
	       a->nFileIndexHigh == b->nFileIndexHigh && a->nFileIndexLow == b->nFileIndexLow;
}

static bool identity_at(const char *path, BY_HANDLE_FILE_INFORMATION *ret)
{
	_cleanup_free_ wchar_t *wide = win32_path(path);
	_cleanup_handle_ HANDLE h = INVALID_HANDLE_VALUE;

	if (!wide)
		return false;
	/* No access at all: that is enough to ask, also for what is open elsewhere. */
	h = CreateFileW(wide, 0, FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE, NULL,
			OPEN_EXISTING, FILE_FLAG_BACKUP_SEMANTICS, NULL);
	return h != INVALID_HANDLE_VALUE && identity_of(h, ret);
}

bool windows__same_file(const char *a, const char *b)
{
	BY_HANDLE_FILE_INFORMATION x, y;

	return identity_at(a, &x) && identity_at(b, &y) && is_same_identity(&x, &y);
}

bool windows__is_input(const char *path, const char *const *inputs)
{
	for (; inputs && *inputs; inputs++)
		if (windows__same_file(path, *inputs))
			return true;
	return false;
}

enum status windows__check_replaceable(const char *path, struct err *e)
{
	_cleanup_free_ wchar_t *wide = win32_path(path);
	const DWORD attributes = wide ? GetFileAttributesW(wide) : 0;

	if (!wide)
		return err_nomem(e);
	if (attributes != INVALID_FILE_ATTRIBUTES && (attributes & FILE_ATTRIBUTE_READONLY))
		return err_set(e, ST_OUTPUT, "%s: is read-only and will not be replaced", path);
	return ST_OK;
}

bool target_has_name(const struct target *t, const char *path)
{
	_cleanup_free_ char *mine = target_directory_of(t->path);
	_cleanup_free_ char *other = target_directory_of(path);

	return mine && other && strcmp(path, "-") != 0 &&
	       !_stricmp(windows__last_component(path), t->name) && windows__same_file(mine, other);
}

bool target_is_device(const struct target *t, const char *path)
{
	return !_stricmp(t->path, path);
}

/* What Windows makes of the whole path: "NUL" and "C:\x\NUL" become \\.\NUL. */
static bool is_device_path(const wchar_t *path)
{
	wchar_t full[MAX_PATH];
	const DWORD n = GetFullPathNameW(path, ARRAY_SIZE(full), full, NULL);

	return n && n < ARRAY_SIZE(full) && wcsncmp(full, L"\\\\.\\", 4) == 0;
}

/* A named pipe, or NUL. Disks and volumes are not written to. */
enum status target_open_device(const char *path, const struct target_facts *seen, struct target *t,
			       struct err *e)
{
	_cleanup_free_ wchar_t *wide = win32_path(path);
	DWORD mode;
	HANDLE h;

	*t = (struct target){ .stream = true, .fd = -1, .directory = -1, .path = strdup(path) };
	if (!t->path || !wide)
		return err_nomem(e);
	h = CreateFileW(wide, GENERIC_WRITE, 0, NULL, OPEN_EXISTING, 0, NULL);
	if (h == INVALID_HANDLE_VALUE)
		return err_from_win32(e, ST_OUTPUT, GetLastError(), "%s", t->path);
	if (GetConsoleMode(h, &mode)) {
		CloseHandle(h);
		return err_set(e, ST_OUTPUT, "%s: is a console", t->path);
	}
	if (GetFileType(h) != FILE_TYPE_PIPE && GetFileType(h) != FILE_TYPE_CHAR) {
		CloseHandle(h);
		return err_set(e, ST_OUTPUT, "%s: is a device; name a file on it", t->path);
	}
	return take_handle(t, h, t->path, e);
}

enum status target_create(const char *path, bool lean, struct target *ret, struct err *e)
{
	*ret = (struct target){ .fd = -1, .directory = -1, .path = strdup(path) };
	return ret->path ? create_partial(ret, lean, e) : err_nomem(e);
}

bool target_separates(char c)
{
	return c == '/' || c == '\\' || c == ':';
}

/* "E:" is the directory in which that drive is, and "E:NAME" a file in it. */
enum status target_is_folder(const char *path, bool *ret, struct err *e)
{
	const char last = path[strlen(path) - 1];
	const bool said = target_separates(last) && last != ':';
	_cleanup_free_ wchar_t *wide = win32_path(path);
	const DWORD attributes = wide ? GetFileAttributesW(wide) : INVALID_FILE_ATTRIBUTES;
	const bool there = attributes != INVALID_FILE_ATTRIBUTES;
	const bool link = there && (attributes & FILE_ATTRIBUTE_REPARSE_POINT);

	*ret = there && (attributes & FILE_ATTRIBUTE_DIRECTORY) && (said || !link);
	if (!said || *ret)
		return ST_OK;
	if (there)
		return err_from_errno(e, ST_OUTPUT, ENOTDIR, "%s", path);
	return err_set(e, ST_OUTPUT, "%s: there is no such directory; make it first", path);
}

void target_step_back(struct target *t)
{
	FILE_IO_PRIORITY_HINT_INFO low = { .PriorityHint = IoPriorityHintLow };

	SetFileInformationByHandle(output_handle_of(t->fd), FileIoPriorityHintInfo, &low,
				   sizeof(low));
}

/* Whether it goes past the cache was decided when it was made. */
void target_leave_cache(struct target *t)
{
	(void)t;
}

/* The cache manager holds back who writes faster than the disk. */
enum status target_pace(struct target *t, uint64_t end, struct err *e)
{
	(void)t;
	(void)end;
	(void)e;
	return ST_OK;
}

static enum status check_named(const char *path, bool force, const char *const *inputs,
			       const wchar_t *wide, struct err *e)
{
	const DWORD attributes = GetFileAttributesW(wide);
	const DWORD failed = GetLastError();

	if (attributes == INVALID_FILE_ATTRIBUTES && failed == ERROR_FILE_NOT_FOUND)
		return ST_OK;
	if (attributes == INVALID_FILE_ATTRIBUTES)
		return err_from_win32(e, ST_OUTPUT, failed, "%s", path);
	if (windows__is_input(path, inputs))
		return err_set(e, ST_OUTPUT, "%s: is the input that is being read", path);
	if (attributes & FILE_ATTRIBUTE_DIRECTORY)
		return err_from_errno(e, ST_OUTPUT, EISDIR, "%s", path);
	if (attributes & FILE_ATTRIBUTE_REPARSE_POINT)
		return err_set(e, ST_OUTPUT, "%s: is a symbolic link; name the file itself", path);
	if (!force)
		return err_set(e, ST_OUTPUT,
			       "%s exists; choose another name, or --force replaces it", path);
	return windows__check_replaceable(path, e);
}

enum status target_inspect(const char *path, bool force, const char *const *inputs,
			   struct target_facts *ret, struct err *e)
{
	_cleanup_free_ wchar_t *wide = win32_path(path);

	*ret = (struct target_facts){ .is = PATH_IS_FILE };
	if (!wide)
		return err_nomem(e);
	if (!*windows__last_component(path))
		return err_set(e, ST_OUTPUT, "'%s' is not a file name", path);
	if (!is_device_path(wide))
		return check_named(path, force, inputs, wide, e);
	ret->is = PATH_IS_STREAM;
	return ST_OK;
}

/* As on Linux: stderr takes the place of stdout, and nothing printed gets into the container. */
enum status target_open_stdout(struct target *ret, struct err *e)
{
	DWORD mode;

	*ret = (struct target){ .stream = true, .fd = -1, .directory = -1 };
	ret->path = strdup("stdout");
	if (!ret->path)
		return err_nomem(e);
	if (GetConsoleMode(output_handle_of(STDOUT_FILENO), &mode))
		return err_set(e, ST_OUTPUT, "stdout: is a console; send it to a file or a pipe");
	fflush(stdout);
	ret->fd = _dup(STDOUT_FILENO);
	if (ret->fd < 0 || _dup2(STDERR_FILENO, STDOUT_FILENO) < 0)
		return err_from_errno(e, ST_OUTPUT, errno, "stdout");
	_setmode(ret->fd, _O_BINARY);
	return ST_OK;
}

bool windows__room_at(const char *directory, uint64_t *ret)
{
	_cleanup_free_ wchar_t *wide = win32_path(directory);
	ULARGE_INTEGER free_to_us;

	if (!wide || !GetDiskFreeSpaceExW(wide, &free_to_us, NULL, NULL))
		return false;
	*ret = free_to_us.QuadPart;
	return true;
}

bool target_room(const struct target *t, uint64_t *ret)
{
	_cleanup_free_ char *directory = target_directory_of(t->path);

	return directory && windows__room_at(directory, ret);
}

/* There is none: see target_open_device(). */
bool target_disk_size(const struct target *t, uint64_t *ret)
{
	return false;
}

enum status target_hole(struct target *t, uint64_t len, uint64_t end, struct err *e)
{
	const HANDLE h = output_handle_of(t->fd);
	const LARGE_INTEGER forward = { .QuadPart = (LONGLONG)len };
	DWORD got;

	/* Where the file system knows no sparse files (exFAT), it writes the zeros. */
	DeviceIoControl(h, FSCTL_SET_SPARSE, NULL, 0, NULL, 0, &got, NULL);
	if (t->direct)
		return direct_file_skip(t->direct, len, e);
	if (os_truncate(t->fd, end))
		return err_from_errno(e, ST_OUTPUT, errno, "%s: extend", t->partial);
	if (!SetFilePointerEx(h, forward, NULL, FILE_CURRENT))
		return err_from_win32(e, ST_OUTPUT, GetLastError(), "%s: extend", t->partial);
	return ST_OK;
}

enum status target_seek(struct target *t, uint64_t at, struct err *e)
{
	const LARGE_INTEGER to = { .QuadPart = (LONGLONG)at };

	if (t->direct)
		return direct_file_cut(t->direct, at, false, e);
	if (!SetFilePointerEx(output_handle_of(t->fd), to, NULL, FILE_BEGIN))
		return err_from_win32(e, ST_OUTPUT, GetLastError(), "%s: seek", t->path);
	return ST_OK;
}

/*
 * FILE_ALLOCATION_INFO (winbase.h, Microsoft Learn); what is not written goes when the file is
 * closed.
 */
enum status target_reserve(struct target *t, uint64_t from, uint64_t end, struct err *e)
{
	FILE_ALLOCATION_INFO info = { .AllocationSize.QuadPart = (LONGLONG)end };
	DWORD failed;

	if (SetFileInformationByHandle(output_handle_of(t->fd), FileAllocationInfo, &info,
				       sizeof(info)))
		return ST_OK;
	failed = GetLastError();
	if (failed == ERROR_DISK_FULL || failed == ERROR_HANDLE_DISK_FULL)
		return err_from_win32(e, ST_OUTPUT, failed, "%s: write", t->path);
	return ST_NOT_MINE;
}

enum status target_cut(struct target *t, uint64_t len, struct err *e)
{
	const LARGE_INTEGER at = { .QuadPart = (LONGLONG)len };

	if (t->direct)
		return direct_file_cut(t->direct, len, true, e);
	if (os_truncate(t->fd, len))
		return err_from_errno(e, ST_OUTPUT, errno, "%s: truncate", t->partial);
	if (!SetFilePointerEx(output_handle_of(t->fd), at, NULL, FILE_BEGIN))
		return err_from_win32(e, ST_OUTPUT, GetLastError(), "%s: truncate", t->partial);
	return ST_OK;
}

enum status target_close(struct target *t, struct err *e)
{
	const char *name = t->partial ? t->partial : t->path;
	const HANDLE h = output_handle_of(t->fd);
	enum status st = t->direct ? direct_file_settle(t->direct, e) : ST_OK;
	int fd = t->fd;

	if (st)
		return st;
	/* A pipe would wait until its reader has read all; NUL and pipes have nothing to sync. */
	if (GetFileType(h) == FILE_TYPE_DISK && !FlushFileBuffers(h))
		return err_from_win32(e, ST_OUTPUT, GetLastError(), "%s: sync", name);
	t->fd = -1;
	if (_close(fd))
		return err_from_errno(e, ST_OUTPUT, errno, "%s: close", name);
	return ST_OK;
}

DWORD windows__rename(const char *from, const char *to, bool replace)
{
	_cleanup_free_ wchar_t *source = win32_path(from), *target = win32_path(to);

	if (!source || !target)
		return ERROR_NOT_ENOUGH_MEMORY;
	/* Write-through: the new name is on the disk when this returns. */
	if (MoveFileExW(source, target,
			MOVEFILE_WRITE_THROUGH | (replace ? MOVEFILE_REPLACE_EXISTING : 0)))
		return 0;
	return GetLastError();
}

enum status target_rename(const char *from, const char *to, struct err *e)
{
	const DWORD failed = windows__rename(from, to, false);

	return failed ? err_from_win32(e, ST_OUTPUT, failed, "%s", to) : ST_OK;
}

enum status target_publish(struct target *t, bool force, struct err *e)
{
	const DWORD failed = windows__rename(t->partial, t->path, force);

	if (failed == ERROR_ALREADY_EXISTS || failed == ERROR_FILE_EXISTS)
		return err_set(e, ST_OUTPUT,
			       "%s appeared in the meantime; the complete output is in %s", t->path,
			       t->partial);
	if (failed)
		return err_from_win32(e, ST_OUTPUT, failed, "%s: rename to %s", t->partial,
				      t->path);
	return ST_OK;
}

void target_remove_partial(struct target *t)
{
	_cleanup_free_ wchar_t *wide = t->partial ? win32_path(t->partial) : NULL;

	direct__end(t);
	/* An open file that nobody may delete stays: it must be closed first. */
	if (t->fd > 0)
		_close(t->fd);
	t->fd = -1;
	if (wide)
		DeleteFileW(wide);
}

enum status target_open_existing(const char *path, bool write, int *ret, struct err *e)
{
	_cleanup_free_ wchar_t *wide = win32_path(path);
	const DWORD attributes = wide ? GetFileAttributesW(wide) : 0;

	if (!wide)
		return err_nomem(e);
	if (write && attributes != INVALID_FILE_ATTRIBUTES &&
	    (attributes & FILE_ATTRIBUTE_REPARSE_POINT))
		return err_set(e, ST_OUTPUT, "is a symbolic link; name the file itself");
	*ret = os_open(path, write ? O_RDWR : O_RDONLY);
	if (*ret >= 0)
		return ST_OK;
	if (write && (errno == EACCES || errno == EROFS))
		return err_from_errno(e, ST_OUTPUT, errno, "open");
	return err_from_errno(e, ST_INPUT, errno, "open");
}

enum status target_check_untouched(int fd, const char *path, uint64_t size, struct err *e)
{
	BY_HANDLE_FILE_INFORMATION opened, named;
	uint64_t now;

	if (!GetFileInformationByHandle(output_handle_of(fd), &opened))
		return err_from_win32(e, ST_OUTPUT, GetLastError(), "check it again");
	if (!identity_at(path, &named) || !is_same_identity(&opened, &named))
		return err_set(e, ST_OUTPUT, "was replaced by another file while it was checked");
	now = (uint64_t)opened.nFileSizeHigh << 32 | opened.nFileSizeLow;
	if (now != size)
		return err_set(e, ST_OUTPUT, "changed while it was checked");
	return ST_OK;
}
