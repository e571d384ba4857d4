/* SPDX-License-Identifier: Apache-2.0 */
/*
 * measure FILE COMMAND...: runs the command, and adds a line to FILE: seconds of processor time,
 * user and system, of the command and of all that it started and that has ended, and the command's
 * words, with tabs between them. Ends as the command does. `meson test --wrapper "measure FILE"`
 * does that for every test (testing.sh).
 *
 * Processes whose parent has ended become ours (prctl(2), PR_SET_CHILD_SUBREAPER), so that a server
 * that a test has put into the background counts as well.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static void keep_on(int number)
{
	(void)number;
}

static pid_t start(char **command)
{
	const pid_t child = fork();

	if (!child) {
		execvp(command[0], command);
		perror(command[0]);
		_exit(127);
	}
	return child;
}

static int wait_for(pid_t child)
{
	int status = 0, other;
	pid_t ended;

	while ((ended = waitpid(-1, &other, 0)) != child)
		if (ended < 0 && errno != EINTR)
			return -1;
	status = other;
	while (waitpid(-1, &other, WNOHANG) > 0)
		; /* what ended just before */
	return status;
}

static double seconds(struct timeval t)
{
	return (double)t.tv_sec + (double)t.tv_usec / 1e6;
}

/* In one write(), because other tests add theirs at the same time. */
static void report(const char *path, char **command)
{
	struct rusage used;
	char *line = NULL;
	size_t size = 0;
	FILE *f = open_memstream(&line, &size);
	const int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);

	if (!f || fd < 0 || getrusage(RUSAGE_CHILDREN, &used)) {
		perror(path);
		return;
	}
	fprintf(f, "%.2f\t%.2f", seconds(used.ru_utime), seconds(used.ru_stime));
	for (; *command; command++)
		fprintf(f, "\t%s", *command);
	fputc('\n', f);
	fclose(f);
	if (write(fd, line, size) != (ssize_t)size)
		perror(path);
	free(line);
	close(fd);
}

int main(int argc, char **argv)
{
	/* Meson ends a test by a signal to its group. Unlike SIG_IGN it is not inherited. */
	const struct sigaction ours = { .sa_handler = keep_on };
	pid_t child;
	int status;

	if (argc < 3) {
		fputs("usage: measure FILE COMMAND...\n", stderr);
		return 2;
	}
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	child = start(argv + 2);
	sigaction(SIGTERM, &ours, NULL);
	sigaction(SIGINT, &ours, NULL);
	status = child < 0 ? -1 : wait_for(child);
	report(argv[1], argv + 2);
	if (status >= 0 && WIFEXITED(status))
		return WEXITSTATUS(status);
	if (status >= 0 && WIFSIGNALED(status)) {
		signal(WTERMSIG(status), SIG_DFL);
		raise(WTERMSIG(status));
	}
	return 126;
}
