/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes a swap file with the extents that a test wants, and swaps to it:
 *
 *	swapfile written|allocated PATH KIB [PIECE]
 *	swapfile on PATH PRIORITY
 *
 * "written" is as dd leaves a file, "allocated" as fallocate(1) does: its extents stay unwritten
 * however much is swapped to them. PIECE: the file grows by so many KiB at a time, in turns with
 * PATH.other, so that it is in pieces of that length. Without PIECE, "written" does not need
 * fallocate(2), which FAT lacks. On btrfs the file is not copied on write, as swapon(2) requires.
 * mkswap is left to the caller; "on" is here because busybox's swapon knows no priorities. Linked
 * statically: the guest has no libc.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/swap.h>
#include <unistd.h>

#define KIB ((off_t)1024)

static int fail(const char *what)
{
	perror(what);
	return 1;
}

static int make(const char *path)
{
	const int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	int flags = 0;

	/* Before there is content; other file systems do not know the flag, and need not. */
	if (fd >= 0 && !ioctl(fd, FS_IOC_GETFLAGS, &flags)) {
		flags |= FS_NOCOW_FL;
		ioctl(fd, FS_IOC_SETFLAGS, &flags);
	}
	return fd;
}

static int grow(int fd, const char *path, off_t kib, off_t piece)
{
	char other_path[4096];
	int other;

	if (!piece)
		return fallocate(fd, 0, 0, kib * KIB);
	snprintf(other_path, sizeof(other_path), "%s.other", path);
	other = make(other_path);
	if (other < 0)
		return -1;
	for (off_t at = 0; at < kib; at += piece) {
		const off_t n = kib - at < piece ? kib - at : piece;

		if (fallocate(fd, 0, at * KIB, n * KIB) ||
		    fallocate(other, 0, at * KIB, piece * KIB))
			return -1;
	}
	return close(other);
}

static int fill(int fd, off_t kib)
{
	static char bytes[64 * 1024];

	memset(bytes, 0xa5, sizeof(bytes));
	for (off_t at = 0; at < kib * KIB;) {
		const off_t left = kib * KIB - at;
		const size_t size = left < (off_t)sizeof(bytes) ? (size_t)left : sizeof(bytes);
		const ssize_t n = pwrite(fd, bytes, size, at);

		if (n <= 0)
			return -1;
		at += n;
	}
	return 0;
}

static int make_file(const char *path, bool written, off_t kib, off_t piece)
{
	const int fd = make(path);

	if (fd < 0)
		return fail(path);
	if ((piece || !written) && grow(fd, path, kib, piece))
		return fail("fallocate");
	if (written && fill(fd, kib))
		return fail("write");
	return fsync(fd) || close(fd) ? fail("fsync") : 0;
}

static int swap_on(const char *path, int priority)
{
	return swapon(path, SWAP_FLAG_PREFER | (priority & SWAP_FLAG_PRIO_MASK)) ? fail("swapon")
										 : 0;
}

int main(int argc, char **argv)
{
	const char *how = argc > 3 ? argv[1] : "";
	const long long n = argc > 3 ? strtoll(argv[3], NULL, 0) : 0;
	const long long piece = argc > 4 ? strtoll(argv[4], NULL, 0) : 0;
	const bool written = !strcmp(how, "written");

	if (n > 0 && !strcmp(how, "on"))
		return swap_on(argv[2], (int)n);
	if (n > 0 && piece >= 0 && (written || !strcmp(how, "allocated")))
		return make_file(argv[2], written, (off_t)n, (off_t)piece);
	fprintf(stderr, "usage: swapfile written|allocated PATH KIB [PIECE]\n"
			"       swapfile on PATH PRIORITY\n");
	return 2;
}
