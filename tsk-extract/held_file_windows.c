/* SPDX-License-Identifier: Apache-2.0 */
#include "tsk-extract/held_file.h"

#include <inttypes.h>
#include <wchar.h>

#include "formats/base/nt_answers.h"
#include "formats/base/win32.h"

/* 40 bytes a handle: more than a million and a half of them. */
#define HANDLE_LIST_MAX ((ULONG)64 << 20)
/* A disk file is named at once. */
#define NAME_MS         2000
/* So many that did not answer, and no more are asked: each keeps a thread. */
#define STUCK_MAX       8

/* SE_DEBUG_PRIVILEGE (wdm.h): the same on every Windows. */
#define DEBUG_PRIVILEGE 20

/* False if it was on before, or is not ours to have. */
static bool set_debug_privilege(bool on)
{
	_cleanup_handle_ HANDLE token = NULL;
	TOKEN_PRIVILEGES before = { 0 }, to = {
		.PrivilegeCount = 1,
		.Privileges[0] = { .Luid.LowPart = DEBUG_PRIVILEGE,
				   .Attributes = on ? SE_PRIVILEGE_ENABLED : 0 },
	};
	DWORD len = sizeof(before);

	return OpenProcessToken(GetCurrentProcess(), TOKEN_ADJUST_PRIVILEGES | TOKEN_QUERY,
				&token) &&
	       AdjustTokenPrivileges(token, FALSE, &to, sizeof(before), &before, &len) &&
	       GetLastError() == ERROR_SUCCESS && before.PrivilegeCount == 1;
}

static enum status open_holder(uint32_t pid, HANDLE *ret, struct err *e)
{
	const bool raised = set_debug_privilege(true);
	DWORD failed = 0;

	*ret = OpenProcess(PROCESS_DUP_HANDLE, FALSE, pid);
	if (!*ret)
		failed = GetLastError();
	if (raised)
		set_debug_privilege(false);
	if (*ret)
		return ST_OK;
	return err_from_win32(e, ST_INPUT, failed, "handles of process %" PRIu32 "%s", pid,
			      failed == ERROR_ACCESS_DENIED
				      ? ": Windows protects the process, even from administrators"
				      : "");
}

/* --- one handle ---------------------------------------------------------------------------- */

/* What a thread finds out. It stays behind, with its handle, where the thread does not end. */
struct naming {
	HANDLE handle;
	DWORD form; /* VOLUME_NAME_... */
	wchar_t *want;
	wchar_t name[1024];
	bool is_wanted;
};

static DWORD WINAPI name_handle(void *arg)
{
	struct naming *n = arg;
	DWORD len;

	if (GetFileType(n->handle) != FILE_TYPE_DISK)
		return 0;
	/* As it was opened: nothing more is asked of the file system, which has it locked. */
	len = GetFinalPathNameByHandleW(n->handle, n->name, ARRAY_SIZE(n->name),
					FILE_NAME_OPENED | n->form);
	n->is_wanted = len && len < ARRAY_SIZE(n->name) && _wcsicmp(n->name, n->want) == 0;
	return 0;
}

static void naming_destroy(struct naming *n)
{
	if (n->handle)
		CloseHandle(n->handle);
	free(n->want);
	free(n);
}

static struct naming *naming_create(HANDLE handle, const wchar_t *want)
{
	struct naming *n = calloc(1, sizeof(*n));

	if (!n) {
		CloseHandle(handle);
		return NULL;
	}
	n->handle = handle;
	n->form = wcsncmp(want, L"\\\\?\\Volume{", 11) ? VOLUME_NAME_DOS : VOLUME_NAME_GUID;
	n->want = _wcsdup(want);
	if (n->want)
		return n;
	naming_destroy(n);
	return NULL;
}

/* Takes the handle. *ret is it, if it is the wanted file's; else NULL. */
static enum status ask_name(HANDLE handle, const wchar_t *want, size_t *stuck, HANDLE *ret,
			    struct err *e)
{
	struct naming *n = naming_create(handle, want);
	_cleanup_handle_ HANDLE thread = NULL;

	if (n)
		thread = CreateThread(NULL, 1 << 16, name_handle, n,
				      STACK_SIZE_PARAM_IS_A_RESERVATION, NULL);
	if (!thread) {
		if (n)
			naming_destroy(n);
		return err_nomem(e);
	}
	if (WaitForSingleObject(thread, NAME_MS) != WAIT_OBJECT_0) {
		++*stuck;
		return ST_OK;
	}
	if (n->is_wanted) {
		*ret = n->handle;
		n->handle = NULL;
	}
	naming_destroy(n);
	return ST_OK;
}

/* --- all of a process ---------------------------------------------------------------------- */

struct held_search {
	uint32_t pid;
	HANDLE process;
	const wchar_t *want;
	uint16_t file_type; /* index of the type of file objects */
	size_t asked, stuck, unreadable;
};

/* By a file of our own: the numbers are those of this boot. */
static bool find_file_type(const uint8_t *answer, ULONG size, HANDLE ours, uint16_t *ret)
{
	struct nt_list l = nt_list_over(answer, size);
	struct nt_handle h;

	while (nt_handle_next(&l, &h))
		if (h.pid == GetCurrentProcessId() && h.value == (uintptr_t)ours) {
			*ret = h.type;
			return true;
		}
	return false;
}

static enum status try_handle(struct held_search *s, const struct nt_handle *h, HANDLE *ret,
			      struct err *e)
{
	const DWORD access = h->access & (FILE_READ_DATA | FILE_READ_ATTRIBUTES | SYNCHRONIZE);
	HANDLE ours = NULL;

	if (h->pid != s->pid || h->type != s->file_type)
		return ST_OK;
	if (!(h->access & FILE_READ_DATA)) {
		s->unreadable++;
		return ST_OK;
	}
	if (!DuplicateHandle(s->process, (HANDLE)(uintptr_t)h->value, GetCurrentProcess(), &ours,
			     access, FALSE, 0))
		return ST_OK; /* closed meanwhile, or the kernel's own */
	s->asked++;
	return ask_name(ours, s->want, &s->stuck, ret, e);
}

static enum status search_list(struct held_search *s, const uint8_t *answer, ULONG size,
			       HANDLE *ret, struct err *e)
{
	struct nt_list l = nt_list_over(answer, size);
	struct nt_handle h;
	enum status st = ST_OK;

	while (!st && !*ret && s->stuck < STUCK_MAX && nt_handle_next(&l, &h))
		st = try_handle(s, &h, ret, e);
	if (st || *ret)
		return st;
	return err_set(e, ST_INPUT,
		       "process %" PRIu32 " holds no handle of it that can be read (%zu files "
		       "asked, %zu of them did not answer; %zu more without the right to read)",
		       s->pid, s->asked, s->stuck, s->unreadable);
}

static HANDLE open_ourselves(void)
{
	wchar_t name[MAX_PATH];
	const DWORD len = GetModuleFileNameW(NULL, name, MAX_PATH);

	if (!len || len >= MAX_PATH)
		return INVALID_HANDLE_VALUE;
	return CreateFileW(name, FILE_READ_ATTRIBUTES,
			   FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE, NULL,
			   OPEN_EXISTING, 0, NULL);
}

static enum status search_holder(struct held_search *s, HANDLE *ret, struct err *e)
{
	_cleanup_handle_ HANDLE ours = open_ourselves();
	ULONG size = 0;
	_cleanup_free_ uint8_t *answer = win32_query_system(NT_HANDLES, HANDLE_LIST_MAX, &size);

	if (!answer)
		return err_set(e, ST_INPUT, "Windows does not list its handles");
	if (!find_file_type(answer, size, ours, &s->file_type))
		return err_set(e, ST_INPUT, "Windows' list of handles lacks our own");
	return search_list(s, answer, size, ret, e);
}

/* As Windows names it: "\\?\C:\pagefile.sys". For free(); NULL if out of memory. */
static wchar_t *full_name(const char *path)
{
	const bool has_prefix = path[0] == '\\' && path[1] == '\\';
	_cleanup_free_ wchar_t *wide = win32_wide(path);
	const size_t size = wide ? wcslen(wide) + 5 : 0;
	wchar_t *ret = wide ? calloc(size, sizeof(*ret)) : NULL;

	if (ret)
		swprintf(ret, size, L"%ls%ls", has_prefix ? L"" : L"\\\\?\\", wide);
	return ret;
}

enum status held_file_open(uint32_t pid, const char *path, struct reader **ret, struct err *e)
{
	_cleanup_free_ wchar_t *want = full_name(path);
	_cleanup_handle_ HANDLE process = NULL;
	struct held_search s = { .pid = pid, .want = want };
	HANDLE found = NULL;
	enum status st = want ? open_holder(pid, &process, e) : err_nomem(e);

	s.process = process;
	if (!st)
		st = search_holder(&s, &found, e);
	return st ? st : reader__open_handle(found, path, ret, e);
}
