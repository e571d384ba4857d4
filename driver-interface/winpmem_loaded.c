/* SPDX-License-Identifier: Apache-2.0 */
/* Which driver answers that somebody loaded before us: its device does not tell. */
#include <string.h>
#include <wchar.h>

#include "driver-interface/winpmem_service_internal.h"
#include "formats/base/array.h"
#include "formats/base/win32.h"

void winpmem_loaded_deinit(struct winpmem_loaded_list *l)
{
	for (size_t i = 0; i < l->count; i++) {
		free(l->at[i].service);
		free(l->at[i].path);
	}
	free(l->at);
	*l = (struct winpmem_loaded_list){ 0 };
}

/* All that is known of WinPmem has "pmem" in the name of its service or its file, ours too. */
static bool names_pmem(const wchar_t *text)
{
	const wchar_t *slash = wcsrchr(text, '\\');

	for (text = slash ? slash + 1 : text; *text; text++)
		if (_wcsnicmp(text, L"pmem", 4) == 0)
			return true;
	return false;
}

/*
 * As programs name it: the service manager has \??\C:\x.sys, \SystemRoot\x.sys, or a path below
 * Windows' folder.
 */
static wchar_t *plain_driver_path(const wchar_t *path)
{
	static const wchar_t root[] = L"\\SystemRoot\\";
	wchar_t windows[MAX_PATH + 1];
	const UINT n = GetSystemWindowsDirectoryW(windows, MAX_PATH + 1);

	if (wcsncmp(path, L"\\??\\", 4) == 0)
		return _wcsdup(path + 4);
	if (_wcsnicmp(path, root, ARRAY_SIZE(root) - 1) == 0)
		path += ARRAY_SIZE(root) - 1;
	else if (path[0] == '\\' || (path[0] && path[1] == ':'))
		return _wcsdup(path);
	return n && n <= MAX_PATH ? winpmem__join(windows, L"\\", path) : NULL;
}

static enum status add_loaded(SC_HANDLE manager, const wchar_t *name,
			      struct winpmem_loaded_list *ret, struct err *e)
{
	_cleanup_free_ QUERY_SERVICE_CONFIGW *config = calloc(1, 8192);
	_cleanup_free_ wchar_t *path = NULL;
	const SC_HANDLE service = OpenServiceW(manager, name, SERVICE_QUERY_CONFIG);
	struct winpmem_loaded x = { 0 };
	DWORD needed;

	if (config && service && QueryServiceConfigW(service, config, 8192, &needed))
		path = plain_driver_path(config->lpBinaryPathName);
	if (service)
		CloseServiceHandle(service);
	if (!config)
		return err_nomem(e);
	if (!names_pmem(name) && !(path && names_pmem(path)))
		return ST_OK;
	x.service = win32_utf8(name);
	x.path = path ? win32_utf8(path) : NULL;
	if (!x.service || !ARRAY_ROOM(ret->at, ret->count, ret->room)) {
		free(x.service);
		free(x.path);
		return err_nomem(e);
	}
	ret->at[ret->count++] = x;
	return ST_OK;
}

#define SERVICES_PIECE (64u << 10)

enum status winpmem_loaded_find(struct winpmem_loaded_list *ret, struct err *e)
{
	const SC_HANDLE manager =
		OpenSCManagerW(NULL, NULL, SC_MANAGER_CONNECT | SC_MANAGER_ENUMERATE_SERVICE);
	_cleanup_free_ uint8_t *piece = malloc(SERVICES_PIECE);
	DWORD needed = 0, count = 0, resume = 0;
	enum status st = piece ? ST_OK : err_nomem(e);
	BOOL all = FALSE;

	if (!manager)
		return err_from_win32(e, ST_SYSTEM, GetLastError(), "services");
	while (!all && !st) {
		const ENUM_SERVICE_STATUS_PROCESSW *found =
			(const ENUM_SERVICE_STATUS_PROCESSW *)(void *)piece;

		all = EnumServicesStatusExW(manager, SC_ENUM_PROCESS_INFO, SERVICE_DRIVER,
					    SERVICE_ACTIVE, piece, SERVICES_PIECE, &needed, &count,
					    &resume, NULL);
		if (!all && GetLastError() != ERROR_MORE_DATA) {
			st = err_from_win32(e, ST_SYSTEM, GetLastError(), "services");
			break;
		}
		for (DWORD i = 0; i < count && !st; i++)
			st = add_loaded(manager, found[i].lpServiceName, ret, e);
	}
	CloseServiceHandle(manager);
	return st;
}
