/* SPDX-License-Identifier: Apache-2.0 */
/* The Windows halves: paths, files that are locked, private and renamed, facts of the host. */
#include "tests/unit/test.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <wchar.h>

#include "agent/collect/host/host.h"
#include "agent/collect/host/host_windows.h"
#include "agent/collect/host/host_lock.h"
#include "agent/collect/host/inventory.h"
#include "agent/collect/host/lock_file.h"
#include "agent/collect/host/state_file.h"
#include "agent/collect/host/stop_request.h"
#include "agent/collect/wire/private_file.h"
#include "agent/collect/acquire/preflight.h"
#include "agent/shared/output/output.h"
#include "agent/shared/output/output_set.h"
#include "agent/shared/output/output_target.h"
#include "agent/shared/program/clock.h"
#include "agent/shared/program/interrupt.h"
#include "agent/shared/program/random.h"
#include "agent/shared/program/startup.h"
#include "agent/shared/program/stay_awake.h"
#include "driver-interface/winpmem_service_internal.h"
#include "formats/base/io.h"
#include "formats/base/os.h"
#include "formats/base/win32.h"
#include "tests/unit/scratch.h"
#include "tsk-extract/held_file.h"

#include <aclapi.h>
#include <sddl.h>

/* "ä", "語", and one beyond the BMP. */
#define FOREIGN "\xc3\xa4 \xe8\xaa\x9e \xf0\x9f\x92\xbe"

static struct scratch dir;

static int make_dir(void **state)
{
	(void)state;
	scratch_init(&dir);
	return 0;
}

static int remove_dir(void **state)
{
	(void)state;
	scratch_deinit(&dir);
	return 0;
}

/* --- text and paths ------------------------------------------------------------------------ */

TEST(text_goes_to_utf_16_and_back)
{
	wchar_t *wide = win32_wide(FOREIGN);
	char *back = win32_utf8(wide);

	assert_int_equal(wcslen(wide), 6); /* the last one is a pair */
	assert_string_equal(back, FOREIGN);
	free(wide);
	free(back);
}

TEST(short_paths_stay_and_slashes_turn)
{
	wchar_t *wide = win32_path("C:/a/b");

	assert_int_equal(wcscmp(wide, L"C:\\a\\b"), 0);
	free(wide);
}

TEST(verbatim_paths_are_not_touched)
{
	static const char *const paths[] = { "\\\\?\\C:\\a/b", "\\\\.\\PhysicalDrive0" };

	for (size_t i = 0; i < ARRAY_SIZE(paths); i++) {
		wchar_t *wide = win32_path(paths[i]);
		char *back = win32_utf8(wide);

		assert_string_equal(back, paths[i]);
		free(wide);
		free(back);
	}
}

TEST(long_paths_get_the_prefix_and_lose_it_again)
{
	char path[600] = "C:\\";
	wchar_t *wide;
	char *plain;

	memset(path + 3, 'x', 200);
	path[203] = '\\';
	memset(path + 204, 'y', 200);
	path[404] = '\0';
	wide = win32_path(path);
	assert_int_equal(wcsncmp(wide, L"\\\\?\\C:\\xxx", 10), 0);
	plain = win32_plain_path(wide);
	assert_string_equal(plain, path);
	free(wide);
	free(plain);
}

TEST(long_paths_of_a_share_get_the_other_prefix)
{
	char path[600] = "\\\\server\\share\\";
	wchar_t *wide;
	char *plain;

	memset(path + 15, 'x', 250);
	path[265] = '\0';
	wide = win32_path(path);
	assert_int_equal(wcsncmp(wide, L"\\\\?\\UNC\\server\\share\\", 21), 0);
	plain = win32_plain_path(wide);
	assert_string_equal(plain, path);
	free(wide);
	free(plain);
}

TEST(errors_have_words_and_the_number)
{
	struct err e = ERR_INIT;

	CHECK_STATUS(err_from_win32(&e, ST_INPUT, ERROR_ACCESS_DENIED, "x"), ST_INPUT, &e);
	CHECK_HAS(e.message, "x: ");
	CHECK_HAS(e.message, "(error 5)");
}

/* "The operating system cannot run %1." says nothing of what it cannot run. */
TEST(texts_with_room_for_a_name_have_dots_there)
{
	size_t dots = 0;

	for (DWORD code = 1; code < 2000; code++) {
		struct err e = ERR_INIT;

		err_from_win32(&e, ST_INPUT, code, "x");
		if (strpbrk(e.message, "%"))
			fail_msg("%lu: %s", (unsigned long)code, e.message);
		dots += strstr(e.message, "...") != NULL;
	}
	assert_int_not_equal(dots, 0);
}

/* --- files --------------------------------------------------------------------------------- */

static void write_and_read(const char *path)
{
	struct output *o = NULL;
	struct err e = ERR_INIT;
	struct file_blob blob;
	char text[6] = "";

	CHECK_OK(output_open(&(struct output_options){ .path = path }, &o, &e), &e);
	CHECK_OK(sink_write(output_sink(o), "hello", 5, &e), &e);
	assert_false(os_exists(path));
	assert_true(os_exists(output_where(o)));
	CHECK_OK(output_commit(o, &e), &e);
	output_destroy(o);
	CHECK_OK(file_blob_open(&blob, path, &e), &e);
	assert_int_equal(blob.blob.size, 5);
	CHECK_OK(blob_read(&blob.blob, 0, text, 5, &e), &e);
	assert_string_equal(text, "hello");
	file_blob_deinit(&blob);
}

TEST(names_of_other_languages_and_long_ones_work)
{
	char path[800];
	wchar_t *wide;

	write_and_read(scratch_path(&dir, FOREIGN ".rsz"));
	/* Two folders of 150 characters below the scratch one. */
	snprintf(path, sizeof(path), "%s\\%0150d", dir.path, 1);
	wide = win32_path(path);
	assert_true(CreateDirectoryW(wide, NULL));
	free(wide);
	snprintf(path + strlen(path), sizeof(path) - strlen(path), "\\%0150d", 2);
	wide = win32_path(path);
	assert_true(CreateDirectoryW(wide, NULL));
	snprintf(path + strlen(path), sizeof(path) - strlen(path), "\\%s.rsz", FOREIGN);
	assert_true(strlen(path) > 310);
	write_and_read(path);
	/* The test's own cleaning up knows no such paths. */
	{
		wchar_t *file = win32_path(path);

		assert_true(DeleteFileW(file));
		free(file);
	}
	assert_true(RemoveDirectoryW(wide));
	free(wide);
}

TEST(a_folder_is_no_file)
{
	struct err e = ERR_INIT;
	struct file_blob blob;

	CHECK_STATUS(file_blob_open(&blob, dir.path, &e), ST_INPUT, &e);
	CHECK_STATUS(file_blob_open(&blob, scratch_path(&dir, "nothing"), &e), ST_INPUT, &e);
	CHECK_HAS(e.message, "No such file");
}

TEST(offsets_beyond_4_gib_hold)
{
	const uint64_t far_away = UINT64_C(5) << 30;
	struct output *o = NULL;
	struct err e = ERR_INIT;
	struct file_blob blob;
	char text[4] = "";

	CHECK_OK(output_open(&(struct output_options){ .path = scratch_path(&dir, "large") }, &o,
			     &e),
		 &e);
	CHECK_OK(sink_skip(output_sink(o), far_away, &e), &e);
	CHECK_OK(sink_write(output_sink(o), "end", 3, &e), &e);
	CHECK_OK(output_commit(o, &e), &e);
	output_destroy(o);
	CHECK_OK(file_blob_open(&blob, scratch_path(&dir, "large"), &e), &e);
	assert_true(blob.blob.size == far_away + 3);
	CHECK_OK(blob_read(&blob.blob, far_away, text, 3, &e), &e);
	assert_string_equal(text, "end");
	file_blob_deinit(&blob);
}

TEST(what_was_written_is_cut)
{
	struct output *o = NULL;
	struct err e = ERR_INIT;
	char *text;

	CHECK_OK(output_open(&(struct output_options){ .path = scratch_path(&dir, "cut") }, &o, &e),
		 &e);
	CHECK_OK(sink_write(output_sink(o), "hello world", 11, &e), &e);
	CHECK_OK(sink_cut(output_sink(o), 6, &e), &e);
	CHECK_OK(sink_write(output_sink(o), "you", 3, &e), &e);
	CHECK_OK(output_commit(o, &e), &e);
	output_destroy(o);
	text = scratch_read(&dir, "cut");
	assert_string_equal(text, "hello you");
	free(text);
}

static void check_place(const char *path, const char *wanted)
{
	const struct output_options o = { .path = path, .name = "C:\\dir\\host.rsz" };
	_cleanup_free_ char *at = NULL;
	struct err e = ERR_INIT;

	CHECK_OK(output_place(&o, &at, &e), &e);
	assert_string_equal(at, wanted);
}

TEST(a_directory_gets_a_file_of_the_default_name)
{
	struct err e = ERR_INIT;
	char path[600], wanted[700], *at = NULL;

	snprintf(path, sizeof(path), "%s", dir.path);
	snprintf(wanted, sizeof(wanted), "%s\\host.rsz", dir.path);
	check_place(path, wanted);
	snprintf(path, sizeof(path), "%s/", dir.path);
	snprintf(wanted, sizeof(wanted), "%s/host.rsz", dir.path);
	check_place(path, wanted);
	check_place("nothing-of-that-name", "nothing-of-that-name");
	CHECK_STATUS(
		output_place(&(struct output_options){ .path = "none\\", .name = "a" }, &at, &e),
		ST_OUTPUT, &e);
	CHECK_HAS(e.message, "there is no such directory");
}

TEST(existing_files_want_force)
{
	struct output_options options = { .path = scratch_path(&dir, "old") };
	struct output *o = NULL;
	struct err e = ERR_INIT;
	char *path = strdup(options.path), *text;

	options.path = path;
	scratch_write(&dir, "old", "old", 3);
	CHECK_STATUS(output_open(&options, &o, &e), ST_OUTPUT, &e);
	CHECK_HAS(e.message, "--force");
	options.force = true;
	CHECK_OK(output_open(&options, &o, &e), &e);
	CHECK_OK(sink_write(output_sink(o), "new", 3, &e), &e);
	text = scratch_read(&dir, "old");
	assert_string_equal(text, "old"); /* until it is complete */
	free(text);
	CHECK_OK(output_commit(o, &e), &e);
	output_destroy(o);
	text = scratch_read(&dir, "old");
	assert_string_equal(text, "new");
	free(text);
	free(path);
}

/* Found before anything is written: at the end Windows refuses to replace it. */
TEST(read_only_files_are_not_replaced)
{
	struct output_options options = { .path = strdup(scratch_path(&dir, "ro.E01")),
					  .force = true };
	struct findings findings = { 0 };
	struct output *o = NULL;
	struct output_set *s = NULL;
	struct err e = ERR_INIT;
	uint64_t room;
	wchar_t *wide = win32_path(options.path);

	scratch_write(&dir, "ro.E01", "old", 3);
	assert_true(SetFileAttributesW(wide, FILE_ATTRIBUTE_READONLY));
	CHECK_STATUS(output_open(&options, &o, &e), ST_OUTPUT, &e);
	CHECK_HAS(e.message, "is read-only");
	CHECK_STATUS(output_set_open(&options, ".E01", &s, &e), ST_OUTPUT, &e);
	CHECK_HAS(e.message, "is read-only");
	assert_false(scratch_has(&dir, "ro.E01.partial"));
	preflight_check_output(options.path, true, 0, &room, &findings);
	assert_int_equal(findings.count, 1);
	CHECK_HAS(findings.at[0].text.message, "is read-only");
	findings_deinit(&findings);
	assert_true(SetFileAttributesW(wide, FILE_ATTRIBUTE_NORMAL));
	CHECK_OK(output_open(&options, &o, &e), &e);
	output_discard(o);
	output_destroy(o);
	free(wide);
	free((char *)(uintptr_t)options.path);
}

/* Never, not even with --force, also by another spelling of its path. */
TEST(an_input_is_not_written_over)
{
	char *path = strdup(scratch_path(&dir, "input"));
	char other[600];
	const char *const inputs[] = { path, NULL };
	struct output *o = NULL;
	struct err e = ERR_INIT;

	scratch_write(&dir, "input", "x", 1);
	snprintf(other, sizeof(other), "%s\\.\\INPUT", dir.path);
	CHECK_STATUS(
		output_open(
			&(struct output_options){ .path = other, .force = true, .inputs = inputs },
			&o, &e),
		ST_OUTPUT, &e);
	CHECK_HAS(e.message, "is the input that is being read");
	free(path);
}

TEST(a_file_that_appears_meanwhile_stays)
{
	struct output *o = NULL;
	struct err e = ERR_INIT;
	char *text;

	CHECK_OK(
		output_open(&(struct output_options){ .path = scratch_path(&dir, "race") }, &o, &e),
		&e);
	CHECK_OK(sink_write(output_sink(o), "ours", 4, &e), &e);
	scratch_write(&dir, "race", "theirs", 6);
	CHECK_STATUS(output_commit(o, &e), ST_OUTPUT, &e);
	CHECK_HAS(e.message, "appeared in the meantime");
	output_destroy(o);
	text = scratch_read(&dir, "race");
	assert_string_equal(text, "theirs");
	free(text);
	text = scratch_read(&dir, "race.partial");
	assert_string_equal(text, "ours");
	free(text);
}

TEST(an_unfinished_file_stays_and_a_busy_one_is_refused)
{
	const struct output_options options = { .path = strdup(scratch_path(&dir, "busy")) };
	struct output *first = NULL, *second = NULL;
	struct err e = ERR_INIT;

	CHECK_OK(output_open(&options, &first, &e), &e);
	CHECK_OK(sink_write(output_sink(first), "1", 1, &e), &e);
	CHECK_STATUS(output_open(&options, &second, &e), ST_OUTPUT, &e);
	CHECK_HAS(e.message, "another process is writing");
	output_destroy(first); /* without a commit: it is left behind */
	assert_true(scratch_has(&dir, "busy.partial"));
	CHECK_OK(output_open(&options, &second, &e), &e);
	CHECK_HAS(output_where(second), "busy.2.partial");
	output_discard(second);
	output_destroy(second);
	assert_false(scratch_has(&dir, "busy.2.partial"));
	free((char *)(uintptr_t)options.path);
}

TEST(devices_are_no_files)
{
	struct output *o = NULL;
	struct err e = ERR_INIT;

	CHECK_OK(output_open(&(struct output_options){ .path = "NUL" }, &o, &e), &e);
	assert_false(output_is_file(o));
	CHECK_OK(sink_write(output_sink(o), "x", 1, &e), &e);
	CHECK_OK(output_commit(o, &e), &e);
	output_destroy(o);
}

/* In the words of the descriptor: protected from what the folder passes on, and three who may. */
TEST(new_files_are_the_owners)
{
	struct output *o = NULL;
	struct err e = ERR_INIT;
	PSECURITY_DESCRIPTOR descriptor = NULL;
	char *path = strdup(scratch_path(&dir, "mine"));
	wchar_t *wide = win32_path(path), *words = NULL;

	CHECK_OK(output_open(&(struct output_options){ .path = path }, &o, &e), &e);
	CHECK_OK(output_commit(o, &e), &e);
	output_destroy(o);
	assert_int_equal(GetNamedSecurityInfoW(wide, SE_FILE_OBJECT, DACL_SECURITY_INFORMATION,
					       NULL, NULL, NULL, NULL, &descriptor),
			 0);
	assert_true(ConvertSecurityDescriptorToStringSecurityDescriptorW(
		descriptor, SDDL_REVISION_1, DACL_SECURITY_INFORMATION, &words, NULL));
	/* Everyone (WD), users (BU) and authenticated users (AU) have nothing. */
	assert_null(wcsstr(words, L";;;WD)"));
	assert_null(wcsstr(words, L";;;BU)"));
	assert_null(wcsstr(words, L";;;AU)"));
	LocalFree(words);
	LocalFree(descriptor);
	free(wide);
	free(path);
}

static void put_member(const struct output_set *s, const char *ending, const char *text)
{
	char path[800];
	FILE *f;

	snprintf(path, sizeof(path), "%s.%s", output_set_base(s), ending);
	f = fopen(path, "wb");
	assert_non_null(f);
	fputs(text, f);
	assert_int_equal(fclose(f), 0);
}

TEST(a_set_moves_out_of_its_folder)
{
	const struct output_options options = { .path = strdup(scratch_path(&dir, "set.E01")) };
	struct output_set *s = NULL, *other = NULL;
	struct err e = ERR_INIT;
	char *text;

	CHECK_OK(output_set_open(&options, ".E01", &s, &e), &e);
	CHECK_STATUS(output_set_open(&options, ".E01", &other, &e), ST_OUTPUT, &e);
	CHECK_HAS(e.message, "another process is writing");
	put_member(s, "E01", "one");
	put_member(s, "E02", "two");
	CHECK_OK(output_set_commit(s, &e), &e);
	assert_int_equal(output_set_bytes(s), 6);
	output_set_destroy(s);
	assert_false(scratch_has(&dir, "set.E01.partial"));
	text = scratch_read(&dir, "set.E02");
	assert_string_equal(text, "two");
	free(text);
	CHECK_STATUS(output_set_open(&options, ".E01", &s, &e), ST_OUTPUT, &e);
	CHECK_HAS(e.message, "set.E01 exists");
	free((char *)(uintptr_t)options.path);
}

/* --- the machine --------------------------------------------------------------------------- */

static json_t *fact(json_t *facts, const char *section, const char *key)
{
	return json_object_get(json_object_get(facts, section), key);
}

TEST(facts_of_the_host_are_there_and_of_their_type)
{
	char *argv[] = { (char *)(uintptr_t)"test", NULL };
	RTL_OSVERSIONINFOW v = { .dwOSVersionInfoSize = sizeof(v) };
	LONG(WINAPI * version)
	(RTL_OSVERSIONINFOW *) = (LONG(WINAPI *)(RTL_OSVERSIONINFOW *))(
		void (*)(void))GetProcAddress(GetModuleHandleW(L"ntdll.dll"), "RtlGetVersion");
	json_t *facts = NULL;
	struct err e = ERR_INIT;

	CHECK_OK(host_describe(1, argv, &facts, &e), &e);
	assert_int_equal(version(&v), 0);
	assert_true(json_is_integer(fact(facts, "os", "build")));
	assert_int_equal(json_integer_value(fact(facts, "os", "build")), v.dwBuildNumber);
	assert_string_equal(json_string_value(fact(facts, "os", "id")), "windows");
	assert_true(json_integer_value(fact(facts, "memory", "total_bytes")) > 1 << 20);
	/* Four levels: Wine's programs end below 2^47. */
	CHECK_HAS(json_string_value(fact(facts, "memory", "user_address_end")), "0x7ff");
	assert_true(json_integer_value(fact(facts, "cpu", "online")) > 0);
	assert_int_equal(json_integer_value(fact(facts, "process", "pid")), GetCurrentProcessId());
	assert_int_equal(strlen(json_string_value(fact(facts, "tool", "sha256"))), 64);
	assert_non_null(json_string_value(fact(facts, "clocks", "boot_time")));
	assert_true(strcmp(json_string_value(fact(facts, "clocks", "boot_time")),
			   json_string_value(fact(facts, "clocks", "time"))) < 0);
	json_decref(facts);
}

TEST(clocks_move_on_and_agree_with_the_c_library)
{
	const uint64_t first = clock_mono_ns();
	const uint64_t wall = clock_wall_ns() / NS_PER_SECOND;
	const uint64_t library = (uint64_t)time(NULL);

	while (clock_mono_ns() == first)
		;
	assert_true(clock_mono_ns() > first);
	assert_true(wall + 5 > library && library + 5 > wall);
}

TEST(random_bytes_differ)
{
	uint8_t a[32], b[32];
	struct err e = ERR_INIT;

	CHECK_OK(random_bytes(a, sizeof(a), &e), &e);
	CHECK_OK(random_bytes(b, sizeof(b), &e), &e);
	assert_memory_not_equal(a, b, sizeof(a));
}

#define SERVICE L"SYSTEM\\CurrentControlSet\\Services\\ramseal_test_filter"

/* A service with one instance at this altitude; removed again by RegDeleteTreeW(). */
static void put_filter(const wchar_t *altitude, DWORD start)
{
	const DWORD size = (DWORD)((wcslen(altitude) + 1) * sizeof(*altitude));

	assert_int_equal(RegSetKeyValueW(HKEY_LOCAL_MACHINE, SERVICE, L"Start", REG_DWORD, &start,
					 sizeof(start)),
			 0);
	assert_int_equal(RegSetKeyValueW(HKEY_LOCAL_MACHINE, SERVICE L"\\Instances\\one",
					 L"Altitude", REG_SZ, altitude, size),
			 0);
}

static size_t filters_found(void)
{
	json_t *facts = json_object();
	const json_t *list;
	size_t ret;

	host_inventory(facts);
	list = fact(facts, "security", "antivirus_filters");
	assert_true(json_is_array(list));
	ret = json_array_size(list);
	if (ret)
		assert_string_equal(
			json_string_value(json_object_get(json_array_get(list, 0), "name")),
			"ramseal_test_filter");
	json_decref(facts);
	return ret;
}

TEST(virus_scanners_are_known_by_their_altitude)
{
	assert_int_equal(filters_found(), 0);
	put_filter(L"328010", 0);
	assert_int_equal(filters_found(), 1);
	put_filter(L"328010", 4); /* disabled */
	assert_int_equal(filters_found(), 0);
	put_filter(L"180451", 0);
	assert_int_equal(filters_found(), 0);
	assert_int_equal(RegDeleteTreeW(HKEY_LOCAL_MACHINE, SERVICE), 0);
}

/* Wine keeps the state as Windows does, of the process at least; nothing of it sleeps. */
TEST(system_is_kept_awake_only_meanwhile)
{
	const EXECUTION_STATE all = ES_CONTINUOUS | ES_SYSTEM_REQUIRED;

	SetThreadExecutionState(ES_CONTINUOUS);
	assert_false(stay_awake_is_on());
	assert_true(stay_awake_begin());
	assert_true(stay_awake_is_on());
	assert_int_equal(SetThreadExecutionState(all) & all, all);
	stay_awake_end();
	assert_false(stay_awake_is_on());
	assert_int_equal(SetThreadExecutionState(ES_CONTINUOUS) & all, ES_CONTINUOUS);
	stay_awake_end();
}

TEST(awake_machine_does_not_grow_sleepy)
{
	const uint64_t before = clock_asleep_ns();

	Sleep(300);
	assert_true(clock_asleep_ns() < before + NS_PER_SECOND / 10);
}

static HANDLE make_host_lock(PSECURITY_DESCRIPTOR d)
{
	SECURITY_ATTRIBUTES attributes = { .nLength = sizeof(attributes),
					   .lpSecurityDescriptor = d };
	const HANDLE ret = CreateEventW(&attributes, TRUE, FALSE, L"Global\\ramseal-acquisition");

	assert_non_null(d);
	assert_non_null(ret);
	LocalFree(d);
	return ret;
}

TEST(one_acquisition_keeps_others_away)
{
	const HANDLE other = make_host_lock(win32_private_descriptor());
	struct host_lock *l = NULL;
	struct err e = ERR_INIT;

	CHECK_STATUS(host_lock_take(NULL, &l, &e), ST_RUNNING, &e);
	assert_null(l);
	CloseHandle(other);
	CHECK_OK(host_lock_take(NULL, &l, &e), &e);
	host_lock_release(l);
}

TEST(a_name_that_a_stranger_took_is_told_apart)
{
	PSECURITY_DESCRIPTOR anonymous = NULL; /* whom alone it lets in */
	struct host_lock *l = NULL;
	struct err e = ERR_INIT;
	HANDLE other;

	ConvertStringSecurityDescriptorToSecurityDescriptorW(L"D:P(A;;GA;;;AN)", SDDL_REVISION_1,
							     &anonymous, NULL);
	other = make_host_lock(anonymous);
	CHECK_STATUS(host_lock_take(NULL, &l, &e), ST_NO_PRIVILEGE, &e);
	assert_null(l);
	CloseHandle(other);
}

/* Not with the access list of the folder above, or of whoever runs this. */
TEST(without_an_access_list_nothing_private_is_made)
{
	const struct output_options file = { .path = strdup(scratch_path(&dir, "bare")) };
	const struct output_options set = { .path = strdup(scratch_path(&dir, "bare.E01")) };
	struct output *o = NULL;
	struct output_set *s = NULL;
	struct lock_file *lock = NULL;
	struct host_lock *host = NULL;
	struct err e = ERR_INIT;
	char *folder = NULL;

	win32_no_descriptor = true;
	CHECK_STATUS(output_open(&file, &o, &e), ST_OUTPUT, &e);
	CHECK_STATUS(output_set_open(&set, ".E01", &s, &e), ST_OUTPUT, &e);
	assert_true(lock_file_take(file.path, "text", &lock, &e));
	assert_true(host_lock_take(NULL, &host, &e));
	assert_true(state_file_write(file.path, "{}", &e));
	/* One that is there is ours, or is refused. */
	state_folder(true, &folder, &e);
	assert_null(stop_request_listen());
	assert_int_equal(private_file_create(file.path), -1);
	assert_int_equal(private_file_nameless(dir.path), -1);
	win32_no_descriptor = false;
	assert_false(scratch_has(&dir, "bare"));
	assert_false(scratch_has(&dir, "bare.partial"));
	assert_false(scratch_has(&dir, "bare.E01.partial"));
	CHECK_OK(host_lock_take(NULL, &host, &e), &e);
	host_lock_release(host);
	free(folder);
	free((char *)(uintptr_t)file.path);
	free((char *)(uintptr_t)set.path);
}

/*
 * Whatever the environment says: an unelevated process may have set it, and may rename what the
 * usual one leads through.
 */
TEST(copy_of_a_driver_is_made_below_windows_itself)
{
	wchar_t windows[MAX_PATH], *wanted, *above;

	assert_true(GetSystemWindowsDirectoryW(windows, MAX_PATH) > 0);
	assert_true(SetEnvironmentVariableW(L"TEMP", L"C:\\users"));
	assert_true(SetEnvironmentVariableW(L"TMP", L"C:\\users"));
	assert_true(SetEnvironmentVariableW(L"SystemRoot", L"C:\\users"));
	assert_true(SetEnvironmentVariableW(L"windir", L"C:\\users"));
	above = winpmem__folder_above(NULL);
	wanted = winpmem__join(L"\\\\?\\", windows, L"");
	assert_true(above && wanted && !wcscmp(above, wanted));
	free(above);
	free(wanted);
}

static const wchar_t *dns_name;

static BOOL WINAPI name_of_machine(COMPUTER_NAME_FORMAT kind, wchar_t *ret, DWORD *size)
{
	const wchar_t *name = kind == ComputerNamePhysicalNetBIOS ? L"NETBIOS-1" : dns_name;

	if (!name)
		return FALSE;
	*size = (DWORD)wcslen(name);
	wcscpy(ret, name);
	return TRUE;
}

/* ReactOS has an empty one. */
TEST(machine_without_a_dns_name_has_its_netbios_name)
{
	static const wchar_t *const none[] = { NULL, L"" };
	char name[HOST_NAME_SIZE];

	host__ask_name = name_of_machine;
	for (size_t i = 0; i < ARRAY_SIZE(none); i++) {
		dns_name = none[i];
		host_name(name);
		assert_string_equal(name, "NETBIOS-1");
	}
	dns_name = L"a-longer-dns-name";
	host_name(name);
	assert_string_equal(name, "a-longer-dns-name");
	host__ask_name = GetComputerNameExW;
}

/* On FAT nothing has an owner: the folder that --detach made is the one that status looks into. */
TEST(state_folder_on_a_disk_without_owners_is_taken)
{
	struct err e = ERR_INIT;
	char *folder = NULL;

	CHECK_OK(state_folder(true, &folder, &e), &e);
	free(folder);
	win32_no_owners = true;
	CHECK_OK(state_folder(true, &folder, &e), &e);
	free(folder);
	CHECK_OK(state_folder(false, &folder, &e), &e);
	free(folder);
	win32_no_owners = false;
	assert_true(win32_knows_owners(L"C:\\"));
}

/* A crash shows no box, and with it goes Windows Error Reporting. */
TEST(a_crash_is_reported_to_nobody)
{
	char name[] = "test";
	char *words[] = { name, NULL }, **argv = words;
	int argc = 1;

	SetErrorMode(0);
	startup(&argc, &argv);
	assert_true(GetErrorMode() & SEM_NOGPFAULTERRORBOX);
}

/* --- files that another process holds ------------------------------------------------------ */

#define HELD_PAGES 5

/* Stands for System: holds a file as Windows holds a page file, until it is told to end. */
static int hold_file(const char *path, const char *access)
{
	_cleanup_free_ wchar_t *wide = win32_path(path);
	HANDLE pipe,
		file = CreateFileW(wide, (DWORD)strtoul(access, NULL, 16), 0, NULL, OPEN_EXISTING,
				   FILE_FLAG_NO_BUFFERING | FILE_FLAG_OVERLAPPED, NULL);
	char c;

	/* It is asked for its name too. */
	pipe = CreateNamedPipeW(L"\\\\.\\pipe\\ramseal-held", PIPE_ACCESS_DUPLEX, 0, 1, 0, 0, 0,
				NULL);
	putchar(file == INVALID_HANDLE_VALUE || pipe == INVALID_HANDLE_VALUE ? 'n' : 'y');
	fflush(stdout);
	return fread(&c, 1, 1, stdin) == 1;
}

struct holder {
	PROCESS_INFORMATION process;
	HANDLE to, from;
};

/* True if it holds the file. */
static bool holder_start(struct holder *h, const char *path, const char *access)
{
	SECURITY_ATTRIBUTES inherit = { sizeof(inherit), NULL, TRUE };
	STARTUPINFOW start = { .cb = sizeof(start), .dwFlags = STARTF_USESTDHANDLES };
	wchar_t self[MAX_PATH], command[1024];
	char answer = 0;
	DWORD got;

	assert_true(CreatePipe(&start.hStdInput, &h->to, &inherit, 0));
	assert_true(CreatePipe(&h->from, &start.hStdOutput, &inherit, 0));
	SetHandleInformation(h->to, HANDLE_FLAG_INHERIT, 0);
	SetHandleInformation(h->from, HANDLE_FLAG_INHERIT, 0);
	start.hStdError = GetStdHandle(STD_ERROR_HANDLE);
	GetModuleFileNameW(NULL, self, MAX_PATH);
	swprintf(command, ARRAY_SIZE(command), L"\"%ls\" hold \"%hs\" %hs", self, path, access);
	assert_true(CreateProcessW(NULL, command, NULL, NULL, TRUE, 0, NULL, NULL, &start,
				   &h->process));
	CloseHandle(start.hStdInput);
	CloseHandle(start.hStdOutput);
	return ReadFile(h->from, &answer, 1, &got, NULL) && answer == 'y';
}

static void holder_end(struct holder *h)
{
	CloseHandle(h->to);
	WaitForSingleObject(h->process.hProcess, INFINITE);
	CloseHandle(h->from);
	CloseHandle(h->process.hThread);
	CloseHandle(h->process.hProcess);
}

/* "DIR\held.sys", full; each page has its number in every byte. */
static char *make_held_file(void)
{
	static uint8_t bytes[HELD_PAGES * PAGE_SIZE];
	_cleanup_free_ wchar_t *wide = NULL;
	wchar_t full[MAX_PATH];
	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (uint8_t)(1 + i / PAGE_SIZE);
	scratch_write(&dir, "held.sys", bytes, sizeof(bytes));
	wide = win32_path(scratch_path(&dir, "held.sys"));
	assert_true(GetFullPathNameW(wide, MAX_PATH, full, NULL));
	return win32_utf8(full);
}

TEST(a_file_that_another_process_holds_is_read_by_its_handle)
{
	_cleanup_free_ char *path = make_held_file();
	_cleanup_free_ wchar_t *wide = win32_path(path);
	_cleanup_free_ uint8_t *buf = malloc(HELD_PAGES * PAGE_SIZE + 1);
	struct holder h;
	struct reader *r = NULL;
	struct err e = ERR_INIT;
	size_t good = 0;

	assert_true(holder_start(&h, path, "c0000000")); /* GENERIC_READ and _WRITE */
	assert_true(CreateFileW(wide, GENERIC_READ,
				FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE, NULL,
				OPEN_EXISTING, 0, NULL) == INVALID_HANDLE_VALUE);
	if (held_file_open(h.process.dwProcessId, path, &r, &e))
		fail_msg("%s", e.message);
	assert_true(r->size == HELD_PAGES * PAGE_SIZE);
	/* Neither the offset, the length nor the buffer suits a handle without a buffer. */
	assert_int_equal(reader_read(r, PAGE_SIZE - 3, buf + 1, 2 * PAGE_SIZE, &good), 0);
	assert_int_equal(good, 2 * PAGE_SIZE);
	assert_int_equal(buf[1], 1);
	assert_int_equal(buf[4], 2);
	assert_int_equal(buf[2 * PAGE_SIZE], 3);
	assert_int_equal(reader_read(r, 4 * PAGE_SIZE, buf, 2 * PAGE_SIZE, &good), READ_PAST_END);
	assert_int_equal(good, PAGE_SIZE);
	assert_int_equal(buf[0], 5);
	reader_close(r);
	holder_end(&h);
}

TEST(a_handle_that_may_not_read_is_none)
{
	_cleanup_free_ char *path = make_held_file();
	struct holder h;
	struct reader *r = NULL;
	struct err e = ERR_INIT;

	assert_true(holder_start(&h, path, "40000000")); /* GENERIC_WRITE */
	assert_int_equal(held_file_open(h.process.dwProcessId, path, &r, &e), ST_INPUT);
	assert_non_null(strstr(e.message, "holds no handle of it that can be read"));
	assert_null(strstr(e.message, "; 0 more without the right"));
	holder_end(&h);
}

TEST(files_that_nobody_holds_and_processes_that_are_not_there)
{
	_cleanup_free_ char *path = make_held_file();
	struct holder h;
	struct reader *r = NULL;
	struct err e = ERR_INIT;

	assert_true(holder_start(&h, path, "80000000"));
	assert_int_equal(held_file_open(h.process.dwProcessId, "C:\\other.sys", &r, &e), ST_INPUT);
	assert_non_null(strstr(e.message, "holds no handle of it that can be read"));
	holder_end(&h);
	assert_int_equal(held_file_open(0x7ffffff0, path, &r, &e), ST_INPUT);
	assert_non_null(strstr(e.message, "handles of process 2147483632"));
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(machine_without_a_dns_name_has_its_netbios_name),
		cmocka_unit_test(state_folder_on_a_disk_without_owners_is_taken),
		cmocka_unit_test(one_acquisition_keeps_others_away),
		cmocka_unit_test(a_name_that_a_stranger_took_is_told_apart),
		cmocka_unit_test(text_goes_to_utf_16_and_back),
		cmocka_unit_test(short_paths_stay_and_slashes_turn),
		cmocka_unit_test(verbatim_paths_are_not_touched),
		cmocka_unit_test(long_paths_get_the_prefix_and_lose_it_again),
		cmocka_unit_test(long_paths_of_a_share_get_the_other_prefix),
		cmocka_unit_test(errors_have_words_and_the_number),
		cmocka_unit_test(texts_with_room_for_a_name_have_dots_there),
		cmocka_unit_test(names_of_other_languages_and_long_ones_work),
		cmocka_unit_test(a_folder_is_no_file),
		cmocka_unit_test(offsets_beyond_4_gib_hold),
		cmocka_unit_test(what_was_written_is_cut),
		cmocka_unit_test(a_directory_gets_a_file_of_the_default_name),
		cmocka_unit_test(existing_files_want_force),
		cmocka_unit_test(read_only_files_are_not_replaced),
		cmocka_unit_test(an_input_is_not_written_over),
		cmocka_unit_test(a_file_that_appears_meanwhile_stays),
		cmocka_unit_test(an_unfinished_file_stays_and_a_busy_one_is_refused),
		cmocka_unit_test(devices_are_no_files),
		cmocka_unit_test(new_files_are_the_owners),
		cmocka_unit_test(a_set_moves_out_of_its_folder),
		cmocka_unit_test(facts_of_the_host_are_there_and_of_their_type),
		cmocka_unit_test(virus_scanners_are_known_by_their_altitude),
		cmocka_unit_test(system_is_kept_awake_only_meanwhile),
		cmocka_unit_test(awake_machine_does_not_grow_sleepy),
		cmocka_unit_test(clocks_move_on_and_agree_with_the_c_library),
		cmocka_unit_test(random_bytes_differ),
		cmocka_unit_test(without_an_access_list_nothing_private_is_made),
		cmocka_unit_test(copy_of_a_driver_is_made_below_windows_itself),
		cmocka_unit_test(a_crash_is_reported_to_nobody),
		cmocka_unit_test(a_file_that_another_process_holds_is_read_by_its_handle),
		cmocka_unit_test(a_handle_that_may_not_read_is_none),
		cmocka_unit_test(files_that_nobody_holds_and_processes_that_are_not_there),
	};

	if (argc == 4 && !strcmp(argv[1], "hold"))
		return hold_file(argv[2], argv[3]);
	return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
