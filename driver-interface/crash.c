/* SPDX-License-Identifier: Apache-2.0 */
/*
 * /dev/crash, of the RHEL family (crash-utility's memory_driver/crash.c, version 1.1): the offset is
 * the physical address, a read may not cross a page (EINVAL), and a PFN without a struct page is
 * EFAULT.
 */
#include "driver-interface/linux.h"

static enum status crash_open(const char *path, struct drv **ret, struct err *e)
{
	struct fd_drv *f = NULL;
	const enum status st =
		linux_open_device(&crash_ops, path, "RHEL family: modprobe crash", &f, e);

	if (!st)
		*ret = &f->drv;
	return st;
}

static struct drv_result crash_read(struct drv *d, uint64_t addr, void *buf, size_t len)
{
	const int fd = ((struct fd_drv *)d)->fd;
	struct drv_result r = { 0 };

	while (r.good < len) {
		r = (struct drv_result){ .good = r.good };
		const struct drv_result page =
			drv__pread_pages(fd, addr + r.good, (uint8_t *)buf + r.good, PAGE_SIZE);

		if (!page.good)
			return (struct drv_result){ .good = r.good,
						    .error = page.error,
						    .exact = true,
						    .dead = page.dead };
		r.good += PAGE_SIZE;
	}
	return r;
}

const struct drv_ops crash_ops = {
	.name = "crash",
	.summary = "/dev/crash, the driver of the RHEL family",
	.default_path = "/dev/crash",
	.automatic = true,
	.read_max = DRV_READ_PAGES,
	.open = crash_open,
	.read = crash_read,
	.close = linux_close_device,
};
