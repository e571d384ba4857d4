/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/test.h"

#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/shared/program/interrupt.h"

/* How a child ends that does `body`. */
static int status_of(void (*body)(void))
{
	const pid_t pid = fork();
	int status;

	assert_true(pid >= 0);
	if (pid == 0) {
		interrupt_init();
		body();
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return status;
}

static void expect(bool good)
{
	if (!good)
		_exit(1);
}

static void each_signal(void)
{
	expect(!interrupted() && !interrupt_name());
	raise(SIGTERM);
	expect(interrupted());
	expect(!strcmp(interrupt_name(), "SIGTERM"));
	raise(SIGTERM); /* as timeout(1) does */
	raise(SIGHUP);
	expect(!strcmp(interrupt_name(), "SIGTERM"));
}

static void second_sigint(void)
{
	raise(SIGINT);
	expect(interrupted());
	raise(SIGINT);
}

static void broken_pipe(void)
{
	int ends[2];

	expect(pipe(ends) == 0);
	close(ends[0]);
	expect(write(ends[1], "x", 1) < 0);
}

static void nohup(void)
{
	signal(SIGHUP, SIG_IGN);
	interrupt_init();
	raise(SIGHUP);
	expect(!interrupted());
}

static void question(void)
{
	raise(SIGUSR1);
	raise(SIGUSR1);
	expect(!interrupted());
}

TEST(sigusr1_stops_nothing)
{
	assert_int_equal(status_of(question), 0);
}

TEST(first_signal_sets_the_flag_and_is_remembered)
{
	assert_int_equal(status_of(each_signal), 0);
}

TEST(second_sigint_ends_the_program)
{
	const int status = status_of(second_sigint);

	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGINT);
}

TEST(broken_pipe_is_a_failed_write)
{
	assert_int_equal(status_of(broken_pipe), 0);
}

TEST(nohup_is_respected)
{
	assert_int_equal(status_of(nohup), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(first_signal_sets_the_flag_and_is_remembered),
		cmocka_unit_test(sigusr1_stops_nothing),
		cmocka_unit_test(second_sigint_ends_the_program),
		cmocka_unit_test(broken_pipe_is_a_failed_write),
		cmocka_unit_test(nohup_is_respected),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
