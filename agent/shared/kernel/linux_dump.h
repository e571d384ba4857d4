/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Completes an ELF core or kdump of a Linux machine's memory, so that crash, drgn and libkdumpfile
 * open it: a VMCOREINFO note, and the addresses at which the kernel maps all memory and its own
 * image.
 */
#ifndef RAMSEAL_AGENT_SHARED_KERNEL_LINUX_DUMP_H
#define RAMSEAL_AGENT_SHARED_KERNEL_LINUX_DUMP_H

#include "agent/shared/kernel/discover.h"
#include "formats/image/image.h"

struct linux_dump {
	struct image_kernel kernel; /* its notes are `notes` */
	uint8_t *notes;
	const char *vmcoreinfo; /* its origin: "source", "memory" or NULL */
	enum discover_os os;
};

/*
 * Searches memory for what `known` (machine, notes and direct map from the source) lacks, within
 * the budget and within `search` (its candidates or search_pages; NULL: everywhere). If the memory
 * is not Linux's, *ret is what was known, with ST_OK; if page tables are missing, no maps are
 * found. ST_NOMEM. Call linux_dump_deinit() even after an error.
 */
enum status linux_dump_init(struct linux_dump *ret, struct physmem *m,
			    const struct image_kernel *known, const struct discover_hints *search,
			    struct walk_budget *budget, struct err *e);
void linux_dump_deinit(struct linux_dump *d);

/*
 * Finds the virtual address of physical address 0 in the kernel's own tables. The direct map is the
 * lowest mapping of the kernel's half; it is trusted only if it also maps the kernel's root. *ret
 * stays unchanged if there is none. ST_NOMEM.
 */
enum status linux_find_direct_map(const struct virt *space, uint64_t *ret, struct err *e);

#endif
