/* SPDX-License-Identifier: Apache-2.0 */
/*
 * /dev/mem. With CONFIG_STRICT_DEVMEM the kernel refuses RAM page by page
 * (arch/x86/mm/init.c, devmem_is_allowed(), 6.1): above the first MiB with EPERM and without telling
 * at which page of a request (drivers/char/mem.c, read_mem(): an error drops what was copied before
 * it), below it with zeros and no error, since 4.11. The first is recorded as it is; the second is
 * told from true zeros by a page above, whose refusal says that the rule is in force.
 */
#include <errno.h>

#include "driver-interface/linux.h"

#define LOW_MEMORY ((uint64_t)1 << 20)

/* True if RAM above 1 MiB is refused. */
static bool is_strict(const struct fd_drv *f)
{
	const struct range_list *l = &f->drv.info.maps[0].ranges;
	uint8_t byte;

	for (size_t i = 0; i < l->count; i++)
		if (l->at[i].last >= LOW_MEMORY)
			return drv__pread(f->fd, MAX(l->at[i].first, LOW_MEMORY), &byte, 1).error ==
			       EPERM;
	return false;
}

static enum status devmem_open(const char *path, struct drv **ret, struct err *e)
{
	struct fd_drv *f = NULL;
	const enum status st = linux_open_device(&devmem_ops, path, NULL, &f, e);

	if (st)
		return st;
	f->zeros_in_low_memory = is_strict(f);
	if (f->zeros_in_low_memory)
		f->drv.info.note = "the kernel refuses RAM (CONFIG_STRICT_DEVMEM); below 1 MiB it "
				   "does so with zeros, which count as unreadable";
	*ret = &f->drv;
	return ST_OK;
}

static struct drv_result devmem_read(struct drv *d, uint64_t addr, void *buf, size_t len)
{
	const struct fd_drv *f = (struct fd_drv *)d;
	const struct drv_result r = drv__pread_pages(f->fd, addr, buf, len);

	if (!f->zeros_in_low_memory)
		return r;
	for (size_t at = 0; at < r.good && addr + at < LOW_MEMORY; at += PAGE_SIZE)
		if (bytes_are_zero((uint8_t *)buf + at, PAGE_SIZE))
			return (struct drv_result){ .good = at,
						    .error = DRV_NO_DATA,
						    .exact = true };
	return r;
}

const struct drv_ops devmem_ops = {
	.name = "devmem",
	.summary = "/dev/mem; most kernels refuse RAM in it",
	.default_path = "/dev/mem",
	.automatic = true,
	.read_max = DRV_READ_LARGE,
	.open = devmem_open,
	.read = devmem_read,
	.close = linux_close_device,
};
