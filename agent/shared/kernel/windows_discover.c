/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/shared/kernel/discover_internal.h"
#include "formats/base/bytes.h"

/*
 * Entries of a kernel half that a real root has at least (MemProcFS, vmm/vmmwininit.c, the scan
 * for a self-reference).
 */
#define KERNEL_ENTRIES_MIN 6

/* Tables that vouch for a root in an image that lacks others which it names. */
#define TABLES_MIN         2

/* Address bits that no machine has needed so far: 256 TiB are below them. */
#define FRAME_TOO_HIGH     UINT64_C(0x000f000000000000)

/*
 * Is it a table of the level below a root, in the kernel's half? All of its entries that are not
 * zero are present, and none breaks the processor's rules: of pages of anything else hardly one
 * comes through.
 */
static bool is_plausible_table(const struct discovery_search *s, uint64_t pa)
{
	uint8_t page[PAGE_SIZE];
	unsigned present = 0;

	if (!physmem_read_page(s->mem, pa, page, NULL))
		return false;
	for (size_t i = 0; i < TABLE_ENTRIES; i++) {
		const uint64_t raw = get_le64(page + 8 * i);
		const struct entry e = entry_judge(PAGING_4_LEVEL, 3, 0, i, raw, 0);

		if (e.kind == ENTRY_RESERVED || e.kind == ENTRY_ABSENT ||
		    (e.frame & FRAME_TOO_HIGH))
			return false;
		present += e.kind != ENTRY_ZERO;
	}
	return present != 0;
}

/* Of the tables that a root names in the kernel's half, are enough there? */
static bool has_enough_tables(const struct discovery_search *s, const uint8_t *page, uint32_t self)
{
	unsigned n = 0;

	for (size_t i = ROOT_HALF; i < TABLE_ENTRIES && n < TABLES_MIN; i++) {
		const uint64_t raw = get_le64(page + 8 * i);

		if (!raw || i == self)
			continue;
		if (!walk_budget_take(s->budget))
			return false;
		n += is_plausible_table(s, raw & PTE_FRAME);
	}
	return n == TABLES_MIN;
}

/*
 * Windows keeps nothing in a root but tables: every entry is zero or names one, and those of the
 * kernel's half are not for user mode. Pages of anything else that happens to name itself are
 * told apart by that. Two that do are common: a page table of Linux's direct map, which maps all
 * memory, in order, so that frame and index grow together; and the copy of a page table in a
 * buffer which that very table maps, as readers of tables have it, whose entries are for user
 * mode.
 *
 * A root names RAM. But an image that was cut off, or has holes, does not have all of it: then
 * the tables that are there have to vouch for the page.
 */
static bool is_all_tables(const struct discovery_search *s, const uint8_t *page, uint64_t pa,
			  uint32_t self)
{
	const uint64_t first = pa - self * PAGE_SIZE; /* what a direct map would have at index 0 */
	unsigned entries = 0, in_order = 0;
	bool outside = false;

	for (size_t i = 0; i < TABLE_ENTRIES; i++) {
		const uint64_t raw = get_le64(page + 8 * i);

		if (!raw)
			continue;
		if (!(raw & PTE_PRESENT) || (raw & PTE_LARGE) ||
		    (i >= ROOT_HALF && (raw & PTE_USER)))
			return false;
		entries++;
		in_order += (raw & PTE_FRAME) == first + i * PAGE_SIZE;
		outside |= !range_list_find(s->mem->ranges, raw & PTE_FRAME);
	}
	return 2 * in_order < entries && (!outside || has_enough_tables(s, page, self));
}

static unsigned kernel_entries(const uint8_t *page)
{
	unsigned n = 0;

	for (size_t i = ROOT_HALF; i < TABLE_ENTRIES; i++)
		n += page[8 * i] & 1U;
	return n;
}

/* Who was told where the root is need not ask whether it looks like one in all its entries. */
bool paging__take_windows_root(const struct discovery_search *s, uint64_t pa,
			       enum dtb_origin origin)
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
	s->d->kernel_dtb = s->d->walk_dtb = pa;
	s->d->kernel_dtb_origin = origin;
	s->d->self_index = self;
	return true;
}

/*
 * PROCESSOR_START_BLOCK: below 1 MiB lies what the other processors start with. A page that begins
 * with a jump and a 1 has the kernel's CR3 at 0xa0 and an address in the kernel at 0x70 (MemProcFS,
 * vmm/vmmwininit.c, the low stub).
 */
bool paging__search_low_stub(const struct discovery_search *s)
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
static enum status find_windows_image(const struct discovery_search *s, const struct virt *space,
				      bool *found, struct err *e)
{
	struct windows_kernel *w = &s->d->windows;
	const uint64_t told = s->hints->has_kernel_base ? s->hints->kernel_base : 0;
	struct walk_set set;
	enum status st;

	*found = w->base || w->pdb_record;
	if (*found)
		return ST_OK;
	if (told && pe_is_ntoskrnl(space, told, s->hints->ntoskrnl, &w->size)) {
		w->base = told;
		*found = true;
		return ST_OK;
	}
	st = walk_set_init(&set, s->mem->ranges, e);
	if (st)
		return st;
	*found = windows_find_kernel(space, s->hints->ntoskrnl, &set, w);
	if (!w->base)
		w->base = told;
	walk_set_deinit(&set);
	return ST_OK;
}

enum status paging__check_windows(const struct discovery_search *s, bool *ret, struct err *e)
{
	const struct virt space = paging__kernel_space(s);
	const bool shared = windows_shared_data(&space, &s->d->windows.version);
	enum status st = find_windows_image(s, &space, ret, e);

	*ret |= shared;
	return st;
}

/* Once the list has told where its head is, the block must agree. */
static void find_kdbg(const struct discovery_search *s, const struct virt *space)
{
	struct windows_kernel *w = &s->d->windows;

	if (!w->searched_for_kdbg)
		kdbg_find(space, w, w->head, &w->kdbg);
	w->searched_for_kdbg = true;
}

static enum status list_processes(const struct discovery_search *s, const struct virt *space,
				  struct err *e)
{
	struct windows_kernel *w = &s->d->windows;
	struct process_list *list = &s->d->list;
	enum status st = windows_processes(space, w, s->hints->ntoskrnl, list, e);
	const bool again = !st && list->end == LIST_NOT_FOUND && !w->searched_for_kdbg;

	if (!st)
		find_kdbg(s, space);
	if (again && w->kdbg.va)
		st = windows_processes(space, w, s->hints->ntoskrnl, list, e);
	return st;
}

/*
 * The root that was found by its look may be any process's. The list says which is the kernel's:
 * that of System, whether or not its page is there to be walked.
 */
static void take_systems_root(struct discovery *d)
{
	for (size_t i = 0; i < d->list.count; i++) {
		const struct process *p = &d->list.at[i];

		if (p->object != d->windows.system_process || !p->has_dtb ||
		    p->dtb == d->kernel_dtb)
			continue;
		d->kernel_dtb = p->dtb;
		d->kernel_dtb_origin = DTB_SYSTEM;
	}
}

enum status paging__discover_windows(const struct discovery_search *s, struct err *e)
{
	const struct virt space = paging__kernel_space(s);
	struct windows_kernel *w = &s->d->windows;
	struct pe_file *file = s->hints->ntoskrnl;
	bool found;
	enum status st = find_windows_image(s, &space, &found, e);

	if (!st && !w->version.major)
		windows_shared_data(&space, &w->version);
	if (st || !w->base)
		return st;
	/* What was paged out at the first look may be there at the second. */
	if (!w->has_pdb)
		w->has_pdb = pe_pdb(&space, w->base, file, &w->pdb);
	st = list_processes(s, &space, e);
	if (!st && !w->version.lab[0])
		windows_kernel_version(&space, w, file);
	if (!st && !w->paging_files.count)
		paging_files_find(&space, w, &w->paging_files);
	take_systems_root(s->d);
	w->file_used |= file && file->used;
	return st;
}
