/* SPDX-License-Identifier: Apache-2.0 */
/*
 * /dev/linpmem of Velocidex. It has no read(), only ioctls (userspace_interface/linpmem_shared.h),
 * and a read may not cross a page. The node must be made by hand, major 42; we do not make it:
 * 42 is everybody's experimental number, and a tool that acquires leaves the machine as it is.
 */
#include <errno.h>
#include <string.h>
#include <sys/ioctl.h>

#include "driver-interface/linux.h"

/* LINPMEM_DATA_TRANSFER, 40 bytes. */
struct linpmem_read {
	uint64_t address;
	uint64_t value; /* for the modes that read an integer */
	void *buf;
	uint64_t size; /* in: of buf; out: bytes read, 0 if the page is unreadable */
	uint8_t mode;
	uint8_t reserved[3];
};

/* LINPMEM_CR3_INFO, 16 bytes. */
struct linpmem_cr3 {
	uint64_t pid; /* 0 is the caller */
	uint64_t cr3;
};

#define LINPMEM_MODE_BUFFER 9
#define LINPMEM_READ        _IOWR('a', 'a', struct linpmem_read)
#define LINPMEM_CR3         _IOWR('a', 'c', struct linpmem_cr3)

_Static_assert(LINPMEM_READ == 0xC0286161, "as the driver was built");
_Static_assert(LINPMEM_CR3 == 0xC0106163, "as the driver was built");

/*
 * The CR3 of process 1, because ours is gone when the image is read; every process maps the kernel.
 * In a PID namespace without a process 1 that the driver finds, ours.
 */
static enum status query_cr3(struct fd_drv *f, struct err *e)
{
	struct linpmem_cr3 q = { .pid = 1 };
	int rc = ioctl(f->fd, LINPMEM_CR3, &q);

	if (rc < 0 && errno == ESRCH) {
		q = (struct linpmem_cr3){ .pid = 0 };
		rc = ioctl(f->fd, LINPMEM_CR3, &q);
	}
	if (rc < 0 && (errno == ENOTTY || errno == EINVAL))
		return err_set(e, ST_NOT_MINE, "%s: is not linpmem", f->drv.info.path);
	if (rc < 0)
		return err_from_errno(e, ST_NO_SOURCE, errno, "%s: CR3", f->drv.info.path);
	f->drv.info.has_cr3 = true;
	f->drv.info.cr3 = q.cr3;
	return ST_OK;
}

static enum status linpmem_open(const char *path, struct drv **ret, struct err *e)
{
	struct fd_drv *f = NULL;
	enum status st = linux_open_device(
		&linpmem_ops, path, "if the module is loaded: mknod /dev/linpmem c 42 0", &f, e);

	if (st)
		return st;
	st = query_cr3(f, e);
	if (st) {
		linux_close_device(&f->drv);
		return st;
	}
	f->drv.info.note = "CR3 is that of a user process, with the kernel mapped in it";
	*ret = &f->drv;
	return ST_OK;
}

static struct drv_result linpmem_read(struct drv *d, uint64_t addr, void *buf, size_t len)
{
	const int fd = ((struct fd_drv *)d)->fd;
	size_t good = 0;

	while (good < len) {
		struct linpmem_read q = {
			.address = addr + good,
			.buf = (uint8_t *)buf + good,
			.size = PAGE_SIZE,
			.mode = LINPMEM_MODE_BUFFER,
		};
		const int rc = ioctl(fd, LINPMEM_READ, &q);

		if (rc < 0 && errno == EINTR)
			continue;
		/* 0 with fewer bytes: the driver could not map the page, and says no more. */
		if (rc < 0 || q.size != PAGE_SIZE)
			return (struct drv_result){
				.good = good,
				.error = rc < 0 ? (uint32_t)errno : DRV_NO_DATA,
				.exact = true,
				.dead = rc < 0 && (errno == ENODEV || errno == ENXIO),
			};
		good += PAGE_SIZE;
	}
	return (struct drv_result){ .good = good };
}

const struct drv_ops linpmem_ops = {
	.name = "linpmem",
	.summary = "/dev/linpmem, the driver of Velocidex",
	.default_path = "/dev/linpmem",
	.automatic = true,
	.read_max = DRV_READ_PAGES,
	.open = linpmem_open,
	.read = linpmem_read,
	.close = linux_close_device,
};
