/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whose page tables: from a physical memory and what its source told, to a list of address spaces
 * with PID and name. The process list and a scan for roots are both asked; where they differ, the
 * difference is a finding. Everything that was decided is in the result, with how.
 */
#ifndef RAMSEAL_AGENT_SHARED_KERNEL_DISCOVER_H
#define RAMSEAL_AGENT_SHARED_KERNEL_DISCOVER_H

#include "agent/shared/kernel/processes.h"
#include "agent/shared/paging/pte.h"
#include "agent/shared/paging/roots.h"

struct candidates;
struct discovery;

/* What is known before. Zero: nothing. Pointers are borrowed. */
struct discover_hints {
	/*
	 * An earlier discovery of the same running machine: its kernel, symbols and offsets still
	 * hold, and only the list is read again (and the scan made).
	 */
	const struct discovery *before;
	bool has_cr3;
	uint64_t cr3;
	bool five_levels;     /* of Windows: then its roots are not looked for */
	bool has_kernel_base; /* Windows: ntoskrnl's */
	uint64_t kernel_base;
	struct pe_file *ntoskrnl; /* of the Windows that runs; or NULL */
	const void *notes;        /* PT_NOTE bytes */
	size_t notes_size;
	const char *kallsyms; /* text of /proc/kallsyms */
	size_t kallsyms_size;
	const void *btf; /* /sys/kernel/btf/vmlinux */
	size_t btf_size;
	bool skip_scan;   /* the list only */
	bool kernel_only; /* not even that: which system it is, and how its tables are built */
	/*
	 * A scan that was made between the earlier discovery and this one, while memory was read;
	 * instead of one of discover()'s own.
	 */
	const struct root_watch *watch;
	/*
	 * Pages that were found while all of memory was read, of memory that stands still: the
	 * kernel is searched for, and roots are, in these alone; sorted.
	 */
	const struct candidates *candidates;
	/*
	 * How many of the lowest pages are searched for a kernel that was not given; 0: all. Then
	 * only what leaves no doubt is one.
	 */
	uint64_t search_pages;
};

/*
 * So many are quickly looked through, by one thread, and settle most: Windows has its root in the
 * first 16 MiB, and most images of Linux say themselves where its kernel is.
 */
#define DISCOVER_FEW (UINT64_C(64) << 20 >> PAGE_SHIFT)

/* From what a source said of itself. */
void discover_hints_from_drv(struct discover_hints *h, const struct drv_info *info);

enum discover_os { OS_UNKNOWN, OS_WINDOWS, OS_LINUX };

#define DTB_ORIGIN_MAP(X)                                                                          \
	X(DTB_NONE, "none")                                                                        \
	X(DTB_SOURCE, "source")     /* the driver's CR3 */                                         \
	X(DTB_LOW_STUB, "low-stub") /* Windows: the processor start block below 1 MiB */           \
	X(DTB_SELF_REFERENCE,                                                                      \
	  "self-reference")             /* Windows: a scan for a self-map; of any process */       \
	X(DTB_SYSTEM, "system-process") /* Windows: that of the process System */                  \
	X(DTB_VMCOREINFO, "vmcoreinfo") /* Linux: init_top_pgt and phys_base */

enum dtb_origin {
#define X(name, text) name,
	DTB_ORIGIN_MAP(X)
#undef X
		DTB_ORIGINS
};

const char *dtb_origin_name(enum dtb_origin o);
const char *discover_os_name(enum discover_os os);

/*
 * Roots that the kernel keeps for itself, beside its own: Linux patches code through poking_mm,
 * calls firmware through efi_mm, and starts processors through a root below 1 MiB. They have user
 * pages and no process, and are no finding.
 */
#define HELPERS_MAX 4

struct helper_root {
	const char *name;
	uint64_t dtb;
};

/* One address space. Zero or one root, one or more processes: one of these for each process. */
struct address_space {
	struct process process; /* pid and name are set if `listed` */
	bool listed;            /* the process list has it */
	bool scanned;           /* the scan found its root */
	bool copy;              /* its root is no more than a copy of one: discover_copies.c */
	uint32_t mapped_by;     /* the process of which a copy is a page; 0: of none */
	bool kernel;            /* it is the kernel's own, or a helper: then its name says which */
};

struct discovery {
	enum discover_os os;
	enum paging_mode mode;
	uint64_t ignore; /* bits of entries that are no address: AMD's C-bit */
	uint64_t kernel_dtb;
	enum dtb_origin kernel_dtb_origin;
	/*
	 * The root by which the kernel's memory is read: the kernel's, or, where an image lacks
	 * that page, a process's.
	 */
	uint64_t walk_dtb;
	uint32_t self_index; /* NO_INDEX: there is none */

	struct windows_kernel windows;
	struct vmcoreinfo *vmcoreinfo; /* NULL: none */
	bool vmcoreinfo_from_memory;   /* found by its look, not told by the source */
	uint64_t vmcoreinfo_page;      /* there */
	bool searched; /* all of memory, for a kernel: with OS_UNKNOWN it has none that is known */
	struct linux_uts uts; /* empty: not there to be read */
	uint64_t init_task;
	struct linux_offsets linux_offsets;
	uint64_t vmemmap; /* where struct page of frame 0 is; 0: not known */
	/* Symbols swapper_spaces, swap_aops (mm/swap_state.c), swap_info (mm/swapfile.c); or 0 */
	uint64_t swapper_spaces, swap_ops, swap_areas;
	/* CONFIG_DEVICE_PRIVATE, by the symbols of the kernel: what absent entries mean (pte.h). */
	enum pte_option device_private;
	struct helper_root helpers[HELPERS_MAX];
	size_t n_helpers;
	const char *btf_origin;     /* "source", "memory" or NULL */
	const char *symbols_origin; /* "memory", "kallsyms" or NULL */

	struct process_list list;
	struct root_scan roots;
	struct address_space *spaces; /* the kernel's first, then the list's, then what it hides */
	size_t n_spaces;
	/*
	 * Roots with user pages that the list does not have, without copies: of a list that is
	 * complete they are hidden; otherwise unknown.
	 */
	size_t hidden;
	size_t unlisted;
	/* such roots that are copies: readers of tables have them in their buffers */
	size_t copies;
	/* Listed (earlier, too), but the scan did not find the root, though its page is there. */
	size_t unscanned;
	size_t idle_roots; /* unlisted roots without user pages: the kernel's, or freed ones */

	uint64_t pages_read;
	uint64_t ns; /* 0 if the budget has no clock */
};

/*
 * ST_OK also if little was found; ST_NOMEM. `budget` bounds all of it together: first come the
 * kernel and the list, then the scan takes the rest.
 */
enum status discover(struct physmem *m, const struct discover_hints *h, struct walk_budget *budget,
		     struct discovery *ret, struct err *e);
void discovery_deinit(struct discovery *d);

/* Goes through the roots of all address spaces: each one's own, then its user-mode twin. */
struct root_cursor {
	size_t space;
	bool user; /* the twin is next */
};

/* The next root in *ret; false behind the last. Copies of roots are left out. */
bool discovery_next_root(const struct discovery *d, struct root_cursor *c, uint64_t *ret);

#endif
