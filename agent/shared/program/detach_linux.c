/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/shared/program/detach_internal.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/shared/program/proc_file.h"
#include "agent/shared/program/startup.h"

/* Where /proc does not tell which descriptors there are, these are asked for one by one. */
#define DESCRIPTORS_MAX 65536

/*
 * A descriptor that we were born with. It may be what an argument names (fd:N, /dev/fd/N), and so
 * stays until everything is open; but a channel may wait for the end of the pipe that it is, and
 * so it must not stay for longer.
 */
struct inherited {
	int fd;
	dev_t device;
	ino_t inode;
};

static struct {
	pid_t child;
	struct inherited *at;
	size_t count, room;
} detached;

static void note_descriptor(int fd)
{
	struct stat sb;

	if (fd <= STDERR_FILENO || fstat(fd, &sb))
		return;
	if (detached.count == detached.room) {
		const size_t room = detached.room ? 2 * detached.room : 64;
		struct inherited *at = realloc(detached.at, room * sizeof(*at));

		if (!at)
			return;
		detached.at = at;
		detached.room = room;
	}
	/* We open everything with O_CLOEXEC: later that tells theirs from ours. */
	if (!fcntl(fd, F_SETFD, 0))
		detached.at[detached.count++] =
			(struct inherited){ .fd = fd, .device = sb.st_dev, .inode = sb.st_ino };
}

static void note_inherited(void)
{
	DIR *folder = opendir("/proc/self/fd");
	const struct dirent *entry;

	if (!folder) {
		const long most = sysconf(_SC_OPEN_MAX);

		for (int fd = 0; fd < DESCRIPTORS_MAX && (most < 0 || fd < most); fd++)
			note_descriptor(fd);
		return;
	}
	while ((entry = readdir(folder)))
		if (entry->d_name[0] != '.' && atoi(entry->d_name) != dirfd(folder))
			note_descriptor(atoi(entry->d_name));
	closedir(folder);
}

/* What was closed since, and whose number something else has now, is none of them. */
static void close_inherited(void)
{
	struct stat sb;

	for (size_t i = 0; i < detached.count; i++) {
		const struct inherited *d = &detached.at[i];

		if (fcntl(d->fd, F_GETFD) == 0 && !fstat(d->fd, &sb) && sb.st_dev == d->device &&
		    sb.st_ino == d->inode)
			close(d->fd);
	}
	free(detached.at);
	detached.at = NULL;
	detached.count = detached.room = 0;
}

/*
 * A session of its own has no terminal, and is not in the process group that a channel kills. Who
 * kills by cgroup still finds it: we do not move ourselves out of one, where limits are that
 * somebody has set on purpose.
 */
static void begin_session(int pipe)
{
	setsid();
	proc_file_keep_own();
	signal(SIGHUP, SIG_IGN);
	dup2(pipe, STDERR_FILENO);
	close(pipe);
}

enum status detach__start(int *ret_pipe, struct err *e)
{
	int pipe[2];

	note_inherited();
	if (pipe2(pipe, O_CLOEXEC))
		return err_from_errno(e, ST_SYSTEM, errno, "a pipe");
	detached.child = fork();
	if (detached.child < 0) {
		const int error = errno;

		close(pipe[0]);
		close(pipe[1]);
		return err_from_errno(e, ST_SYSTEM, error, "a process of its own");
	}
	if (detached.child) {
		close(pipe[1]);
		*ret_pipe = pipe[0];
		return ST_OK;
	}
	close(pipe[0]);
	begin_session(pipe[1]);
	*ret_pipe = -1;
	return ST_OK;
}

bool detach__wait(int pipe)
{
	struct pollfd p = { .fd = pipe, .events = POLLIN };

	return poll(&p, 1, 500) > 0;
}

void detach__stop(void)
{
	kill(detached.child, SIGTERM); /* nobody has waited for it: the number is still its own */
}

enum status detach__end(int *ret_code, struct err *e)
{
	int how;

	while (waitpid(detached.child, &how, 0) < 0)
		if (errno != EINTR)
			return err_from_errno(e, ST_SYSTEM, errno, "the detached process");
	if (WIFSIGNALED(how))
		return err_set(e, ST_DIED, "the detached process was killed: %s",
			       strsignal(WTERMSIG(how)));
	*ret_code = WEXITSTATUS(how);
	return ST_OK;
}

void detach__let_go(void)
{
	startup_drop_streams();
	close_inherited();
}

bool detach_passes_descriptors(void)
{
	return true;
}

bool detach_is_held(void)
{
	return false;
}
