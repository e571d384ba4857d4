/* SPDX-License-Identifier: Apache-2.0 */
#include "driver-interface/winpmem_service_internal.h"

/* They want windows.h first. */
#include <ntsecapi.h>
#include <sddl.h>
#include <stdatomic.h>
#include <string.h>
#include <wchar.h>

#include "driver-interface/driver_advice.h"
#include "driver-interface/driver_safety.h"
#include "driver-interface/winpmem_file.h"
#include "formats/base/bytes.h"

/*
 * Nobody but the system and Administrators, and nothing inherited from the folder above ("P").
 */
#define FOLDER_ACL   L"D:P(A;OICI;FA;;;SY)(A;OICI;FA;;;BA)"

/* How long it may take until a driver has stopped, or its file can be deleted. */
#define PATIENCE_MS  10000
#define STEP_MS      20

/* How long others may keep the service database. */
#define LOCKED_MS    60000

/* NTSTATUS: from here on they are errors (ntstatus.h). */
#define FIRST_STATUS 0xc0000000

/* A closed console leaves 5 s until the program is ended; sealing gets most of them. */
#define EMERGENCY_MS 3000

struct winpmem_service {
	wchar_t name[NAME_SIZE];
	char utf8_name[NAME_SIZE];
	wchar_t *folder; /* ends without a backslash */
	wchar_t *copy;   /* the driver in it */
	HANDLE mutex;
	HANDLE kept;   /* the folder, open so that neither it nor what it is in gets another name */
	HANDLE pinned; /* the copy, open so that nobody replaces it */
	SC_HANDLE manager, service;
	bool folder_made;
	struct winpmem_file file;
};

enum status winpmem__advise(struct err *e, DWORD code, const char *what)
{
	const enum status st = code == ERROR_ACCESS_DENIED ? ST_NO_PRIVILEGE : ST_NO_SOURCE;
	const char *advice = driver_advice(code);

	if (!advice)
		return err_from_win32(e, st, code, "%s", what);
	if (code >= FIRST_STATUS)
		return err_set(e, st, "%s (status 0x%08lx): %s", what, (unsigned long)code, advice);
	return err_set(e, st, "%s (error %lu): %s", what, (unsigned long)code, advice);
}

static enum status make_name(struct winpmem_service *s, struct err *e)
{
	uint8_t random[DIGITS / 2];
	char hex[DIGITS + 1];

	if (!RtlGenRandom(random, sizeof(random)))
		return err_set(e, ST_SYSTEM, "Windows provides no random numbers");
	bytes_to_hex(random, sizeof(random), hex);
	snprintf(s->utf8_name, sizeof(s->utf8_name), WINPMEM_SERVICE_PREFIX "%s", hex);
	for (size_t i = 0; i < NAME_SIZE; i++)
		s->name[i] = (wchar_t)s->utf8_name[i];
	return ST_OK;
}

static wchar_t *mutex_name(const wchar_t *name)
{
	return winpmem__join(L"Global\\", name, L"");
}

/* Held as long as this program lives, whatever becomes of it. */
static enum status hold_mutex(struct winpmem_service *s, struct err *e)
{
	_cleanup_free_ wchar_t *name = mutex_name(s->name);

	if (!name)
		return err_nomem(e);
	s->mutex = CreateMutexW(NULL, FALSE, name);
	return s->mutex ? ST_OK : err_from_win32(e, ST_SYSTEM, GetLastError(), "mutex");
}

bool winpmem__is_in_use(const wchar_t *name)
{
	_cleanup_free_ wchar_t *mutex = mutex_name(name);
	const HANDLE h = mutex ? OpenMutexW(SYNCHRONIZE, FALSE, mutex) : NULL;

	if (h)
		CloseHandle(h);
	/* One that is not for us is there all the same. */
	return h || (mutex && GetLastError() == ERROR_ACCESS_DENIED);
}

/*
 * Of --driver-dir nobody knows who may rename what is above it. So the folder stays open, and is
 * not shared for deleting: then neither it nor one above it can be renamed ([MS-FSA], what
 * FileRenameInformation asks of folders with open files in them), and what it is called without
 * links is where it stays.
 */
static enum status keep_folder(struct winpmem_service *s, struct err *e)
{
	wchar_t *path;

	s->kept = CreateFileW(s->folder, FILE_LIST_DIRECTORY | READ_CONTROL,
			      FILE_SHARE_READ | FILE_SHARE_WRITE, NULL, OPEN_EXISTING,
			      FILE_FLAG_BACKUP_SEMANTICS | FILE_FLAG_OPEN_REPARSE_POINT, NULL);
	if (s->kept == INVALID_HANDLE_VALUE)
		return err_from_win32(e, ST_OUTPUT, GetLastError(), "folder for the driver's copy");
	path = winpmem__final_path(s->kept, s->folder);
	if (!path)
		return err_from_win32(e, ST_OUTPUT, GetLastError(), "folder for the driver's copy");
	free(s->folder);
	s->folder = path;
	free(s->copy);
	s->copy = winpmem__join(s->folder, L"\\", DRIVER_FILE);
	return s->copy ? ST_OK : err_nomem(e);
}

static enum status make_service_folder(struct winpmem_service *s, const char *folder, struct err *e)
{
	_cleanup_free_ wchar_t *above = winpmem__folder_above(folder);
	SECURITY_ATTRIBUTES security = { .nLength = sizeof(security) };
	DWORD failed;

	s->folder = above ? winpmem__join(above, L"\\", s->name) : NULL;
	s->copy = s->folder ? winpmem__join(s->folder, L"\\", DRIVER_FILE) : NULL;
	if (!s->copy)
		return err_nomem(e);
	if (!ConvertStringSecurityDescriptorToSecurityDescriptorW(
		    FOLDER_ACL, SDDL_REVISION_1, &security.lpSecurityDescriptor, NULL))
		return err_from_win32(e, ST_SYSTEM, GetLastError(), "access list");
	s->folder_made = CreateDirectoryW(s->folder, &security);
	failed = GetLastError();
	LocalFree(security.lpSecurityDescriptor);
	if (!s->folder_made)
		return err_from_win32(e, ST_OUTPUT, failed, "folder for the driver's copy");
	return keep_folder(s, e);
}

static enum status make_copy(struct winpmem_service *s, const struct driver_bytes *b, struct err *e)
{
	const enum status st = driver_bytes_write(b, s->copy, e);
	wchar_t *path;

	if (st)
		return st;
	/*
	 * The loader opens it to execute, and shares reading and deleting: that goes together with
	 * this. Who wants to write, rename or delete it is refused.
	 */
	s->pinned =
		CreateFileW(s->copy, GENERIC_READ, FILE_SHARE_READ, NULL, OPEN_EXISTING, 0, NULL);
	if (s->pinned == INVALID_HANDLE_VALUE)
		return err_from_win32(e, ST_OUTPUT, GetLastError(), "the driver's copy");
	path = winpmem__final_path(s->pinned, s->copy);
	if (!path)
		return err_from_win32(e, ST_OUTPUT, GetLastError(), "the driver's copy");
	free(s->copy);
	s->copy = path;
	if (!driver_bytes_are(b, s->pinned))
		return err_set(e, ST_OUTPUT, "the driver's copy is not what was written");
	s->file.trust = driver_trust(s->copy, s->pinned);
	/* By its name: embedded signatures are looked for in files alone. It is pinned. */
	s->file.signer = driver_signer(s->copy);
	return ST_OK;
}

/* While another service is started the database is locked; after Windows has started, for long. */
static DWORD start_service(SC_HANDLE service)
{
	DWORD error = ERROR_SERVICE_DATABASE_LOCKED;

	for (DWORD waited = 0; waited < LOCKED_MS && error == ERROR_SERVICE_DATABASE_LOCKED;
	     waited += STEP_MS) {
		error = StartServiceW(service, 0, NULL) ? ERROR_SUCCESS : GetLastError();
		if (error == ERROR_SERVICE_DATABASE_LOCKED)
			Sleep(STEP_MS);
	}
	return error;
}

/* Where Windows has no number of its own for it, the service may have kept the driver's. */
static DWORD start_failure(SC_HANDLE service, DWORD error)
{
	SERVICE_STATUS status;

	if ((error != ERROR_MR_MID_NOT_FOUND && error != ERROR_SERVICE_SPECIFIC_ERROR) ||
	    !QueryServiceStatus(service, &status))
		return error;
	if (status.dwWin32ExitCode == ERROR_SERVICE_SPECIFIC_ERROR)
		return status.dwServiceSpecificExitCode;
	return status.dwWin32ExitCode ? status.dwWin32ExitCode : error;
}

static enum status make_service(struct winpmem_service *s, struct err *e)
{
	_cleanup_free_ wchar_t *path = winpmem__kernel_path(s->copy);
	DWORD error;

	if (!path)
		return err_nomem(e);
	s->manager = OpenSCManagerW(NULL, NULL, SC_MANAGER_CREATE_SERVICE);
	if (!s->manager)
		return winpmem__advise(e, GetLastError(), "the service manager denied access");
	s->service = CreateServiceW(s->manager, s->name, DISPLAY_NAME,
				    SERVICE_START | SERVICE_STOP | SERVICE_QUERY_STATUS |
					    SERVICE_CHANGE_CONFIG | DELETE,
				    SERVICE_KERNEL_DRIVER, SERVICE_DEMAND_START,
				    SERVICE_ERROR_IGNORE, path, NULL, NULL, NULL, NULL, NULL);
	if (!s->service)
		return winpmem__advise(e, GetLastError(), "the driver's service cannot be created");
	error = start_service(s->service);
	if (driver_left_device(error, winpmem_is_loaded()))
		return err_set(e, ST_NO_SOURCE,
			       "the driver failed to start but left its device behind (error %lu): "
			       "reading it stops Windows, so restart Windows before trying again",
			       (unsigned long)error);
	return error ? winpmem__advise(e, start_failure(s->service, error),
				       "the driver cannot be loaded")
		     : ST_OK;
}

/*
 * When the console is closed, or the user logs off, Windows ends the program after some seconds. It
 * uses them to seal what it has; if that takes longer, the service goes without the rest: a driver
 * that is to stop does so when our handles are closed for us. The file stays, for cleanup.
 */
static _Atomic(SC_HANDLE) emergency_service;
static atomic_int ctrl_c;

static void stop_and_delete(void)
{
	const SC_HANDLE service = atomic_exchange(&emergency_service, NULL);
	SERVICE_STATUS status;

	if (!service)
		return;
	ControlService(service, SERVICE_CONTROL_STOP, &status);
	DeleteService(service);
}

static DWORD WINAPI emergency_thread(void *arg)
{
	Sleep(EMERGENCY_MS);
	stop_and_delete();
	return 0;
}

static BOOL WINAPI on_console_event(DWORD event)
{
	HANDLE thread;

	switch (event) {
	case CTRL_C_EVENT:
	case CTRL_BREAK_EVENT:
		/* The second one ends the program at once. */
		if (atomic_fetch_add(&ctrl_c, 1))
			stop_and_delete();
		break;
	default:
		thread = CreateThread(NULL, 0, emergency_thread, NULL, 0, NULL);
		if (thread)
			CloseHandle(thread);
	}
	return FALSE; /* the next handler's turn */
}

/*
 * The service that is to go in an emergency; NULL: none. The handler stays: Windows calls handlers
 * under the lock that it takes to remove one, and while a handler waits for us to end (a closed
 * console), we would wait for it.
 */
static void guard_service(SC_HANDLE service)
{
	static atomic_flag has_handler = ATOMIC_FLAG_INIT;

	atomic_store(&emergency_service, service);
	if (service && !atomic_flag_test_and_set(&has_handler))
		SetConsoleCtrlHandler(on_console_event, TRUE);
}

bool winpmem_service_is_ours(void)
{
	return atomic_load(&emergency_service) != NULL;
}

static void service_free(struct winpmem_service *s)
{
	cleanup_handle(&s->pinned);
	cleanup_handle(&s->kept);
	if (s->service)
		CloseServiceHandle(s->service);
	if (s->manager)
		CloseServiceHandle(s->manager);
	if (s->mutex)
		CloseHandle(s->mutex);
	free(s->folder);
	free(s->copy);
	winpmem_file_deinit(&s->file);
	free(s);
}

void winpmem_file_deinit(struct winpmem_file *f)
{
	free(f->path);
	free(f->signer);
	free(f->risk);
	*f = (struct winpmem_file){ 0 };
}

/* Before anything is made. */
static enum status check_safety(const struct winpmem_load *l, const struct driver_bytes *b,
				struct winpmem_file *ret, struct err *e)
{
	struct err why = ERR_INIT;
	const enum status st = driver_may_be_loaded(driver_version_of(b->at, b->len), ret->path,
						    l->nt, l->risk, &why);

	if (st)
		return err_set(e, st, "%s; --" RISK_OPTION " loads it anyway", why.message);
	if (!why.message[0])
		return ST_OK;
	ret->risk = strdup(why.message);
	return ret->risk ? ST_OK : err_nomem(e);
}

static enum status read_service_file(const struct winpmem_load *l, struct driver_bytes *b,
				     struct winpmem_file *ret, struct err *e)
{
	enum status st = driver_bytes_read(l->path, b, e);

	if (st)
		return st;
	ret->path = strdup(l->path ? l->path : "built in");
	st = ret->path ? driver_bytes_sha256(b, ret->sha256, e) : err_nomem(e);
	return st ? st : check_safety(l, b, ret, e);
}

enum status winpmem_service_inspect(const struct winpmem_load *l, struct winpmem_file *ret,
				    struct err *e)
{
	_cleanup_driver_bytes_ struct driver_bytes b = { 0 };
	_cleanup_free_ wchar_t *wide = l->path ? win32_path(l->path) : NULL;
	const enum status st = read_service_file(l, &b, ret, e);
	SC_HANDLE manager;

	if (st)
		return st;
	if (l->path && !wide)
		return err_nomem(e);
	if (wide) {
		ret->trust = driver_trust(wide, NULL);
		ret->signer = driver_signer(wide);
	}
	manager = OpenSCManagerW(NULL, NULL, SC_MANAGER_CREATE_SERVICE);
	if (!manager)
		return winpmem__advise(e, GetLastError(), "the service manager denied access");
	CloseServiceHandle(manager);
	return ST_OK;
}

enum status winpmem_file_judge(const char *path, struct winpmem_file *ret, struct err *e)
{
	_cleanup_driver_bytes_ struct driver_bytes b = { 0 };
	_cleanup_free_ wchar_t *wide = win32_path(path);
	enum status st = wide ? driver_bytes_read(path, &b, e) : err_nomem(e);

	if (!st)
		st = driver_bytes_sha256(&b, ret->sha256, e);
	ret->path = st ? NULL : strdup(path);
	if (!st && !ret->path)
		st = err_nomem(e);
	if (st)
		return st;
	ret->trust = driver_trust(wide, NULL);
	ret->signer = driver_signer(wide);
	return ST_OK;
}

static enum status load_service(struct winpmem_service *s, const struct winpmem_load *l,
				struct err *e)
{
	_cleanup_driver_bytes_ struct driver_bytes b = { 0 };
	enum status st = read_service_file(l, &b, &s->file, e);

	if (!st)
		st = make_name(s, e);
	if (!st)
		st = hold_mutex(s, e);
	if (!st)
		st = make_service_folder(s, l->folder, e);
	if (!st)
		st = make_copy(s, &b, e);
	if (!st)
		st = make_service(s, e);
	if (!st && !winpmem_is_loaded())
		st = err_set(e, ST_NO_SOURCE,
			     "%s: was loaded, but there is no memory device: it is not WinPmem",
			     s->file.path);
	return st;
}

enum status winpmem_service_load(const struct winpmem_load *l, struct winpmem_service **ret,
				 struct err *e)
{
	struct winpmem_service *s = calloc(1, sizeof(*s));
	enum status st;

	if (!s)
		return err_nomem(e);
	st = load_service(s, l, e);
	if (st) {
		winpmem_service_unload(s, NULL);
		return st;
	}
	guard_service(s->service);
	*ret = s;
	return ST_OK;
}

const struct winpmem_file *winpmem_service_file(const struct winpmem_service *s)
{
	return &s->file;
}

const char *winpmem_service_name(const struct winpmem_service *s)
{
	return s->utf8_name;
}

/* Until it has stopped. Drivers stop when the last handle on their device is closed. */
static bool has_stopped(SC_HANDLE service)
{
	SERVICE_STATUS status = { .dwCurrentState = SERVICE_STOP_PENDING };

	for (DWORD waited = 0; waited < PATIENCE_MS; waited += STEP_MS) {
		if (!QueryServiceStatus(service, &status) ||
		    status.dwCurrentState == SERVICE_STOPPED)
			break;
		Sleep(STEP_MS);
	}
	return status.dwCurrentState == SERVICE_STOPPED;
}

enum status winpmem__stop_service(SC_HANDLE service, const char *name, struct err *e)
{
	SERVICE_STATUS status;
	DWORD error = ERROR_SUCCESS;
	bool stopped;

	if (!ControlService(service, SERVICE_CONTROL_STOP, &status))
		error = GetLastError();
	stopped = error == ERROR_SERVICE_NOT_ACTIVE || has_stopped(service);
	/* Also one that did not stop: then it is gone after a restart. */
	if (!DeleteService(service) && GetLastError() != ERROR_SERVICE_MARKED_FOR_DELETE)
		return err_from_win32(e, ST_SYSTEM, GetLastError(), "service %s", name);
	if (stopped)
		return ST_OK;
	if (error)
		return err_from_win32(e, ST_SYSTEM, error, "service %s does not stop", name);
	return err_set(e, ST_SYSTEM, "service %s does not stop: another program uses the device",
		       name);
}

/* And the folder that it is in. A virus scanner may hold it for a moment. */
enum status winpmem__delete_copy(const wchar_t *copy, struct err *e)
{
	_cleanup_free_ wchar_t *folder = wcsdup(copy);
	DWORD error = ERROR_SUCCESS;

	if (!folder)
		return err_nomem(e);
	*wcsrchr(folder, '\\') = '\0';
	for (DWORD waited = 0; waited < PATIENCE_MS; waited += STEP_MS) {
		error = ERROR_SUCCESS;
		if (!DeleteFileW(copy))
			error = GetLastError();
		if (error == ERROR_FILE_NOT_FOUND || error == ERROR_PATH_NOT_FOUND)
			error = ERROR_SUCCESS;
		if (!error)
			break;
		Sleep(STEP_MS);
	}
	if (!error && !RemoveDirectoryW(folder) && GetLastError() != ERROR_FILE_NOT_FOUND &&
	    GetLastError() != ERROR_PATH_NOT_FOUND)
		error = GetLastError();
	if (!error)
		return ST_OK;
	MoveFileExW(copy, NULL, MOVEFILE_DELAY_UNTIL_REBOOT);
	MoveFileExW(folder, NULL, MOVEFILE_DELAY_UNTIL_REBOOT);
	return err_from_win32(e, ST_SYSTEM, error,
			      "the driver's copy stays until Windows is restarted");
}

enum status winpmem_service_unload(struct winpmem_service *s, struct err *e)
{
	enum status st = ST_OK, files = ST_OK;

	if (!s)
		return ST_OK;
	guard_service(NULL);
	if (s->service)
		st = winpmem__stop_service(s->service, s->utf8_name, e);
	cleanup_handle(&s->pinned);
	cleanup_handle(&s->kept);
	s->pinned = s->kept = NULL;
	if (s->folder_made)
		files = winpmem__delete_copy(s->copy, st ? NULL : e);
	service_free(s);
	return st ? st : files;
}

void winpmem_service_keep(struct winpmem_service *s)
{
	guard_service(NULL);
	ChangeServiceConfigW(s->service, SERVICE_NO_CHANGE, SERVICE_NO_CHANGE, SERVICE_NO_CHANGE,
			     NULL, NULL, NULL, NULL, NULL, NULL, KEPT_NAME);
	service_free(s);
}
