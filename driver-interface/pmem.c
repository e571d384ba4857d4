/* SPDX-License-Identifier: Apache-2.0 */
/*
 * /dev/pmem of rekall (tools/linux/pmem.c). It never fails: what it does not read it fills with
 * zeros. Two of its bugs are known well enough to be told from zeros:
 *
 *   - is_page_valid() wants p->start < address, so the first page of every top-level range is
 *     refused, silently. Such a page that reads as zeros is reported as unreadable here.
 *   - the size is the inclusive end, so the very last byte of RAM cannot be read and the last page
 *     comes one byte short. Half a page is not a page: unreadable.
 */
#include "driver-interface/linux.h"

static enum status pmem_open(const char *path, struct drv **ret, struct err *e)
{
	struct fd_drv *f = NULL;
	const enum status st =
		linux_open_device(&pmem_ops, path, "the module of rekall is not loaded", &f, e);

	if (st)
		return st;
	f->drv.info.silent = true;
	f->drv.info.note = "fills what it cannot read with zeros, nested System RAM among it, and "
			   "cannot give the first page of a range nor the last page of RAM";
	*ret = &f->drv;
	return ST_OK;
}

static bool begins_a_range(const struct drv *d, uint64_t addr)
{
	const struct range *r = range_list_find(&d->info.maps[0].ranges, addr);

	return r && r->first == addr;
}

static struct drv_result pmem_read(struct drv *d, uint64_t addr, void *buf, size_t len)
{
	const struct drv_result r = drv__pread_pages(((struct fd_drv *)d)->fd, addr, buf, len);

	if (r.good && begins_a_range(d, addr) && bytes_are_zero(buf, PAGE_SIZE))
		return (struct drv_result){ .error = DRV_NO_DATA, .exact = true };
	return r;
}

const struct drv_ops pmem_ops = {
	.name = "pmem",
	.summary = "/dev/pmem, the driver of rekall; unreadable pages read as zeros",
	.default_path = "/dev/pmem",
	.automatic = true,
	.read_max = DRV_READ_LARGE,
	.open = pmem_open,
	.read = pmem_read,
	.close = linux_close_device,
};
