/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/shared/program/startup.h"

#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "agent/shared/program/proc_file.h"

/*
 * Buffers of that size and more are given back when they are freed. By default glibc takes the
 * largest that was freed for the limit (mallopt(3), M_MMAP_THRESHOLD): then what decoded chunks
 * took, of a MiB each, stays with the process, whatever it needs next. To set one limit also ends
 * that the other, of what is kept free at the heap's end, grows with it from its 128 KiB: much
 * would be given back and asked for again, page by page.
 */
#define GIVEN_BACK (512 << 10)
#define KEPT_FREE  (8 << 20)

/* In a chroot there may be no /dev/null, but there is a root: an O_PATH of it refuses every use. */
static int open_dev_null(int flags)
{
	const int fd = open("/dev/null", flags);

	return fd < 0 ? open("/", O_PATH) : fd;
}

/*
 * If the caller closed 0, 1 or 2, the next file that is opened would get that number, and what is
 * printed would go into it. A placeholder opened the wrong way round keeps the number taken and
 * still makes every use of it fail.
 */
static void keep_standard_descriptors(void)
{
	for (int fd = 0; fd <= STDERR_FILENO; fd++)
		if (fcntl(fd, F_GETFD) < 0 && errno == EBADF)
			open_dev_null(fd ? O_RDONLY : O_WRONLY);
}

void startup_drop_streams(void)
{
	const int nothing = open_dev_null(O_RDWR);

	for (int fd = 0; fd <= STDERR_FILENO; fd++)
		if (nothing < 0 || dup2(nothing, fd) < 0)
			close(fd); /* whoever waits for the end of it must not wait for us */
	if (nothing > STDERR_FILENO)
		close(nothing);
}

/*
 * A core file would hold keys and the memory of the host, on the disk that is evidence. The limit
 * does not count where core_pattern is a pipe, to systemd-coredump or apport; the other does
 * (core(5), PR_SET_DUMPABLE in prctl(2)). Then we cannot be traced either, but by root: who wants
 * to debug us without being root asks for it, which nobody can for a program with capabilities.
 */
static void leave_no_core(void)
{
	const char *dumpable = secure_getenv("RAMSEAL_DUMPABLE");

	if (dumpable && !strcmp(dumpable, "1"))
		return;
	setrlimit(RLIMIT_CORE, &(struct rlimit){ 0 });
	prctl(PR_SET_DUMPABLE, 0);
	proc_file_keep_own();
}

void startup(int *argc, char ***argv)
{
	keep_standard_descriptors();
	leave_no_core();
	mallopt(M_MMAP_THRESHOLD, GIVEN_BACK);
	mallopt(M_TRIM_THRESHOLD, KEPT_FREE);
}
