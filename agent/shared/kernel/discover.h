/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the address spaces, with PID and name, in physical memory, with the help of what its source
 * says. Uses both the process list and a scan for roots; differences between them are findings. The
 * result has every decision and its reason.
 */
#ifndef RAMSEAL_AGENT_SHARED_KERNEL_DISCOVER_H
#define RAMSEAL_AGENT_SHARED_KERNEL_DISCOVER_H

#include "agent/shared/kernel/processes.h"
#include "agent/shared/paging/pte.h"
#include "agent/shared/paging/roots.h"

struct candidates;
struct discovery;

/* What is known beforehand. Zero: nothing. Pointers are borrowed. */
struct discover_hints {
	/*
	 * An earlier discovery of the same running machine: its kernel, symbols and offsets are
	 * still valid; only the list is read again, and the scan repeated.
	 */
	const struct discovery *before;
	bool has_cr3;
	uint64_t cr3;
	bool five_levels;     /* Windows: then its roots are not searched for */
	bool has_kernel_base; /* Windows: ntoskrnl's */
	uint64_t kernel_base;
	struct pe_file *ntoskrnl; /* the running Windows's; or NULL */
	const void *notes;        /* PT_NOTE bytes */
	size_t notes_size;
	const char *kallsyms; /* text of /proc/kallsyms */
	size_t kallsyms_size;
	const void *btf; /* /sys/kernel/btf/vmlinux */
	size_t btf_size;
	bool skip_scan;   /* the list only */
	bool kernel_only; /* not even that: only the system and the kind of its tables */
	/*
	 * A scan made between the earlier discovery and this one, while memory was read; replaces
	 * discover()'s own.
	 */
	const struct root_watch *watch;
	/*
	 * Pages collected while all of an unchanging memory was read, sorted: only these are
	 * searched for the kernel and for roots.
	 */
	const struct candidates *candidates;
	/*
	 * How many of the lowest pages to search for an unknown kernel; 0: all. Then only an
	 * unmistakable one is accepted.
	 */
	uint64_t search_pages;
};

/*
 * One thread searches this many quickly, and they are usually enough: Windows has its root in the
 * first 16 MiB, and most images of Linux say where the kernel is.
 */
#define DISCOVER_FEW (UINT64_C(64) << 20 >> PAGE_SHIFT)

/* Takes hints from a source's own facts. */
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
 * Helper roots of the kernel: Linux patches code through poking_mm, calls firmware through efi_mm,
 * and starts processors through a root below 1 MiB. They have user pages but no process, and are
 * not findings.
 */
#define HELPERS_MAX 4

struct helper_root {
	const char *name;
	uint64_t dtb;
};

/* One address space of one process; processes can share a root, or have none. */
struct address_space {
	struct process process; /* pid and name are set if `listed` */
	bool listed;            /* the process list has it */
	bool scanned;           /* the scan found its root */
	bool copy;              /* its root is only a copy of one: discover_copies.c */
	uint32_t mapped_by;     /* the process that has the copy in its memory; 0: none */
	bool kernel;            /* the kernel's own, or a helper, as its name says */
};

struct discovery {
	enum discover_os os;
	enum paging_mode mode;
	uint64_t ignore; /* bits of entries that are not part of the address: AMD's C-bit */
	uint64_t kernel_dtb;
	enum dtb_origin kernel_dtb_origin;
	/*
	 * The root for reading the kernel's memory: the kernel's or, if an image lacks that page, a
	 * process's.
	 */
	uint64_t walk_dtb;
	uint32_t self_index; /* NO_INDEX: none */

	struct windows_kernel windows;
	struct vmcoreinfo *vmcoreinfo; /* NULL: none */
	bool vmcoreinfo_from_memory;   /* found by its content, not from the source */
	uint64_t vmcoreinfo_page;      /* its address in memory */
	bool searched;        /* all memory was searched: OS_UNKNOWN then means no known kernel */
	struct linux_uts uts; /* empty: not readable */
	uint64_t init_task;
	struct linux_offsets linux_offsets;
	uint64_t vmemmap; /* where struct page of frame 0 is; 0: not known */
	/* Symbols swapper_spaces, swap_aops (mm/swap_state.c), swap_info (mm/swapfile.c); or 0 */
	uint64_t swapper_spaces, swap_ops, swap_areas;
	/*
	 * CONFIG_DEVICE_PRIVATE, by the symbols of the kernel: it decides what absent entries mean
	 * (pte.h).
	 */
	enum pte_option device_private;
	struct helper_root helpers[HELPERS_MAX];
	size_t n_helpers;
	const char *btf_origin;     /* "source", "memory" or NULL */
	const char *symbols_origin; /* "memory", "kallsyms" or NULL */

	struct process_list list;
	struct root_scan roots;
	struct address_space *spaces; /* first the kernel's, then listed ones, then hidden ones */
	size_t n_spaces;
	/*
	 * Roots with user pages that are not in the list, except copies: hidden if the list is
	 * complete, otherwise unknown.
	 */
	size_t hidden;
	size_t unlisted;
	/* such roots that are copies, in buffers of programs that read page tables */
	size_t copies;
	/* Listed now and earlier, but not found by the scan, although the page is readable. */
	size_t unscanned;
	size_t idle_roots; /* unlisted roots without user pages: of the kernel, or freed */

	uint64_t pages_read;
	uint64_t ns; /* 0 if the budget has no clock */
};

/*
 * ST_OK even if little was found; ST_NOMEM. `budget` limits everything together: first the kernel
 * and the list, then the scan.
 */
enum status discover(struct physmem *m, const struct discover_hints *h, struct walk_budget *budget,
		     struct discovery *ret, struct err *e);
void discovery_deinit(struct discovery *d);

/* Iterates over the roots of all address spaces: each one's own, then its user-mode twin. */
struct root_cursor {
	size_t space;
	bool user; /* the twin is next */
};

/* The next root in *ret; false after the last. Leaves out copies. */
bool discovery_next_root(const struct discovery *d, struct root_cursor *c, uint64_t *ret);

#endif
