/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The process in the cage as Windows sees it, and what its deputy does for it. Whether the token
 * keeps it from anything is for Windows; this looks at what was asked for.
 */
#include "tests/unit/test.h"

#include <stdlib.h>
#include <string.h>
#include <wchar.h>

#include "agent/shared/output/deputy_windows.h"
#include "agent/shared/program/cage_windows.h"
#include "tests/unit/scratch.h"

/* --- the process, which is this test once more --------------------------------------------- */

enum {
	HAS_TOKEN = 1,      /* restricted */
	DENIES_USER = 2,    /* the user's SID can only deny */
	DENIES_GROUPS = 4,  /* and all groups but the logon session's */
	HAS_NOBODY = 8,     /* one restricting SID, the null SID */
	HAS_BEGINNING = 16, /* its first thread impersonates another token */
	ENTERED = 32,       /* everything that a command needs works inside */
	HAS_REVERTED = 64,  /* the thread's token has gone */
	HAS_NO_PRIVILEGE = 128,
	IS_ALONE = 256,
	OTHER_HANDLE = 512, /* one that it was not given */
	EVERYTHING = HAS_TOKEN | DENIES_USER | DENIES_GROUPS | HAS_NOBODY | HAS_BEGINNING |
		     ENTERED | HAS_REVERTED | HAS_NO_PRIVILEGE | IS_ALONE,
};

#define HANDLE_NAME L"RAMSEAL_TEST_HANDLE"

static void *about(HANDLE token, TOKEN_INFORMATION_CLASS class)
{
	DWORD size = 0;
	void *ret;

	GetTokenInformation(token, class, NULL, 0, &size);
	ret = calloc(1, size ? size : 1);
	if (!GetTokenInformation(token, class, ret, size, &size))
		memset(ret, 0, size);
	return ret;
}

static bool denies_groups(const TOKEN_GROUPS *groups)
{
	for (DWORD i = 0; i < groups->GroupCount; i++)
		if (!(groups->Groups[i].Attributes & (SE_GROUP_INTEGRITY | SE_GROUP_LOGON_ID)) &&
		    !(groups->Groups[i].Attributes & SE_GROUP_USE_FOR_DENY_ONLY))
			return false;
	return groups->GroupCount > 0;
}

/* The user's SID has attributes as a group's has. */
static int facts_of_token(HANDLE token)
{
	TOKEN_GROUPS *groups = about(token, TokenGroups);
	TOKEN_GROUPS *restricting = about(token, TokenRestrictedSids);
	TOKEN_USER *user = about(token, TokenUser);
	int ret = 0;

	ret |= IsTokenRestricted(token) ? HAS_TOKEN : 0;
	ret |= user->User.Attributes & SE_GROUP_USE_FOR_DENY_ONLY ? DENIES_USER : 0;
	ret |= denies_groups(groups) ? DENIES_GROUPS : 0;
	if (restricting->GroupCount == 1 && IsWellKnownSid(restricting->Groups[0].Sid, WinNullSid))
		ret |= HAS_NOBODY;
	free(groups);
	free(restricting);
	free(user);
	return ret;
}

static bool has_thread_token(void)
{
	HANDLE token = NULL;
	const bool ret = OpenThreadToken(GetCurrentThread(), TOKEN_QUERY, TRUE, &token);

	if (token)
		CloseHandle(token);
	return ret;
}

static bool has_other_handle(void)
{
	wchar_t text[32] = L"";
	DWORD flags;

	GetEnvironmentVariableW(HANDLE_NAME, text, 32);
	return GetHandleInformation((HANDLE)(uintptr_t)wcstoull(text, NULL, 16), &flags);
}

static int be_inside(HANDLE requests, HANDLE answers)
{
	const struct deputy_pipes pipes = { requests, answers };
	TOKEN_PRIVILEGES *privileges;
	HANDLE token = NULL;
	int ret;

	OpenProcessToken(GetCurrentProcess(), TOKEN_QUERY, &token);
	ret = facts_of_token(token);
	ret |= has_thread_token() ? HAS_BEGINNING : 0;
	ret |= cage_enter() ? ENTERED : 0;
	ret |= has_thread_token() ? 0 : HAS_REVERTED;
	privileges = about(token, TokenPrivileges);
	ret |= privileges->PrivilegeCount ? 0 : HAS_NO_PRIVILEGE;
	ret |= cage_is_alone() ? IS_ALONE : 0;
	ret |= has_other_handle() ? OTHER_HANDLE : 0;
	free(privileges);
	deputy_begin_asking(&pipes);
	deputy_say_ready();
	return ret;
}

static bool is_wine(void)
{
	return GetProcAddress(GetModuleHandleW(L"ntdll.dll"), "wine_get_version") != NULL;
}

/*
 * Wine 8 leaves restricting SIDs out of tokens and the attributes of users alone, and knows no
 * limit of processes in a job.
 */
#define NOT_IN_WINE (HAS_TOKEN | HAS_NOBODY | DENIES_USER | IS_ALONE)

TEST(process_in_the_cage_has_nothing)
{
	const struct deputy_rules none = { 0 };
	SECURITY_ATTRIBUTES inherit = { .nLength = sizeof(inherit), .bInheritHandle = TRUE };
	const HANDLE other = CreateEventW(&inherit, TRUE, FALSE, NULL);
	struct cage_child child;
	wchar_t text[32];
	int wanted = EVERYTHING, found;

	_snwprintf(text, 32, L"%llx", (unsigned long long)(uintptr_t)other);
	SetEnvironmentVariableW(HANDLE_NAME, text);
	assert_true(cage_start(&child));
	assert_true(deputy_serve(&none, &(struct deputy_pipes){ child.requests, child.answers },
				 child.process));
	found = (int)cage_wait(&child);
	CloseHandle(other);
	if (is_wine()) {
		print_message("not looked at under Wine: restricting SIDs, the user's, the job's "
			      "limit\n");
		found &= ~NOT_IN_WINE;
		wanted &= ~NOT_IN_WINE;
	}
	assert_int_equal(found, wanted);
}

/* Whoever gets no answer to "ready" must do it by itself. */
TEST(process_that_is_never_ready_is_told_apart)
{
	const struct deputy_rules none = { 0 };
	struct cage_child child;

	SetEnvironmentVariableW(L"RAMSEAL_TEST_DIES", L"1");
	assert_true(cage_start(&child));
	assert_false(deputy_serve(&none, &(struct deputy_pipes){ child.requests, child.answers },
				  child.process));
	cage_abandon(&child);
	SetEnvironmentVariableW(L"RAMSEAL_TEST_DIES", NULL);
	assert_null(child.process);
}

TEST(environment_says_on_which_side_we_are)
{
	HANDLE a, b;

	assert_int_equal(cage_side(&a, &b), CAGE_OUTSIDE);
	SetEnvironmentVariableW(L"RAMSEAL_CAGE", L"off");
	assert_int_equal(cage_side(&a, &b), CAGE_OFF);
	/* What is no pipe of ours was not said by us. */
	SetEnvironmentVariableW(L"RAMSEAL_CAGE", L"4 8");
	assert_int_equal(cage_side(&a, &b), CAGE_OUTSIDE);
}

/* --- the deputy, with this process on both sides ------------------------------------------- */

struct office {
	struct scratch dir;
	struct deputy_rules rules;
	struct deputy_pipes outside, inside;
	HANDLE thread;
};

static struct office office;

static DWORD WINAPI serve(void *arg)
{
	struct office *o = arg;

	deputy_serve(&o->rules, &o->outside, GetCurrentProcess());
	return 0;
}

static int open_office(void **state)
{
	(void)state;
	office = (struct office){ 0 };
	scratch_init(&office.dir);
	scratch_write(&office.dir, "evidence.001", "evidence", 8);
	scratch_write(&office.dir, "evidence.002", "evidence", 8);
	scratch_write(&office.dir, "evidence2", "another", 7);
	scratch_write(&office.dir, "victim", "victim", 6);
	scratch_write(&office.dir, "out", "old", 3);
	assert_true(CreatePipe(&office.outside.requests, &office.inside.requests, NULL, 0));
	assert_true(CreatePipe(&office.inside.answers, &office.outside.answers, NULL, 0));
	return 0;
}

static int close_office(void **state)
{
	(void)state;
	deputy_begin_asking(NULL);
	CloseHandle(office.inside.requests);
	if (office.thread) {
		WaitForSingleObject(office.thread, INFINITE);
		CloseHandle(office.thread);
	}
	CloseHandle(office.inside.answers);
	CloseHandle(office.outside.requests);
	CloseHandle(office.outside.answers);
	deputy_rules_deinit(&office.rules);
	scratch_deinit(&office.dir);
	return 0;
}

static void rule(const char *name, enum deputy_access access, bool replaces)
{
	assert_true(
		deputy_rules_add(&office.rules, scratch_path(&office.dir, name), access, replaces));
}

static void begin_asking(void)
{
	office.thread = CreateThread(NULL, 0, serve, &office, 0, NULL);
	assert_non_null(office.thread);
	deputy_begin_asking(&office.inside);
}

static const wchar_t *at(const char *name)
{
	static wchar_t ret[2][512];
	static int turn;

	turn = !turn;
	MultiByteToWideChar(CP_UTF8, 0, scratch_path(&office.dir, name), -1, ret[turn], 512);
	return ret[turn];
}

/* 0, or the error. */
static DWORD opens(const char *name, DWORD access, DWORD disposition, DWORD flags)
{
	const HANDLE h = CreateFileW(at(name), access,
				     FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE, NULL,
				     disposition, flags, NULL);

	if (h == INVALID_HANDLE_VALUE)
		return GetLastError();
	CloseHandle(h);
	return 0;
}

#define reads(name)  opens(name, GENERIC_READ, OPEN_EXISTING, FILE_FLAG_BACKUP_SEMANTICS)
#define writes(name) opens(name, GENERIC_READ | GENERIC_WRITE, OPEN_EXISTING, 0)
#define makes(name)  opens(name, GENERIC_READ | GENERIC_WRITE | DELETE, CREATE_NEW, 0)

static DWORD removes(const char *name)
{
	return DeleteFileW(at(name)) ? 0 : GetLastError();
}

static DWORD moves(const char *from, const char *to, bool replace)
{
	return MoveFileExW(at(from), at(to), replace ? MOVEFILE_REPLACE_EXISTING : 0)
		       ? 0
		       : GetLastError();
}

TEST(deputy_opens_what_the_command_line_names)
{
	rule("evidence.001", DEPUTY_READ, false);
	begin_asking();
	assert_int_equal(reads("evidence.001"), 0);
	assert_int_equal(reads("EVIDENCE.001"), 0);
	assert_int_equal(reads("./evidence.001"), 0);
	assert_int_equal(GetFileAttributesW(at("evidence.001")) & FILE_ATTRIBUTE_DIRECTORY, 0);
	assert_int_equal(reads("evidence.002"), ERROR_ACCESS_DENIED);
	assert_int_equal(reads("evidence.001:stream"), ERROR_ACCESS_DENIED);
	assert_int_equal(reads("x/../evidence.002"), ERROR_ACCESS_DENIED);
	assert_int_equal(GetFileAttributesW(at("victim")), INVALID_FILE_ATTRIBUTES);
	assert_int_equal(writes("evidence.001"), ERROR_ACCESS_DENIED);
	assert_int_equal(opens("evidence.001", GENERIC_WRITE, OPEN_EXISTING, 0),
			 ERROR_ACCESS_DENIED);
	assert_int_equal(opens("evidence.001", GENERIC_READ, TRUNCATE_EXISTING, 0),
			 ERROR_ACCESS_DENIED);
	assert_int_equal(
		opens("evidence.001", GENERIC_READ, OPEN_EXISTING, FILE_FLAG_DELETE_ON_CLOSE),
		ERROR_ACCESS_DENIED);
	assert_int_equal(removes("evidence.001"), ERROR_ACCESS_DENIED);
	assert_int_equal(makes("new"), ERROR_ACCESS_DENIED);
}

TEST(deputy_opens_the_parts_of_an_image)
{
	rule("evidence.001", DEPUTY_PARTS, false);
	begin_asking();
	assert_int_equal(reads("evidence.002"), 0);
	assert_int_equal(reads("evidence.003"), ERROR_FILE_NOT_FOUND);
	assert_int_equal(reads("evidence2"), ERROR_ACCESS_DENIED);
	assert_int_equal(reads("victim"), ERROR_ACCESS_DENIED);
	assert_int_equal(reads("evidence./../victim"), ERROR_ACCESS_DENIED);
	assert_int_equal(writes("evidence.002"), ERROR_ACCESS_DENIED);
}

TEST(deputy_reads_below_a_folder_and_no_further)
{
	assert_int_equal(mkdir(scratch_path(&office.dir, "in"), 0700), 0);
	scratch_write(&office.dir, "in/one", "1", 1);
	scratch_write(&office.dir, "in2", "2", 1);
	rule("in", DEPUTY_READ, false);
	begin_asking();
	assert_int_equal(reads("in/one"), 0);
	assert_int_equal(reads("in2"), ERROR_ACCESS_DENIED);
	assert_int_equal(reads("in/../victim"), ERROR_ACCESS_DENIED);
}

TEST(deputy_makes_new_files_and_touches_no_other)
{
	rule("evidence.001", DEPUTY_READ, false);
	rule("out", DEPUTY_MAKE, false);
	begin_asking();
	assert_int_equal(makes("out.partial"), 0);
	assert_int_equal(makes("out.partial"), ERROR_FILE_EXISTS);
	assert_int_equal(makes("other.partial"), ERROR_ACCESS_DENIED);
	assert_int_equal(makes("out.x/y"), ERROR_ACCESS_DENIED);
	assert_int_equal(makes("out:stream"), ERROR_ACCESS_DENIED);
	assert_int_equal(removes("out"), ERROR_ACCESS_DENIED);
	assert_int_equal(removes("victim"), ERROR_ACCESS_DENIED);
	assert_int_equal(moves("victim", "out.2", false), ERROR_ACCESS_DENIED);
	assert_int_equal(moves("out.partial", "victim", true), ERROR_ACCESS_DENIED);
	assert_int_equal(moves("out.partial", "out", true), ERROR_ACCESS_DENIED);
	assert_int_equal(moves("out.partial", "out", false), ERROR_ALREADY_EXISTS);
	assert_int_equal(moves("out.partial", "out.new", false), 0);
	assert_int_equal(removes("out.partial"), ERROR_ACCESS_DENIED);
	assert_int_equal(removes("out.new"), 0);
	/* What is there of an output is looked at, and what another process has left: no more. */
	assert_int_equal(opens("out", 0, OPEN_EXISTING, FILE_FLAG_BACKUP_SEMANTICS), 0);
	assert_int_equal(reads("out"), ERROR_ACCESS_DENIED);
	assert_int_equal(access(scratch_path(&office.dir, "victim"), F_OK), 0);
}

TEST(deputy_replaces_where_that_was_asked_for)
{
	ULARGE_INTEGER room = { 0 };

	rule("out", DEPUTY_MAKE, true);
	begin_asking();
	assert_int_equal(makes("out.partial"), 0);
	assert_int_equal(reads("out.partial"), 0);
	assert_int_equal(moves("out.partial", "victim", true), ERROR_ACCESS_DENIED);
	assert_int_equal(moves("out.partial", "out", true), 0);
	assert_true(GetDiskFreeSpaceExW(at("."), &room, NULL, NULL));
	assert_true(room.QuadPart > 0);
	assert_false(GetDiskFreeSpaceExW(L"C:\\windows", &room, NULL, NULL));
}

TEST(deputy_makes_files_of_any_name_in_a_folder)
{
	assert_int_equal(mkdir(scratch_path(&office.dir, "to"), 0700), 0);
	scratch_write(&office.dir, "to/there", "there", 5);
	rule("to", DEPUTY_MAKE, false);
	begin_asking();
	assert_int_equal(makes("to/any.partial"), 0);
	assert_int_equal(moves("to/any.partial", "to/any", false), 0);
	assert_int_equal(makes("to2"), ERROR_ACCESS_DENIED);
	assert_int_equal(makes("to/a/b"), ERROR_ACCESS_DENIED);
	assert_int_equal(reads("to/there"), ERROR_ACCESS_DENIED);
	assert_int_equal(removes("to/there"), ERROR_ACCESS_DENIED);
	assert_int_equal(moves("to/any", "to/there", true), ERROR_ACCESS_DENIED);
}

/* More than an output is made of is more than a parser has to make. */
TEST(deputy_makes_few_files)
{
	char name[32];
	DWORD last = 0;
	int n = 0;

	rule("out", DEPUTY_MAKE, false);
	begin_asking();
	while (!last && n < 100) {
		snprintf(name, sizeof(name), "out.%d", n);
		last = makes(name);
		n += !last;
	}
	assert_int_equal(last, ERROR_TOO_MANY_OPEN_FILES);
	assert_int_equal(n, 16);
}

TEST(deputy_is_not_misled_by_what_is_no_request)
{
	uint8_t junk[28];
	DWORD done;

	rule("evidence.001", DEPUTY_READ, false);
	begin_asking();
	memset(junk, 0xff, sizeof(junk));
	assert_true(WriteFile(office.inside.requests, junk, sizeof(junk), &done, NULL));
	/* It has hung up. */
	assert_int_equal(WaitForSingleObject(office.thread, INFINITE), WAIT_OBJECT_0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(environment_says_on_which_side_we_are),
		cmocka_unit_test(process_in_the_cage_has_nothing),
		cmocka_unit_test(process_that_is_never_ready_is_told_apart),
#define X(name) cmocka_unit_test_setup_teardown(name, open_office, close_office)
		X(deputy_opens_what_the_command_line_names),
		X(deputy_opens_the_parts_of_an_image),
		X(deputy_reads_below_a_folder_and_no_further),
		X(deputy_makes_new_files_and_touches_no_other),
		X(deputy_replaces_where_that_was_asked_for),
		X(deputy_makes_files_of_any_name_in_a_folder),
		X(deputy_makes_few_files),
		X(deputy_is_not_misled_by_what_is_no_request),
#undef X
	};
	HANDLE requests, answers;

	if (cage_side(&requests, &answers) == CAGE_INSIDE)
		return getenv("RAMSEAL_TEST_DIES") ? 0 : be_inside(requests, answers);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
