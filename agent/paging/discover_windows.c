/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/paging/discover_internal.h"
#include "formats/base/bytes.h"

/* Entries of a kernel half that a real root has at least (field study, section 12: MemProcFS). */
#define KERNEL_ENTRIES_MIN 6

/*
 * Windows keeps nothing in a root but tables: every entry is zero or names one, in RAM, and those of
 * the kernel's half are not for user mode. Pages of anything else that happens to name itself are told
 * apart by that. Two that do are common: a page table of Linux's direct map, which maps all memory, in
 * order, so that frame and index grow together; and the copy of a page table in a buffer which that
 * very table maps, as readers of tables have it, whose entries are for user mode.
 */
static bool is_all_tables(const struct search *s, const uint8_t *page, uint64_t pa, uint32_t self)
{
	const uint64_t first = pa - self * PAGE_SIZE; /* what a direct map would have at index 0 */
	unsigned entries = 0, in_order = 0;

	for (size_t i = 0; i < TABLE_ENTRIES; i++) {
		const uint64_t raw = get_le64(page + 8 * i);

		if (!raw)
			continue;
		if (!(raw & PTE_PRESENT) || (raw & PTE_LARGE) ||
		    (i >= ROOT_HALF && (raw & PTE_USER)) ||
		    !range_list_find(s->mem->ranges, raw & PTE_FRAME))
			return false;
		entries++;
		in_order += (raw & PTE_FRAME) == first + i * PAGE_SIZE;
	}
	return 2 * in_order < entries;
}

static unsigned kernel_entries(const uint8_t *page)
{
	unsigned n = 0;

	for (size_t i = ROOT_HALF; i < TABLE_ENTRIES; i++)
		n += page[8 * i] & 1U;
	return n;
}

/* Who was told where the root is need not ask whether it looks like one in all its entries. */
bool paging__take_windows_root(const struct search *s, uint64_t pa, enum dtb_origin origin)
{
	uint8_t page[PAGE_SIZE];
	uint32_t self;

	pa &= PTE_FRAME;
	if (!physmem_read_page(s->mem, pa, page, NULL))
		return false;
	self = self_map_index(page, pa, 0);
	if (self == NO_INDEX || kernel_entries(page) < KERNEL_ENTRIES_MIN)
		return false;
	if (origin == DTB_SELF_REFERENCE && !is_all_tables(s, page, pa, self))
		return false;
	s->d->os = OS_WINDOWS;
	s->d->mode = PAGING_4_LEVEL;
	s->d->kernel_dtb = pa;
	s->d->kernel_dtb_origin = origin;
	s->d->self_index = self;
	return true;
}

/*
 * PROCESSOR_START_BLOCK: below 1 MiB lies what the other processors start with. A page that begins
 * with a jump and a 1 has the kernel's CR3 at 0xa0 and an address in the kernel at 0x70 (field study,
 * section 12).
 */
bool paging__look_in_low_stub(const struct search *s)
{
	uint8_t page[PAGE_SIZE];

	for (uint64_t pa = PAGE_SIZE; pa < 0x100000; pa += PAGE_SIZE) {
		if (!physmem_read_page(s->mem, pa, page, NULL))
			continue;
		if ((get_le64(page) & UINT64_C(0xffffffffffff00ff)) != UINT64_C(0x00000001000600e9))
			continue;
		if ((get_le64(page + 0x70) & UINT64_C(0xfffff80000000003)) !=
		    UINT64_C(0xfffff80000000000))
			continue;
		if (get_le64(page + 0xa0) & UINT64_C(0xffffff0000000fff))
			continue;
		if (paging__take_windows_root(s, get_le64(page + 0xa0), DTB_LOW_STUB))
			return true;
	}
	return false;
}

/*
 * What the source says is believed if ntoskrnl is there. If it is not, and is found nowhere else
 * either, the source's word is still better than nothing: its headers may be paged out.
 */
static enum status find_base(const struct search *s, const struct virt *space, bool *found,
			     struct err *e)
{
	struct windows_kernel *w = &s->d->windows;
	const uint64_t told = s->hints->has_kernel_base ? s->hints->kernel_base : 0;
	struct walk_set set;
	uint32_t size;
	enum status st;

	if (told && pe_is_ntoskrnl(space, told, s->hints->ntoskrnl, &size))
		w->base = told;
	*found = w->base != 0;
	if (*found)
		return ST_OK;
	st = walk_set_init(&set, s->mem->ranges, e);
	if (st)
		return st;
	if (!windows_find_kernel(space, s->hints->ntoskrnl, &set, &w->base))
		w->base = told;
	*found = w->base != 0;
	walk_set_deinit(&set);
	return ST_OK;
}

enum status paging__check_windows(const struct search *s, bool *ret, struct err *e)
{
	const struct virt space = paging__kernel_space(s);

	return find_base(s, &space, ret, e);
}

enum status paging__discover_windows(const struct search *s, struct err *e)
{
	const struct virt space = paging__kernel_space(s);
	struct windows_kernel *w = &s->d->windows;
	struct pe_file *file = s->hints->ntoskrnl;
	bool found;
	enum status st = find_base(s, &space, &found, e);

	if (st || !found)
		return st;
	/* What was paged out at the first look may be there at the second. */
	if (!w->has_pdb)
		w->has_pdb = pe_pdb(&space, w->base, file, &w->pdb);
	st = windows_processes(&space, w, file, &s->d->list, e);
	w->file_used |= file && file->used;
	return st;
}
