/* SPDX-License-Identifier: Apache-2.0 */
/*
 * /proc/kpageflags: 64 bits for each PFN, of which three say that a page must not be read
 * (include/uapi/linux/kernel-page-flags.h, Documentation/admin-guide/mm/pagemap.rst):
 *
 *	HWPOISON  since 2.6.32: the hardware has lost its content. Reading it raises a machine
 *	          check, which in the kernel's own code can stop the machine.
 *	NOPAGE    since 2.6.32: no online page. RAM that was added and is not used yet, or is
 *	          about to be removed: /proc/iomem still lists it.
 *	OFFLINE   since 5.2, before that BALLOON in the same place: given back to the hypervisor
 *	          (virtio-balloon since 5.2, VMware, Hyper-V and Xen balloons, the unplugged parts
 *	          of virtio-mem since 5.8). Reading it yields zeros, takes memory from the host, or
 *	          faults.
 *
 * Only the kernel's own /proc/kcore asks that itself, since 5.14, and then gives zeros without an
 * error (fs/proc/kcore.c, read_kcore()).
 */
#ifndef RAMSEAL_DRIVER_INTERFACE_KPAGEFLAGS_H
#define RAMSEAL_DRIVER_INTERFACE_KPAGEFLAGS_H

#include "formats/base/page.h"
#include "formats/base/range.h"

struct kpageflags {
	int fd;         /* -1: it cannot be asked */
	uint64_t per;   /* pages of ours in one of the kernel's, which has one PFN */
	uint64_t block; /* the last answer of huge_page_is_poisoned(), and what it was for */
	bool poisoned;
};

/* If it is missing (CONFIG_PROC_PAGE_MONITOR) or we lack the rights, fd is -1. */
void kpageflags_open(struct kpageflags *f);
void kpageflags_close(struct kpageflags *f);

/*
 * As drv_ops.withhold(), from any thread. False if it no longer works: then the rest counts as
 * readable.
 */
bool kpageflags_withhold(const struct kpageflags *f, uint64_t addr, size_t pages,
			 struct page_status *status);

/*
 * Why a sample of the flags of `map` cannot be from the kernel; NULL if it can. Static. They forbid
 * every page, or a page that does not exist has other flags (fs/proc/page.c, stable_page_flags():
 * then NOPAGE is all that it has) or stands alone among others, or more pages are poisoned than a
 * machine can lose or than the kernel counts. `shown`: the kernel itself shows this memory, so the
 * file must reach as far: max_pfn is the end of both (kcore_ram_list() and kpageflags_read()).
 */
const char *kpageflags_doubt(struct kpageflags *f, const struct range_list *map, bool shown);

/* What is opened instead of /proc/kpageflags, for tests; NULL restores it. Borrowed. */
void kpageflags_set_path(const char *path);

/* How large the kernel's pages are, for tests; 0 restores it. */
void kpageflags_set_page_size(uint32_t bytes);

/* Whether a test has set such a path. */
bool kpageflags_is_set(void);

#endif
