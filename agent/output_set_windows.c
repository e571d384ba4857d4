/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/output_set.h"

#include <string.h>

#include "agent/output_windows.h"

struct output_set {
	char *first;     /* path of the first file */
	char *directory; /* where the files will be */
	char *partial;   /* the folder where they are; until it is made, where it would be */
	char *base;      /* of the files in it */
	char *stem;      /* of the files: the last component of `base` */
	HANDLE lock;     /* of a file in the folder that says that somebody writes there */
	char **names;    /* of what was committed, in order */
	size_t count;
	uint64_t bytes;
	bool force;
	bool made;
	bool committed;
};

/* In the folder while it is written to: other processes cannot lock a folder itself. */
#define LOCK_NAME "in use"

/* "STEM." and an ending of three: E01 … E99, EAA … EZZ, FAA … ZZZ; as libewf counts. */
static bool is_member(const struct output_set *s, const char *name)
{
	const size_t len = strlen(s->stem);
	const char *end = name + len + 1;

	if (_strnicmp(name, s->stem, len) != 0 || name[len] != '.' || strlen(end) != 3)
		return false;
	if (end[0] == 'E' && strspn(end + 1, "0123456789") == 2)
		return true;
	return end[0] >= 'E' && strspn(end, "ABCDEFGHIJKLMNOPQRSTUVWXYZ") == 3;
}

static int compare_names(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static void free_names(char **names, size_t count)
{
	while (count)
		free(names[--count]);
	free(names);
}

/* For free(); NULL if out of memory. */
static char *join(const char *directory, const char *name)
{
	char *ret = NULL;

	return asprintf(&ret, "%s\\%s", directory, name) < 0 ? NULL : ret;
}

static enum status add_name(char ***names, size_t *count, const wchar_t *wide,
			    const struct output_set *s, struct err *e)
{
	_cleanup_free_ char *name = win32_utf8(wide);
	char **more;

	if (!name)
		return err_nomem(e);
	if (!is_member(s, name))
		return ST_OK;
	more = realloc(*names, (*count + 1) * sizeof(**names));
	if (!more)
		return err_nomem(e);
	*names = more;
	more[(*count)++] = take_ptr(name);
	return ST_OK;
}

/* Members of the set in a folder; digits sort before letters, so the order is libewf's. */
static enum status list_members(const struct output_set *s, const char *directory, char ***ret,
				size_t *ret_count, struct err *e)
{
	_cleanup_free_ char *pattern = join(directory, "*");
	_cleanup_free_ wchar_t *wide = pattern ? win32_path(pattern) : NULL;
	WIN32_FIND_DATAW found;
	enum status st = ST_OK;
	HANDLE h;

	*ret = NULL;
	*ret_count = 0;
	if (!wide)
		return err_nomem(e);
	h = FindFirstFileW(wide, &found);
	if (h == INVALID_HANDLE_VALUE && GetLastError() == ERROR_FILE_NOT_FOUND)
		return ST_OK;
	if (h == INVALID_HANDLE_VALUE)
		return err_from_win32(e, ST_OUTPUT, GetLastError(), "%s: list", directory);
	do {
		st = add_name(ret, ret_count, found.cFileName, s, e);
	} while (!st && FindNextFileW(h, &found));
	if (!st && GetLastError() != ERROR_NO_MORE_FILES)
		st = err_from_win32(e, ST_OUTPUT, GetLastError(), "%s: list", directory);
	FindClose(h);
	if (st) {
		free_names(*ret, *ret_count);
		*ret = NULL;
		*ret_count = 0;
	}
	if (*ret_count)
		qsort(*ret, *ret_count, sizeof(**ret), compare_names);
	return st;
}

/* Where the files are until they are complete. */
static enum status name_partial(struct output_set *s, unsigned n, struct err *e)
{
	free(s->partial);
	free(s->base);
	s->base = NULL;
	s->partial = target_partial_path(s->first, n);
	if (s->partial)
		s->base = join(s->partial, s->stem);
	return s->base ? ST_OK : err_nomem(e);
}

/* Splits the path into where and what, and derives all names from that. */
static enum status make_names(struct output_set *s, const char *path, const char *suffix,
			      struct err *e)
{
	const size_t len = strlen(path), ending = strlen(suffix);
	const bool has = len > ending && !_stricmp(path + len - ending, suffix);
	const size_t stem_end = has ? len - ending : len;
	const size_t before = (size_t)(windows__last_component(path) - path);

	if (stem_end <= before)
		return err_set(e, ST_OUTPUT, "'%s' is not the name of a file", path);
	if (asprintf(&s->first, "%.*s%s", (int)stem_end, path, suffix) < 0)
		s->first = NULL;
	s->stem = calloc(stem_end - before + 1, 1);
	if (!s->first || !s->stem)
		return err_nomem(e);
	memcpy(s->stem, path + before, stem_end - before);
	s->directory = target_directory_of(s->first);
	return s->directory ? name_partial(s, 1, e) : err_nomem(e);
}

static enum status check_new(const struct output_set *s, const struct output_options *o,
			     struct err *e)
{
	char **names = NULL;
	size_t count = 0;
	enum status st = list_members(s, s->directory, &names, &count, e);

	for (size_t i = 0; i < count && !st; i++) {
		_cleanup_free_ char *path = join(s->directory, names[i]);

		if (!path)
			st = err_nomem(e);
		else if (windows__is_input(path, o->inputs))
			st = err_set(e, ST_OUTPUT, "%s: is what is being read", names[i]);
	}
	if (!st && count && !s->force)
		st = err_set(e, ST_OUTPUT, "%s exists; --force replaces it", names[0]);
	free_names(names, count);
	return st;
}

static enum status check_room(const struct output_set *s, uint64_t expected, struct err *e)
{
	uint64_t room;

	if (s->force || !expected || !windows__room_at(s->directory, &room))
		return ST_OK;
	return output_judge_room(room, expected, s->first, e);
}

static enum status make_one(struct output_set *s, struct err *e)
{
	_cleanup_free_ wchar_t *wide = win32_path(s->partial);
	SECURITY_ATTRIBUTES attributes = { .nLength = sizeof(attributes) };
	_cleanup_free_ char *in_use = NULL;
	DWORD failed = 0;
	enum status st;

	if (!wide)
		return err_nomem(e);
	attributes.lpSecurityDescriptor = windows__private_descriptor();
	if (!CreateDirectoryW(wide, &attributes))
		failed = GetLastError();
	LocalFree(attributes.lpSecurityDescriptor);
	if (!failed) {
		s->made = true;
		return ST_OK;
	}
	if (failed != ERROR_ALREADY_EXISTS)
		return err_from_win32(e, ST_OUTPUT, failed, "%s", s->partial);
	in_use = join(s->partial, LOCK_NAME);
	if (!in_use)
		return err_nomem(e);
	st = windows__check_idle(in_use, e);
	return st ? err_add(e, st, "%s", s->partial) : ST_NOT_MINE;
}

/* A file that vanishes when we do, whatever the reason. */
static enum status lock_directory(struct output_set *s, struct err *e)
{
	_cleanup_free_ char *path = join(s->partial, LOCK_NAME);
	_cleanup_free_ wchar_t *wide = path ? win32_path(path) : NULL;
	OVERLAPPED at = { .Offset = 0xfffffffe, .OffsetHigh = 0x7fffffff };

	if (!wide)
		return err_nomem(e);
	s->lock =
		CreateFileW(wide, GENERIC_READ | GENERIC_WRITE | DELETE,
			    FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE, NULL,
			    CREATE_NEW, FILE_ATTRIBUTE_TEMPORARY | FILE_FLAG_DELETE_ON_CLOSE, NULL);
	if (s->lock == INVALID_HANDLE_VALUE)
		return err_from_win32(e, ST_OUTPUT, GetLastError(), "%s", path);
	LockFileEx(s->lock, LOCKFILE_FAIL_IMMEDIATELY | LOCKFILE_EXCLUSIVE_LOCK, 0, 1, 0, &at);
	return ST_OK;
}

static enum status make_directory(struct output_set *s, struct err *e)
{
	enum status st;
	unsigned n = 1;

	while ((st = make_one(s, e)) == ST_NOT_MINE) {
		if (n++ == PARTIALS_MAX)
			return err_set(e, ST_OUTPUT,
				       "%s: has %u unfinished outputs; move them away", s->first,
				       PARTIALS_MAX);
		st = name_partial(s, n, e);
		if (st)
			return st;
	}
	if (!st && n > 1)
		target_tell_partials(s->first, s->partial);
	return st ? st : lock_directory(s, e);
}

static enum status open_set(struct output_set *s, const struct output_options *o, struct err *e)
{
	_cleanup_free_ char *standard = o->path ? NULL : output_default_path(o->suffix);
	enum status st;

	if (!o->path && !standard)
		return err_nomem(e);
	if (o->path && !strcmp(o->path, "-"))
		return err_set(e, ST_OUTPUT, "stdout: this format needs files, and seeks in them");
	st = make_names(s, o->path ? o->path : standard, o->suffix, e);
	if (!st)
		st = check_new(s, o, e);
	if (!st)
		st = check_room(s, o->expected, e);
	return st ? st : make_directory(s, e);
}

enum status output_set_open(const struct output_options *o, struct output_set **ret, struct err *e)
{
	struct output_set *s = calloc(1, sizeof(*s));
	enum status st;

	if (!s)
		return err_nomem(e);
	s->lock = INVALID_HANDLE_VALUE;
	s->force = o->force;
	st = open_set(s, o, e);
	if (st) {
		output_set_destroy(s);
		return st;
	}
	*ret = s;
	return ST_OK;
}

static void unlock(struct output_set *s)
{
	if (s->lock != INVALID_HANDLE_VALUE)
		CloseHandle(s->lock);
	s->lock = INVALID_HANDLE_VALUE;
}

void output_set_destroy(struct output_set *s)
{
	_cleanup_free_ wchar_t *wide = s && s->made ? win32_path(s->partial) : NULL;

	if (!s)
		return;
	unlock(s);
	if (wide)
		RemoveDirectoryW(wide); /* fails unless it is empty */
	free_names(s->names, s->count);
	free(s->first);
	free(s->directory);
	free(s->partial);
	free(s->base);
	free(s->stem);
	free(s);
}

const char *output_set_base(const struct output_set *s)
{
	return s->base;
}

bool output_set_has(const struct output_set *s, const char *path)
{
	_cleanup_free_ char *directory = target_directory_of(path);

	return is_member(s, windows__last_component(path)) && directory &&
	       windows__same_file(directory, s->directory);
}

/* Everything to the disk. Who may read them, the folder has passed on. */
static enum status sync_file(struct output_set *s, const char *name, struct err *e)
{
	_cleanup_free_ char *path = join(s->partial, name);
	_cleanup_free_ wchar_t *wide = path ? win32_path(path) : NULL;
	_cleanup_handle_ HANDLE h = INVALID_HANDLE_VALUE;
	LARGE_INTEGER size;

	if (!wide)
		return err_nomem(e);
	h = CreateFileW(wide, GENERIC_READ | GENERIC_WRITE, FILE_SHARE_READ, NULL, OPEN_EXISTING,
			FILE_FLAG_OPEN_REPARSE_POINT, NULL);
	if (h == INVALID_HANDLE_VALUE || !FlushFileBuffers(h) || !GetFileSizeEx(h, &size))
		return err_from_win32(e, ST_OUTPUT, GetLastError(), "%s: sync", path);
	s->bytes += (uint64_t)size.QuadPart;
	return ST_OK;
}

/* What an earlier, larger set would leave behind this one would be taken for a part of it. */
static enum status remove_old(struct output_set *s, struct err *e)
{
	char **names = NULL;
	size_t count = 0;
	enum status st = list_members(s, s->directory, &names, &count, e);

	for (size_t i = 0; i < count && !st; i++) {
		_cleanup_free_ char *path = join(s->directory, names[i]);
		_cleanup_free_ wchar_t *wide = path ? win32_path(path) : NULL;

		if (!wide)
			st = err_nomem(e);
		else if (!DeleteFileW(wide))
			st = err_from_win32(e, ST_OUTPUT, GetLastError(), "%s: replace", path);
	}
	free_names(names, count);
	return st;
}

static enum status publish(struct output_set *s, const char *name, struct err *e)
{
	_cleanup_free_ char *from = join(s->partial, name), *to = join(s->directory, name);
	DWORD failed;

	if (!from || !to)
		return err_nomem(e);
	failed = windows__rename(from, to, false);
	if (failed == ERROR_ALREADY_EXISTS || failed == ERROR_FILE_EXISTS)
		return err_set(e, ST_OUTPUT, "%s appeared meanwhile; ours is complete, in %s", name,
			       s->partial);
	if (failed)
		return err_from_win32(e, ST_OUTPUT, failed, "%s: rename", from);
	return ST_OK;
}

enum status output_set_commit(struct output_set *s, struct err *e)
{
	enum status st = list_members(s, s->partial, &s->names, &s->count, e);

	for (size_t i = 0; i < s->count && !st; i++)
		st = sync_file(s, s->names[i], e);
	if (!st && s->force)
		st = remove_old(s, e);
	for (size_t i = s->count; i-- && !st;)
		st = publish(s, s->names[i], e);
	if (st)
		return st;
	unlock(s);
	s->committed = true;
	return ST_OK;
}

const char *output_set_where(const struct output_set *s)
{
	return s->committed ? s->first : s->partial;
}

const char *output_set_name(const struct output_set *s)
{
	return s->first;
}

uint64_t output_set_bytes(const struct output_set *s)
{
	return s->bytes;
}

json_t *output_set_files(const struct output_set *s)
{
	json_t *list = json_array();

	for (size_t i = 0; list && i < s->count; i++)
		json_array_append_new(list, json_string(s->names[i]));
	return list;
}
