/* SPDX-License-Identifier: Apache-2.0 */
/*
 * /dev/mem. With CONFIG_STRICT_DEVMEM the kernel refuses RAM page by page (arch/x86/mm/init.c,
 * devmem_is_allowed(), 6.1): above the first MiB with EPERM and without telling at which page of a
 * request (drivers/char/mem.c, read_mem(): an error drops what was copied before it), below it
 * with zeros and no error, since 4.11. The first is recorded as it is; the second is told from
 * true zeros by a page above, whose refusal says that the rule is in force.
 *
 * Under lockdown the kernel refuses to open it and says so in its log, once for every program that
 * tries (security/lockdown/lockdown.c, lockdown_is_locked_down()): a trace.
 */
#include <errno.h>

#include "driver-interface/linux.h"

#define LOW_MEMORY ((uint64_t)1 << 20)

struct devmem {
	struct linux_drv base;
	int fd;
	bool zeros_in_low_memory; /* the kernel hides RAM below 1 MiB */
};

static void devmem_close(struct drv *d)
{
	struct devmem *m = (struct devmem *)d;

	if (m->fd >= 0)
		close(m->fd);
	linux_deinit(&m->base);
	free(m);
}

/* True if RAM above 1 MiB is refused. */
static bool is_strict(struct devmem *m)
{
	const struct range_list *l = &m->base.drv.info.maps[0].ranges;
	struct page_status status;
	uint8_t byte;

	for (size_t i = 0; i < l->count; i++) {
		const uint64_t addr = MAX(l->at[i].first, LOW_MEMORY);

		if (l->at[i].last < LOW_MEMORY)
			continue;
		linux_withhold(&m->base.drv, addr, 1, &status);
		if (status.state == PAGE_DATA)
			return drv__pread(m->fd, addr, &byte, 1).error == EPERM;
	}
	return false;
}

static enum status devmem_fill(struct devmem *m, const char *path, struct err *e)
{
	enum status st = linux_init(&m->base, &devmem_ops, path, e);

	if (!st)
		st = linux_open(path, NULL, LOCKDOWN_INTEGRITY, &m->fd, e);
	if (!st)
		st = linux_use_iomem(&m->base, e);
	if (st)
		return st;
	m->zeros_in_low_memory = is_strict(m);
	if (m->zeros_in_low_memory)
		linux_note(&m->base,
			   "the kernel denies access to RAM (CONFIG_STRICT_DEVMEM); below 1 MiB it "
			   "returns zeros instead, which count as unreadable");
	return ST_OK;
}

static enum status devmem_open(const char *path, struct drv **ret, struct err *e)
{
	struct devmem *m = calloc(1, sizeof(*m));
	enum status st;

	if (!m)
		return err_nomem(e);
	m->fd = -1;
	st = devmem_fill(m, path, e);
	if (st) {
		devmem_close(&m->base.drv);
		return st;
	}
	*ret = &m->base.drv;
	return ST_OK;
}

static struct drv_result devmem_read(struct drv *d, uint64_t addr, void *buf, size_t len)
{
	const struct devmem *m = (const struct devmem *)d;
	const struct drv_result r = drv__pread_pages(m->fd, addr, buf, len);

	if (!m->zeros_in_low_memory)
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
	.summary = "/dev/mem; most kernels deny access to RAM through it",
	.kind = DRV_OWN,
	.reason = "tried last, because a locked-down kernel logs the attempt",
	.default_path = "/dev/mem",
	.automatic = true,
	.read_max = DRV_READ_LARGE,
	.open = devmem_open,
	.read = devmem_read,
	.withhold = linux_withhold,
	.by_direct_map = true, /* xlate_dev_mem_ptr(), arch/x86/mm/ioremap.c */
	.maps_again = linux_maps_again,
	.close = devmem_close,
};
