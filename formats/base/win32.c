/* SPDX-License-Identifier: Apache-2.0 */
#include "formats/base/win32.h"

#include <errno.h>
#include <stdarg.h>
#include <string.h>
#include <wchar.h>

#include <sddl.h>

/* CreateDirectory() wants room for a file name of 8.3 besides; so everything is kept below that. */
#define SHORT_PATH (MAX_PATH - 12)

/*
 * Some texts have room for what the caller knows, "The operating system cannot run %1.": three dots
 * say that something is missing.
 */
static void drop_inserts(wchar_t *text, size_t size)
{
	for (wchar_t *at = wcschr(text, '%'); at; at = wcschr(at + 1, '%')) {
		const size_t digits = wcsspn(at + 1, L"0123456789");

		if (!digits || wcslen(text) + 4 > size)
			continue;
		memmove(at + 3, at + 1 + digits, (wcslen(at + 1 + digits) + 1) * sizeof(*at));
		wmemcpy(at, L"...", 3);
	}
}

/* The system's text of an error, without its full stop and line end; false if it has none. */
static bool describe_win32_error(DWORD code, DWORD language, char *ret, size_t size)
{
	wchar_t wide[256];
	int n = (int)FormatMessageW(FORMAT_MESSAGE_FROM_SYSTEM | FORMAT_MESSAGE_IGNORE_INSERTS,
				    NULL, code, language, wide, ARRAY_SIZE(wide), NULL);

	if (n > 0) {
		drop_inserts(wide, ARRAY_SIZE(wide));
		n = (int)wcslen(wide);
	}
	while (n > 0 && wcschr(L"\r\n .", wide[n - 1]))
		n--;
	n = n > 0 ? WideCharToMultiByte(CP_UTF8, 0, wide, n, ret, (int)size - 1, NULL, NULL) : 0;
	ret[n] = '\0';
	return n > 0;
}

enum status err_from_win32(struct err *e, enum status st, DWORD code, const char *fmt, ...)
{
	char front[ERR_MESSAGE_MAX], text[ERR_MESSAGE_MAX - 32];
	va_list ap;

	if (!e)
		return st;
	if (!describe_win32_error(code, MAKELANGID(LANG_ENGLISH, SUBLANG_ENGLISH_US), text,
				  sizeof(text)) &&
	    !describe_win32_error(code, 0, text, sizeof(text)))
		snprintf(text, sizeof(text), "refused");
	va_start(ap, fmt);
	vsnprintf(front, sizeof(front), fmt, ap);
	va_end(ap);
	err_set(e, st, "%s (error %lu)", text, (unsigned long)code);
	return err_add(e, st, "%s", front);
}

int win32_errno(DWORD code)
{
	static const struct {
		DWORD code;
		int number;
	} known[] = {
		{ ERROR_FILE_NOT_FOUND, ENOENT },
		{ ERROR_PATH_NOT_FOUND, ENOENT },
		{ ERROR_INVALID_NAME, ENOENT },
		{ ERROR_INVALID_DRIVE, ENOENT },
		{ ERROR_BAD_PATHNAME, ENOENT },
		{ ERROR_BAD_NETPATH, ENOENT },
		{ ERROR_ACCESS_DENIED, EACCES },
		{ ERROR_SHARING_VIOLATION, EACCES },
		{ ERROR_LOCK_VIOLATION, EACCES },
		{ ERROR_WRITE_PROTECT, EROFS },
		{ ERROR_FILE_EXISTS, EEXIST },
		{ ERROR_ALREADY_EXISTS, EEXIST },
		{ ERROR_DISK_FULL, ENOSPC },
		{ ERROR_HANDLE_DISK_FULL, ENOSPC },
		{ ERROR_NOT_ENOUGH_MEMORY, ENOMEM },
		{ ERROR_OUTOFMEMORY, ENOMEM },
		{ ERROR_BROKEN_PIPE, EPIPE },
		{ ERROR_NO_DATA, EPIPE },
		{ ERROR_INVALID_HANDLE, EBADF },
		{ ERROR_INVALID_PARAMETER, EINVAL },
		{ ERROR_FILENAME_EXCED_RANGE, ENAMETOOLONG },
		{ ERROR_FILE_TOO_LARGE, EFBIG },
		{ ERROR_DIR_NOT_EMPTY, ENOTEMPTY },
		{ ERROR_DIRECTORY, ENOTDIR },
	};

	for (size_t i = 0; i < ARRAY_SIZE(known); i++)
		if (known[i].code == code)
			return known[i].number;
	return EIO;
}

wchar_t *win32_wide(const char *utf8)
{
	const int n = MultiByteToWideChar(CP_UTF8, 0, utf8, -1, NULL, 0);
	wchar_t *ret = n > 0 ? calloc((size_t)n, sizeof(*ret)) : NULL;

	if (ret)
		MultiByteToWideChar(CP_UTF8, 0, utf8, -1, ret, n);
	return ret;
}

char *win32_utf8(const wchar_t *wide)
{
	const int n = WideCharToMultiByte(CP_UTF8, 0, wide, -1, NULL, 0, NULL, NULL);
	char *ret = n > 0 ? calloc((size_t)n, 1) : NULL;

	if (ret)
		WideCharToMultiByte(CP_UTF8, 0, wide, -1, ret, n, NULL, NULL);
	return ret;
}

/* \\?\ and \\.\: nothing of what follows is touched by Windows, nor by us. */
static bool is_verbatim(const wchar_t *path)
{
	return wcsncmp(path, L"\\\\?\\", 4) == 0 || wcsncmp(path, L"\\\\.\\", 4) == 0;
}

/* The full path with its prefix, if it needs one; takes `path`. */
static wchar_t *lift_limit(wchar_t *path)
{
	const DWORD room = GetFullPathNameW(path, 0, NULL, NULL);
	_cleanup_free_ wchar_t *full = calloc((size_t)room + 1, sizeof(*full));
	wchar_t *ret;
	bool share;

	if (!room || !full || !GetFullPathNameW(path, room, full, NULL) ||
	    wcslen(full) < SHORT_PATH || is_verbatim(full))
		return path;
	ret = calloc(wcslen(full) + 9, sizeof(*ret));
	if (!ret)
		return path;
	/* \\server\share becomes \\?\UNC\server\share. */
	share = full[0] == '\\' && full[1] == '\\';
	wcscpy(ret, share ? L"\\\\?\\UNC\\" : L"\\\\?\\");
	wcscat(ret, full + (share ? 2 : 0));
	free(path);
	return ret;
}

wchar_t *win32_path(const char *utf8)
{
	wchar_t *path = win32_wide(utf8);

	if (!path || is_verbatim(path))
		return path;
	for (wchar_t *c = path; *c; c++)
		if (*c == '/')
			*c = '\\';
	return lift_limit(path);
}

char *win32_plain_path(const wchar_t *wide)
{
	_cleanup_free_ wchar_t *share = NULL;
	size_t len;

	if (wcsncmp(wide, L"\\\\?\\UNC\\", 8) == 0) {
		len = wcslen(wide + 8);
		share = calloc(len + 3, sizeof(*share));
		if (!share)
			return NULL;
		wcscpy(share, L"\\\\");
		wcscat(share, wide + 8);
		return win32_utf8(share);
	}
	/* Not of \\?\Volume{...}\: that has no other name. */
	if (wcsncmp(wide, L"\\\\?\\", 4) == 0 && wide[4] && wide[5] == ':')
		return win32_utf8(wide + 4);
	return win32_utf8(wide);
}

FARPROC win32_function(const wchar_t *dll, const char *name)
{
	const HMODULE module = GetModuleHandleW(dll);

	return module ? GetProcAddress(module, name) : NULL;
}

#define MISMATCH ((LONG)0xc0000004) /* STATUS_INFO_LENGTH_MISMATCH */

uint8_t *win32_query_system(int class, ULONG most, ULONG *ret_size)
{
	LONG(WINAPI * query)
	(int, void *, ULONG, ULONG *) = (LONG(WINAPI *)(int, void *, ULONG, ULONG *))(
		void (*)(void))win32_function(L"ntdll.dll", "NtQuerySystemInformation");
	LONG failed = MISMATCH;
	uint8_t *answer = NULL;

	for (ULONG size = 4096; query && failed == MISMATCH && size <= most; size *= 4) {
		ULONG got = 0;

		free(answer);
		answer = calloc(1, size);
		if (!answer)
			return NULL;
		failed = query(class, answer, size, &got);
		*ret_size = MIN(got, size);
	}
	if (!failed && *ret_size)
		return answer;
	free(answer);
	return NULL;
}

HMODULE win32_load_system_dll(const wchar_t *name)
{
	wchar_t path[MAX_PATH + 32];
	const UINT n = GetSystemDirectoryW(path, MAX_PATH);

	if (!n || n >= MAX_PATH)
		return NULL;
	path[n] = '\\';
	wcscpy(path + n + 1, name);
	return LoadLibraryExW(path, NULL, LOAD_WITH_ALTERED_SEARCH_PATH);
}

bool win32_no_descriptor;

PSECURITY_DESCRIPTOR win32_private_descriptor(void)
{
	PSECURITY_DESCRIPTOR ret = NULL;

	if (win32_no_descriptor) {
		SetLastError(ERROR_NOT_ENOUGH_MEMORY);
		return NULL;
	}
	/*
	 * Nothing inherited; everything for the owner, the administrators and the system. Folders
	 * pass it on to what is made in them.
	 */
	if (!ConvertStringSecurityDescriptorToSecurityDescriptorW(
		    L"D:P(A;OICI;FA;;;OW)(A;OICI;FA;;;BA)(A;OICI;FA;;;SY)", SDDL_REVISION_1, &ret,
		    NULL))
		return NULL;
	return ret;
}

bool win32_private_begin(SECURITY_ATTRIBUTES *ret)
{
	*ret = (SECURITY_ATTRIBUTES){
		.nLength = sizeof(*ret),
		.lpSecurityDescriptor = win32_private_descriptor(),
	};
	return ret->lpSecurityDescriptor != NULL;
}

void win32_private_end(SECURITY_ATTRIBUTES *a)
{
	const DWORD failed = GetLastError();

	LocalFree(a->lpSecurityDescriptor);
	a->lpSecurityDescriptor = NULL;
	SetLastError(failed);
}

/* The one who runs this program, or who owns what it makes (a group may, of Windows' choice). */
static bool is_own_sid(PSID sid)
{
	_cleanup_handle_ HANDLE token = NULL;
	union {
		TOKEN_USER user;
		TOKEN_OWNER owner;
		uint8_t bytes[sizeof(TOKEN_USER) + SECURITY_MAX_SID_SIZE];
	} own;
	DWORD size;

	return OpenProcessToken(GetCurrentProcess(), TOKEN_QUERY, &token) &&
	       ((GetTokenInformation(token, TokenUser, &own, sizeof(own), &size) &&
		 EqualSid(sid, own.user.User.Sid)) ||
		(GetTokenInformation(token, TokenOwner, &own, sizeof(own), &size) &&
		 EqualSid(sid, own.owner.Owner)));
}

bool win32_no_owners;

bool win32_knows_owners(const wchar_t *path)
{
	wchar_t volume[MAX_PATH + 1];
	DWORD flags = 0;

	if (win32_no_owners)
		return false;
	return !GetVolumePathNameW(path, volume, ARRAY_SIZE(volume)) ||
	       !GetVolumeInformationW(volume, NULL, 0, NULL, NULL, &flags, NULL, 0) ||
	       (flags & FILE_PERSISTENT_ACLS);
}

bool win32_owner_is_trusted(PSECURITY_DESCRIPTOR d)
{
	PSID owner = NULL;
	BOOL defaulted;

	return !win32_no_owners && GetSecurityDescriptorOwner(d, &owner, &defaulted) && owner &&
	       (IsWellKnownSid(owner, WinBuiltinAdministratorsSid) ||
		IsWellKnownSid(owner, WinLocalSystemSid) || is_own_sid(owner));
}
