/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The input writes tables into 32 pages of memory, nine bytes a time: a page, an entry, and what it
 * holds. Whatever they say, the walk ends, reads each page once, and stays within memory.
 */
#define MADE_PAGES 32

#include "tests/fuzz/made_tables.h"
#include "tests/fuzz/fuzz.h"

static struct walk w;

/* Two ranges with a hole between them, and pages that are missing in the second. */
static void lay_out(struct range_list *ranges)
{
	MUST(!range_list_add(ranges, MADE_FIRST, MADE_FIRST + 16 * PAGE_SIZE - 1, NULL));
	MUST(!range_list_add(ranges, MADE_FIRST + 20 * PAGE_SIZE, MADE_FIRST + 40 * PAGE_SIZE - 1,
			     NULL));
	made_pieces_place();
}

static void check_table(const struct range_list *ranges, bool seen[MADE_PAGES * 2], bool pae)
{
	const size_t i = (size_t)((w.table.pa - MADE_FIRST) / PAGE_SIZE);

	MUST(range_list_find(ranges, w.table.pa) && w.table.pa % PAGE_SIZE == 0);
	MUST(w.table.level >= 1 && w.table.level <= (unsigned)w.options.mode);
	/* A PAE root's page may be a table as well: it is not marked. */
	MUST(!seen[i] || pae);
	seen[i] = true;
}

static void check_leaf(void)
{
	const struct entry *e = &w.leaf.entry;

	MUST(w.leaf.raw && e->size >= PAGE_SIZE && e->va % e->size == 0);
	MUST(paging_canonical(w.options.mode, e->va) == e->va);
	MUST((w.leaf.raw & PTE_PRESENT) == (e->kind == ENTRY_LEAF));
	MUST(e->kind == ENTRY_LEAF || e->kind == ENTRY_ABSENT);
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
		.mode = (enum paging_mode)(3 + how % 3),
		.last = UINT64_MAX,
		.budget = &budget,
		.tables_only = how & 0x20,
	};
	const uint64_t dtb = MADE_FIRST + (uint64_t)(how & 0x10 ? cur_u8(&c) : 0) * 0x20;
	struct range_list ranges = { 0 };
	struct physmem_pieces mem;
	bool seen[MADE_PAGES * 2] = { false };
	struct walk_set set;
	enum walk_event event;
	uint64_t events = 0;

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
		const struct virt v = { .mem = &mem.mem, .mode = o.mode, .dtb = dtb };

		MUST(++events <= UINT64_C(514) * (MADE_PAGES * 2 + 1));
		if (event == WALK_TABLE)
			check_table(&ranges, seen, o.mode == PAGING_PAE);
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
