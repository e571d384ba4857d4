/* SPDX-License-Identifier: Apache-2.0 */
/*
 * /dev/pmem of rekall (tools/linux/pmem.c). It never fails: what it does not read it fills with
 * zeros. Two of its bugs are known well enough to be told from zeros:
 *
 *   - is_page_valid() wants p->start < address, so the first page of every top-level range is
 *     refused, silently. Such a page that reads as zeros is reported as unreadable here.
 *   - the size is the inclusive end, so the very last byte of RAM cannot be read and the last page
 *     comes one byte short. Half a page is not a page: unreadable.
 *
 * A third one is the hazard: pmem_read_partial() hands the kernel's address of the page to
 * copy_to_user(). Since 4.8 hardened usercopy judges that (mm/usercopy.c): a page of the kernel's
 * text, or one that is cut into slab objects, is a BUG, which kills the reader with the device in
 * its hands. Most distributions build it in; hardened_usercopy=off on the kernel's command line
 * turns it off.
 */
#include "driver-interface/module.h"

static const struct reader_device device = { .read = drv__pread_pages };

static enum status pmem_open(const char *path, struct drv **ret, struct err *e)
{
	struct module_drv *m = NULL;
	enum status st;

	if (reader_process_is_fatal())
		return err_set(e, ST_NO_SOURCE,
			       "%s: not used, because kernel.panic_on_oops is set: if hardened "
			       "usercopy is on, this driver would stop the machine; sysctl "
			       "kernel.panic_on_oops=0 allows it",
			       path);
	st = module_open(&pmem_ops, &device, path, "rekall's module is not loaded", &m, e);
	if (st)
		return st;
	m->base.drv.info.silent = true;
	linux_note(&m->base, "fills what it cannot read with zeros, including nested System RAM, "
			     "and cannot read the first page of a range or the last page of RAM");
	*ret = &m->base.drv;
	return ST_OK;
}

static bool begins_a_range(const struct drv *d, uint64_t addr)
{
	const struct range *r = range_list_find(&d->info.maps[0].ranges, addr);

	return r && r->first == addr;
}

static struct drv_result pmem_read(struct drv *d, uint64_t addr, void *buf, size_t len)
{
	const struct drv_result r = module_read(d, addr, buf, len);

	if (r.good && begins_a_range(d, addr) && bytes_are_zero(buf, PAGE_SIZE))
		return (struct drv_result){ .error = DRV_NO_DATA, .exact = true };
	return r;
}

const struct drv_ops pmem_ops = {
	.name = "pmem",
	.summary = "/dev/pmem, the rekall module; unreadable pages read as zeros",
	.kind = DRV_HAZARD,
	.reason = "with hardened usercopy, as in most kernels since 4.8, a read ends in a kernel "
		  "BUG, which kills the reader or stops the machine",
	.default_path = "/dev/pmem",
	.open = pmem_open,
	.read = pmem_read,
	MODULE_OPS,
};
