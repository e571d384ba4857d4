/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/shared/program/cage_windows.h"

#include <inttypes.h>
#include <io.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <wchar.h>

#include "agent/shared/program/random.h"
#include "formats/base/md5_sha1.h"
#include "formats/base/sha256.h"
#include "formats/base/win32.h"

/* How the new process knows what it is: as in detach_windows.c, its command line is ours. */
#define MARK L"RAMSEAL_CAGE"

/* winbase.h: ProcThreadAttributeValue(14, FALSE, TRUE, FALSE); mingw-w64 has it for Windows 10. */
#ifndef PROC_THREAD_ATTRIBUTE_CHILD_PROCESS_POLICY
#define PROC_THREAD_ATTRIBUTE_CHILD_PROCESS_POLICY 0x2000e
#endif
#ifndef PROCESS_CREATION_CHILD_PROCESS_RESTRICTED
#define PROCESS_CREATION_CHILD_PROCESS_RESTRICTED 0x01
#endif

/* --- tokens -------------------------------------------------------------------------------- */

/* What a token tells about itself, for free(). */
static void *ask_token(HANDLE token, TOKEN_INFORMATION_CLASS class)
{
	DWORD size = 0;
	void *ret;

	GetTokenInformation(token, class, NULL, 0, &size);
	ret = size ? malloc(size) : NULL;
	if (ret && GetTokenInformation(token, class, ret, size, &size))
		return ret;
	free(ret);
	return NULL;
}

/*
 * Those of the token's SIDs that say who somebody is; the logon session's cannot be made to deny,
 * and integrity levels are of another kind.
 */
static DWORD list_sids(const TOKEN_GROUPS *groups, const TOKEN_USER *user, DWORD left_out,
		       SID_AND_ATTRIBUTES *ret)
{
	DWORD n = 0;

	for (DWORD i = 0; i < groups->GroupCount; i++)
		if (!(groups->Groups[i].Attributes & (left_out | SE_GROUP_INTEGRITY)))
			ret[n++].Sid = groups->Groups[i].Sid;
	ret[n++].Sid = user->User.Sid;
	return n;
}

static bool null_sid(SID_AND_ATTRIBUTES *ret, uint8_t room[static SECURITY_MAX_SID_SIZE])
{
	DWORD size = SECURITY_MAX_SID_SIZE;

	*ret = (SID_AND_ATTRIBUTES){ .Sid = room };
	return CreateWellKnownSid(WinNullSid, NULL, room, &size);
}

/*
 * The token of the cage, which opens nothing; and the one for the first thread's beginning, which
 * opens what ours does. That is restricted, too, by all that it has: Windows lets a process whose
 * token is restricted impersonate no other kind.
 */
static bool make_tokens(HANDLE *ret_cage, HANDLE *ret_beginning)
{
	_cleanup_handle_ HANDLE own = NULL, primary = NULL;
	_cleanup_free_ TOKEN_GROUPS *groups = NULL;
	_cleanup_free_ TOKEN_USER *user = NULL;
	_cleanup_free_ SID_AND_ATTRIBUTES *sids = NULL;
	uint8_t room[SECURITY_MAX_SID_SIZE];
	SID_AND_ATTRIBUTES nobody;

	if (!OpenProcessToken(GetCurrentProcess(), TOKEN_ALL_ACCESS, &own))
		return false;
	groups = ask_token(own, TokenGroups);
	user = ask_token(own, TokenUser);
	sids = groups ? calloc((size_t)groups->GroupCount + 1, sizeof(*sids)) : NULL;
	if (!sids || !user || !null_sid(&nobody, room))
		return false;
	if (!CreateRestrictedToken(own, 0, 0, NULL, 0, NULL, list_sids(groups, user, 0, sids), sids,
				   &primary) ||
	    !DuplicateTokenEx(primary, TOKEN_ALL_ACCESS, NULL, SecurityImpersonation,
			      TokenImpersonation, ret_beginning))
		return false;
	return CreateRestrictedToken(own, DISABLE_MAX_PRIVILEGE,
				     list_sids(groups, user, SE_GROUP_LOGON_ID, sids), sids, 0,
				     NULL, 1, &nobody, ret_cage);
}

/* S-1-16-0: below everything that has a label, and everything has. */
static bool lower_integrity(HANDLE token)
{
	SID untrusted = {
		.Revision = SID_REVISION,
		.SubAuthorityCount = 1,
		.IdentifierAuthority = { SECURITY_MANDATORY_LABEL_AUTHORITY },
		.SubAuthority = { SECURITY_MANDATORY_UNTRUSTED_RID },
	};
	TOKEN_MANDATORY_LABEL label = {
		.Label = { .Sid = &untrusted, .Attributes = SE_GROUP_INTEGRITY },
	};

	return SetTokenInformation(token, TokenIntegrityLevel, &label,
				   (DWORD)(sizeof(label) + sizeof(untrusted)));
}

/* --- the job ------------------------------------------------------------------------------- */

#define NO_WINDOWS_OF_OTHERS                                                                       \
	(JOB_OBJECT_UILIMIT_DESKTOP | JOB_OBJECT_UILIMIT_DISPLAYSETTINGS |                         \
	 JOB_OBJECT_UILIMIT_EXITWINDOWS | JOB_OBJECT_UILIMIT_GLOBALATOMS |                         \
	 JOB_OBJECT_UILIMIT_HANDLES | JOB_OBJECT_UILIMIT_READCLIPBOARD |                           \
	 JOB_OBJECT_UILIMIT_SYSTEMPARAMETERS | JOB_OBJECT_UILIMIT_WRITECLIPBOARD)

static HANDLE make_job(bool without_windows)
{
	JOBOBJECT_EXTENDED_LIMIT_INFORMATION limits = {
		.BasicLimitInformation = {
			.LimitFlags = JOB_OBJECT_LIMIT_ACTIVE_PROCESS |
				      JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE |
				      JOB_OBJECT_LIMIT_DIE_ON_UNHANDLED_EXCEPTION,
			.ActiveProcessLimit = 1,
		},
	};
	JOBOBJECT_BASIC_UI_RESTRICTIONS windows = { .UIRestrictionsClass = NO_WINDOWS_OF_OTHERS };
	const HANDLE job = CreateJobObjectW(NULL, NULL);

	if (job &&
	    SetInformationJobObject(job, JobObjectExtendedLimitInformation, &limits,
				    sizeof(limits)) &&
	    (!without_windows ||
	     SetInformationJobObject(job, JobObjectBasicUIRestrictions, &windows, sizeof(windows))))
		return job;
	if (job)
		CloseHandle(job);
	return NULL;
}

/*
 * A job with limits of windows cannot always be one of several that hold a process (Nested Jobs,
 * Microsoft Learn), and Windows 7 has none of several at all.
 */
static HANDLE put_into_job(HANDLE process)
{
	for (int windows = 1; windows >= 0; windows--) {
		const HANDLE job = make_job(windows != 0);

		if (job && AssignProcessToJobObject(job, process))
			return job;
		if (job)
			CloseHandle(job);
	}
	return NULL;
}

/* --- the process --------------------------------------------------------------------------- */

/* What it is given: handles that can be inherited, and nothing else can have them meanwhile. */
enum { GIVEN_STREAMS = 3, GIVEN = GIVEN_STREAMS + 2 };

static bool make_pipe(HANDLE *ours, HANDLE *theirs, bool they_write)
{
	SECURITY_ATTRIBUTES own = { .nLength = sizeof(own) };
	HANDLE from, to;

	if (!CreatePipe(&from, &to, &own, 0))
		return false;
	*ours = they_write ? from : to;
	*theirs = they_write ? to : from;
	return SetHandleInformation(*theirs, HANDLE_FLAG_INHERIT, HANDLE_FLAG_INHERIT);
}

static bool make_given(struct cage_child *c, HANDLE given[static GIVEN])
{
	const HANDLE self = GetCurrentProcess();

	for (int i = 0; i < GIVEN_STREAMS; i++)
		if (!DuplicateHandle(self, (HANDLE)_get_osfhandle(i), self, &given[i], 0, TRUE,
				     DUPLICATE_SAME_ACCESS))
			return false;
	return make_pipe(&c->requests, &given[GIVEN_STREAMS], true) &&
	       make_pipe(&c->answers, &given[GIVEN_STREAMS + 1], false);
}

/*
 * Both are in kernel32.dll, too, where mingw-w64's import library looks first, but not in that of
 * every Windows.
 */
#define IN_ADVAPI(name)                                                                            \
	((__typeof__(&(name)))(void (*)(void))win32_function(L"advapi32.dll", #name))

static bool create_suspended(HANDLE token, STARTUPINFOEXW *start, PROCESS_INFORMATION *ret)
{
	_cleanup_free_ wchar_t *self = calloc(32768, sizeof(*self));
	_cleanup_free_ wchar_t *line = wcsdup(GetCommandLineW());
	const DWORD size = self ? GetModuleFileNameW(NULL, self, 32768) : 0;

	return size && size < 32768 && line && IN_ADVAPI(CreateProcessAsUserW) &&
	       IN_ADVAPI(CreateProcessAsUserW)(token, self, line, NULL, NULL, TRUE,
					       CREATE_SUSPENDED | EXTENDED_STARTUPINFO_PRESENT,
					       NULL, NULL, &start->StartupInfo, ret);
}

static bool create_with_handles(HANDLE token, HANDLE given[static GIVEN], PROCESS_INFORMATION *ret)
{
	STARTUPINFOEXW start = { .StartupInfo = { .cb = sizeof(start),
						  .dwFlags = STARTF_USESTDHANDLES,
						  .hStdInput = given[0],
						  .hStdOutput = given[1],
						  .hStdError = given[2] } };
	DWORD no_children = PROCESS_CREATION_CHILD_PROCESS_RESTRICTED;
	SIZE_T size = 0;
	bool ok;

	InitializeProcThreadAttributeList(NULL, 2, 0, &size);
	start.lpAttributeList = malloc(size);
	if (!start.lpAttributeList ||
	    !InitializeProcThreadAttributeList(start.lpAttributeList, 2, 0, &size)) {
		free(start.lpAttributeList);
		return false;
	}
	/* Windows before 10 does not know it. */
	UpdateProcThreadAttribute(start.lpAttributeList, 0,
				  PROC_THREAD_ATTRIBUTE_CHILD_PROCESS_POLICY, &no_children,
				  sizeof(no_children), NULL, NULL);
	ok = UpdateProcThreadAttribute(start.lpAttributeList, 0, PROC_THREAD_ATTRIBUTE_HANDLE_LIST,
				       given, GIVEN * sizeof(*given), NULL, NULL) &&
	     create_suspended(token, &start, ret);
	DeleteProcThreadAttributeList(start.lpAttributeList);
	free(start.lpAttributeList);
	return ok;
}

static bool create_marked(HANDLE token, HANDLE given[static GIVEN], PROCESS_INFORMATION *ret)
{
	wchar_t mark[64];
	bool ok;

	_snwprintf(mark, ARRAY_SIZE(mark), L"%" PRIxPTR L" %" PRIxPTR,
		   (uintptr_t)given[GIVEN_STREAMS], (uintptr_t)given[GIVEN_STREAMS + 1]);
	SetEnvironmentVariableW(MARK, mark);
	ok = create_with_handles(token, given, ret);
	SetEnvironmentVariableW(MARK, NULL);
	return ok;
}

void cage_abandon(struct cage_child *c)
{
	if (c->process)
		TerminateProcess(c->process, 1);
	cage_wait(c);
}

DWORD cage_wait(struct cage_child *c)
{
	DWORD code = 1;

	/* Nobody answers any more: it must not wait for that, or both would wait for each other. */
	cleanup_handle(&c->requests);
	cleanup_handle(&c->answers);
	if (c->process) {
		WaitForSingleObject(c->process, INFINITE);
		GetExitCodeProcess(c->process, &code);
	}
	cleanup_handle(&c->process);
	cleanup_handle(&c->job);
	*c = (struct cage_child){ 0 };
	return code;
}

bool cage_start(struct cage_child *ret)
{
	_cleanup_handle_ HANDLE cage = NULL, beginning = NULL;
	HANDLE given[GIVEN] = { 0 };
	PROCESS_INFORMATION process = { 0 };
	bool ok;

	*ret = (struct cage_child){ 0 };
	ok = make_tokens(&cage, &beginning) && make_given(ret, given) &&
	     create_marked(cage, given, &process);
	for (int i = 0; i < GIVEN; i++)
		cleanup_handle(&given[i]);
	ret->process = process.hProcess;
	if (ok) {
		ret->job = put_into_job(process.hProcess);
		ok = ret->job && IN_ADVAPI(SetThreadToken) &&
		     IN_ADVAPI(SetThreadToken)(&process.hThread, beginning) &&
		     ResumeThread(process.hThread) != (DWORD)-1;
	}
	cleanup_handle(&process.hThread);
	if (!ok)
		cage_abandon(ret);
	return ok;
}

/* --- inside -------------------------------------------------------------------------------- */

static bool is_pipe_handle(HANDLE h)
{
	return GetFileType(h) == FILE_TYPE_PIPE;
}

enum cage_side cage_side(HANDLE *ret_requests, HANDLE *ret_answers)
{
	wchar_t mark[64], *end;
	const DWORD n = GetEnvironmentVariableW(MARK, mark, ARRAY_SIZE(mark));

	if (!n || n >= ARRAY_SIZE(mark))
		return CAGE_OUTSIDE;
	if (!wcscmp(mark, L"off"))
		return CAGE_OFF;
	SetEnvironmentVariableW(MARK, NULL);
	*ret_requests = (HANDLE)(uintptr_t)wcstoull(mark, &end, 16);
	*ret_answers = (HANDLE)(uintptr_t)wcstoull(end, &end, 16);
	return is_pipe_handle(*ret_requests) && is_pipe_handle(*ret_answers) ? CAGE_INSIDE
									     : CAGE_OUTSIDE;
}

static void *thread_that_ran(void *arg)
{
	*(bool *)arg = true;
	return NULL;
}

/*
 * What the parsers need of Windows besides files. Before the cage closes it loads what it takes;
 * then it shows that it works without.
 */
static bool basics_work(void)
{
	struct sha256 *a = NULL;
	struct md5_sha1 *b = NULL;
	uint8_t bytes[16];
	pthread_t thread;
	bool ran = false;
	const HANDLE event = CreateEventW(NULL, TRUE, FALSE, NULL);
	const bool hashes = !sha256_create(&a, NULL) && !md5_sha1_create(&b, NULL);

	sha256_destroy(a);
	md5_sha1_destroy(b);
	if (event)
		CloseHandle(event);
	return hashes && event && !random_bytes(bytes, sizeof(bytes), NULL) &&
	       !pthread_create(&thread, NULL, thread_that_ran, &ran) &&
	       !pthread_join(thread, NULL) && ran;
}

/*
 * enum PROCESS_MITIGATION_POLICY and its structures (winnt.h), each of which is one DWORD of flags:
 * SetProcessMitigationPolicy() is of Windows 8, and each Windows knows more of them.
 */
static void set_policies(void)
{
	static const struct {
		int policy;
		DWORD flags;
	} policies[] = {
		{ 2, 1 },  /* ProcessDynamicCodePolicy: ProhibitDynamicCode */
		{ 6, 1 },  /* ProcessExtensionPointDisablePolicy */
		{ 10, 3 }, /* ProcessImageLoadPolicy: NoRemoteImages, NoLowMandatoryLabelImages */
		{ 13, 1 }, /* ProcessChildProcessPolicy: NoChildProcessCreation */
	};
	BOOL(WINAPI * set)
	(int, void *, SIZE_T) = (BOOL(WINAPI *)(int, void *, SIZE_T))(void (*)(void))win32_function(
		L"kernel32.dll", "SetProcessMitigationPolicy");

	for (size_t i = 0; set && i < ARRAY_SIZE(policies); i++) {
		DWORD flags = policies[i].flags;

		set(policies[i].policy, &flags, sizeof(flags));
	}
}

/*
 * SeChangeNotifyPrivilege lets a file be opened whose folders cannot: who goes on opening files
 * keeps it.
 */
static void drop_privileges(HANDLE token, bool all_of_them)
{
	_cleanup_free_ TOKEN_PRIVILEGES *all = ask_token(token, TokenPrivileges);
	LUID kept = { 0 };

	if (!all || !LookupPrivilegeValueW(NULL, SE_CHANGE_NOTIFY_NAME, &kept))
		return;
	for (DWORD i = 0; i < all->PrivilegeCount; i++)
		if (all_of_them || all->Privileges[i].Luid.LowPart != kept.LowPart)
			all->Privileges[i].Attributes = SE_PRIVILEGE_REMOVED;
	AdjustTokenPrivileges(token, FALSE, all, 0, NULL, NULL);
}

bool cage_enter(void)
{
	_cleanup_handle_ HANDLE token = NULL;

	if (!basics_work() ||
	    !OpenProcessToken(GetCurrentProcess(),
			      TOKEN_ADJUST_DEFAULT | TOKEN_ADJUST_PRIVILEGES | TOKEN_QUERY, &token))
		return false;
	drop_privileges(token, true);
	if (!lower_integrity(token) || !RevertToSelf())
		return false;
	set_policies();
	return basics_work();
}

void cage_give_up(void)
{
	_cleanup_handle_ HANDLE token = NULL;

	if (OpenProcessToken(GetCurrentProcess(), TOKEN_ADJUST_PRIVILEGES | TOKEN_QUERY, &token))
		drop_privileges(token, false);
	set_policies();
}

bool cage_is_alone(void)
{
	JOBOBJECT_BASIC_LIMIT_INFORMATION job = { 0 };

	return QueryInformationJobObject(NULL, JobObjectBasicLimitInformation, &job, sizeof(job),
					 NULL) &&
	       job.LimitFlags & JOB_OBJECT_LIMIT_ACTIVE_PROCESS && job.ActiveProcessLimit == 1;
}
