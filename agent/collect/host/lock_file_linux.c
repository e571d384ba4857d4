/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/collect/host/lock_file.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

struct lock_file {
	int fd;
};

/* In a folder that others may write to, a file or link of theirs could stand in the way. */
static enum status check_ours(int fd, const char *path, enum status st, struct err *e)
{
	struct stat sb;

	if (fstat(fd, &sb))
		return err_from_errno(e, st, errno, "%s", path);
	if (!S_ISREG(sb.st_mode) || sb.st_nlink != 1)
		return err_set(e, st, "%s: was not made by ramseal", path);
	if (sb.st_uid != geteuid() && sb.st_uid != 0)
		return err_set(e, st, "%s: belongs to another user", path);
	return ST_OK;
}

/* All that we write into one is the path of a state. */
static bool is_lock(int fd)
{
	char first;
	const ssize_t n = pread(fd, &first, 1, 0);

	return n == 0 || (n == 1 && first == '/');
}

static enum status lock_and_write(int fd, const char *path, const char *text, struct err *e)
{
	struct flock whole = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
	enum status st = check_ours(fd, path, ST_OUTPUT, e);

	if (st)
		return st;
	if (fcntl(fd, F_SETLK, &whole))
		return errno == EACCES || errno == EAGAIN
			       ? err_set(e, ST_RUNNING, "%s: is locked", path)
			       : err_from_errno(e, ST_OUTPUT, errno, "%s", path);
	if (!is_lock(fd))
		return err_set(e, ST_OUTPUT, "%s: is not a lock file of ramseal", path);
	/* Whatever the umask is. A text that does not fit hurts nobody. */
	fchmod(fd, 0600);
	if (!ftruncate(fd, 0))
		(void)!pwrite(fd, text, strlen(text), 0);
	return ST_OK;
}

enum status lock_file_take(const char *path, const char *text, struct lock_file **ret,
			   struct err *e)
{
	const int fd =
		open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, 0600);
	struct lock_file *l;
	enum status st;

	*ret = NULL;
	if (fd < 0)
		return err_from_errno(e, ST_OUTPUT, errno, "%s", path);
	st = lock_and_write(fd, path, text, e);
	l = st ? NULL : malloc(sizeof(*l));
	if (!l) {
		close(fd);
		return st ? st : err_nomem(e);
	}
	l->fd = fd;
	*ret = l;
	return ST_OK;
}

void lock_file_release(struct lock_file *l)
{
	if (!l)
		return;
	close(l->fd);
	free(l);
}

enum status lock_file_look(const char *path, struct lock_holder *ret, struct err *e)
{
	const int fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	struct flock whole = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
	enum status st;

	*ret = (struct lock_holder){ .lives = false };
	if (fd < 0)
		return errno == ENOENT ? ST_OK : err_from_errno(e, ST_INPUT, errno, "%s", path);
	st = check_ours(fd, path, ST_INPUT, e);
	if (!st && fcntl(fd, F_GETLK, &whole))
		st = err_from_errno(e, ST_INPUT, errno, "%s", path);
	close(fd);
	if (st || whole.l_type == F_UNLCK)
		return st;
	ret->lives = true;
	ret->pid = whole.l_pid > 0 ? (uint64_t)whole.l_pid : 0;
	return ST_OK;
}

static int signal_by(int pidfd, pid_t pid)
{
	/* Before 5.3 there are no such descriptors; then microseconds must do. */
	return pidfd < 0 ? kill(pid, SIGTERM)
			 : (int)syscall(SYS_pidfd_send_signal, pidfd, SIGTERM, NULL, 0);
}

/*
 * The descriptor means one process for ever, whoever gets its number later; and the lock, asked
 * behind it, says that this process is the right one.
 */
enum status lock_file_signal(const char *path, uint64_t pid, struct err *e)
{
	const bool is_number = pid && pid <= INT32_MAX; /* 0 would be a whole group */
	const int pidfd = is_number ? (int)syscall(SYS_pidfd_open, (pid_t)pid, 0) : -1;
	const bool is_gone = !is_number || (pidfd < 0 && errno == ESRCH);
	struct lock_holder holder;
	enum status st = lock_file_look(path, &holder, e);

	if (!st && (is_gone || !holder.lives || holder.pid != pid))
		st = err_set(e, ST_DIED, "process %llu has ended", (unsigned long long)pid);
	if (!st && signal_by(pidfd, (pid_t)pid))
		st = errno == ESRCH ? err_set(e, ST_DIED, "it has ended")
				    : err_from_errno(e, ST_NO_PRIVILEGE, errno, "process %llu",
						     (unsigned long long)pid);
	if (pidfd >= 0)
		close(pidfd);
	return st;
}
