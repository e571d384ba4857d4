/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The device of winpmem.h as Windows has it.
 */
#include <string.h>
#include <wchar.h>

#include "driver-interface/resource_list.h"
#include "driver-interface/winpmem.h"
#include "driver-interface/winpmem_service.h"
#include "formats/base/win32.h"

#include <winternl.h>

struct windows_host {
	struct winpmem_host host;
	HANDLE device;

	/* The thread that is kept on one CPU (0: none), and where it was allowed before. */
	DWORD thread;
	bool pinned; /* there was one, and `cpu` is its CPU */
	int cpu;
	GROUP_AFFINITY before;
};

static struct windows_host *windows_host_of(struct winpmem_host *h)
{
	return (struct windows_host *)h;
}

static uint32_t request_ioctl(struct winpmem_host *h, uint32_t code, const void *in, size_t in_len,
			      void *out, size_t out_len, size_t *ret_len)
{
	uint8_t copy[16];
	DWORD got = 0, error = ERROR_SUCCESS;

	/* DeviceIoControl() takes what it only reads as not const. */
	if (in_len > sizeof(copy))
		return ERROR_INVALID_PARAMETER;
	if (in_len)
		memcpy(copy, in, in_len);
	if (!DeviceIoControl(windows_host_of(h)->device, code, in_len ? copy : NULL, (DWORD)in_len,
			     out, (DWORD)out_len, &got, NULL))
		error = GetLastError();
	*ret_len = error ? 0 : got;
	return error;
}

/*
 * The address is in the OVERLAPPED, not in a file pointer that everyone who has the handle shares.
 * The handle is a synchronous one all the same.
 */
static uint32_t winpmem_host_read(struct winpmem_host *h, uint64_t addr, void *buf, size_t len,
				  size_t *ret_len)
{
	OVERLAPPED at = { .Offset = (DWORD)addr, .OffsetHigh = (DWORD)(addr >> 32) };
	DWORD got = 0, error = ERROR_SUCCESS;

	if (!ReadFile(windows_host_of(h)->device, buf, (DWORD)len, &got, &at))
		error = GetLastError();
	*ret_len = error ? 0 : got;
	return error;
}

/* Where it was allowed before. It may have ended meanwhile. */
static void unpin(struct windows_host *h)
{
	_cleanup_handle_ HANDLE thread =
		h->thread ? OpenThread(THREAD_SET_INFORMATION | THREAD_QUERY_INFORMATION, FALSE,
				       h->thread)
			  : NULL;

	if (thread)
		SetThreadGroupAffinity(thread, &h->before, NULL);
	h->thread = 0;
}

/* Another thread that reads goes where the first one was. */
static int pin(struct winpmem_host *host)
{
	struct windows_host *h = windows_host_of(host);
	const DWORD thread = GetCurrentThreadId();
	PROCESSOR_NUMBER now;
	GROUP_AFFINITY one = { 0 };

	if (h->thread == thread)
		return h->cpu;
	unpin(h);
	if (h->pinned) {
		now = (PROCESSOR_NUMBER){ .Group = (WORD)(h->cpu / 64),
					  .Number = (BYTE)(h->cpu % 64) };
	} else {
		GetCurrentProcessorNumberEx(&now);
	}
	one.Group = now.Group;
	one.Mask = (KAFFINITY)1 << now.Number;
	if (!SetThreadGroupAffinity(GetCurrentThread(), &one, &h->before))
		return -1;
	h->thread = thread;
	h->pinned = true;
	h->cpu = now.Group * 64 + now.Number;
	return h->cpu;
}

/* Of the whole value, which may grow between the two questions. */
static LSTATUS query_registry_value(HKEY key, uint8_t **ret, DWORD *ret_len)
{
	LSTATUS error = ERROR_MORE_DATA;

	*ret = NULL;
	*ret_len = 0;
	for (int tries = 0; error == ERROR_MORE_DATA && tries < 8; tries++) {
		free(*ret);
		*ret_len += 4096;
		*ret = malloc(*ret_len);
		if (!*ret)
			return ERROR_NOT_ENOUGH_MEMORY;
		error = RegQueryValueExW(key, L"" RESOURCE_LIST_VALUE, NULL, NULL, *ret, ret_len);
	}
	return error;
}

static enum status read_resources(struct winpmem_host *h, uint8_t **ret, size_t *ret_len,
				  struct err *e)
{
	DWORD len = 0;
	HKEY key;
	LSTATUS error =
		RegOpenKeyExW(HKEY_LOCAL_MACHINE, L"" RESOURCE_LIST_KEY, 0, KEY_QUERY_VALUE, &key);

	if (!error) {
		error = query_registry_value(key, ret, &len);
		RegCloseKey(key);
	}
	*ret_len = len;
	if (error == ERROR_NOT_ENOUGH_MEMORY)
		return err_nomem(e);
	return error ? err_from_win32(e, ST_NO_SOURCE, (DWORD)error, "the registry's map of memory")
		     : ST_OK;
}

static void memory_status(struct winpmem_host *h, uint64_t *ret_used, uint64_t *ret_installed)
{
	MEMORYSTATUSEX m = { .dwLength = sizeof(m) };
	ULONGLONG kib = 0;

	*ret_used = GlobalMemoryStatusEx(&m) ? m.ullTotalPhys : 0;
	*ret_installed = GetPhysicallyInstalledSystemMemory(&kib) ? kib << 10 : 0;
}

/* What is not known is taken for the worse. */
static enum winpmem_la57 la57(struct winpmem_host *h)
{
	return nt_five_levels(h->nt) == NT_NO ? LA57_OFF : LA57_ON;
}

static void close_host(struct winpmem_host *host)
{
	struct windows_host *h = windows_host_of(host);

	unpin(h);
	if (h->device != INVALID_HANDLE_VALUE)
		CloseHandle(h->device);
	free(h);
}

static const struct winpmem_host_ops windows_ops = {
	.request = request_ioctl,
	.read = winpmem_host_read,
	.pin = pin,
	.resources = read_resources,
	.memory_status = memory_status,
	.la57 = la57,
	.close = close_host,
};

/* Requests want write access. Where that is refused, reads may still be allowed. */
static HANDLE open_winpmem(const wchar_t *path)
{
	HANDLE h = CreateFileW(path, GENERIC_READ | GENERIC_WRITE,
			       FILE_SHARE_READ | FILE_SHARE_WRITE, NULL, OPEN_EXISTING, 0, NULL);

	if (h == INVALID_HANDLE_VALUE && GetLastError() == ERROR_ACCESS_DENIED)
		h = CreateFileW(path, GENERIC_READ, FILE_SHARE_READ | FILE_SHARE_WRITE, NULL,
				OPEN_EXISTING, 0, NULL);
	return h;
}

static enum status open_refusal(const char *path, DWORD error, struct err *e)
{
	switch (error) {
	case ERROR_FILE_NOT_FOUND:
	case ERROR_PATH_NOT_FOUND:
		return err_set(e, ST_NO_SOURCE,
			       "%s: no memory driver is loaded; --driver FILE.sys loads one", path);
	case ERROR_ACCESS_DENIED:
		return err_set(e, ST_NO_PRIVILEGE,
			       "%s: run ramseal from a console that was started as Administrator",
			       path);
	default:
		return err_from_win32(e, ST_NO_SOURCE, error, "%s", path);
	}
}

enum status winpmem_open_device(const char *path, struct winpmem_host **ret, struct err *e)
{
	_cleanup_free_ wchar_t *wide = win32_path(path);
	_cleanup_free_ struct windows_host *h = calloc(1, sizeof(*h));

	if (!wide || !h)
		return err_nomem(e);
	h->host.ops = &windows_ops;
	h->host.nt = nt_here();
	h->host.file_is_known = winpmem_service_is_ours();
	h->device = open_winpmem(wide);
	if (h->device == INVALID_HANDLE_VALUE)
		return open_refusal(path, GetLastError(), e);
	*ret = &take_ptr(h)->host;
	return ST_OK;
}

/*
 * OBJECT_DIRECTORY_INFORMATION and DIRECTORY_QUERY ("NtQueryDirectoryObject function", winternl.h).
 */
struct directory_entry {
	UNICODE_STRING name, type;
};

#define DIRECTORY_QUERY 0x0001

typedef NTSTATUS(NTAPI *open_directory_fn)(HANDLE *ret, ACCESS_MASK access,
					   OBJECT_ATTRIBUTES *attributes);
typedef NTSTATUS(NTAPI *query_directory_fn)(HANDLE directory, void *buf, ULONG len, BOOLEAN single,
					    BOOLEAN restart, ULONG *context, ULONG *ret_len);

/* Of the kernel's objects, as WinObj shows them. False: it may not be looked at. */
static bool open_directory(wchar_t *path, HANDLE *ret)
{
	const open_directory_fn open = (open_directory_fn)(void (*)(void))win32_function(
		L"ntdll.dll", "NtOpenDirectoryObject");
	UNICODE_STRING name = { .Buffer = path, .Length = (USHORT)(wcslen(path) * sizeof(*path)) };
	OBJECT_ATTRIBUTES attributes;

	name.MaximumLength = name.Length;
	InitializeObjectAttributes(&attributes, &name, OBJ_CASE_INSENSITIVE, NULL, NULL);
	return open && open(ret, DIRECTORY_QUERY, &attributes) >= 0;
}

static bool has_object_name(const struct directory_entry *x, const wchar_t *name)
{
	const size_t len = wcslen(name);

	return x->name.Length == len * sizeof(*name) && !_wcsnicmp(x->name.Buffer, name, len);
}

/* Whether the kernel has an object of this name; what cannot be known is taken for yes. */
static bool object_exists(wchar_t *folder, const wchar_t *name)
{
	const query_directory_fn query_directory =
		(query_directory_fn)(void (*)(void))win32_function(L"ntdll.dll",
								   "NtQueryDirectoryObject");
	_cleanup_handle_ HANDLE directory = NULL;
	union {
		struct directory_entry entry;
		uint8_t room[2048];
	} one;
	ULONG context = 0, len;
	bool found = false;

	if (!query_directory || !open_directory(folder, &directory))
		return true;
	while (!found &&
	       query_directory(directory, &one, sizeof(one), TRUE, !context, &context, &len) == 0)
		found = has_object_name(&one.entry, name);
	return found;
}

/*
 * Nobody opens the device for this: 1.6.3 and 2.0.1 let go of the section that mode PHYSICAL reads
 * through when any handle is closed, and the reads of an acquisition elsewhere come as zeros then
 * (WINPMEM.md, "another handle is closed during the read"). The link alone says nothing: a load
 * of 1.6.3 that failed leaves it, without a device.
 */
bool winpmem_is_loaded(void)
{
	wchar_t target[MAX_PATH], *name;

	if (!QueryDosDeviceW(L"pmem", target, ARRAY_SIZE(target)))
		return GetLastError() != ERROR_FILE_NOT_FOUND;
	name = wcsrchr(target, L'\\');
	if (!name || name == target)
		return true;
	*name = L'\0';
	return object_exists(target, name + 1);
}
