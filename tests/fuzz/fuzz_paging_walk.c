/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The input writes tables into 32 pages of memory, nine bytes a time: a page, an entry, and what it
 * holds. Whatever they say, the walk ends, reads each page once, and stays within memory.
 */
#include <string.h>

#include "agent/shared/paging/walk.h"
#include "formats/base/bytes.h"
#include "tests/fuzz/fuzz.h"

#define PAGES 32
#define FIRST UINT64_C(0x10000)

static uint8_t memory[PAGES][PAGE_SIZE];
static struct physmem_piece pieces[PAGES];
static struct walk w;

/* Two ranges with a hole between them, and pages that are missing in the second. */
static void lay_out(struct range_list *ranges)
{
	MUST(!range_list_add(ranges, FIRST, FIRST + 16 * PAGE_SIZE - 1, NULL));
	MUST(!range_list_add(ranges, FIRST + 20 * PAGE_SIZE, FIRST + 40 * PAGE_SIZE - 1, NULL));
	for (size_t i = 0; i < PAGES; i++)
		pieces[i] = (struct physmem_piece){ FIRST + i * PAGE_SIZE, memory[i] };
}

/* Most entries name one of the pages; some are taken as they are. */
static uint64_t entry_of(uint64_t raw)
{
	if (raw >> 60 == 0xf)
		return raw;
	return (raw & UINT64_C(0x8000000000000fff)) | (FIRST + (raw >> 12 & 0x3f) * PAGE_SIZE);
}

static void write_tables(struct cursor *c)
{
	memset(memory, 0, sizeof(memory));
	while (c->left >= 10) {
		const unsigned page = cur_u8(c) % PAGES;
		const uint8_t at = cur_u8(c);
		const unsigned entry = at < 128 ? at : 512U - 256U + at;

		put_le64(memory[page] + (size_t)8 * entry, entry_of(cur_le64(c)));
	}
}

static void check_table(const struct range_list *ranges, bool seen[PAGES * 2], bool pae)
{
	const size_t i = (size_t)((w.table.pa - FIRST) / PAGE_SIZE);

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
	const uint64_t dtb = FIRST + (uint64_t)(how & 0x10 ? cur_u8(&c) : 0) * 0x20;
	struct range_list ranges = { 0 };
	struct physmem_pieces mem;
	bool seen[PAGES * 2] = { false };
	struct walk_set set;
	enum walk_event event;
	uint64_t events = 0;

	if (how & 0x80) {
		o.first = cur_le64(&c);
		o.last = cur_le64(&c);
	}
	write_tables(&c);
	lay_out(&ranges);
	physmem_pieces_init(&mem, pieces, PAGES, &ranges);
	MUST(!walk_set_init(&set, &ranges, NULL));
	walk_begin(&w, &mem.mem, &set, &o, dtb);
	while ((event = walk_next(&w)) != WALK_END) {
		const struct virt v = { .mem = &mem.mem, .mode = o.mode, .dtb = dtb };

		MUST(++events <= UINT64_C(514) * (PAGES * 2 + 1));
		if (event == WALK_TABLE)
			check_table(&ranges, seen, o.mode == PAGING_PAE);
		if (event == WALK_SKIP)
			MUST(w.skip.reason < WALK_REASONS);
		if (event == WALK_LEAF) {
			check_leaf();
			check_same_as_translation(&v);
		}
	}
	MUST(w.stop == WALK_OUT_OF_BUDGET || budget.pages || !(how & 0x40) || !w.level);
	walk_set_deinit(&set);
	range_list_deinit(&ranges);
	return 0;
}
