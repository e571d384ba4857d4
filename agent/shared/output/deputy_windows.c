/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/shared/output/deputy_windows.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>

#include "formats/base/win32.h"

/* The longest path of Windows, with its zero ("Maximum Path Length Limitation"). */
#define PATH_ROOM 32768
/* An output, its list of gaps, what else stands beside them. */
#define MADE_MAX  16

struct request {
	enum {
		READY,
		OPEN,
		ATTRIBUTES,
		REMOVE,
		MOVE,
		ROOM,       /* on the volume of a folder */
		VOLUME_OF,  /* GetVolumePathNameW() */
		VOLUME_NAME /* GetVolumeNameForVolumeMountPointW() */
	} what;
	DWORD access, share, disposition, flags;
	DWORD length, to_length; /* of the names that follow, with their zeros */
};

struct answer {
	DWORD failed; /* of Win32 */
	DWORD attributes;
	uint64_t handle, room;
	wchar_t text[MAX_PATH];
};

/*
 * Windows' own functions, as they are imported; and what the program calls in their place, from
 * wherever it was linked: in its objects the functions are these pointers.
 */
#define NAMES(X)                                                                                   \
	X(HANDLE, CreateFileW,                                                                     \
	  (LPCWSTR path, DWORD access, DWORD share, LPSECURITY_ATTRIBUTES security,                \
	   DWORD disposition, DWORD flags, HANDLE like))                                           \
	X(DWORD, GetFileAttributesW, (LPCWSTR path))                                               \
	X(BOOL, DeleteFileW, (LPCWSTR path))                                                       \
	X(BOOL, MoveFileExW, (LPCWSTR from, LPCWSTR to, DWORD flags))                              \
	X(BOOL, GetDiskFreeSpaceExW,                                                               \
	  (LPCWSTR folder, PULARGE_INTEGER ours, PULARGE_INTEGER size, PULARGE_INTEGER room))      \
	X(BOOL, GetVolumePathNameW, (LPCWSTR path, LPWSTR ret, DWORD size))                        \
	X(BOOL, GetVolumeNameForVolumeMountPointW, (LPCWSTR root, LPWSTR ret, DWORD size))

#define X(type, name, parameters)                                                                  \
	typedef type WINAPI fn_##name parameters;                                                  \
	extern fn_##name *__real___imp_##name;                                                     \
	extern fn_##name *__wrap___imp_##name;                                                     \
	static fn_##name ask_##name;                                                               \
	fn_##name *__wrap___imp_##name = ask_##name;
NAMES(X)
#undef X
#define DIRECTLY(name) __real___imp_##name

/* --- names --------------------------------------------------------------------------------- */

/* The full path for a comparison, for free(): without the prefix that lifts the limit. */
static wchar_t *path_to_compare(const wchar_t *path)
{
	wchar_t *ret = calloc(PATH_ROOM, sizeof(*ret));
	const DWORD n = ret ? GetFullPathNameW(path, PATH_ROOM, ret, NULL) : 0;

	if (!n || n >= PATH_ROOM) {
		free(ret);
		return NULL;
	}
	if (!wcsncmp(ret, L"\\\\?\\UNC\\", 8))
		wmemmove(ret + 1, ret + 7, n - 6);
	else if (!wcsncmp(ret, L"\\\\?\\", 4) && ret[4] && ret[5] == ':')
		wmemmove(ret, ret + 4, n - 3);
	return ret;
}

static bool paths_are_equal(const wchar_t *a, const wchar_t *b)
{
	return CompareStringOrdinal(a, -1, b, -1, TRUE) == CSTR_EQUAL;
}

static bool path_begins_with(const wchar_t *path, const wchar_t *front, size_t len)
{
	return wcslen(path) >= len &&
	       CompareStringOrdinal(path, (int)len, front, (int)len, TRUE) == CSTR_EQUAL;
}

/* No other folder, and no stream of a file. */
static bool is_one_component(const wchar_t *name)
{
	return *name && !wcspbrk(name, L"\\/:");
}

static size_t folder_length(const wchar_t *path)
{
	const wchar_t *last = wcsrchr(path, '\\');

	return last ? (size_t)(last - path) + 1 : 0;
}

/* --- rules --------------------------------------------------------------------------------- */

bool deputy_rules_add(struct deputy_rules *r, const char *path, enum deputy_access access,
		      bool replaces)
{
	_cleanup_free_ wchar_t *wide = win32_path(path);
	struct deputy_rule *at = realloc(r->at, (r->count + 1) * sizeof(*at));
	DWORD attributes;

	if (at)
		r->at = at;
	if (!at || !wide)
		return false;
	at += r->count;
	*at = (struct deputy_rule){ .access = access, .replaces = replaces };
	at->path = path_to_compare(wide);
	if (!at->path)
		return true; /* what has no path cannot be opened anyway */
	attributes = DIRECTLY(GetFileAttributesW)(wide);
	at->is_folder =
		attributes != INVALID_FILE_ATTRIBUTES && attributes & FILE_ATTRIBUTE_DIRECTORY;
	/* A folder as it is compared with: "C:\x" and "C:\x\" are one. */
	while (at->is_folder && wcslen(at->path) > 3 && at->path[wcslen(at->path) - 1] == '\\')
		at->path[wcslen(at->path) - 1] = '\0';
	r->count++;
	return true;
}

void deputy_rules_deinit(struct deputy_rules *r)
{
	for (size_t i = 0; i < r->count; i++)
		free(r->at[i].path);
	free(r->at);
	*r = (struct deputy_rules){ 0 };
}

static bool is_below(const wchar_t *folder, const wchar_t *path)
{
	const size_t len = wcslen(folder);

	return path_begins_with(path, folder, len) &&
	       (folder[len - 1] == '\\' || path[len] == '\\') && !wcschr(path + len, ':');
}

static bool is_part_of(const wchar_t *first, const wchar_t *path)
{
	const wchar_t *dot = wcsrchr(first, '.');
	const size_t len = dot ? (size_t)(dot - first) + 1 : 0;

	return len > folder_length(first) + 1 && path_begins_with(path, first, len) &&
	       is_one_component(path + len);
}

/* May it be read, by what the command line says? */
static bool is_readable(const struct deputy_rule *r, const wchar_t *path)
{
	if (r->access != DEPUTY_READ && r->access != DEPUTY_PARTS)
		return false;
	return paths_are_equal(r->path, path) || (r->is_folder && is_below(r->path, path)) ||
	       (r->access == DEPUTY_PARTS && is_part_of(r->path, path));
}

/* Is it the name of what the output is made of? */
static bool is_makeable(const struct deputy_rule *r, const wchar_t *path)
{
	const size_t len = wcslen(r->path);

	if (r->access != DEPUTY_MAKE || !path_begins_with(path, r->path, len))
		return false;
	if (!r->is_folder)
		return is_one_component(path + folder_length(r->path));
	if (r->path[len - 1] == '\\') /* a root */
		return is_one_component(path + len);
	return path[len] == '\\' && is_one_component(path + len + 1);
}

/* The folder that an output is in, or the one that it is. */
static bool is_place(const struct deputy_rule *r, const wchar_t *path)
{
	size_t len = wcslen(path);

	if (r->access != DEPUTY_MAKE)
		return false;
	if (r->is_folder)
		return paths_are_equal(r->path, path);
	len += len && path[len - 1] != '\\';
	return folder_length(r->path) == len && path_begins_with(r->path, path, wcslen(path));
}

static bool any_rule(const struct deputy_rules *rules,
		     bool (*fits)(const struct deputy_rule *r, const wchar_t *path),
		     const wchar_t *path)
{
	for (size_t i = 0; i < rules->count; i++)
		if (fits(&rules->at[i], path))
			return true;
	return false;
}

static bool may_replace(const struct deputy_rule *r, const wchar_t *path)
{
	return r->replaces && is_makeable(r, path);
}

static bool is_stream(const struct deputy_rule *r, const wchar_t *path)
{
	return r->access == DEPUTY_WRITE && paths_are_equal(r->path, path);
}

/* --- outside ------------------------------------------------------------------------------- */

/* It trusts nothing that it is told. */
struct serving {
	const struct deputy_rules *rules;
	HANDLE caged;
	wchar_t *made[MADE_MAX]; /* what it has made, by its present name */
	bool ready;
};

static wchar_t **find_made(struct serving *s, const wchar_t *path)
{
	for (size_t i = 0; i < MADE_MAX; i++)
		if (s->made[i] && paths_are_equal(s->made[i], path))
			return &s->made[i];
	return NULL;
}

/* What an open of something that is there may ask for, besides names and sizes. */
#define HARMLESS (FILE_READ_ATTRIBUTES | READ_CONTROL | SYNCHRONIZE)

#define OPEN_FLAGS                                                                                 \
	(FILE_FLAG_BACKUP_SEMANTICS | FILE_FLAG_NO_BUFFERING | FILE_FLAG_OVERLAPPED |              \
	 FILE_FLAG_OPEN_REPARSE_POINT | FILE_FLAG_RANDOM_ACCESS | FILE_FLAG_SEQUENTIAL_SCAN |      \
	 FILE_ATTRIBUTE_NORMAL)

/* Of a volume nothing but where it lies: reader__system_target_risk(). */
static bool is_volume(const wchar_t *path)
{
	return !wcsncmp(path, L"\\\\?\\Volume{", 11) && !wcschr(path + 4, '\\');
}

static bool may_open(const struct serving *s, const struct request *r, const wchar_t *path)
{
	const bool reads = !(r->access & ~(DWORD)(GENERIC_READ | HARMLESS));
	const bool looks = !(r->access & ~(DWORD)HARMLESS);
	const size_t len = wcslen(path), end = wcslen(L".partial");

	if (r->flags & ~(DWORD)OPEN_FLAGS)
		return false;
	if (r->disposition == CREATE_NEW)
		return any_rule(s->rules, is_makeable, path);
	if (r->disposition != OPEN_EXISTING)
		return false;
	if (r->access == GENERIC_WRITE)
		return any_rule(s->rules, is_stream, path);
	if (reads && any_rule(s->rules, is_readable, path))
		return true;
	if (looks && (is_volume(path) || any_rule(s->rules, is_makeable, path) ||
		      any_rule(s->rules, is_place, path)))
		return true;
	/* Is another process at it (windows__check_idle())? */
	return reads && len > end && paths_are_equal(path + len - end, L".partial") &&
	       any_rule(s->rules, is_makeable, path);
}

static DWORD pass_handle(const struct serving *s, HANDLE h, struct answer *a)
{
	HANDLE theirs = NULL;

	if (!DuplicateHandle(GetCurrentProcess(), h, s->caged, &theirs, 0, FALSE,
			     DUPLICATE_SAME_ACCESS | DUPLICATE_CLOSE_SOURCE))
		return GetLastError();
	a->handle = (uintptr_t)theirs;
	return 0;
}

static DWORD open_for(struct serving *s, const struct request *r, const wchar_t *path,
		      const wchar_t *full, struct answer *a)
{
	const bool makes = r->disposition == CREATE_NEW;
	SECURITY_ATTRIBUTES security;
	wchar_t **made = NULL;
	HANDLE h;

	if (!may_open(s, r, full))
		return ERROR_ACCESS_DENIED;
	for (size_t i = 0; i < MADE_MAX && makes && !made; i++)
		made = s->made[i] ? NULL : &s->made[i];
	if (makes && !made)
		return ERROR_TOO_MANY_OPEN_FILES;
	if (makes && !win32_private_begin(&security))
		return GetLastError();
	h = DIRECTLY(CreateFileW)(path, r->access, r->share, makes ? &security : NULL,
				  r->disposition, r->flags, NULL);
	if (makes)
		win32_private_end(&security);
	if (h == INVALID_HANDLE_VALUE)
		return GetLastError();
	if (makes)
		*made = wcsdup(full);
	return pass_handle(s, h, a);
}

static DWORD remove_made(struct serving *s, const wchar_t *path, const wchar_t *full)
{
	wchar_t **made = find_made(s, full);

	if (!made)
		return ERROR_ACCESS_DENIED;
	if (!DIRECTLY(DeleteFileW)(path))
		return GetLastError();
	free(*made);
	*made = NULL;
	return 0;
}

static DWORD move_made(struct serving *s, const struct request *r, const wchar_t *path,
		       const wchar_t *full, const wchar_t *to)
{
	const DWORD known = MOVEFILE_WRITE_THROUGH | MOVEFILE_REPLACE_EXISTING;
	_cleanup_free_ wchar_t *full_to = path_to_compare(to);
	wchar_t **made = find_made(s, full);

	if (!made || !full_to || (r->flags & ~known) ||
	    !any_rule(s->rules, r->flags & MOVEFILE_REPLACE_EXISTING ? may_replace : is_makeable,
		      full_to))
		return ERROR_ACCESS_DENIED;
	if (!DIRECTLY(MoveFileExW)(path, to, r->flags))
		return GetLastError();
	free(*made);
	*made = take_ptr(full_to);
	return 0;
}

static DWORD attributes_for(const struct serving *s, const wchar_t *path, const wchar_t *full,
			    struct answer *a)
{
	if (!any_rule(s->rules, is_readable, full) && !any_rule(s->rules, is_makeable, full) &&
	    !any_rule(s->rules, is_place, full) && !any_rule(s->rules, is_stream, full))
		return ERROR_ACCESS_DENIED;
	a->attributes = DIRECTLY(GetFileAttributesW)(path);
	return a->attributes == INVALID_FILE_ATTRIBUTES ? GetLastError() : 0;
}

static DWORD room_for(const struct serving *s, const wchar_t *path, const wchar_t *full,
		      struct answer *a)
{
	ULARGE_INTEGER ours;

	if (!any_rule(s->rules, is_place, full))
		return ERROR_ACCESS_DENIED;
	if (!DIRECTLY(GetDiskFreeSpaceExW)(path, &ours, NULL, NULL))
		return GetLastError();
	a->room = ours.QuadPart;
	return 0;
}

/* Which volume a name is on: of what the command line names, and of volumes themselves. */
static DWORD volume_for(const struct serving *s, bool name, const wchar_t *path,
			const wchar_t *full, struct answer *a)
{
	BOOL ok;

	if (!name && !any_rule(s->rules, is_makeable, full))
		return ERROR_ACCESS_DENIED;
	ok = name ? DIRECTLY(GetVolumeNameForVolumeMountPointW)(path, a->text, MAX_PATH)
		  : DIRECTLY(GetVolumePathNameW)(path, a->text, MAX_PATH);
	return ok ? 0 : GetLastError();
}

static DWORD deputy_does(struct serving *s, const struct request *r, const wchar_t *path,
			 const wchar_t *to, struct answer *a)
{
	_cleanup_free_ wchar_t *full = r->what == READY ? NULL : path_to_compare(path);

	if (!full && r->what != READY)
		return ERROR_INVALID_NAME;
	switch (r->what) {
	case READY:
		s->ready = true;
		return 0;
	case OPEN:
		return open_for(s, r, path, full, a);
	case ATTRIBUTES:
		return attributes_for(s, path, full, a);
	case REMOVE:
		return remove_made(s, path, full);
	case MOVE:
		return move_made(s, r, path, full, to);
	case ROOM:
		return room_for(s, path, full, a);
	case VOLUME_OF:
	case VOLUME_NAME:
		return volume_for(s, r->what == VOLUME_NAME, path, full, a);
	}
	return ERROR_ACCESS_DENIED;
}

static bool read_pipe_whole(HANDLE h, void *p, size_t len)
{
	uint8_t *at = p;
	DWORD got;

	while (len) {
		if (!ReadFile(h, at, (DWORD)len, &got, NULL) || !got)
			return false;
		at += got;
		len -= got;
	}
	return true;
}

static bool write_pipe_whole(HANDLE h, const void *p, size_t len)
{
	const uint8_t *at = p;
	DWORD got;

	while (len) {
		if (!WriteFile(h, at, (DWORD)len, &got, NULL))
			return false;
		at += got;
		len -= got;
	}
	return true;
}

static bool read_request_path(HANDLE h, wchar_t *ret, DWORD length)
{
	return length >= 1 && length <= PATH_ROOM &&
	       read_pipe_whole(h, ret, length * sizeof(*ret)) &&
	       wmemchr(ret, 0, length) == ret + length - 1;
}

bool deputy_serve(const struct deputy_rules *rules, const struct deputy_pipes *p, HANDLE caged)
{
	struct serving s = { .rules = rules, .caged = caged };
	_cleanup_free_ wchar_t *path = calloc(PATH_ROOM, sizeof(*path)),
			       *to = calloc(PATH_ROOM, sizeof(*to));
	struct request r;

	while (path && to && read_pipe_whole(p->requests, &r, sizeof(r)) &&
	       read_request_path(p->requests, path, r.length) &&
	       read_request_path(p->requests, to, r.to_length)) {
		struct answer a = { .handle = (uintptr_t)INVALID_HANDLE_VALUE };

		a.failed = deputy_does(&s, &r, path, to, &a);
		if (!write_pipe_whole(p->answers, &a, sizeof(a)))
			break;
	}
	for (size_t i = 0; i < MADE_MAX; i++)
		free(s.made[i]);
	return s.ready;
}

/* --- in the cage --------------------------------------------------------------------------- */

static const struct deputy_pipes *deputy;
static SRWLOCK asking = SRWLOCK_INIT;

void deputy_begin_asking(const struct deputy_pipes *p)
{
	deputy = p;
}

/* False, with GetLastError(). */
static bool ask_deputy(struct request r, const wchar_t *path, const wchar_t *to, struct answer *a)
{
	r.length = (DWORD)wcslen(path) + 1;
	r.to_length = (DWORD)wcslen(to) + 1;
	if (r.length > PATH_ROOM || r.to_length > PATH_ROOM) {
		SetLastError(ERROR_FILENAME_EXCED_RANGE);
		return false;
	}
	a->failed = ERROR_BROKEN_PIPE;
	AcquireSRWLockExclusive(&asking);
	if (!write_pipe_whole(deputy->requests, &r, sizeof(r)) ||
	    !write_pipe_whole(deputy->requests, path, r.length * sizeof(*path)) ||
	    !write_pipe_whole(deputy->requests, to, r.to_length * sizeof(*to)) ||
	    !read_pipe_whole(deputy->answers, a, sizeof(*a)))
		a->failed = ERROR_BROKEN_PIPE;
	ReleaseSRWLockExclusive(&asking);
	if (a->failed)
		SetLastError(a->failed);
	return !a->failed;
}

bool deputy_say_ready(void)
{
	struct answer a;

	return ask_deputy((struct request){ .what = READY }, L"", L"", &a);
}

HANDLE deputy_open_directly(const wchar_t *path, DWORD access)
{
	return DIRECTLY(CreateFileW)(path, access, FILE_SHARE_READ | FILE_SHARE_WRITE, NULL,
				     OPEN_EXISTING, FILE_FLAG_BACKUP_SEMANTICS, NULL);
}

static HANDLE WINAPI ask_CreateFileW(LPCWSTR path, DWORD access, DWORD share,
				     LPSECURITY_ATTRIBUTES security, DWORD disposition, DWORD flags,
				     HANDLE like)
{
	const struct request r = {
		.what = OPEN,
		.access = access,
		.share = share,
		.disposition = disposition,
		.flags = flags,
	};
	struct answer a;

	if (!deputy)
		return DIRECTLY(CreateFileW)(path, access, share, security, disposition, flags,
					     like);
	return ask_deputy(r, path, L"", &a) ? (HANDLE)(uintptr_t)a.handle : INVALID_HANDLE_VALUE;
}

static DWORD WINAPI ask_GetFileAttributesW(LPCWSTR path)
{
	struct answer a;

	if (!deputy)
		return DIRECTLY(GetFileAttributesW)(path);
	return ask_deputy((struct request){ .what = ATTRIBUTES }, path, L"", &a)
		       ? a.attributes
		       : INVALID_FILE_ATTRIBUTES;
}

static BOOL WINAPI ask_DeleteFileW(LPCWSTR path)
{
	struct answer a;

	return deputy ? ask_deputy((struct request){ .what = REMOVE }, path, L"", &a)
		      : DIRECTLY(DeleteFileW)(path);
}

static BOOL WINAPI ask_MoveFileExW(LPCWSTR from, LPCWSTR to, DWORD flags)
{
	struct answer a;

	return deputy ? ask_deputy((struct request){ .what = MOVE, .flags = flags }, from, to, &a)
		      : DIRECTLY(MoveFileExW)(from, to, flags);
}

static BOOL WINAPI ask_GetDiskFreeSpaceExW(LPCWSTR folder, PULARGE_INTEGER ours,
					   PULARGE_INTEGER size, PULARGE_INTEGER room)
{
	struct answer a;

	if (!deputy)
		return DIRECTLY(GetDiskFreeSpaceExW)(folder, ours, size, room);
	if (!ask_deputy((struct request){ .what = ROOM }, folder, L"", &a))
		return FALSE;
	ours->QuadPart = a.room;
	return TRUE;
}

static bool ask_for_text(struct request r, const wchar_t *path, wchar_t *ret, DWORD size)
{
	struct answer a;

	if (!ask_deputy(r, path, L"", &a))
		return false;
	if (wcsnlen(a.text, MAX_PATH) >= MIN(size, MAX_PATH)) {
		SetLastError(ERROR_FILENAME_EXCED_RANGE);
		return false;
	}
	wcscpy(ret, a.text);
	return true;
}

static BOOL WINAPI ask_GetVolumePathNameW(LPCWSTR path, LPWSTR ret, DWORD size)
{
	return deputy ? ask_for_text((struct request){ .what = VOLUME_OF }, path, ret, size)
		      : DIRECTLY(GetVolumePathNameW)(path, ret, size);
}

static BOOL WINAPI ask_GetVolumeNameForVolumeMountPointW(LPCWSTR root, LPWSTR ret, DWORD size)
{
	return deputy ? ask_for_text((struct request){ .what = VOLUME_NAME }, root, ret, size)
		      : DIRECTLY(GetVolumeNameForVolumeMountPointW)(root, ret, size);
}
