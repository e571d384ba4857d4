/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The input writes ARM64's tables into 64 pages of memory, ten bytes a time: a page, an entry, and
 * what it holds. Whatever they say, in every format the walk ends, reads each page once, and stays
 * within memory.
 */
#define MADE_PAGES 64

#include "tests/fuzz/made_tables.h"
#include "tests/fuzz/fuzz.h"

#define SPAN (MADE_PAGES + 16) /* with the hole, and the pages that are missing */

static struct walk w;

static void lay_out(struct range_list *ranges)
{
	MUST(!range_list_add(ranges, MADE_FIRST, MADE_FIRST + 40 * PAGE_SIZE - 1, NULL));
	MUST(!range_list_add(ranges, MADE_FIRST + 44 * PAGE_SIZE, MADE_FIRST + SPAN * PAGE_SIZE - 1,
			     NULL));
	made_pieces_place();
}

static void check_table(const struct range_list *ranges, bool seen[SPAN])
{
	const struct paging_format *f = w.format;
	const size_t i = (size_t)((w.table.pa - MADE_FIRST) / PAGE_SIZE);
	const bool small = paging_entries(f, w.table.level) < TABLE_ENTRIES;

	MUST(range_list_find(ranges, w.table.pa) && w.table.pa % PAGE_SIZE == 0);
	MUST(w.table.level >= 1 && w.table.level <= f->levels);
	/* A small root's page may be a table as well: it is not marked. */
	MUST(!seen[i] || small);
	seen[i] |= !small;
}

static void check_leaf(void)
{
	const struct entry *e = &w.leaf.entry;
	const uint64_t page = UINT64_C(1) << w.format->page_shift;

	MUST(w.leaf.raw && e->size >= page && e->va % e->size == 0);
	MUST(paging_canonical(w.options.mode, e->va) == e->va);
	MUST(e->va <= paging_user_last(w.options.mode) ||
	     e->va >= paging_kernel_first(w.options.mode));
	MUST((w.leaf.raw & PTE_PRESENT) == (e->kind == ENTRY_LEAF));
	MUST(e->kind == ENTRY_LEAF || e->kind == ENTRY_ABSENT);
	MUST(e->kind != ENTRY_LEAF || (e->frame % e->size == 0 && e->frame >> 52 == 0));
	MUST(e->va <= w.options.last && e->va + (e->size - 1) >= w.options.first);
}

static void check_same_as_translation(const struct virt *v)
{
	const struct entry *e = &w.leaf.entry;
	uint64_t pa;

	MUST(virt_translate(v, e->va, &pa) == (e->kind == ENTRY_LEAF));
	if (e->kind == ENTRY_LEAF)
		MUST(pa == e->frame);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct cursor c = cursor_over(data, size);
	const uint8_t how = cur_u8(&c);
	struct walk_budget budget = { .pages = how & 0x40 ? cur_u8(&c) : 1000,
				      .deadline = UINT64_MAX };
	struct walk_options o = {
		.mode = (enum paging_mode)(PAGING_ARM64_4K_39 +
					   how % (PAGING_MODES - PAGING_ARM64_4K_39)),
		.last = UINT64_MAX,
		.budget = &budget,
		.tables_only = how & 0x20,
	};
	const uint64_t dtb = MADE_FIRST + (uint64_t)cur_u8(&c) * 0x40;
	struct range_list ranges = { 0 };
	struct physmem_pieces mem;
	bool seen[SPAN] = { false };
	struct walk_set set;
	enum walk_event event;
	uint64_t events = 0;

	o.kernel_dtb = cur_u8(&c) * UINT64_C(0x400);
	if (how & 0x80) {
		o.first = cur_le64(&c);
		o.last = cur_le64(&c);
	}
	made_tables_write(&c);
	lay_out(&ranges);
	physmem_pieces_init(&mem, made_pieces, MADE_PAGES, &ranges);
	MUST(!walk_set_init(&set, &ranges, NULL));
	walk_begin(&w, &mem.mem, &set, &o, dtb);
	while ((event = walk_next(&w)) != WALK_END) {
		const struct virt v = {
			.mem = &mem.mem, .mode = o.mode, .dtb = dtb, .kernel_dtb = o.kernel_dtb
		};

		/* An entry may name 16 pages that are all not followed. */
		MUST(++events <= UINT64_C(16) * 514 * (SPAN + 2));
		if (event == WALK_TABLE)
			check_table(&ranges, seen);
		if (event == WALK_SKIP)
			MUST(w.skip.reason < WALK_REASONS);
		if (event == WALK_LEAF) {
			check_leaf();
			check_same_as_translation(&v);
		}
	}
	MUST(w.stop != WALK_OUT_OF_BUDGET || !budget.pages);
	walk_set_deinit(&set);
	range_list_deinit(&ranges);
	return 0;
}
