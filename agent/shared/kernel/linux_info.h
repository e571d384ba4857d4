/* SPDX-License-Identifier: Apache-2.0 */
/* What a Linux kernel says about itself: VMCOREINFO, and its symbols in memory. */
#ifndef RAMSEAL_AGENT_SHARED_KERNEL_LINUX_INFO_H
#define RAMSEAL_AGENT_SHARED_KERNEL_LINUX_INFO_H

#include <string.h>

#include "agent/shared/paging/walk.h"

/* VMCOREINFO is a text of one page at most (crash_core.h: VMCOREINFO_BYTES is PAGE_SIZE). */
struct vmcoreinfo {
	char text[PAGE_SIZE + 1];
	size_t len;
};

/* From PT_NOTE bytes, such as /proc/kcore's. False if there is no such note. */
bool vmcoreinfo_from_notes(struct vmcoreinfo *v, const void *notes, size_t len);
/* From a page of memory. The kernel writes it at the start of a page, beginning "OSRELEASE=". */
bool vmcoreinfo_from_page(struct vmcoreinfo *v, const uint8_t *page);
/* A quick check of its beginning. */
bool vmcoreinfo_begins(const uint8_t *page);

/*
 * Other keys: vmcoreinfo_hex() and vmcoreinfo_decimal() of formats/image/elf_core.h, over text and
 * len.
 */

/* SYMBOL(name). */
bool vmcoreinfo_symbol(const struct vmcoreinfo *v, const char *name, uint64_t *ret);
/* OSRELEASE, "6.1.0-56-amd64"; without a NUL. */
const char *vmcoreinfo_release(const struct vmcoreinfo *v, size_t *ret_len);
/* The version in it, as 601; 0 if it makes no sense. */
uint32_t vmcoreinfo_version(const struct vmcoreinfo *v);
/* The same for a release from uname(2); NULL is 0. */
uint32_t linux_version(const char *release);

/* The newest Linux in the tests (tests/README.md). */
#define LINUX_TESTED       703

/*
 * A sentence about a newer one: what is read from such a machine, and what is assumed to be as in
 * the last known version. False, with "": it is not newer.
 */
#define LINUX_UNTESTED_MAX 300
bool linux_is_untested(const char *release, char ret[static LINUX_UNTESTED_MAX]);

/*
 * The kernel's image is mapped at this address plus its physical base
 * (arch/x86/include/asm/page_64_types.h, __START_KERNEL_map).
 */
#define LINUX_KERNEL_MAP UINT64_C(0xffffffff80000000)

/* Physical address of one of the kernel image's own symbols. False without phys_base. */
bool vmcoreinfo_image_pa(const struct vmcoreinfo *v, uint64_t va, uint64_t *ret);

/*
 * struct new_utsname (include/uapi/linux/utsname.h) of the first namespace, init_uts_ns: texts of
 * at most 64 characters, untrusted raw bytes.
 */
#define UTS_TEXT 65

struct linux_uts {
	char sysname[UTS_TEXT];
	char nodename[UTS_TEXT];
	char release[UTS_TEXT];
	char version[UTS_TEXT];
	char machine[UTS_TEXT];
};

/*
 * Read at the physical address from VMCOREINFO. True if it is readable and has VMCOREINFO's
 * release: then both belong to one kernel, whose image is where VMCOREINFO says.
 */
bool vmcoreinfo_uts(const struct vmcoreinfo *v, struct physmem *m, struct linux_uts *ret);

/*
 * kallsyms in memory. VMCOREINFO names its tables since 6.0 (kernel/crash_core.c); they are those
 * of scripts/kallsyms.c.
 */
struct kallsyms_wanted {
	const char *name;
	uint64_t va; /* set if found */
	bool found;
};

#define KALLSYMS_MAX (UINT32_C(1) << 21) /* symbols: twice the 2^20 that no kernel reaches */

/*
 * Looks for `n` symbols in one pass. False if the tables are not in VMCOREINFO or make no sense; a
 * missing symbol is not an error. `v` reads the kernel's address space.
 */
bool kallsyms_find(const struct virt *v, const struct vmcoreinfo *info, struct kallsyms_wanted *w,
		   size_t n);

/* The same from the text of /proc/kallsyms. Addresses of zero (no privilege) do not count. */
bool kallsyms_find_text(const char *text, size_t len, struct kallsyms_wanted *w, size_t n);

/*
 * Symbols that only a kernel with CONFIG_DEVICE_PRIVATE has: mm/rmap.c has make_device_exclusive()
 * within #ifdef and exports it, so no compiler removes it; from 5.14 to 6.14 it was
 * make_device_exclusive_range(). Having neither proves something only for kernels that are not
 * older.
 */
#define LINUX_DEVICE_SYMBOL        "make_device_exclusive"
#define LINUX_DEVICE_SYMBOL_RANGE  "make_device_exclusive_range"
#define LINUX_DEVICE_SYMBOLS_SINCE 514

static inline bool linux_is_device_symbol(const char *name)
{
	return !strcmp(name, LINUX_DEVICE_SYMBOL) || !strcmp(name, LINUX_DEVICE_SYMBOL_RANGE);
}

#endif
