/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What makes an ELF core or kdump of a Linux machine's memory a dump that crash, drgn and
 * libkdumpfile open as it is: a VMCOREINFO note, and where the kernel maps all of memory and its
 * own image.
 */
#ifndef RAMSEAL_AGENT_SHARED_KERNEL_LINUX_DUMP_H
#define RAMSEAL_AGENT_SHARED_KERNEL_LINUX_DUMP_H

#include "agent/shared/kernel/discover.h"
#include "formats/image/image.h"

struct linux_dump {
	struct image_kernel kernel; /* its notes are `notes` */
	uint8_t *notes;
	const char *vmcoreinfo; /* where it is from: "source", "memory" or NULL */
	enum discover_os os;
};

/*
 * What `known` (notes and direct map as the source told them) lacks is looked for in memory, where
 * `search` (its candidates or search_pages; NULL: everywhere) says, as far as the budget goes.
 * Memory that is no Linux is ST_OK, and what was known is the result; where page tables are
 * missing, no maps are found. ST_NOMEM. linux_dump_deinit() also after a failure.
 */
enum status linux_dump_init(struct linux_dump *ret, struct physmem *m,
			    const struct image_kernel *known, const struct discover_hints *search,
			    struct walk_budget *budget, struct err *e);
void linux_dump_deinit(struct linux_dump *d);

/*
 * The virtual address of physical address 0, by the kernel's own tables: the direct map is the
 * lowest of what the kernel maps for itself, and it is believed where it maps the kernel's root a
 * second time. *ret stays what it was if there is none. ST_NOMEM.
 */
enum status linux_find_direct_map(const struct virt *space, uint64_t *ret, struct err *e);

#endif
