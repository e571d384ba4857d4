/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "agent/shared/output/output_set_internal.h"
#include "agent/shared/output/output_windows.h"

struct set_place {
	char *directory; /* where the files will be */
	HANDLE lock;     /* of a file in the other folder that says that somebody writes there */
	bool made;       /* there is another folder */
};

/* In the folder while it is written to: other processes cannot lock a folder itself. */
#define LOCK_NAME "in use"

const char set__separator = '\\';

const char *set__last_component(const char *path)
{
	return windows__last_component(path);
}

int set__compare_names(const char *a, const char *b, size_t len)
{
	return _strnicmp(a, b, len);
}

/* For free(); NULL if out of memory. */
static char *join_directory(const char *directory, const char *name)
{
	char *ret = NULL;

	return asprintf(&ret, "%s\\%s", directory, name) < 0 ? NULL : ret;
}

/* The same as Windows wants to have it. */
static wchar_t *wide_join(const char *directory, const char *name)
{
	_cleanup_free_ char *path = join_directory(directory, name);

	return path ? win32_path(path) : NULL;
}

enum status set__open(struct output_set *s, struct err *e)
{
	s->place = calloc(1, sizeof(*s->place));
	if (!s->place)
		return err_nomem(e);
	s->place->lock = INVALID_HANDLE_VALUE;
	s->place->directory = target_directory_of(s->first);
	return s->place->directory ? ST_OK : err_nomem(e);
}

static void unlock_place(struct set_place *p)
{
	if (p->lock != INVALID_HANDLE_VALUE)
		CloseHandle(p->lock);
	p->lock = INVALID_HANDLE_VALUE;
}

void set__close(struct set_place *p)
{
	if (!p)
		return;
	unlock_place(p);
	free(p->directory);
	free(p);
}

bool set__room(const struct output_set *s, uint64_t *ret)
{
	return windows__room_at(s->place->directory, ret);
}

enum status set__make(struct output_set *s, struct err *e)
{
	_cleanup_free_ wchar_t *wide = win32_path(s->partial);
	_cleanup_free_ char *in_use = NULL;
	SECURITY_ATTRIBUTES attributes;
	DWORD failed = 0;
	enum status st;

	if (!wide)
		return err_nomem(e);
	if (!win32_private_begin(&attributes) || !CreateDirectoryW(wide, &attributes))
		failed = GetLastError();
	win32_private_end(&attributes);
	if (!failed)
		return ST_OK;
	if (failed != ERROR_ALREADY_EXISTS)
		return err_from_win32(e, ST_OUTPUT, failed, "%s", s->partial);
	in_use = join_directory(s->partial, LOCK_NAME);
	if (!in_use)
		return err_nomem(e);
	st = windows__check_idle(in_use, e);
	return st ? err_add(e, st, "%s", s->partial) : ST_NOT_MINE;
}

/* By a file that vanishes when we do, whatever the reason. */
enum status set__enter(struct output_set *s, struct err *e)
{
	_cleanup_free_ wchar_t *wide = wide_join(s->partial, LOCK_NAME);
	OVERLAPPED at = { .Offset = 0xfffffffe, .OffsetHigh = 0x7fffffff };

	s->place->made = true;
	if (!wide)
		return err_nomem(e);
	s->place->lock =
		CreateFileW(wide, GENERIC_READ | GENERIC_WRITE | DELETE,
			    FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE, NULL,
			    CREATE_NEW, FILE_ATTRIBUTE_TEMPORARY | FILE_FLAG_DELETE_ON_CLOSE, NULL);
	if (s->place->lock == INVALID_HANDLE_VALUE)
		return err_from_win32(e, ST_OUTPUT, GetLastError(), "%s\\%s", s->partial,
				      LOCK_NAME);
	LockFileEx(s->place->lock, LOCKFILE_FAIL_IMMEDIATELY | LOCKFILE_EXCLUSIVE_LOCK, 0, 1, 0,
		   &at);
	return ST_OK;
}

void set__leave(struct output_set *s)
{
	_cleanup_free_ wchar_t *wide = s->place->made ? win32_path(s->partial) : NULL;

	unlock_place(s->place);
	if (wide)
		RemoveDirectoryW(wide); /* fails unless it is empty */
}

static enum status found_in_set(const struct output_set *s, const WIN32_FIND_DATAW *f,
				struct set_names *ret, struct err *e)
{
	_cleanup_free_ char *name = win32_utf8(f->cFileName);

	return name ? set__found(s, name, ret, e) : err_nomem(e);
}

enum status set__list(const struct output_set *s, bool made, struct set_names *ret, struct err *e)
{
	const char *folder = made ? s->partial : s->place->directory;
	_cleanup_free_ wchar_t *wide = wide_join(folder, "*");
	WIN32_FIND_DATAW f;
	enum status st;
	HANDLE h;

	if (!wide)
		return err_nomem(e);
	h = FindFirstFileW(wide, &f);
	if (h == INVALID_HANDLE_VALUE && GetLastError() == ERROR_FILE_NOT_FOUND)
		return ST_OK;
	if (h == INVALID_HANDLE_VALUE)
		return err_from_win32(e, ST_OUTPUT, GetLastError(), "%s: list", folder);
	do {
		st = found_in_set(s, &f, ret, e);
	} while (!st && FindNextFileW(h, &f));
	if (!st && GetLastError() != ERROR_NO_MORE_FILES)
		st = err_from_win32(e, ST_OUTPUT, GetLastError(), "%s: list", folder);
	FindClose(h);
	return st;
}

enum status set__check_old(const struct output_set *s, const char *name, const char *const *inputs,
			   struct err *e)
{
	_cleanup_free_ char *path = join_directory(s->place->directory, name);

	if (!path)
		return err_nomem(e);
	if (windows__is_input(path, inputs))
		return err_set(e, ST_OUTPUT, "%s: is the input that is being read", name);
	return s->force ? windows__check_replaceable(path, e) : ST_OK;
}

bool set__is_place(const struct output_set *s, const char *directory)
{
	return windows__same_file(directory, s->place->directory);
}

enum status set__remove(const struct output_set *s, const char *name, struct err *e)
{
	_cleanup_free_ wchar_t *wide = wide_join(s->place->directory, name);

	if (!wide)
		return err_nomem(e);
	if (!DeleteFileW(wide))
		return err_from_win32(e, ST_OUTPUT, GetLastError(), "%s: replace", name);
	return ST_OK;
}

/* Who may read it, the folder has passed on. */
enum status set__sync(const struct output_set *s, const char *name, uint64_t *ret, struct err *e)
{
	_cleanup_free_ wchar_t *wide = wide_join(s->partial, name);
	_cleanup_handle_ HANDLE h = INVALID_HANDLE_VALUE;
	LARGE_INTEGER size;

	if (!wide)
		return err_nomem(e);
	h = CreateFileW(wide, GENERIC_READ | GENERIC_WRITE, FILE_SHARE_READ, NULL, OPEN_EXISTING,
			FILE_FLAG_OPEN_REPARSE_POINT, NULL);
	if (h == INVALID_HANDLE_VALUE || !FlushFileBuffers(h) || !GetFileSizeEx(h, &size))
		return err_from_win32(e, ST_OUTPUT, GetLastError(), "%s\\%s: sync", s->partial,
				      name);
	*ret = (uint64_t)size.QuadPart;
	return ST_OK;
}

enum status set__publish(const struct output_set *s, const char *name, struct err *e)
{
	_cleanup_free_ char *from = join_directory(s->partial, name),
			    *to = join_directory(s->place->directory, name);
	DWORD failed;

	if (!from || !to)
		return err_nomem(e);
	failed = windows__rename(from, to, false);
	if (failed == ERROR_ALREADY_EXISTS || failed == ERROR_FILE_EXISTS)
		return ST_NOT_MINE;
	if (failed)
		return err_from_win32(e, ST_OUTPUT, failed, "%s: rename", from);
	return ST_OK;
}

void set__withdraw(const struct output_set *s, const char *name)
{
	_cleanup_free_ char *from = join_directory(s->place->directory, name),
			    *to = join_directory(s->partial, name);

	if (from && to)
		windows__rename(from, to, false);
}

enum status set__finish(struct output_set *s, struct err *e)
{
	unlock_place(s->place);
	return ST_OK;
}
