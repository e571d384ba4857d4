/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where things are in virtual memory. For C and for assembly. Windows has no fixed places any more;
 * these are where it had them, or look as it has them, one top-level entry of the page tables each.
 */
#ifndef WINPMEM_KERNEL_LAYOUT_H
#define WINPMEM_KERNEL_LAYOUT_H

#define PAGE_SIZE         0x1000
#define LARGE_PAGE        0x200000

/* The kernel's image: ntoskrnl.exe to the drivers. */
#define KERNEL_PHYS       0x200000
#define KERNEL_VA         0xfffff80312200000
/* What the first page tables map of it. */
#define KERNEL_EARLY_SIZE 0x1000000

#define DRIVERS_VA        0xfffff80440000000 /* images of drivers */
#define SELF_MAP_SLOT     0x1ed              /* of the top-level table: PTE_BASE */
#define SHARED_DATA_VA    0xfffff78000000000 /* KUSER_SHARED_DATA; this address is a contract */
#define PFN_DATABASE_VA   0xfffffa8000000000
#define STACKS_VA         0xffffb00000000000
#define SYSTEM_PTES_VA    0xffffd00000000000
#define POOL_VA           0xffffe00000000000

/* All RAM, for this kernel's own use. Windows has nothing like it, and no driver is told of it. */
#define WINDOW_VA         0xfffffc0000000000

/* Of the process that asks. */
#define USER_VA           0x0000000010000000
#define USER_READ_ONLY_VA 0x0000000030000000
#define VIEWS_VA          0x00007f0000000000
#define USER_PROBE_LIMIT  0x00007fffffff0000 /* MM_USER_PROBE_ADDRESS */

/* Selectors as x64 Windows has them. */
#define CODE_SELECTOR     0x10
#define DATA_SELECTOR     0x18
#define TASK_SELECTOR     0x40

#endif
