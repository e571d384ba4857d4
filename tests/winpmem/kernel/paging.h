/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Page tables with four or five levels, laid out as Windows does it. The system process and the
 * process that asks have tables of their own and share the upper half. One top-level entry points
 * at the table itself, which makes all tables visible at PTE_BASE. A database has for each page
 * frame the address of the entry that maps it; MmGetVirtualForPhysical() reads it, and that is how
 * drivers find page tables.
 */
#ifndef WINPMEM_KERNEL_PAGING_H
#define WINPMEM_KERNEL_PAGING_H

#include "kernel.h"

#define MAP_WRITE    0x1
#define MAP_USER     0x2
#define MAP_EXECUTE  0x4
#define MAP_UNCACHED 0x8
/* A second mapping of a frame: the database does not change. */
#define MAP_ALIAS    0x10

#define PTE_PRESENT  0x001u
#define PTE_WRITE    0x002u
#define PTE_USER     0x004u
#define PTE_UNCACHED 0x010u
#define PTE_LARGE    0x080u
#define PTE_NX       ((uint64_t)1 << 63)
#define PTE_FRAME    0x000ffffffffff000u

/* --- frames.c --- */

/* The part of RAM that belongs to this kernel. */
void frames_init(uint64_t first, uint64_t bytes);
/* A frame from that part, with junk in it. If there is none, the machine stops. */
uint64_t frame_take(void);
void frame_free(uint64_t phys);
/* So many in a row. */
uint64_t frames_take(uint64_t count);

bool is_ram(uint64_t phys);

/* --- paging.c --- */

extern unsigned paging_levels;
extern uint64_t paging_system_root, paging_user_root; /* physical */

/* Makes both address spaces and switches to the system's. */
void paging_init(unsigned levels);

static inline void *window(uint64_t phys)
{
	return (void *)(WINDOW_VA + phys);
}

/* Maps one page in the current address space. */
void map(uint64_t va, uint64_t phys, unsigned flags);
/* Unmaps a page; returns the frame that the entry named at the end. */
uint64_t unmap(uint64_t va);
/* New frames; their content is junk. */
void map_new(uint64_t va, uint64_t pages, unsigned flags);
/* Takes out what map_new() made. */
void unmap_free(uint64_t va, uint64_t pages);
void map_protect(uint64_t va, unsigned flags);

/* The entry that maps `va`; NULL if nothing does. */
uint64_t *find_pte(uint64_t va);
bool is_mapped(uint64_t va);
/* 0 if it is not mapped. */
uint64_t physical(uint64_t va);

/* Whether a program could read, or write, all of it. */
bool is_user_memory(uint64_t va, uint64_t len, bool write);

/*
 * The database: the self-map address of the entry that maps the frame; 0: none. Faults beyond RAM.
 */
uint64_t pfn_pte_address(uint64_t pfn);
/* What that entry maps. */
uint64_t address_of_pte(uint64_t pte_address);

/*
 * Free pages in a region of virtual memory. Each run is followed by an unused page. The search
 * circles in the first `round` pages, so that freed pages rest for a while and yet QEMU's TLB stays
 * small; `round` doubles when they are full.
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
