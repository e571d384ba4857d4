/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where an ARM64 Linux kernel has its tables, by its VMCOREINFO (arch/arm64/kernel/vmcore_info.c).
 * What it says is checked against itself and the tables, since a damaged or an invented one may say
 * anything.
 */
#ifndef RAMSEAL_AGENT_SHARED_KERNEL_LINUX_ARM64_H
#define RAMSEAL_AGENT_SHARED_KERNEL_LINUX_ARM64_H

#include "agent/shared/kernel/linux_info.h"

struct arm64_kernel {
	enum paging_mode mode;
	uint32_t page_size;
	uint64_t root;         /* TTBR1 */
	uint64_t image_offset; /* kimage_voffset: an image's address less its physical one */
	uint64_t linear_base;  /* where the linear map has physical 0, modulo 2^64; if has_linear */
	bool has_linear;
};

/* Only ARM64 has kimage_voffset. */
bool vmcoreinfo_is_arm64(const struct vmcoreinfo *v);

/* ST_CORRUPT, and one line: it contradicts itself, or no Linux kernel is like that. */
enum status arm64_kernel_init(struct arm64_kernel *ret, const struct vmcoreinfo *v, struct err *e);

/* The kernel's address space. */
struct virt arm64_kernel_space(const struct arm64_kernel *k, struct physmem *m,
			       struct walk_budget *budget);

/*
 * ST_CORRUPT, and one line: the tables are not where VMCOREINFO says, or map the kernel elsewhere.
 * A linear map that the tables do not have is given up without an error: the image needs none.
 */
enum status arm64_kernel_check(struct arm64_kernel *k, const struct vmcoreinfo *v,
			       const struct virt *space, struct err *e);

#endif
