/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/test.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/collect/acquire/acquire.h"
#include "agent/collect/host/lock_file.h"
#include "agent/collect/host/running.h"
#include "agent/shared/program/detach.h"
#include "tests/unit/scratch.h"

static struct scratch scratch;

static int set_up(void **state)
{
	scratch_init(&scratch);
	return 0;
}

static int tear_down(void **state)
{
	scratch_deinit(&scratch);
	return 0;
}

/*
 * A process that does `begin`, says so, and lives until it is killed or asked to stop: locks of
 * one's own are in nobody's way.
 */
static pid_t begin_other(void (*begin)(const char *path), const char *path)
{
	int told[2];
	char c;
	pid_t pid;

	assert_int_equal(pipe(told), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		begin(path);
		(void)!write(told[1], "", 1);
		for (;;)
			pause();
	}
	close(told[1]);
	assert_int_equal(read(told[0], &c, 1), 1);
	close(told[0]);
	return pid;
}

static int end_of(pid_t pid)
{
	int how;

	assert_int_equal(waitpid(pid, &how, 0), pid);
	return how;
}

static void hold_lock(const char *path)
{
	struct lock_file *l;

	if (lock_file_take(path, "/text", &l, NULL))
		_exit(1);
}

static void run_acquisition(const char *path)
{
	const struct running_plan plan = { .state = path, .needed = true };
	struct running *r;

	if (running_begin(&plan, &r, NULL))
		_exit(1);
	running_tell(r, "output", "out.rsz");
}

static void check_holder(const char *path, bool lives, pid_t pid)
{
	struct lock_holder holder;
	struct err e = ERR_INIT;

	CHECK_OK(lock_file_look(path, &holder, &e), &e);
	assert_int_equal(holder.lives, lives);
	assert_int_equal(holder.pid, (uint64_t)pid);
}

TEST(lock_lasts_as_long_as_its_process)
{
	const char *path = scratch_path(&scratch, "lock");
	struct lock_file *l;
	struct err e = ERR_INIT;
	pid_t other;

	check_holder(path, false, 0);
	other = begin_other(hold_lock, path);
	check_holder(path, true, other);
	CHECK_STATUS(lock_file_take(path, "", &l, &e), ST_RUNNING, &e);
	assert_null(l);
	kill(other, SIGKILL);
	end_of(other);
	check_holder(path, false, 0);
	CHECK_OK(lock_file_take(path, "", &l, &e), &e);
	lock_file_release(l);
}

TEST(only_the_holder_is_signalled)
{
	const pid_t bystander = begin_other(hold_lock, scratch_path(&scratch, "another"));
	const char *path = scratch_path(&scratch, "lock");
	struct err e = ERR_INIT;
	pid_t other;

	CHECK_STATUS(lock_file_signal(path, (uint64_t)bystander, &e), ST_DIED, &e);
	other = begin_other(hold_lock, path);
	CHECK_STATUS(lock_file_signal(path, (uint64_t)bystander, &e), ST_DIED, &e);
	CHECK_OK(lock_file_signal(path, (uint64_t)other, &e), &e);
	assert_int_equal(WTERMSIG(end_of(other)), SIGTERM);
	CHECK_STATUS(lock_file_signal(path, (uint64_t)other, &e), ST_DIED, &e);
	assert_int_equal(waitpid(bystander, NULL, WNOHANG), 0);
	kill(bystander, SIGKILL);
	end_of(bystander);
}

TEST(what_is_in_the_way_of_a_lock_is_left_alone)
{
	struct lock_file *l;
	struct lock_holder holder;
	struct err e = ERR_INIT;

	scratch_write(&scratch, "victim", "victim", 6);
	assert_int_equal(symlink("victim", scratch_path(&scratch, "link")), 0);
	CHECK_STATUS(lock_file_take(scratch.at, "", &l, &e), ST_OUTPUT, &e);
	CHECK_STATUS(lock_file_look(scratch.at, &holder, &e), ST_INPUT, &e);
	CHECK_STATUS(lock_file_take(scratch.path, "", &l, &e), ST_OUTPUT, &e);
	CHECK_STATUS(lock_file_take(scratch_path(&scratch, "no/folder"), "", &l, &e), ST_OUTPUT,
		     &e);
}

static void look(const char *path, enum running_how how, struct running_seen *s)
{
	struct err e = ERR_INIT;

	CHECK_OK(running_look(path, NULL, s, &e), &e);
	assert_int_equal(s->how, how);
}

TEST(one_that_runs_and_one_that_died)
{
	const char *path = scratch_path(&scratch, "state");
	const struct running_plan plan = { .state = path, .needed = true };
	const pid_t other = begin_other(run_acquisition, path);
	struct running_seen s;
	struct running *r;
	struct err e = ERR_INIT;

	look(path, RUNNING_RUNS, &s);
	assert_int_equal(s.pid, (uint64_t)other);
	assert_string_equal(json_string_value(json_object_get(s.state, "output")), "out.rsz");
	running_seen_deinit(&s);
	CHECK_STATUS(running_begin(&plan, &r, &e), ST_RUNNING, &e);
	assert_null(r);
	kill(other, SIGKILL);
	end_of(other);
	look(path, RUNNING_DIED, &s);
	running_seen_deinit(&s);
}

TEST(one_that_ended_says_how)
{
	const char *path = scratch_path(&scratch, "state");
	const struct running_plan plan = { .state = path, .needed = true };
	struct err e = ERR_INIT, why = ERR_INIT;
	struct running_seen s;
	struct running *r;

	CHECK_OK(running_begin(&plan, &r, &e), &e);
	assert_string_equal(strrchr(running_state_path(r), '/'), "/state");
	running_end(r, err_set(&why, ST_SOURCE_FAILED, "gone"), &why);
	look(path, RUNNING_ENDED, &s);
	assert_int_equal(s.exit_code, EXIT_SOURCE_FAILED);
	assert_string_equal(json_string_value(json_object_get(s.state, "error")), "gone");
	running_seen_deinit(&s);
}

TEST(nobody_is_told_where_nobody_asked)
{
	const struct running_plan plan = { .state = NULL };
	struct running *r;
	struct err e = ERR_INIT;

	CHECK_OK(running_begin(&plan, &r, &e), &e);
	assert_null(r);
	running_tell(r, "output", "x");
	running_end(r, ST_OK, NULL);
}

TEST(only_this_machines_own_memory_is_live)
{
	assert_true(drv_is_live("auto"));
	assert_true(drv_is_live("kcore"));
	assert_true(drv_is_live("kcore:/proc/kcore"));
	assert_false(drv_is_live("file:image"));
	assert_false(drv_is_live("no such source"));
}

/* Of each length, so that the cut falls into each byte of a character. */
TEST(object_of_a_detached_one_fits_whatever_the_output_is_called)
{
	char output[4 * DETACH_LINE_MAX + 1];

	for (size_t len = 0; len < sizeof(output) - 4; len += len < 1800 ? 900 : 1) {
		json_t *doc;
		char *text;

		for (size_t i = 0; i < len; i++)
			output[i] = "\xe8\xaa\x9e"[i % 3]; /* a character of three bytes */
		strcpy(output + len - len % 3, ".rsz");
		doc = acquire_detached_json("/run/ramseal/acquire.json", output);
		text = json_dumps(doc, 0);
		assert_true(strlen(text) < DETACH_LINE_MAX);
		CHECK_HAS(text, ".rsz\"");
		assert_null(strstr(text, "\\\\x")); /* as half a character would be */
		free(text);
		json_decref(doc);
		if (len > 2100 && len < sizeof(output) - 40)
			len += 13;
	}
}

TEST(state_whose_path_leaves_no_room_is_refused)
{
	_cleanup_free_ char *path = calloc(1, DETACH_LINE_MAX + 1);
	struct err e = ERR_INIT;

	memset(path, 'x', 1500);
	CHECK_OK(acquire_check_detached(path, &e), &e);
	memset(path, 'x', DETACH_LINE_MAX - 50);
	CHECK_STATUS(acquire_check_detached(path, &e), ST_USAGE, &e);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lock_lasts_as_long_as_its_process),
		cmocka_unit_test(only_the_holder_is_signalled),
		cmocka_unit_test(what_is_in_the_way_of_a_lock_is_left_alone),
		cmocka_unit_test(one_that_runs_and_one_that_died),
		cmocka_unit_test(one_that_ended_says_how),
		cmocka_unit_test(nobody_is_told_where_nobody_asked),
		cmocka_unit_test(only_this_machines_own_memory_is_live),
		cmocka_unit_test(object_of_a_detached_one_fits_whatever_the_output_is_called),
		cmocka_unit_test(state_whose_path_leaves_no_room_is_refused),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
