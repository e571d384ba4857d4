/* SPDX-License-Identifier: Apache-2.0 */
/* What kind of machine memory was captured from: not the one that this program runs on. */
#ifndef RAMSEAL_BASE_MACHINE_H
#define RAMSEAL_BASE_MACHINE_H

#include <stdbool.h>

#include "formats/base/defs.h"

/*
 * The names are the manifest's (formats/MANIFEST.md, "machine"). Containers without one are of
 * x86-64, which comes first so that zeros mean it.
 */
#define MACHINE_ARCH_MAP(X)                                                                        \
	X(ARCH_X86_64, "x86_64")                                                                   \
	X(ARCH_ARM64, "arm64")

enum machine_arch { ARCH_X86_64, ARCH_ARM64 };
#define MACHINE_ARCHES 2

const char *machine_arch_name(enum machine_arch arch);
/* False, and x86-64: it is none of them. NULL is none. */
bool machine_arch_from_name(const char *name, enum machine_arch *ret);

/* All zeros: x86-64 with its pages. */
struct machine_kind {
	enum machine_arch arch;
	/*
	 * Bytes of the kernel's pages; 0: nobody said. The container's pages are of PAGE_SIZE
	 * whatever this is.
	 */
	uint32_t page_size;
};

#define MACHINE_PAGE_MAX ((uint32_t)64 << 10)

/* Of the granules that ARM64 has: 4, 16 and 64 KiB. x86-64 has the first. */
bool machine_page_size_is_valid(enum machine_arch arch, uint64_t bytes);

/* page_size, or PAGE_SIZE if nobody said. */
static inline uint32_t machine_page_size(const struct machine_kind *m)
{
	return m->page_size ? m->page_size : (uint32_t)PAGE_SIZE;
}

#endif
