/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The code integrity of this Windows, read only. Nothing is mounted for it and nothing is written:
 * an EFI partition without a drive letter stays unseen. No process is started, unless one asks for
 * citool.
 */
#include "agent/collect/host/ci_host.h"

#include <stdlib.h>
#include <string.h>
#include <wchar.h>

#include "agent/collect/host/driver_signers.h"
#include "agent/shared/program/clock.h"
#include "agent/shared/program/json.h"
#include "formats/base/bytes.h"
#include "formats/base/win32.h"

#define POLICY_FOLDER "\\CodeIntegrity\\CiPolicies\\Active"
#define EFI_FOLDER    L":\\EFI\\Microsoft\\Boot\\CiPolicies\\Active"
#define POLICIES_MAX  64

/* How far back in the log it is looked, and how much is kept. */
#define EVENTS_SEEN   512
#define EVENTS_KEPT   24

/* Clocks are set soon after a boot, when event 3099 is already there. */
#define BOOT_SLACK_NS (UINT64_C(120) * 1000000000)

/*
 * Files
 */

static json_t *policy_of_path(const char *id, const char *path, const struct ci_subject *s)
{
	_cleanup_free_ uint8_t *bytes = NULL;
	struct err problem = ERR_INIT;
	size_t len = 0;

	if (driver_bytes_of_file(path, &bytes, &len, &problem))
		return ci_policy_problem_json(id, path, problem.message);
	return ci_policy_json(id, path, bytes, len, s);
}

/* "{...}.cip": the name is the policy's. */
static void add_policy_file(const char *folder, const wchar_t *name, const struct ci_subject *s,
			    json_t *to)
{
	_cleanup_free_ char *base = win32_utf8(name), *path = NULL;
	json_t *one;

	if (!base || strlen(base) < CI_GUID_SIZE - 1 || asprintf(&path, "%s\\%s", folder, base) < 0)
		return;
	base[CI_GUID_SIZE - 1] = '\0';
	one = policy_of_path(base, path, s);
	json_array_append_new(to, one);
}

/* {"path":, "count":, "problem":}; the files go to `list`. A folder that is not there is empty. */
static json_t *policy_folder_json(const char *folder, const struct ci_subject *s, json_t *list)
{
	_cleanup_free_ char *pattern = NULL;
	_cleanup_free_ wchar_t *wide = NULL;
	struct err problem = ERR_INIT;
	WIN32_FIND_DATAW found;
	size_t count = 0;
	HANDLE search;
	DWORD failed;

	if (asprintf(&pattern, "%s\\*.cip", folder) < 0)
		return NULL;
	wide = win32_path(pattern);
	search = wide ? FindFirstFileW(wide, &found) : INVALID_HANDLE_VALUE;
	failed = search == INVALID_HANDLE_VALUE ? GetLastError() : ERROR_SUCCESS;
	if (search != INVALID_HANDLE_VALUE) {
		do {
			if (count++ < POLICIES_MAX)
				add_policy_file(folder, found.cFileName, s, list);
		} while (FindNextFileW(search, &found));
		FindClose(search);
	}
	if (failed && failed != ERROR_FILE_NOT_FOUND && failed != ERROR_PATH_NOT_FOUND)
		err_from_win32(&problem, ST_INPUT, failed, "%s", folder);
	return json_pack("{s:o, s:I, s:o}", "path", json_text(folder), "count", (json_int_t)count,
			 "problem", problem.message[0] ? json_text(problem.message) : json_null());
}

/* The first fixed volume with a letter that has the folder; null: none has, and none is mounted. */
static json_t *efi_folder_json(const struct ci_subject *s, json_t *list)
{
	const DWORD drives = GetLogicalDrives();

	for (wchar_t letter = L'A'; letter <= L'Z'; letter++) {
		const wchar_t root[] = { letter, L':', L'\\', 0 };
		wchar_t folder[64] = { letter };
		_cleanup_free_ char *path = NULL;
		DWORD attributes;

		if (!(drives >> (letter - L'A') & 1) || GetDriveTypeW(root) != DRIVE_FIXED)
			continue;
		wcscat(folder, EFI_FOLDER);
		attributes = GetFileAttributesW(folder);
		if (attributes == INVALID_FILE_ATTRIBUTES ||
		    !(attributes & FILE_ATTRIBUTE_DIRECTORY))
			continue;
		path = win32_utf8(folder);
		return path ? policy_folder_json(path, s, list) : NULL;
	}
	return json_null();
}

/* For free(). */
static char *system_folder(const char *below)
{
	wchar_t wide[MAX_PATH + 1];
	const UINT n = GetSystemDirectoryW(wide, MAX_PATH);
	_cleanup_free_ char *front = n && n <= MAX_PATH ? win32_utf8(wide) : NULL;
	char *ret;

	return front && asprintf(&ret, "%s%s", front, below) >= 0 ? ret : NULL;
}

/* SiPolicy.p7b, if there is one. */
static void add_single_policy(const struct ci_subject *s, json_t *to)
{
	_cleanup_free_ char *path = system_folder("\\CodeIntegrity\\SiPolicy.p7b");
	_cleanup_free_ wchar_t *wide = path ? win32_path(path) : NULL;

	if (wide && GetFileAttributesW(wide) != INVALID_FILE_ATTRIBUTES)
		json_array_append_new(to, policy_of_path(CI_POLICY_SINGLE, path, s));
}

static void put_policies(json_t *to, const struct ci_subject *s)
{
	_cleanup_free_ char *folder = system_folder(POLICY_FOLDER);
	_cleanup_free_ char *blocked = system_folder("\\CodeIntegrity\\driversipolicy.p7b");
	json_t *list = json_array(), *efi = json_array();

	if (folder)
		json_object_set_new(to, "policy_folder", policy_folder_json(folder, s, list));
	add_single_policy(s, list);
	json_object_set_new(to, "policy_files", list);
	json_object_set_new(to, "efi_folder", efi_folder_json(s, efi));
	json_object_set_new(to, "efi_files", efi);
	if (blocked)
		json_object_set_new(to, "block_list",
				    policy_of_path(CI_POLICY_BLOCKLIST, blocked, s));
}

/*
 * Events (winevt.h, "Windows Event Log", Microsoft Learn)
 */

#define LOG_NAME "Microsoft-Windows-CodeIntegrity/Operational"

typedef HANDLE EVENTS; /* EVT_HANDLE */

#define QUERY_CHANNEL 0x1   /* EvtQueryChannelPath */
#define QUERY_REVERSE 0x200 /* EvtQueryReverseDirection */
#define RENDER_XML    1     /* EvtRenderEventXml */
#define TIMEOUT_MS    5000

/* Loaded when it is wanted: a Windows without it acquires all the same. */
struct event_api {
	EVENTS(WINAPI *query)(EVENTS session, const wchar_t *path, const wchar_t *query, DWORD);
	BOOL(WINAPI *next)(EVENTS, DWORD n, EVENTS *ret, DWORD ms, DWORD flags, DWORD *got);
	BOOL(WINAPI *render)(EVENTS context, EVENTS, DWORD flags, DWORD size, void *, DWORD *used,
			     DWORD *properties);
	BOOL(WINAPI *close)(EVENTS);
};

static bool load_event_api(struct event_api *ret)
{
	const HMODULE dll = win32_load_system_dll(L"wevtapi.dll");
	FARPROC *const functions[] = { (FARPROC *)&ret->query, (FARPROC *)&ret->next,
				       (FARPROC *)&ret->render, (FARPROC *)&ret->close };
	static const char *const names[] = { "EvtQuery", "EvtNext", "EvtRender", "EvtClose" };

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		*functions[i] = dll ? GetProcAddress(dll, names[i]) : NULL;
		if (!*functions[i])
			return false;
	}
	return true;
}

/* For free(); NULL if it cannot be had. */
static char *render_event(const struct event_api *api, EVENTS event)
{
	_cleanup_free_ wchar_t *wide = NULL;
	DWORD used = 0, properties;

	api->render(NULL, event, RENDER_XML, 0, NULL, &used, &properties);
	if (GetLastError() != ERROR_INSUFFICIENT_BUFFER || used > 1 << 20)
		return NULL;
	wide = calloc(1, used + sizeof(*wide));
	if (!wide || !api->render(NULL, event, RENDER_XML, used, wide, &used, &properties))
		return NULL;
	return win32_utf8(wide);
}

static bool has_hash_of(const json_t *event, const struct ci_subject *s)
{
	const json_t *hash;
	char hex[2 * CI_DIGEST_MAX + 1];
	size_t i;

	json_array_foreach(json_object_get(event, "hashes"), i, hash)
	{
		for (size_t k = 0; s && k < s->n_hashes; k++) {
			bytes_to_hex(s->hashes[k].at, s->hashes[k].len, hex);
			if (!strcasecmp(json_string_value(hash), hex))
				return true;
		}
	}
	return false;
}

/* Those of the Windows Driver Policy, of the list of vulnerable drivers, and of our driver. */
static bool is_wanted_event(const json_t *event, const struct ci_subject *s)
{
	static const char *const ids[] = { CI_POLICY_AUDIT, CI_POLICY_ENFORCED,
					   CI_POLICY_BLOCKLIST };
	const char *policy = json_string_value(json_object_get(event, "policy"));

	for (size_t i = 0; policy && i < ARRAY_SIZE(ids); i++)
		if (ci_same_id(policy, ids[i]))
			return true;
	return has_hash_of(event, s);
}

static void take_event(const struct event_api *api, EVENTS event, uint64_t boot_ns,
		       const struct ci_subject *s, json_t *list)
{
	_cleanup_free_ char *xml = render_event(api, event);
	json_t *one = xml ? ci_event_json(xml, boot_ns) : NULL;

	if (one && is_wanted_event(one, s) && json_array_size(list) < EVENTS_KEPT)
		json_array_append(list, one);
	json_decref(one);
}

static void read_events(const struct event_api *api, EVENTS query, uint64_t boot_ns,
			const struct ci_subject *s, json_t *list)
{
	EVENTS event;
	DWORD got;

	for (size_t i = 0;
	     i < EVENTS_SEEN && api->next(query, 1, &event, TIMEOUT_MS, 0, &got) && got == 1; i++) {
		take_event(api, event, boot_ns, s, list);
		api->close(event);
	}
}

static uint64_t booted_ns(void)
{
	const uint64_t since = GetTickCount64() * UINT64_C(1000000) + BOOT_SLACK_NS;
	const uint64_t now = clock_wall_ns();

	return now > since ? now - since : 0;
}

static json_t *events_json(const struct ci_subject *s)
{
	json_t *list = json_array();
	struct err problem = ERR_INIT;
	struct event_api api;
	EVENTS query = NULL;

	if (!load_event_api(&api))
		err_set(&problem, ST_INPUT, LOG_NAME ": this Windows has no event log to ask");
	else
		query = api.query(NULL, L"" LOG_NAME,
				  L"*[System[(EventID=3076 or EventID=3077 or EventID=3099)]]",
				  QUERY_CHANNEL | QUERY_REVERSE);
	if (query) {
		read_events(&api, query, booted_ns(), s, list);
		api.close(query);
	} else if (!problem.message[0]) {
		err_from_win32(&problem, ST_INPUT, GetLastError(), LOG_NAME);
	}
	return json_pack("{s:s, s:o, s:o}", "log", LOG_NAME, "list", list, "problem",
			 problem.message[0] ? json_text(problem.message) : json_null());
}

/*
 * citool ("CiTool technical reference", Microsoft Learn; Windows 11 22H2 and later): with -json it
 * asks for no key at its end. Administrators only.
 */

#define CITOOL_MS   60000
#define CITOOL_MOST ((size_t)4 << 20)

/* Both ends; ours is not for the child. False, and GetLastError(). */
static bool open_child_pipe(HANDLE *ret_ours, HANDLE *ret_theirs)
{
	SECURITY_ATTRIBUTES inherit = { .nLength = sizeof(inherit), .bInheritHandle = TRUE };

	return CreatePipe(ret_ours, ret_theirs, &inherit, 0) &&
	       SetHandleInformation(*ret_ours, HANDLE_FLAG_INHERIT, 0);
}

/* Takes what is there, until all writers are gone, the time is over, or it is too much. */
static size_t drain_pipe(HANDLE pipe, char *to, size_t size)
{
	const ULONGLONG until = GetTickCount64() + CITOOL_MS;
	size_t len = 0;
	DWORD got;

	while (len < size && GetTickCount64() < until &&
	       PeekNamedPipe(pipe, NULL, 0, NULL, &got, NULL)) {
		if (!got)
			Sleep(20);
		else if (ReadFile(pipe, to + len, (DWORD)MIN((size_t)got, size - len), &got, NULL))
			len += got;
	}
	return len;
}

static bool start_citool(const wchar_t *path, HANDLE out, PROCESS_INFORMATION *ret)
{
	wchar_t line[] = L"citool.exe -lp -json";
	STARTUPINFOW start = { .cb = sizeof(start),
			       .dwFlags = STARTF_USESTDHANDLES,
			       .hStdOutput = out,
			       .hStdError = out };

	return CreateProcessW(path, line, NULL, NULL, TRUE, CREATE_NO_WINDOW, NULL, NULL, &start,
			      ret);
}

static json_t *run_citool(const char *path)
{
	_cleanup_handle_ HANDLE ours = NULL;
	_cleanup_free_ char *text = malloc(CITOOL_MOST);
	_cleanup_free_ wchar_t *wide = win32_path(path);
	PROCESS_INFORMATION child = { 0 };
	struct err problem = ERR_INIT;
	HANDLE theirs = NULL;
	size_t len = 0;
	bool started;

	started = text && wide && open_child_pipe(&ours, &theirs) &&
		  start_citool(wide, theirs, &child);
	if (!started)
		err_from_win32(&problem, ST_INPUT, GetLastError(), "%s", path);
	if (theirs)
		CloseHandle(theirs);
	if (!started)
		return json_pack("{s:o}", "problem", json_text(problem.message));
	len = drain_pipe(ours, text, CITOOL_MOST);
	if (WaitForSingleObject(child.hProcess, 0) != WAIT_OBJECT_0)
		TerminateProcess(child.hProcess, 1);
	CloseHandle(child.hThread);
	CloseHandle(child.hProcess);
	return ci_citool_json(text, len);
}

json_t *ci_host_json(const struct ci_subject *s, bool citool)
{
	_cleanup_free_ char *path = system_folder("\\citool.exe");
	json_t *o = json_object(), *answer;

	if (!o)
		return NULL;
	put_policies(o, s);
	json_object_set_new(o, "events", events_json(s));
	answer = citool && path ? run_citool(path) : NULL;
	if (answer) {
		json_object_set_new(answer, "path", json_text(path));
		json_object_set_new(o, "citool", answer);
	}
	return o;
}
