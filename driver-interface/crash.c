/* SPDX-License-Identifier: Apache-2.0 */
/*
 * /dev/crash, of the RHEL family and of crash-utility (memory_driver/crash.c): the offset is the
 * physical address, a read may not cross a page (EINVAL), and a PFN without a struct page is
 * EFAULT.
 *
 * It reads by the kernel's direct map (kmap()), so with the kernel's own caching attributes, and
 * what the kernel has unmapped there is EFAULT: since 2018 it copies with probe_kernel_read(),
 * later copy_from_kernel_nofault(). Since version 1.3 (2016) it copies into a page of its own
 * first, which hardened usercopy (kernel 4.8) allows; 1.1 does not, and would meet the same BUG as
 * rekall's pmem. It asks nobody whether a page is poisoned or unplugged. So it is read by a
 * process of its own, and for what the kernel's own interface leaves.
 */
#include "driver-interface/module.h"

static struct drv_result crash_read_device(int fd, uint64_t addr, void *buf, size_t len)
{
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

static const struct reader_device device = { .read = crash_read_device };

static enum status crash_open(const char *path, struct drv **ret, struct err *e)
{
	struct module_drv *m = NULL;
	const enum status st =
		module_open(&crash_ops, &device, path, "RHEL family: modprobe crash", &m, e);

	if (!st)
		*ret = &m->base.drv;
	return st;
}

const struct drv_ops crash_ops = {
	.name = "crash",
	.summary = "/dev/crash, the crash driver of the RHEL family",
	.kind = DRV_MODULE,
	.reason = "follows the kernel's map of RAM, a page at a time, and a bad page is an error, "
		  "not a crash",
	.default_path = "/dev/crash",
	.automatic = true,
	.open = crash_open,
	.read = module_read,
	MODULE_OPS,
};
