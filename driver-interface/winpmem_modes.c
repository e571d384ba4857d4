/* SPDX-License-Identifier: Apache-2.0 */
/*
 * WinPmem as sources: in its best mode, or in one that the user names.
 */
#include "driver-interface/winpmem.h"

static enum status open_mode(const struct drv_ops *ops, enum winpmem_mode wanted, const char *path,
			     struct drv **ret, struct err *e)
{
	struct winpmem_host *h = NULL;
	const enum status st = winpmem_open_device(path, &h, e);

	return st ? st : winpmem_open_host(ops, path, h, wanted, ret, e);
}

static enum status open_best(const char *path, struct drv **ret, struct err *e)
{
	return open_mode(&winpmem_ops, WINPMEM_PTE, path, ret, e);
}

static enum status open_physical(const char *path, struct drv **ret, struct err *e)
{
	return open_mode(&winpmem_physical_ops, WINPMEM_PHYSICAL, path, ret, e);
}

static enum status open_iospace(const char *path, struct drv **ret, struct err *e)
{
	return open_mode(&winpmem_iospace_ops, WINPMEM_IOSPACE, path, ret, e);
}

const struct drv_ops winpmem_ops = {
	.name = "winpmem",
	.summary = "the WinPmem driver, in the best mode it has here",
	.kind = DRV_MODULE,
	.reason = "Windows itself gives no access to memory, and this mode reports what it cannot "
		  "read",
	.default_path = WINPMEM_PATH,
	.automatic = true,
	.read_max = WINPMEM_READ_MAX,
	.open = open_best,
	.read = winpmem_read,
	.maps_again = winpmem_maps_again,
	.close = winpmem_close,
};

const struct drv_ops winpmem_physical_ops = {
	.name = "winpmem-physical",
	.summary = "the same in mode PHYSICAL; unreadable pages cannot be detected",
	.kind = DRV_MODULE,
	.reason = "Windows' own mapping of physical memory",
	.default_path = WINPMEM_PATH,
	.read_max = WINPMEM_READ_MAX,
	.open = open_physical,
	.read = winpmem_read,
	.maps_again = winpmem_maps_again,
	.close = winpmem_close,
};

const struct drv_ops winpmem_iospace_ops = {
	.name = "winpmem-iospace",
	.summary = "the same in mode IOSPACE, which may stop Windows",
	.kind = DRV_HAZARD,
	.reason = "maps RAM as device memory, which may stop Windows",
	.default_path = WINPMEM_PATH,
	.read_max = WINPMEM_READ_MAX,
	.open = open_iospace,
	.read = winpmem_read,
	.maps_again = winpmem_maps_again,
	.close = winpmem_close,
};
