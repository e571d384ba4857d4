/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Page tables (SDM vol. 3, 4.5) and the page frame database. This file changes tables through the
 * window; drivers see them at their addresses in the self-map.
 */
#include "paging.h"

#include "cpu.h"

#define ENTRIES 512

unsigned paging_levels;
uint64_t paging_system_root, paging_user_root;

/* The page frame database, reduced to PteAddress: 8 bytes a frame instead of MMPFN's 48. */
static uint64_t *const pfn_database = (uint64_t *)PFN_DATABASE_VA;
static bool has_database;

static unsigned slot(uint64_t va, unsigned level)
{
	return va >> (12 + 9 * (level - 1)) & (ENTRIES - 1);
}

static uint64_t address_bits(void)
{
	return ((uint64_t)1 << (12 + 9 * paging_levels)) - 1;
}

static uint64_t canonical(uint64_t va)
{
	const unsigned unused = 64 - (12 + 9 * paging_levels);

	return (uint64_t)((int64_t)(va << unused) >> unused);
}

static uint64_t pte_base(void)
{
	return canonical((uint64_t)SELF_MAP_SLOT << (12 + 9 * (paging_levels - 1)));
}

/*
 * The address in the self-map of the entry that maps `va`. Applied twice, of the one above it, and
 * so on.
 */
static uint64_t pte_address(uint64_t va)
{
	return pte_base() + (va & address_bits()) / PAGE_SIZE * 8;
}

uint64_t address_of_pte(uint64_t at)
{
	return canonical((at - pte_base()) / 8 * PAGE_SIZE);
}

static void note(uint64_t phys, uint64_t entry_address)
{
	if (has_database && is_ram(phys))
		pfn_database[phys / PAGE_SIZE] = entry_address;
}

uint64_t pfn_pte_address(uint64_t pfn)
{
	return pfn_database[pfn];
}

static uint64_t new_table(uint64_t va, unsigned level)
{
	const uint64_t phys = frame_take();
	uint64_t at = va;

	memset(window(phys), 0, PAGE_SIZE);
	for (unsigned i = 0; i <= level; i++)
		at = pte_address(at);
	note(phys, at);
	return phys;
}

/* The entry for `va` at that level; level 1 maps pages. `make` adds missing tables. */
static uint64_t *entry(uint64_t root, uint64_t va, unsigned level, bool make)
{
	uint64_t table = root;

	for (unsigned l = paging_levels; l > level; l--) {
		uint64_t *const e = (uint64_t *)window(table) + slot(va, l);

		if (!(*e & PTE_PRESENT)) {
			if (!make)
				return NULL;
			*e = new_table(va, l - 1) | PTE_PRESENT | PTE_WRITE |
			     (va >> 63 ? 0 : PTE_USER);
		} else if (*e & PTE_LARGE) {
			return NULL;
		}
		table = *e & PTE_FRAME;
	}
	return (uint64_t *)window(table) + slot(va, level);
}

static uint64_t root_now(void)
{
	return read_cr3() & PTE_FRAME;
}

static uint64_t pte_of(uint64_t phys, unsigned flags)
{
	return phys | PTE_PRESENT | (flags & MAP_WRITE ? PTE_WRITE : 0) |
	       (flags & MAP_USER ? PTE_USER : 0) | (flags & MAP_UNCACHED ? PTE_UNCACHED : 0) |
	       (flags & MAP_EXECUTE ? 0 : PTE_NX);
}

static void map_in(uint64_t root, uint64_t va, uint64_t phys, unsigned flags)
{
	*entry(root, va, 1, true) = pte_of(phys, flags);
	if (!(flags & MAP_ALIAS))
		note(phys, pte_address(va));
}

void map(uint64_t va, uint64_t phys, unsigned flags)
{
	map_in(root_now(), va, phys, flags);
}

uint64_t *find_pte(uint64_t va)
{
	uint64_t *const e = entry(root_now(), va, 1, false);

	return e && *e & PTE_PRESENT ? e : NULL;
}

uint64_t unmap(uint64_t va)
{
	uint64_t *const e = find_pte(va);
	uint64_t phys;

	if (!e)
		bug_check(NULL, HOST_CANNOT, va, 0, 0, 0);
	phys = *e & PTE_FRAME;
	*e = 0;
	flush_tlb_page(va);
	return phys;
}

void map_new(uint64_t va, uint64_t pages, unsigned flags)
{
	for (uint64_t i = 0; i < pages; i++)
		map(va + i * PAGE_SIZE, frame_take(), flags);
}

void unmap_free(uint64_t va, uint64_t pages)
{
	for (uint64_t i = 0; i < pages; i++)
		frame_free(unmap(va + i * PAGE_SIZE));
}

void map_protect(uint64_t va, unsigned flags)
{
	uint64_t *const e = entry(root_now(), va, 1, true);

	*e = pte_of(*e & PTE_FRAME, flags);
	flush_tlb_page(va);
}

/* False for large pages; nothing but the window has any. */
bool is_mapped(uint64_t va)
{
	return find_pte(va) != NULL;
}

uint64_t physical(uint64_t va)
{
	const uint64_t *const e = find_pte(va);

	return e ? (*e & PTE_FRAME) | PAGE_OFFSET(va) : 0;
}

bool is_user_memory(uint64_t va, uint64_t len, bool write)
{
	if (va >= USER_PROBE_LIMIT || len > USER_PROBE_LIMIT - va)
		return false;
	for (uint64_t page = PAGE_OF(va); page < va + len; page += PAGE_SIZE) {
		const uint64_t *const e = find_pte(page);

		if (!e || !(*e & PTE_USER) || (write && !(*e & PTE_WRITE)))
			return false;
	}
	return true;
}

/* --- the two address spaces --- */

static void map_window(uint64_t root)
{
	for (uint64_t i = 0; i < mailbox.ram_count; i++) {
		const struct machine_range *const r = &mailbox.ram[i];

		for (uint64_t at = r->base / LARGE_PAGE * LARGE_PAGE; at < r->base + r->bytes;
		     at += LARGE_PAGE)
			*entry(root, WINDOW_VA + at, 2, true) =
				at | PTE_PRESENT | PTE_WRITE | PTE_LARGE | PTE_NX;
	}
}

static void map_kernel(uint64_t root)
{
	for (uint8_t *at = kernel_start; at < kernel_end; at += PAGE_SIZE)
		map_in(root, (uint64_t)at, (uint64_t)at - KERNEL_VA + KERNEL_PHYS,
		       at >= text_start && at < text_end ? MAP_EXECUTE : MAP_WRITE);
}

/* Before there is a window: the first page tables map the first 4 GiB at address 0. */
static uint64_t *early_entry(uint64_t root, uint64_t va, unsigned level)
{
	uint64_t table = root;

	for (unsigned l = paging_levels; l > level; l--) {
		uint64_t *const e = (uint64_t *)table + slot(va, l);

		if (!(*e & PTE_PRESENT)) {
			*e = frame_take();
			memset((void *)*e, 0, PAGE_SIZE);
			*e |= PTE_PRESENT | PTE_WRITE;
		}
		table = *e & PTE_FRAME;
	}
	return (uint64_t *)table + slot(va, level);
}

/* Nothing can be mapped without the window, so it comes first, into the tables of boot.S. */
static void early_window(void)
{
	const uint64_t root = root_now();

	for (uint64_t at = 0; at < (uint64_t)1 << 32; at += LARGE_PAGE)
		*early_entry(root, WINDOW_VA + at, 2) =
			at | PTE_PRESENT | PTE_WRITE | PTE_LARGE | PTE_NX;
}

/* All tables below the top level of the upper half now, so that both address spaces share them. */
static void make_top_level(uint64_t root)
{
	static const uint64_t regions[] = { KERNEL_VA,       DRIVERS_VA, SHARED_DATA_VA,
					    PFN_DATABASE_VA, STACKS_VA,  SYSTEM_PTES_VA,
					    POOL_VA,         WINDOW_VA };

	for (size_t i = 0; i < ARRAY_SIZE(regions); i++)
		entry(root, regions[i], paging_levels - 1, true);
}

/* The self-map: a top-level entry that points at its own table. */
static void make_self_map(uint64_t root)
{
	uint64_t at = 0;

	((uint64_t *)window(root))[SELF_MAP_SLOT] = root | PTE_PRESENT | PTE_WRITE | PTE_NX;
	for (unsigned i = 0; i <= paging_levels; i++)
		at = pte_address(at ? at : pte_base());
	note(root, at);
}

static void map_database(uint64_t root)
{
	for (uint64_t i = 0; i < mailbox.ram_count; i++) {
		const struct machine_range *const r = &mailbox.ram[i];
		const uint64_t first = PFN_DATABASE_VA + r->base / PAGE_SIZE * 8;
		const uint64_t end = PFN_DATABASE_VA + (r->base + r->bytes) / PAGE_SIZE * 8;

		for (uint64_t page = PAGE_OF(first); page < end; page += PAGE_SIZE) {
			uint64_t *const e = entry(root, page, 1, true);

			if (*e & PTE_PRESENT)
				continue;
			*e = pte_of(frame_take(), MAP_WRITE);
			memset(window(*e & PTE_FRAME), 0, PAGE_SIZE);
		}
	}
}

/* Enters what was mapped before there was a database. */
static void note_tables(uint64_t table, uint64_t va, unsigned level)
{
	for (unsigned i = ENTRIES / 2 * (level == paging_levels); i < ENTRIES; i++) {
		const uint64_t e = ((uint64_t *)window(table))[i];
		const uint64_t at = va | (uint64_t)i << (12 + 9 * (level - 1));
		uint64_t where = canonical(at);

		if (!(e & PTE_PRESENT) || (e & PTE_LARGE && level > 1) ||
		    (level == paging_levels && i == SELF_MAP_SLOT))
			continue;
		for (unsigned l = 0; l < level; l++)
			where = pte_address(where);
		note(e & PTE_FRAME, where);
		if (level > 1)
			note_tables(e & PTE_FRAME, at, level - 1);
	}
}

void paging_init(unsigned levels)
{
	uint64_t *system, *user;

	paging_levels = levels;
	early_window();
	paging_system_root = frame_take();
	system = window(paging_system_root);
	memset(system, 0, PAGE_SIZE);
	make_top_level(paging_system_root);
	map_window(paging_system_root);
	map_kernel(paging_system_root);
	map_database(paging_system_root);
	paging_user_root = frame_take();
	user = window(paging_user_root);
	memset(user, 0, PAGE_SIZE);
	memcpy(user + ENTRIES / 2, system + ENTRIES / 2, PAGE_SIZE / 2);
	write_cr3(paging_system_root);
	has_database = true;
	note_tables(paging_system_root, 0, levels);
	make_self_map(paging_system_root);
	make_self_map(paging_user_root);
}

/* --- regions --- */

static uint64_t take_in_round(struct region *r, uint32_t pages)
{
	uint32_t run = 0;

	for (uint32_t tried = 0; tried < 2 * r->round; tried++) {
		if (r->next >= r->round) {
			r->next = 0;
			run = 0;
		}
		run = r->used[r->next++] ? 0 : run + 1;
		if (run == pages + 1) {
			const uint32_t first = r->next - run;

			memset(r->used + first, 1, pages);
			return r->base + (uint64_t)first * PAGE_SIZE;
		}
	}
	return 0;
}

uint64_t region_take(struct region *r, uint32_t pages)
{
	uint64_t va;

	while (!(va = take_in_round(r, pages)) && r->round < r->pages)
		r->round = MIN(2 * r->round, r->pages);
	return va;
}

void region_free(struct region *r, uint64_t va, uint32_t pages)
{
	memset(r->used + (va - r->base) / PAGE_SIZE, 0, pages);
}
