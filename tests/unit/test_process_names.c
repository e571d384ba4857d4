/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/test.h"

#include <string.h>

#ifdef _WIN32
#include <windows.h>
#else
#include <unistd.h>

#include "tests/gen/temporary.h"
#endif

#include "agent/collect/host/process_names.h"

/* The kernel's list, and what the system told before and after. Names: NULL ends a list. */
struct side {
	uint32_t pid;
	const char *name;
};

#define SIDES_MAX 8

static void make_kernel(const struct side *from, struct process_list *ret)
{
	*ret = (struct process_list){ .at = calloc(SIDES_MAX, sizeof(*ret->at)),
				      .end = LIST_CLOSED };
	assert_non_null(ret->at);
	for (; from && from->name; from++) {
		struct process *p = &ret->at[ret->count++];

		p->pid = from->pid;
		p->object = UINT64_C(0xffff888000000000) + 0x1000 * from->pid;
		snprintf(p->name, sizeof(p->name), "%s", from->name);
	}
}

static void make_host(const struct side *from, struct host_processes *ret)
{
	struct err e = ERR_INIT;

	*ret = (struct host_processes){ 0 };
	for (; from && from->name; from++)
		CHECK_OK(host_processes_add(ret, from->pid, from->name, &e), &e);
	host_processes_sort(ret);
}

static json_t *compare(enum discover_os os, const struct side *kernel, const struct side *again,
		       const struct side *before, const struct side *after)
{
	struct process_list list, later;
	struct host_processes first, second;
	json_t *doc;

	make_kernel(kernel, &list);
	make_kernel(again, &later);
	make_host(before, &first);
	make_host(after, &second);
	doc = process_names_json(
		&(struct process_views){ os, &list, again ? &later : NULL, &first, &second });
	assert_non_null(doc);
	process_list_deinit(&list);
	process_list_deinit(&later);
	host_processes_deinit(&first);
	host_processes_deinit(&second);
	return doc;
}

/* The PIDs of a list: "12 13 ". */
static void check_pids(const json_t *doc, const char *key, const char *want)
{
	const json_t *list = json_object_get(doc, key);
	char got[256] = "";

	assert_true(json_is_array(list));
	for (size_t i = 0; i < json_array_size(list); i++)
		snprintf(got + strlen(got), sizeof(got) - strlen(got), "%d ",
			 (int)json_integer_value(json_object_get(json_array_get(list, i), "pid")));
	assert_string_equal(got, want);
}

static void check_all(json_t *doc, const char *kernel_only, const char *system_only,
		      const char *renamed)
{
	check_pids(doc, "kernel_only", kernel_only);
	check_pids(doc, "system_only", system_only);
	check_pids(doc, "renamed", renamed);
	assert_int_equal(json_is_true(json_object_get(doc, "agree")),
			 !*kernel_only && !*system_only && !*renamed);
	json_decref(doc);
}

TEST(lists_that_are_the_same_agree)
{
	/* In any order; the idle process is in one of them only. */
	const struct side kernel[] = { { 0, "swapper/0" }, { 1, "init" }, { 9, "sh" }, { 0 } };
	const struct side host[] = { { 9, "sh" }, { 1, "init" }, { 0 } };
	json_t *doc = compare(OS_LINUX, kernel, NULL, host, host);

	assert_int_equal(json_integer_value(json_object_get(doc, "kernel")), 2);
	assert_int_equal(json_integer_value(json_object_get(doc, "system")), 2);
	check_pids(doc, "system_list", "1 9 ");
	check_all(doc, "", "", "");
}

TEST(what_only_one_side_has_is_named)
{
	const struct side kernel[] = { { 1, "init" }, { 5, "hidden" }, { 9, "sh" }, { 0 } };
	const struct side host[] = { { 1, "init" }, { 7, "unlinked" }, { 9, "other" }, { 0 } };
	json_t *doc = compare(OS_LINUX, kernel, NULL, host, host);
	const json_t *renamed = json_array_get(json_object_get(doc, "renamed"), 0);

	assert_string_equal(json_string_value(json_object_get(renamed, "kernel")), "sh");
	assert_string_equal(json_string_value(json_object_get(renamed, "system")), "other");
	check_all(doc, "5 ", "7 ", "9 ");
}

TEST(what_starts_or_ends_meanwhile_is_no_difference)
{
	/* 3 ended, 4 started, 5 became another program; 6 ended before, and 7 started after. */
	const struct side before[] = { { 1, "init" }, { 3, "a" }, { 5, "sh" }, { 6, "b" }, { 0 } };
	const struct side kernel[] = { { 1, "init" }, { 3, "a" }, { 4, "c" }, { 5, "env" }, { 0 } };
	const struct side after[] = { { 1, "init" }, { 4, "d" }, { 5, "cat" }, { 7, "e" }, { 0 } };

	check_all(compare(OS_LINUX, kernel, NULL, before, after), "", "", "");
}

TEST(what_is_gone_when_the_kernel_is_asked_again_was_passing_by)
{
	const struct side host[] = { { 1, "init" }, { 0 } };
	const struct side kernel[] = { { 1, "init" }, { 5, "short" }, { 6, "stays" }, { 0 } };
	const struct side again[] = { { 1, "init" }, { 6, "stays" }, { 0 } };

	check_all(compare(OS_LINUX, kernel, again, host, host), "6 ", "", "");
	check_all(compare(OS_LINUX, kernel, host, host, host), "", "", "");
}

TEST(only_what_is_so_twice_is_told)
{
	/* The first list led past 5 and 6, and 7 had another name for a moment. */
	const struct side host[] = { { 1, "init" }, { 5, "a" }, { 6, "b" },
				     { 7, "c" },    { 8, "d" }, { 0 } };
	const struct side kernel[] = { { 1, "init" }, { 7, "x" }, { 8, "y" }, { 0 } };
	const struct side again[] = { { 1, "init" }, { 5, "a" }, { 7, "c" }, { 8, "y" }, { 0 } };

	check_all(compare(OS_LINUX, kernel, NULL, host, host), "", "5 6 ", "7 8 ");
	check_all(compare(OS_LINUX, kernel, again, host, host), "", "6 ", "8 ");
}

TEST(another_machines_lists_have_nothing_in_common)
{
	const struct side kernel[] = { { 4, "System" }, { 48, "smss.exe" }, { 0 } };
	const struct side host[] = { { 32, "services.exe" }, { 56, "explorer.exe" }, { 0 } };

	check_all(compare(OS_WINDOWS, kernel, kernel, host, host), "4 48 ", "32 56 ", "");
}

TEST(list_that_is_not_whole_agrees_with_nothing)
{
	struct process_list kernel;
	struct host_processes host;
	const struct side both[] = { { 1, "init" }, { 0 } };
	json_t *doc;

	make_kernel(both, &kernel);
	make_host(both, &host);
	kernel.end = LIST_TORN;
	doc = process_names_json(&(struct process_views){ OS_LINUX, &kernel, NULL, &host, &host });
	assert_false(json_is_true(json_object_get(doc, "agree")));
	check_pids(doc, "kernel_only", "");
	json_decref(doc);
	process_list_deinit(&kernel);
	host_processes_deinit(&host);
}

TEST(names_are_compared_as_kernels_cut_them)
{
	static const struct {
		enum discover_os os;
		const char *kernel, *system;
		bool same;
	} names[] = {
		{ OS_LINUX, "sh", "sh", true },
		{ OS_LINUX, "sh", "shadow", false },
		{ OS_LINUX, "shadow", "sh", false },
		{ OS_LINUX, "fifteen-letters", "fifteen-letters-and-more", true },
		{ OS_LINUX, "kworker/0:1", "kworker/0:1-events", true },
		{ OS_LINUX, "kworker/0:1", "kworker/0:1+mm_percpu_wq", true },
		{ OS_LINUX, "kworker/0:1", "kworker/0:11", false },
		{ OS_LINUX, "Sh", "sh", false },
		{ OS_WINDOWS, "lsass.exe", "lsass.exe", true },
		{ OS_WINDOWS, "lsass.exe", "lsass.exe.exe", false },
		{ OS_WINDOWS, "TrustedInstall", "TrustedInstaller.exe", true },
		{ OS_WINDOWS, "SearchProtocol", "SearchFilterHost.exe", false },
		{ OS_WINDOWS, "MemCompression", "Memory Compression", true },
		{ OS_WINDOWS, "\xe4.exe", "\xc3\xa4.exe", true },
		{ OS_WINDOWS, "a\xe4.exe", "b\xc3\xa4.exe", false },
		{ OS_WINDOWS, "a.exe", "", false },
	};

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (process_names_match(names[i].os, names[i].kernel, names[i].system) !=
		    names[i].same)
			fail_msg("%s and %s", names[i].kernel, names[i].system);
}

static uint32_t own_pid(void)
{
#ifdef _WIN32
	return GetCurrentProcessId();
#else
	return (uint32_t)getpid();
#endif
}

TEST(this_system_tells_of_ourselves)
{
	struct host_processes l = { 0 };
	struct err e = ERR_INIT;
	const char *name = NULL;

	CHECK_OK(host_processes(&l, &e), &e);
	for (size_t i = 0; i < l.count; i++) {
		assert_true(l.at[i].pid != 0);
		assert_true(!i || l.at[i].pid > l.at[i - 1].pid);
		if (l.at[i].pid == own_pid())
			name = l.at[i].name;
	}
	assert_non_null(name);
	CHECK_HAS(name, "test_process_na");
	host_processes_deinit(&l);
}

#ifndef _WIN32
TEST(other_pid_namespaces_than_the_first_are_told)
{
	static const struct {
		const char *name;
		bool is;
	} names[] = { { "pid:[4026531836]", false },
		      { "pid:[4026532211]", true },
		      { "pid:[402653183]", true } };
	char link[TEMPORARY_MAX + 32];

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		snprintf(link, sizeof(link), "%s/ramseal-test-%d", temporary_folder(), getpid());
		unlink(link);
		assert_int_equal(symlink(names[i].name, link), 0);
		assert_int_equal(host_in_pid_namespace(link), names[i].is);
	}
	unlink(link);
	assert_false(host_in_pid_namespace("/nowhere/ns/pid"));
}
#endif

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lists_that_are_the_same_agree),
		cmocka_unit_test(what_only_one_side_has_is_named),
		cmocka_unit_test(what_starts_or_ends_meanwhile_is_no_difference),
		cmocka_unit_test(what_is_gone_when_the_kernel_is_asked_again_was_passing_by),
		cmocka_unit_test(only_what_is_so_twice_is_told),
		cmocka_unit_test(another_machines_lists_have_nothing_in_common),
		cmocka_unit_test(list_that_is_not_whole_agrees_with_nothing),
		cmocka_unit_test(names_are_compared_as_kernels_cut_them),
		cmocka_unit_test(this_system_tells_of_ourselves),
#ifndef _WIN32
		cmocka_unit_test(other_pid_namespaces_than_the_first_are_told),
#endif
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
