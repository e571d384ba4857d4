/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/collect/host/file_mark.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "formats/base/defs.h"

/* Files of these have no content of their own: each read makes it. */
static bool is_made_when_read(int fd)
{
	struct statfs fs;

	return fstatfs(fd, &fs) || fs.f_type == PROC_SUPER_MAGIC || fs.f_type == SYSFS_MAGIC ||
	       fs.f_type == DEBUGFS_MAGIC;
}

/*
 * A read lease is refused with EAGAIN if anybody has the file open for writing (fcntl(2),
 * F_SETLEASE). It is given back at once. Whoever opens the file for writing within that moment
 * waits for as long, and we would get a signal: one that nobody minds.
 */
static bool has_writer(int fd)
{
	fcntl(fd, F_SETSIG, SIGURG);
	if (fcntl(fd, F_SETLEASE, F_RDLCK))
		return errno == EAGAIN;
	fcntl(fd, F_SETLEASE, F_UNLCK);
	return false;
}

bool file_mark_take(const char *path, struct file_mark *ret)
{
	const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	struct stat st;
	bool ok = false;

	*ret = (struct file_mark){ 0 };
	if (fd < 0)
		return false;
	if (!fstat(fd, &st) && S_ISREG(st.st_mode) && !is_made_when_read(fd)) {
		ret->size = (uint64_t)st.st_size;
		ret->written = (int64_t)st.st_mtim.tv_sec * 1000000000 + st.st_mtim.tv_nsec;
		ok = !has_writer(fd);
	}
	close(fd);
	return ok;
}
