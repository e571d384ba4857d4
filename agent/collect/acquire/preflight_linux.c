/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>

#include "agent/collect/acquire/preflight.h"
#include "agent/shared/output/output_linux.h"

/* A disk's size, if it is one and we may read it. */
static void read_disk_room(const char *path, uint64_t *ret_room)
{
	_cleanup_close_ int fd = -1;
	struct stat sb;
	off_t end;

	if (stat(path, &sb) || !S_ISBLK(sb.st_mode))
		return;
	fd = open(path, O_RDONLY | O_CLOEXEC);
	end = fd < 0 ? -1 : lseek(fd, 0, SEEK_END);
	if (end >= 0)
		*ret_room = (uint64_t)end;
}

enum preflight_target preflight_target(const char *path, uint64_t *ret_room, struct err *e)
{
	_cleanup_free_ char *directory = target_directory_of(path);
	_cleanup_close_ int fd = -1;
	struct stat sb;
	bool there;

	if (!directory) {
		err_nomem(e);
		return PREFLIGHT_NO;
	}
	there = !lstat(path, &sb);
	if (there && S_ISDIR(sb.st_mode)) {
		err_from_errno(e, ST_OUTPUT, EISDIR, "%s", path);
		return PREFLIGHT_NO;
	}
	if (there && !S_ISREG(sb.st_mode)) {
		read_disk_room(path, ret_room);
		return PREFLIGHT_OTHER;
	}
	/* AT_EACCESS: with the rights that we would write with. */
	fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0 || faccessat(AT_FDCWD, directory, W_OK | X_OK, AT_EACCESS)) {
		err_from_errno(e, ST_OUTPUT, errno, "%s", directory);
		return PREFLIGHT_NO;
	}
	if (!target_room_at(fd, ret_room))
		*ret_room = ROOM_UNKNOWN;
	return there ? PREFLIGHT_EXISTS : PREFLIGHT_FREE;
}

/* RAMDISK_MAJOR of include/uapi/linux/major.h; zram has a number that the kernel chooses. */
#define RAM_DISK 1

static const char *device_in_memory(dev_t dev)
{
	_cleanup_free_ char *link = NULL, *path = NULL;

	if (major(dev) == RAM_DISK)
		return "a RAM disk";
	if (asprintf(&link, "/sys/dev/block/%u:%u", major(dev), minor(dev)) < 0)
		return NULL;
	path = realpath(link, NULL);
	return path && strstr(path, "/zram") ? "zram" : NULL;
}

const char *preflight_in_memory(const char *path)
{
	_cleanup_free_ char *directory = target_directory_of(path);
	struct statfs fs;
	struct stat sb;

	/* Descriptor 1 may be stderr by now (target_open_stdout()). */
	if (strcmp(path, "-") == 0)
		return NULL;
	if (!stat(path, &sb) && !S_ISREG(sb.st_mode) && !S_ISDIR(sb.st_mode))
		return S_ISBLK(sb.st_mode) ? device_in_memory(sb.st_rdev) : NULL;
	if (!directory || statfs(directory, &fs) || stat(directory, &sb))
		return NULL;
	if (fs.f_type == TMPFS_MAGIC || fs.f_type == RAMFS_MAGIC)
		return fs.f_type == TMPFS_MAGIC ? "tmpfs" : "ramfs";
	return device_in_memory(sb.st_dev);
}

/* Devices that the kernel makes for guests only: drivers/virt/coco. */
const char *preflight_encrypted_guest(void)
{
	static const char *const signs[] = { "/dev/sev-guest", "/dev/tdx_guest", "/dev/tdx-guest" };

	for (size_t i = 0; i < ARRAY_SIZE(signs); i++)
		if (!access(signs[i], F_OK))
			return signs[i];
	return NULL;
}
