/* SPDX-License-Identifier: Apache-2.0 */
/* What programs that ended too early, or were told to keep it, have left: services and folders. */
#include <string.h>
#include <wchar.h>

#include "driver-interface/winpmem_service_internal.h"
#include "formats/base/array.h"
#include "formats/base/win32.h"

void winpmem_entries_deinit(struct winpmem_entries *l)
{
	free(l->at);
	*l = (struct winpmem_entries){ 0 };
}

/* The prefix and as many lower-case digits as we write. */
static bool is_service_name(const wchar_t *name)
{
	return wcslen(name) == NAME_SIZE - 1 && wcsncmp(name, PREFIX, PREFIX_LEN) == 0 &&
	       wcsspn(name + PREFIX_LEN, L"0123456789abcdef") == DIGITS;
}

static struct winpmem_entry *find_leftover(const struct winpmem_entries *l, const char *name)
{
	for (size_t i = 0; i < l->count; i++)
		if (!strcmp(l->at[i].name, name))
			return &l->at[i];
	return NULL;
}

/* Of something that is_service_name(). NULL if out of memory. */
static struct winpmem_entry *add_leftover(struct winpmem_entries *l, const wchar_t *name)
{
	struct winpmem_entry x = { .in_use = winpmem__is_in_use(name) };
	struct winpmem_entry *at;

	for (size_t i = 0; i < NAME_SIZE; i++)
		x.name[i] = (char)name[i];
	at = find_leftover(l, x.name);
	if (at)
		return at;
	if (!ARRAY_ROOM(l->at, l->count, l->room))
		return NULL;
	l->at[l->count] = x;
	return &l->at[l->count++];
}

static enum status add_services(const ENUM_SERVICE_STATUS_PROCESSW *found, DWORD count,
				struct winpmem_entries *ret, struct err *e)
{
	for (DWORD i = 0; i < count; i++) {
		struct winpmem_entry *x;

		if (!is_service_name(found[i].lpServiceName))
			continue;
		x = add_leftover(ret, found[i].lpServiceName);
		if (!x)
			return err_nomem(e);
		x->service = true;
		x->running = found[i].ServiceStatusProcess.dwCurrentState != SERVICE_STOPPED;
		x->kept = wcscmp(found[i].lpDisplayName, KEPT_NAME) == 0;
	}
	return ST_OK;
}

/* Services come in pieces of 64 KiB, which is as many as one call ever tells. */
#define SERVICES_PIECE (64u << 10)

static enum status list_services(SC_HANDLE manager, struct winpmem_entries *ret, struct err *e)
{
	_cleanup_free_ uint8_t *piece = malloc(SERVICES_PIECE);
	DWORD needed = 0, count = 0, resume = 0;
	enum status st = ST_OK;
	BOOL all = FALSE;

	if (!piece)
		return err_nomem(e);
	while (!all && !st) {
		all = EnumServicesStatusExW(manager, SC_ENUM_PROCESS_INFO, SERVICE_DRIVER,
					    SERVICE_STATE_ALL, piece, SERVICES_PIECE, &needed,
					    &count, &resume, NULL);
		if (!all && GetLastError() != ERROR_MORE_DATA)
			return winpmem__advise(e, GetLastError(), "services cannot be listed");
		st = add_services((const ENUM_SERVICE_STATUS_PROCESSW *)(void *)piece, count, ret,
				  e);
	}
	return st;
}

static enum status list_folders(const char *folder, struct winpmem_entries *ret, struct err *e)
{
	_cleanup_free_ wchar_t *above = winpmem__folder_above(folder);
	_cleanup_free_ wchar_t *pattern = above ? winpmem__join(above, L"\\", PREFIX L"*") : NULL;
	WIN32_FIND_DATAW found;
	enum status st = ST_OK;
	HANDLE h;

	if (!pattern)
		return err_nomem(e);
	h = FindFirstFileW(pattern, &found);
	if (h == INVALID_HANDLE_VALUE)
		return ST_OK;
	do {
		if ((found.dwFileAttributes & FILE_ATTRIBUTE_DIRECTORY) &&
		    is_service_name(found.cFileName) && !add_leftover(ret, found.cFileName))
			st = err_nomem(e);
	} while (!st && FindNextFileW(h, &found));
	FindClose(h);
	return st;
}

enum status winpmem_entries_list(const char *folder, struct winpmem_entries *ret, struct err *e)
{
	const SC_HANDLE manager =
		OpenSCManagerW(NULL, NULL, SC_MANAGER_CONNECT | SC_MANAGER_ENUMERATE_SERVICE);
	enum status st;

	if (!manager)
		return winpmem__advise(e, GetLastError(), "the service manager denied access");
	st = list_services(manager, ret, e);
	CloseServiceHandle(manager);
	return st ? st : list_folders(folder, ret, e);
}

/* Where the copy of a service is, if it is where we put copies. For free(); NULL if not. */
static wchar_t *copy_of(SC_HANDLE service, const wchar_t *name)
{
	_cleanup_free_ QUERY_SERVICE_CONFIGW *config = calloc(1, 8192);
	_cleanup_free_ wchar_t *tail = winpmem__join(L"\\", name, L"\\" DRIVER_FILE);
	const wchar_t *path;
	DWORD needed;
	size_t len;

	if (!config || !tail || !QueryServiceConfigW(service, config, 8192, &needed))
		return NULL;
	path = config->lpBinaryPathName;
	len = wcslen(path);
	if (wcsncmp(path, L"\\??\\", 4) != 0 || len < wcslen(tail) + 4 ||
	    wcscmp(path + len - wcslen(tail), tail) != 0)
		return NULL;
	return wcsncmp(path, L"\\??\\UNC\\", 8) == 0 ? winpmem__join(L"\\\\", path + 8, L"")
						     : winpmem__join(L"\\\\?\\", path + 4, L"");
}

/* Stops and deletes; *copy is where its file is. */
static enum status remove_service(const struct winpmem_entry *x, const wchar_t *name,
				  wchar_t **copy, struct err *e)
{
	const SC_HANDLE manager = OpenSCManagerW(NULL, NULL, SC_MANAGER_CONNECT);
	SC_HANDLE service;
	enum status st;

	if (!manager)
		return winpmem__advise(e, GetLastError(), "the service manager denied access");
	service = OpenServiceW(manager, name,
			       SERVICE_STOP | SERVICE_QUERY_STATUS | SERVICE_QUERY_CONFIG | DELETE);
	if (service) {
		*copy = copy_of(service, name);
		st = winpmem__stop_service(service, x->name, e);
		CloseServiceHandle(service);
	} else if (GetLastError() == ERROR_SERVICE_DOES_NOT_EXIST) {
		st = ST_OK;
	} else {
		st = winpmem__advise(e, GetLastError(), x->name);
	}
	CloseServiceHandle(manager);
	return st;
}

enum status winpmem_entry_remove(const struct winpmem_entry *x, const char *folder, struct err *e)
{
	_cleanup_free_ wchar_t *name = win32_wide(x->name);
	_cleanup_free_ wchar_t *above = winpmem__folder_above(folder);
	_cleanup_free_ wchar_t *below = name && above ? winpmem__join(above, L"\\", name) : NULL;
	_cleanup_free_ wchar_t *copy = NULL;
	enum status st = ST_OK;

	if (!below)
		return err_nomem(e);
	if (x->service)
		st = remove_service(x, name, &copy, e);
	if (st)
		return st;
	if (!copy)
		copy = winpmem__join(below, L"\\", DRIVER_FILE);
	return copy ? winpmem__delete_copy(copy, e) : err_nomem(e);
}
