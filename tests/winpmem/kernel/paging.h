/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Page tables, with four levels or five, as Windows keeps them: one set for the system process
 * and one for the process that asks, the upper half in common, a top-level entry that names the
 * table itself (PTE_BASE), and a database that says of each page frame where the entry is that
 * maps it. MmGetVirtualForPhysical() reads that, and drivers find page tables with it.
 */
#ifndef WINPMEM_KERNEL_PAGING_H
#define WINPMEM_KERNEL_PAGING_H

#include "kernel.h"

#define MAP_WRITE    0x1
#define MAP_USER     0x2
#define MAP_EXECUTE  0x4
#define MAP_UNCACHED 0x8
/* The frame is not the mapping's: the database does not say that it is mapped here. */
#define MAP_ALIAS    0x10

#define PTE_PRESENT  0x001u
#define PTE_WRITE    0x002u
#define PTE_USER     0x004u
#define PTE_UNCACHED 0x010u
#define PTE_LARGE    0x080u
#define PTE_NX       ((uint64_t)1 << 63)
#define PTE_FRAME    0x000ffffffffff000u

/* --- frames.c --- */

/* RAM as the firmware tells it, and from `first` on `bytes` of it that are this kernel's. */
void frames_init(uint64_t first, uint64_t bytes);
/* A frame of the kernel's part; junk is in it. There is always one, or the machine stops. */
uint64_t frame_take(void);
void frame_free(uint64_t phys);
/* So many in a row. */
uint64_t frames_take(uint64_t count);

bool is_ram(uint64_t phys);

/* --- paging.c --- */

extern unsigned paging_levels;
extern uint64_t paging_system_root, paging_user_root; /* physical */

/* Makes both address spaces, and changes to the system's. */
void paging_init(unsigned levels);

static inline void *window(uint64_t phys)
{
	return (void *)(WINDOW_VA + phys);
}

/* Maps one page in the current address space. */
void map(uint64_t va, uint64_t phys, unsigned flags);
/* Takes it out, and returns the frame's address as the entry has it now. */
uint64_t unmap(uint64_t va);
/* New frames; their content is junk. */
void map_new(uint64_t va, uint64_t pages, unsigned flags);
/* Takes out what map_new() made. */
void unmap_free(uint64_t va, uint64_t pages);
void map_protect(uint64_t va, unsigned flags);

/* The entry that maps `va`, as the processor finds it; NULL without one. */
uint64_t *find_pte(uint64_t va);
bool is_mapped(uint64_t va);
/* 0 if it is not mapped. */
uint64_t physical(uint64_t va);

/* Whether a program could read, or write, all of it. */
bool is_user_memory(uint64_t va, uint64_t len, bool write);

/* Where the entry is that maps the frame, in the self-map; 0: none, or not RAM. */
uint64_t pfn_pte_address(uint64_t pfn);
/* What that entry maps. */
uint64_t address_of_pte(uint64_t pte_address);

/*
 * Pages that are free in a region of virtual memory. The search goes round in the first `round`
 * pages, so that what was freed stays unused for a while and QEMU's TLB small; these double when
 * they are full. Each run has one page behind it unused.
 */
struct region {
	uint64_t base;
	uint32_t pages, round;
	uint8_t *used; /* a byte a page */
	uint32_t next;
};

/* 0 if there is no such run. */
uint64_t region_take(struct region *r, uint32_t pages);
void region_free(struct region *r, uint64_t va, uint32_t pages);

#endif
