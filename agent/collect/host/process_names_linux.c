/* SPDX-License-Identifier: Apache-2.0 */
/*
 * /proc: a folder for each process, whose name is its PID; those of its other threads are below.
 * Processes that have ended and wait for their parent are there, too, as they are in the kernel's
 * list (proc(5)).
 */
#include "agent/collect/host/process_names.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

/* A thread of the kernel has up to 63 characters (fs/proc/array.c, proc_task_name()). */
#define COMM_MAX 128

static bool read_comm(int proc, const char *pid, char ret[static COMM_MAX])
{
	char path[64];
	_cleanup_close_ int fd = -1;
	ssize_t n;

	snprintf(path, sizeof(path), "%.20s/comm", pid);
	fd = openat(proc, path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	n = fd < 0 ? -1 : read(fd, ret, COMM_MAX - 1);
	if (n < 0)
		return false; /* it has ended */
	if (n && ret[n - 1] == '\n')
		n--;
	ret[n] = '\0';
	return true;
}

static enum status add_process_folder(struct host_processes *l, int proc, const char *name,
				      struct err *e)
{
	char comm[COMM_MAX], *end;
	unsigned long pid;

	if (!isdigit((unsigned char)name[0]))
		return ST_OK;
	errno = 0;
	pid = strtoul(name, &end, 10);
	if (errno || *end || !pid || pid > UINT32_MAX || !read_comm(proc, name, comm))
		return ST_OK;
	return host_processes_add(l, (uint32_t)pid, comm, e);
}

bool host_in_pid_namespace(const char *link)
{
	char name[64];
	const ssize_t n = readlink(link, name, sizeof(name) - 1);

	name[MAX(n, 0)] = '\0';
	return n > 0 && strcmp(name, "pid:[4026531836]") != 0;
}

enum status host_processes(struct host_processes *ret, struct err *e)
{
	DIR *proc = opendir("/proc");
	const struct dirent *entry;
	enum status st = ST_OK;

	if (!proc)
		return err_from_errno(e, ST_SYSTEM, errno, "/proc");
	while (!st && (entry = readdir(proc)))
		st = add_process_folder(ret, dirfd(proc), entry->d_name, e);
	closedir(proc);
	host_processes_sort(ret);
	return st;
}
