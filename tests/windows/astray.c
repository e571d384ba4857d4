/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ramseal.exe that is led astray by what it parses, as tests/cli/astray.c on Linux: it tries what
 * it can reach, says so on stderr, and then parses as usual. The folder that it tries it in is in
 * the environment: "other", "victim", and "evidence", which may be what is parsed.
 *
 * What asks the deputy (deputy_windows.h) goes the way of every open in the program; the rest asks
 * Windows itself.
 */
#include <io.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>
#include <windows.h>

#include <hivex.h>
#include <tlhelp32.h>

#include "formats/rsz/rsz_reader.h"
#include "tsk-extract/boot.h"

static const wchar_t *name_at(const wchar_t *name)
{
	static wchar_t ret[2][MAX_PATH];
	static int turn;

	turn = !turn;
	_snwprintf(ret[turn], MAX_PATH, L"%s\\%s", _wgetenv(L"RAMSEAL_ASTRAY"), name);
	return ret[turn];
}

/* Not by the import that the program has something in the place of. */
#define DIRECTLY(name)                                                                             \
	((__typeof__(&(name)))(void (*)(void))GetProcAddress(GetModuleHandleW(L"kernel32.dll"),    \
							     #name))

static bool is_handle(HANDLE h)
{
	const bool ret = h && h != INVALID_HANDLE_VALUE;

	if (ret)
		CloseHandle(h);
	return ret;
}

#define OPEN(how, name, access, disposition)                                                       \
	is_handle(how(name_at(name), access,                                                       \
		      FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE, NULL, disposition,   \
		      0, NULL))

static bool makes_and_removes(HANDLE(WINAPI *open)(LPCWSTR, DWORD, DWORD, LPSECURITY_ATTRIBUTES,
						   DWORD, DWORD, HANDLE))
{
	const bool ret = OPEN(open, L"made", GENERIC_WRITE, CREATE_NEW);

	DIRECTLY(DeleteFileW)(name_at(L"made"));
	return ret;
}

static bool makes_again(bool removed)
{
	return removed && OPEN(DIRECTLY(CreateFileW), L"victim", GENERIC_WRITE, CREATE_NEW);
}

static bool moves_back(bool moved)
{
	return moved && DIRECTLY(MoveFileExW)(name_at(L"moved"), name_at(L"victim"), 0);
}

static bool asks_to_read(void)
{
	return OPEN(CreateFileW, L"other", GENERIC_READ, OPEN_EXISTING);
}

static bool asks_to_write(void)
{
	return OPEN(CreateFileW, L"evidence", GENERIC_READ | GENERIC_WRITE, OPEN_EXISTING);
}

static bool asks_to_make(void)
{
	return makes_and_removes(CreateFileW);
}

static bool asks_to_remove(void)
{
	return makes_again(DeleteFileW(name_at(L"victim")));
}

static bool asks_to_rename(void)
{
	return moves_back(MoveFileExW(name_at(L"victim"), name_at(L"moved"), 0));
}

static bool asks_what_is_there(void)
{
	return GetFileAttributesW(name_at(L"other")) != INVALID_FILE_ATTRIBUTES;
}

static bool reads(void)
{
	return OPEN(DIRECTLY(CreateFileW), L"other", GENERIC_READ, OPEN_EXISTING);
}

static bool lists(void)
{
	WIN32_FIND_DATAW f;
	const HANDLE h = FindFirstFileW(name_at(L"*"), &f);

	if (h != INVALID_HANDLE_VALUE)
		FindClose(h);
	return h != INVALID_HANDLE_VALUE;
}

static bool writes(void)
{
	return OPEN(DIRECTLY(CreateFileW), L"evidence", GENERIC_WRITE, OPEN_EXISTING);
}

static bool makes(void)
{
	return makes_and_removes(DIRECTLY(CreateFileW));
}

static bool makes_folder(void)
{
	const bool ret = CreateDirectoryW(name_at(L"made"), NULL);

	RemoveDirectoryW(name_at(L"made"));
	return ret;
}

static bool removes(void)
{
	return makes_again(DIRECTLY(DeleteFileW)(name_at(L"victim")));
}

static bool renames(void)
{
	return moves_back(DIRECTLY(MoveFileExW)(name_at(L"victim"), name_at(L"moved"), 0));
}

static bool reads_registry(void)
{
	HKEY key;
	const bool ret = !RegOpenKeyExW(HKEY_LOCAL_MACHINE, L"SOFTWARE", 0, KEY_READ, &key);

	if (ret)
		RegCloseKey(key);
	return ret;
}

static bool runs(void)
{
	wchar_t line[] = L"cmd.exe /c exit";
	STARTUPINFOW start = { .cb = sizeof(start) };
	PROCESS_INFORMATION process;

	if (!CreateProcessW(NULL, line, NULL, NULL, FALSE, CREATE_NO_WINDOW, NULL, NULL, &start,
			    &process))
		return false;
	WaitForSingleObject(process.hProcess, INFINITE);
	CloseHandle(process.hThread);
	CloseHandle(process.hProcess);
	return true;
}

static bool loads(void)
{
	return LoadLibraryW(L"wininet.dll") != NULL;
}

/* Any but this one. */
static bool opens_processes(void)
{
	const HANDLE all = CreateToolhelp32Snapshot(TH32CS_SNAPPROCESS, 0);
	PROCESSENTRY32W p = { .dwSize = sizeof(p) };
	bool ret = false;

	for (BOOL more = Process32FirstW(all, &p); more; more = Process32NextW(all, &p))
		ret = ret || (p.th32ProcessID != GetCurrentProcessId() &&
			      is_handle(OpenProcess(PROCESS_VM_WRITE | PROCESS_VM_READ, FALSE,
						    p.th32ProcessID)));
	CloseHandle(all);
	return ret;
}

static bool has_privileges(void)
{
	TOKEN_PRIVILEGES *all = calloc(1, 4096);
	HANDLE token = NULL;
	DWORD size;
	bool ret = false;

	if (all && OpenProcessToken(GetCurrentProcess(), TOKEN_QUERY, &token) &&
	    GetTokenInformation(token, TokenPrivileges, all, 4096, &size))
		ret = all->PrivilegeCount > 0;
	if (token)
		CloseHandle(token);
	free(all);
	return ret;
}

static bool makes_code(void)
{
	void *at = VirtualAlloc(NULL, 4096, MEM_RESERVE | MEM_COMMIT, PAGE_EXECUTE_READWRITE);

	if (at)
		VirtualFree(at, 0, MEM_RELEASE);
	return at != NULL;
}

static const struct {
	const char *name;
	bool (*attempt)(void);
} attempts[] = {
#define X(name) { #name, name }
	X(asks_to_read),   X(asks_to_write),  X(asks_to_make),
	X(asks_to_remove), X(asks_to_rename), X(asks_what_is_there),
	X(has_privileges), X(reads),          X(lists),
	X(writes),         X(makes),          X(makes_folder),
	X(removes),        X(renames),        X(reads_registry),
	X(runs),           X(loads),          X(opens_processes),
	X(makes_code),
#undef X
};

static void go_astray(void)
{
	static bool gone;

	if (gone)
		return;
	gone = true;
	for (size_t i = 0; i < ARRAY_SIZE(attempts); i++)
		if (attempts[i].attempt())
			fprintf(stderr, "astray: %s\n", attempts[i].name);
	fprintf(stderr, "astray: tried\n");
	fflush(stderr);
}

/* clang-format off */
#define WRAP(type, name, parameters, arguments)                                                    \
	type __real_##name parameters;                                                             \
	type __wrap_##name parameters;                                                             \
	type __wrap_##name parameters { go_astray(); return __real_##name arguments; }
/* clang-format on */

WRAP(enum status, rsz_reader_open,
     (struct blob * in, enum rsz_trust trust, struct rsz_reader **ret, struct err *e),
     (in, trust, ret, e))
WRAP(enum status, rsz_reader_open_watched,
     (struct blob * in, rsz_chunk_fn *fn, void *arg, struct rsz_reader **ret, struct err *e),
     (in, fn, arg, ret, e))
WRAP(enum status, rsz_scan_create, (struct blob * in, struct rsz_scan **ret, struct err *e),
     (in, ret, e))
WRAP(enum status, ntfs_boot_parse,
     (const uint8_t sector[static 512], struct ntfs_boot *ret, struct err *e), (sector, ret, e))
WRAP(hive_h *, hivex_open, (const char *path, int flags), (path, flags))
