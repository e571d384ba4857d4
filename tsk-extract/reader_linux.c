/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files and block devices on Linux. Devices are read with O_DIRECT: the page cache of the device
 * is not coherent with a file system that is mounted from it (each has its own pages), and filling
 * it with gigabytes would change the memory that is being acquired. O_DIRECT wants offset, length
 * and buffer in multiples of the logical sector (open(2)); what does not fit goes through a buffer
 * that does.
 */
#include "tsk-extract/reader.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <linux/fs.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/uio.h>

#include "tsk-extract/system.h"

#define BOUNCE_SIZE ((size_t)64 << 10)

struct file_reader {
	struct reader reader;
	int fd;
	dev_t dev; /* of the file's file system; of the device itself if it is one */
	ino_t ino;
	uint8_t *bounce; /* devices only */
};

/* pread() until `len`, the end or an error. */
static uint32_t read_until_error(int fd, uint64_t off, void *buf, size_t len, size_t *good)
{
	while (*good < len) {
		const ssize_t n =
			pread(fd, (uint8_t *)buf + *good, len - *good, (off_t)(off + *good));

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return (uint32_t)errno;
		if (n == 0)
			return READ_PAST_END;
		*good += (size_t)n;
	}
	return 0;
}

static uint32_t file_read(struct reader *r, uint64_t off, void *buf, size_t len, size_t *good)
{
	return read_until_error(((struct file_reader *)r)->fd, off, buf, len, good);
}

static void file_hint(struct reader *r, uint64_t off, uint64_t len)
{
	posix_fadvise(((struct file_reader *)r)->fd, (off_t)off, (off_t)len, POSIX_FADV_WILLNEED);
}

/* RWF_NOWAIT: "return EAGAIN instead of waiting for the disk" (preadv2(2)). */
static bool file_at_hand(struct reader *r, uint64_t off)
{
	char byte;
	const struct iovec v = { .iov_base = &byte, .iov_len = 1 };

	return preadv2(((struct file_reader *)r)->fd, &v, 1, (off_t)off, RWF_NOWAIT) >= 0 ||
	       errno != EAGAIN;
}

static uint32_t device_read(struct reader *r, uint64_t off, void *buf, size_t len, size_t *good)
{
	const struct bounce bounce = { ((struct file_reader *)r)->bounce, BOUNCE_SIZE, file_read };

	return reader__read_aligned(r, &bounce, off, buf, len, good);
}

static void file_close(struct reader *r)
{
	struct file_reader *f = (struct file_reader *)r;

	if (f->fd >= 0)
		close(f->fd);
	free(f->bounce);
	free(f);
}

static const struct reader_ops file_ops = {
	.kind = "file",
	.read = file_read,
	.hint = file_hint,
	.at_hand = file_at_hand,
	.close = file_close,
};
static const struct reader_ops device_ops = { .kind = "device",
					      .read = device_read,
					      .close = file_close };

/* Some devices (loop over some file systems) refuse O_DIRECT; then the page cache has to do. */
static int open_block_device(const char *path)
{
	const int fd = open(path, O_RDONLY | O_CLOEXEC | O_DIRECT);

	return fd >= 0 || errno != EINVAL ? fd : open(path, O_RDONLY | O_CLOEXEC);
}

static enum status device_init(struct file_reader *f, uint64_t size, uint32_t sector, struct err *e)
{
	f->bounce = aligned_alloc(MAX(sector, (uint32_t)4096), BOUNCE_SIZE);
	if (!f->bounce)
		return err_nomem(e);
	f->reader = (struct reader){
		.ops = &device_ops, .size = size, .sector = sector, .device = true
	};
	return ST_OK;
}

static enum status block_device_init(struct file_reader *f, const char *path, struct err *e)
{
	uint64_t size = 0;
	int sector = 0;

	if (ioctl(f->fd, BLKGETSIZE64, &size) || ioctl(f->fd, BLKSSZGET, &sector) || sector < 512)
		return err_from_errno(e, ST_INPUT, errno, "%s: size of the device", path);
	return device_init(f, size, (uint32_t)sector, e);
}

/* `live`: a file that the kernel writes to behind the page cache's back. */
static enum status file_init(struct file_reader *f, const char *path, const struct stat *sb,
			     bool live, struct err *e)
{
	if (S_ISBLK(sb->st_mode)) {
		f->dev = sb->st_rdev;
		f->fd = open_block_device(path);
	} else if (S_ISREG(sb->st_mode)) {
		f->dev = sb->st_dev;
		f->ino = sb->st_ino;
		f->fd = live ? open_block_device(path) : open(path, O_RDONLY | O_CLOEXEC);
	} else {
		return err_set(e, ST_INPUT, "%s: is neither a file nor a block device", path);
	}
	if (f->fd < 0)
		return err_from_errno(e, ST_INPUT, errno, "%s", path);
	if (S_ISBLK(sb->st_mode))
		return block_device_init(f, path, e);
	if (live) /* O_DIRECT on files: 4096 suits every file system */
		return device_init(f, (uint64_t)sb->st_size, 4096, e);
	f->reader =
		(struct reader){ .ops = &file_ops, .size = (uint64_t)sb->st_size, .sector = 512 };
	return ST_OK;
}

static enum status open_file_reader(const char *path, bool live, struct reader **ret, struct err *e)
{
	struct file_reader *f;
	struct stat sb;
	enum status st;

	if (stat(path, &sb))
		return err_from_errno(e, ST_INPUT, errno, "%s", path);
	f = calloc(1, sizeof(*f));
	if (!f)
		return err_nomem(e);
	f->fd = -1;
	st = file_init(f, path, &sb, live, e);
	if (st) {
		file_close(&f->reader);
		return st;
	}
	*ret = &f->reader;
	return ST_OK;
}

enum status reader__open_system(const char *path, struct reader **ret, struct err *e)
{
	return open_file_reader(path, false, ret, e);
}

enum status system_open_swap(const char *path, struct reader **ret, struct err *e)
{
	return open_file_reader(path, true, ret, e);
}

/* The disk that a partition is part of, by sysfs (Documentation/ABI/stable/sysfs-block). */
static dev_t whole_disk(dev_t dev)
{
	char path[96];
	unsigned maj = 0, min = 0;
	_cleanup_fclose_ FILE *f = NULL;

	snprintf(path, sizeof(path), "/sys/dev/block/%u:%u/partition", major(dev), minor(dev));
	if (access(path, F_OK))
		return dev;
	snprintf(path, sizeof(path), "/sys/dev/block/%u:%u/../dev", major(dev), minor(dev));
	f = fopen(path, "re");
	if (!f || fscanf(f, "%u:%u", &maj, &min) != 2)
		return dev;
	return makedev(maj, min);
}

/* stat() of `path`, or of its folder where it does not exist yet. */
static bool stat_target(const char *path, struct stat *sb)
{
	char folder[PATH_MAX];
	char *slash;

	if (stat(path, sb) == 0)
		return true;
	if (strlen(path) >= sizeof(folder))
		return false;
	memcpy(folder, path, strlen(path) + 1);
	slash = strrchr(folder, '/');
	if (slash == folder)
		slash++;
	if (slash)
		*slash = '\0';
	return stat(slash ? folder : ".", sb) == 0;
}

enum target_risk reader__system_target_risk(const struct reader *r, const char *path)
{
	const struct file_reader *f = (const struct file_reader *)r;
	struct stat sb;

	if (r->ops == &file_ops && stat(path, &sb) == 0)
		return sb.st_dev == f->dev && sb.st_ino == f->ino ? TARGET_IS_SOURCE : TARGET_SAFE;
	if (r->ops != &device_ops || !stat_target(path, &sb))
		return TARGET_SAFE;
	if (S_ISBLK(sb.st_mode))
		return whole_disk(sb.st_rdev) == whole_disk(f->dev) ? TARGET_IS_SOURCE
								    : TARGET_SAFE;
	return sb.st_dev == f->dev || whole_disk(sb.st_dev) == f->dev ? TARGET_ON_SOURCE
								      : TARGET_SAFE;
}
