/* SPDX-License-Identifier: Apache-2.0 */
#include "tsk-extract/swapfile_linux.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <linux/fs.h>
#include <linux/magic.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>

#include "tsk-extract/btrfs_linux.h"
#include "tsk-extract/system.h"

/* Extents that are asked for at once. */
#define BATCH 512U

/*
 * What swapon takes. Unwritten ones, too: it writes to the device, whatever the file system thinks.
 */
#define PLAIN (FIEMAP_EXTENT_LAST | FIEMAP_EXTENT_MERGED | FIEMAP_EXTENT_UNWRITTEN)

static enum status check_flags(uint32_t flags, struct err *e)
{
	static const struct {
		uint32_t flag;
		const char *text;
	} known[] = {
		{ FIEMAP_EXTENT_DELALLOC, "is not allocated yet" },
		{ FIEMAP_EXTENT_UNKNOWN, "lies at an unknown place" },
		{ FIEMAP_EXTENT_DATA_INLINE, "lies in an inode" },
		{ FIEMAP_EXTENT_DATA_TAIL, "shares a block with another file" },
		{ FIEMAP_EXTENT_DATA_ENCRYPTED, "is encrypted" },
		{ FIEMAP_EXTENT_ENCODED, "is compressed or encrypted" },
		{ FIEMAP_EXTENT_SHARED, "is shared with another file" },
		{ FIEMAP_EXTENT_NOT_ALIGNED, "is not aligned to blocks" },
	};

	if (!(flags & ~(uint32_t)PLAIN))
		return ST_OK;
	for (size_t i = 0; i < ARRAY_SIZE(known); i++)
		if (flags & known[i].flag)
			return err_set(e, ST_INPUT, "a part of it %s", known[i].text);
	return err_set(e, ST_INPUT, "a part of it has the unknown flags 0x%" PRIx32, flags);
}

enum status swapfile__take_extents(const struct fiemap_extent *x, size_t n, struct extent_list *to,
				   uint64_t *from, bool *last, struct err *e)
{
	enum status st = ST_OK;

	*last = !n;
	for (size_t i = 0; i < n && !st; i++, x++) {
		const uint64_t end = x->fe_logical + x->fe_length;

		if (end <= *from)
			return err_set(e, ST_INPUT, "FIEMAP: extents that run backwards");
		*last |= x->fe_flags & FIEMAP_EXTENT_LAST;
		*from = end;
		st = check_flags(x->fe_flags, e);
		if (!st)
			st = extent_list_add(to,
					     (struct extent){ .file = x->fe_logical,
							      .length = x->fe_length,
							      .disk = x->fe_physical },
					     e);
	}
	return st;
}

static enum status list_fiemap_blocks(int fd, uint64_t size, struct extent_list *ret, struct err *e)
{
	const size_t bytes = sizeof(struct fiemap) + BATCH * sizeof(struct fiemap_extent);
	_cleanup_free_ struct fiemap *b = malloc(bytes);
	bool last = false;
	enum status st = b ? ST_OK : err_nomem(e);

	for (uint64_t from = 0; !st && !last && from < size;) {
		memset(b, 0, bytes);
		b->fm_start = from;
		b->fm_length = size - from;
		b->fm_extent_count = BATCH;
		if (ioctl(fd, FS_IOC_FIEMAP, b))
			return err_from_errno(e, ST_INPUT, errno, "FIEMAP");
		st = swapfile__take_extents(b->fm_extents, MIN(b->fm_mapped_extents, BATCH), ret,
					    &from, &last, e);
	}
	return st;
}

/* The node of a block device: as the kernel calls it (devtmpfs), or as udev links it. */
static enum status device_node(dev_t dev, char **ret, struct err *e)
{
	char path[PATH_MAX], line[256];
	struct stat sb;
	_cleanup_fclose_ FILE *f = NULL;

	snprintf(path, sizeof(path), "/sys/dev/block/%u:%u/uevent", major(dev), minor(dev));
	f = fopen(path, "re");
	snprintf(path, sizeof(path), "/dev/block/%u:%u", major(dev), minor(dev));
	while (f && fgets(line, sizeof(line), f)) {
		line[strcspn(line, "\n")] = '\0';
		if (!strncmp(line, "DEVNAME=", 8))
			snprintf(path, sizeof(path), "/dev/%s", line + 8);
	}
	if (stat(path, &sb) || !S_ISBLK(sb.st_mode) || sb.st_rdev != dev)
		return err_set(e, ST_INPUT, "its device %u:%u has no node", major(dev), minor(dev));
	*ret = strdup(path);
	return *ret ? ST_OK : err_nomem(e);
}

/* XFS keeps the content of some files on a device of its own. */
static enum status check_realtime(int fd, struct err *e)
{
	struct fsxattr x;

	if (ioctl(fd, FS_IOC_FSGETXATTR, &x))
		return err_from_errno(e, ST_INPUT, errno, "its attributes");
	return x.fsx_xflags & FS_XFLAG_REALTIME ? err_set(e, ST_INPUT, "lies on a realtime device")
						: ST_OK;
}

/* Makes places on the device of what FIEMAP calls so. */
static enum status place_swapfile_blocks(int fd, const struct stat *sb, struct extent_list *blocks,
					 char **ret_device, struct err *e)
{
	struct statfs fs;
	enum status st = ST_OK;

	if (fstatfs(fd, &fs))
		return err_from_errno(e, ST_INPUT, errno, "its file system");
	switch ((uint32_t)fs.f_type) {
	case BTRFS_SUPER_MAGIC:
		return btrfs_place(fd, blocks, ret_device, e);
	case XFS_SUPER_MAGIC:
		st = check_realtime(fd, e);
		break;
	case EXT4_SUPER_MAGIC: /* ext2 and ext3, too */
		break;
	default:
		return err_set(e, ST_INPUT,
			       "it is not known how a file system of type 0x%" PRIx32 " places it",
			       (uint32_t)fs.f_type);
	}
	return st ? st : device_node(sb->st_dev, ret_device, e);
}

/* Through the file system. Reading so also brings it to the device, if it is still on its way. */
static enum status read_swap_header(const char *path, uint8_t header[static SWAP_HEADER_SIZE],
				    struct err *e)
{
	struct reader *r = NULL;
	size_t good = 0;
	enum status st = system_open_swap(path, &r, e);
	uint32_t error;

	if (st)
		return st;
	error = reader_read(r, 0, header, SWAP_HEADER_SIZE, &good);
	reader_close(r);
	return error ? err_from_errno(e, ST_INPUT, (int)error, "its header") : ST_OK;
}

bool swapfile__has_header(struct reader *device, const struct extent_list *blocks,
			  const uint8_t header[static SWAP_HEADER_SIZE])
{
	uint8_t bytes[SWAP_HEADER_SIZE];
	size_t good;

	for (size_t at = 0; at < sizeof(bytes);) {
		const struct extent *x = extent_list_find(blocks, at);
		const uint64_t in = x ? at - x->file : 0;
		const size_t n = x ? (size_t)MIN(sizeof(bytes) - at, x->length - in) : 0;

		good = 0;
		if (!n || x->kind != EXTENT_DISK ||
		    reader_read(device, x->disk + in, bytes + at, n, &good))
			return false;
		at += n;
	}
	return !memcmp(bytes, header, sizeof(bytes));
}

/*
 * Whatever was said of where the file lies: nothing is ever swapped to its header, so there it is,
 * or this is another device.
 */
static enum status check_device(const char *device, const struct extent_list *blocks,
				const uint8_t header[static SWAP_HEADER_SIZE], struct err *e)
{
	struct reader *r = NULL;
	enum status st = system_open_swap(device, &r, e);

	if (!st && !swapfile__has_header(r, blocks, header))
		st = err_set(e, ST_INPUT, "its header is not where it should be on %s", device);
	reader_close(r);
	return st;
}

enum status swapfile_map(const char *path, uint64_t in_use, struct slot_map *ret, char **ret_device,
			 struct err *e)
{
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);
	_cleanup_extents_ struct extent_list blocks = { 0 };
	_cleanup_free_ char *device = NULL;
	struct slot_facts facts = { .in_use = in_use };
	uint8_t header[SWAP_HEADER_SIZE];
	struct stat sb;
	enum status st;

	if (fd < 0 || fstat(fd, &sb))
		return err_from_errno(e, ST_INPUT, errno, "%s", path);
	facts.size = (uint64_t)sb.st_size;
	st = read_swap_header(path, header, e);
	if (!st)
		st = swap_header_parse(header, &facts.last_page, e);
	if (!st)
		st = list_fiemap_blocks(fd, facts.size, &blocks, e);
	if (!st)
		st = place_swapfile_blocks(fd, &sb, &blocks, &device, e);
	if (!st)
		st = extent_list_settle(&blocks, facts.size, NULL, e);
	if (!st)
		st = check_device(device, &blocks, header, e);
	if (!st)
		st = slot_map_make(&blocks, &facts, ret, e);
	if (!st)
		*ret_device = take_ptr(device);
	return st;
}
