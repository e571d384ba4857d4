/* SPDX-License-Identifier: Apache-2.0 */
/*
 * /dev/linpmem of Velocidex. It has no read(), only ioctls (userspace_interface/linpmem_shared.h),
 * and a read may not cross a page. The node must be made by hand, major 42; we do not make it:
 * 42 is everybody's experimental number, and a tool that acquires leaves the machine as it is.
 *
 * Why it is a hazard, by its source (version 0.9.1, src/pte_mmap.c, src/linpmem.c):
 *
 *   - For each page it writes the page-table entry of a page of its own, in the running kernel,
 *     without the kernel's locks, and flushes that address on one CPU only. pte_mmap_read() copies
 *     after that with preemption on: a reader that moves to another CPU in between gets what that
 *     CPU's TLB still has there, an earlier page. So its reader stays on one CPU.
 *   - The entry keeps its caching attributes whatever the page has elsewhere (write-combining,
 *     uncached), and a page that the kernel took out of its own map because it is poisoned is
 *     mapped again.
 *   - A page table may not be written like this everywhere (Xen PV); it refuses LA57, SEV and SME
 *     only.
 *   - src/precompiler.h defines DEBUG: four lines in the kernel's log for each page, which push out
 *     whatever the log held.
 *
 * With hardened usercopy it lives: it calls _copy_to_user(), which does not judge.
 */
#include <errno.h>
#include <sys/ioctl.h>

#include "driver-interface/module.h"

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
static int query_cr3(int fd, uint64_t *cr3)
{
	struct linpmem_cr3 q = { .pid = 1 };
	int rc = ioctl(fd, LINPMEM_CR3, &q);

	if (rc < 0 && errno == ESRCH) {
		q = (struct linpmem_cr3){ .pid = 0 };
		rc = ioctl(fd, LINPMEM_CR3, &q);
	}
	*cr3 = q.cr3;
	return rc < 0 ? errno : 0;
}

static struct drv_result linpmem_read_device(int fd, uint64_t addr, void *buf, size_t len)
{
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

static const struct reader_device device = {
	.begin = query_cr3,
	.read = linpmem_read_device,
	.one_cpu = true,
};

static enum status linpmem_open(const char *path, struct drv **ret, struct err *e)
{
	struct module_drv *m = NULL;
	const enum status st =
		module_open(&linpmem_ops, &device, path,
			    "if the module is loaded: mknod /dev/linpmem c 42 0", &m, e);

	if (st)
		return st;
	m->base.drv.info.has_cr3 = true;
	m->base.drv.info.cr3 = m->how.fact;
	linux_note(&m->base, "CR3 is that of a user process, with the kernel mapped in it");
	if (m->how.cpu >= 0)
		drv__fact(&m->base.drv, "pinned_to_cpu", "%d", m->how.cpu);
	else
		linux_note(&m->base, "the reading thread could not be kept on one CPU: a page may "
				     "hold what an earlier one held");
	*ret = &m->base.drv;
	return ST_OK;
}

const struct drv_ops linpmem_ops = {
	.name = "linpmem",
	.summary = "/dev/linpmem, the Velocidex module",
	.kind = DRV_HAZARD,
	.reason =
		"for every page, rewrites a page-table entry of the running kernel without taking "
		"its locks; as published it also floods the kernel's log",
	.default_path = "/dev/linpmem",
	.open = linpmem_open,
	.read = module_read,
	MODULE_OPS,
};
