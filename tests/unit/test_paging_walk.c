/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/test.h"

#include <string.h>

#include "agent/shared/paging/walk.h"
#include "tests/unit/fake_drv.h"
#include "tests/unit/machine_mem.h"
#include "tests/unit/rsz_build.h"

#define RAM_LAST UINT64_C(0x3fffffff) /* 1 GiB */
#define ROOT     UINT64_C(0x100000)
#define LEAVES   64

/* What one walk said, in order. */
struct seen {
	size_t tables, leaves, skips;
	struct walk_leaf leaf[LEAVES];
	struct walk_skip skip[LEAVES];
	uint64_t table[LEAVES];
	struct walk_counts counts;
	enum walk_stop stop;
};

static struct walk w;
static struct seen seen;

static void walk_set(struct physmem *mem, struct walk_set *set, const struct walk_options *o,
		     uint64_t dtb)
{
	enum walk_event event;

	seen = (struct seen){ 0 };
	walk_begin(&w, mem, set, o, dtb);
	while ((event = walk_next(&w)) != WALK_END) {
		if (event == WALK_TABLE && seen.tables++ < LEAVES)
			seen.table[seen.tables - 1] = w.table.pa;
		if (event == WALK_LEAF && seen.leaves++ < LEAVES)
			seen.leaf[seen.leaves - 1] = w.leaf;
		if (event == WALK_SKIP && seen.skips++ < LEAVES)
			seen.skip[seen.skips - 1] = w.skip;
	}
	assert_int_equal(walk_next(&w), WALK_END);
	seen.counts = w.counts;
	seen.stop = w.stop;
}

static void walk_mem(struct physmem *mem, const struct walk_options *o, uint64_t dtb)
{
	struct walk_set set;
	struct err e = ERR_INIT;

	CHECK_OK(walk_set_init(&set, mem->ranges, &e), &e);
	walk_set(mem, &set, o, dtb);
	walk_set_deinit(&set);
}

static void walk_machine(struct machine *m, const struct walk_options *o, uint64_t dtb)
{
	struct machine_mem mem;

	walk_mem(machine_mem_init(&mem, m, RAM_LAST), o, dtb);
	machine_mem_deinit(&mem);
}

static struct walk_options whole(enum paging_mode mode)
{
	return (struct walk_options){ .mode = mode, .last = UINT64_MAX };
}

static void begin(struct machine *m, unsigned levels)
{
	*m = (struct machine){ .levels = levels, .next = ROOT + 0x1000 };
	machine_page(m, ROOT);
}

static void check_leaf(size_t i, uint64_t va, uint64_t frame, uint64_t size)
{
	assert_true(i < seen.leaves);
	assert_int_equal(seen.leaf[i].entry.va, va);
	assert_int_equal(seen.leaf[i].entry.frame, frame);
	assert_int_equal(seen.leaf[i].entry.size, size);
	assert_int_equal(seen.leaf[i].entry.kind, ENTRY_LEAF);
}

static void check_translates(struct machine *m, enum paging_mode mode, uint64_t va, uint64_t want)
{
	struct machine_mem mem;
	struct virt v = { .mem = machine_mem_init(&mem, m, RAM_LAST), .mode = mode, .dtb = ROOT };
	uint64_t got = 0;

	assert_true(virt_translate(&v, va, &got));
	assert_int_equal(got, want);
	machine_mem_deinit(&mem);
}

TEST(four_levels_with_pages_of_three_sizes)
{
	struct walk_options o = whole(PAGING_4_LEVEL);
	struct machine m;

	begin(&m, 4);
	machine_map(&m, ROOT, 0x7ff612345000, 0x5000, 1);
	machine_map(&m, ROOT, 0xffff888000200000, 0x600000, 2);
	machine_map(&m, ROOT, 0xffffc00040000000, 0, 3);
	walk_machine(&m, &o, ROOT | 0x801); /* low bits of CR3 are a PCID */
	assert_int_equal(seen.leaves, 3);
	check_leaf(0, 0x7ff612345000, 0x5000, 0x1000);
	check_leaf(1, 0xffff888000200000, 0x600000, 0x200000);
	check_leaf(2, 0xffffc00040000000, 0, 0x40000000);
	assert_int_equal(seen.tables, 7);
	assert_int_equal(seen.table[0], ROOT);
	assert_int_equal(seen.counts.tables[4], 1);
	assert_int_equal(seen.counts.tables[3], 3);
	assert_int_equal(seen.counts.tables[2], 2);
	assert_int_equal(seen.counts.tables[1], 1);
	assert_int_equal(seen.leaf[0].pa, machine_entry(&m, ROOT, 0x7ff612345000, 1));
	check_translates(&m, PAGING_4_LEVEL, 0x7ff612345678, 0x5678);
	check_translates(&m, PAGING_4_LEVEL, 0xffff8880003fffff, 0x7fffff);
	check_translates(&m, PAGING_4_LEVEL, 0xffffc00041234567, 0x1234567);
	machine_free(&m);
}

/* Bit 12 of a large page is PAT; what lies between that and its frame makes it none. */
TEST(large_pages_may_have_one_bit_below_their_frame)
{
	struct walk_options o = whole(PAGING_4_LEVEL);
	struct machine m;

	begin(&m, 4);
	machine_map(&m, ROOT, 0x200000, 0x600000 | 0x1000, 2);
	machine_map(&m, ROOT, 0x40000000, 0x1000, 3);
	machine_map(&m, ROOT, 0x400000, 0x600000 | 0x2000, 2);
	machine_map(&m, ROOT, 0x80000000, 0x600000, 3);
	walk_machine(&m, &o, ROOT);
	assert_int_equal(seen.leaves, 2);
	check_leaf(0, 0x200000, 0x600000, 0x200000);
	check_leaf(1, 0x40000000, 0, 0x40000000);
	assert_int_equal(seen.counts.skipped[WALK_RESERVED], 2);
	machine_free(&m);
}

TEST(five_levels)
{
	struct walk_options o = whole(PAGING_5_LEVEL);
	struct machine m;

	begin(&m, 5);
	machine_map(&m, ROOT, 0x00fe123456789000, 0x5000, 1);
	machine_map(&m, ROOT, 0xff11000000200000, 0x200000, 2);
	walk_machine(&m, &o, ROOT);
	assert_int_equal(seen.leaves, 2);
	check_leaf(0, 0x00fe123456789000, 0x5000, 0x1000);
	check_leaf(1, 0xff11000000200000, 0x200000, 0x200000);
	assert_int_equal(seen.counts.tables[5], 1);
	check_translates(&m, PAGING_5_LEVEL, 0x00fe123456789abc, 0x5abc);
	machine_free(&m);
}

TEST(pae_roots_share_a_page)
{
	struct walk_options o = whole(PAGING_PAE);
	struct machine_mem mem;
	struct walk_set set;
	struct err e = ERR_INIT;
	struct machine m;
	struct physmem *p;

	begin(&m, 3);
	machine_map(&m, ROOT + 0x20, 0x00401000, 0x7000, 1);
	machine_map(&m, ROOT + 0x40, 0xc0200000, 0x800000, 2);
	p = machine_mem_init(&mem, &m, RAM_LAST);
	CHECK_OK(walk_set_init(&set, p->ranges, &e), &e);
	walk_set(p, &set, &o, ROOT + 0x20);
	assert_int_equal(seen.leaves, 1);
	check_leaf(0, 0x00401000, 0x7000, 0x1000);
	walk_set(p, &set, &o, ROOT + 0x40);
	assert_int_equal(seen.leaves, 1);
	check_leaf(0, 0xc0200000, 0x800000, 0x200000);
	assert_int_equal(seen.leaf[0].pa, machine_entry(&m, ROOT + 0x40, 0xc0200000, 2));
	walk_set_deinit(&set);
	machine_mem_deinit(&mem);
	machine_free(&m);
}

TEST(entries_that_are_not_present_come_as_they_are)
{
	struct walk_options o = whole(PAGING_4_LEVEL);
	struct machine m;

	begin(&m, 4);
	machine_u64(&m, machine_entry(&m, ROOT, 0x1000, 1), 0xdead00000080);
	machine_u64(&m, machine_entry(&m, ROOT, 0x40000000, 2), 0x1234500000000880);
	walk_machine(&m, &o, ROOT);
	assert_int_equal(seen.leaves, 2);
	assert_int_equal(seen.leaf[0].entry.kind, ENTRY_ABSENT);
	assert_int_equal(seen.leaf[0].raw, 0xdead00000080);
	assert_int_equal(seen.leaf[0].level, 1);
	assert_int_equal(seen.leaf[1].raw, 0x1234500000000880);
	assert_int_equal(seen.leaf[1].entry.size, 0x200000);
	assert_int_equal(seen.counts.absent[1], 1);
	assert_int_equal(seen.counts.absent[2], 1);
	machine_free(&m);
}

TEST(self_references_are_told_and_not_followed)
{
	struct walk_options o = whole(PAGING_4_LEVEL);
	uint64_t pdpt;
	struct machine m;

	begin(&m, 4);
	machine_map(&m, ROOT, 0x1000, 0x5000, 1);
	machine_u64(&m, ROOT + 8 * 0x1ed, ROOT | 0x63); /* a self-map */
	pdpt = machine_get(&m, ROOT) & ~UINT64_C(0xfff);
	machine_u64(&m, pdpt + 8 * 9, ROOT | 0x63); /* a way back up */
	machine_u64(&m, pdpt + 8 * 10, pdpt | 0x63);
	walk_machine(&m, &o, ROOT);
	assert_int_equal(seen.counts.skipped[WALK_SELF], 3);
	assert_int_equal(seen.tables, 4);
	assert_int_equal(seen.leaves, 1);
	assert_int_equal(seen.skip[2].pa, ROOT + 8 * 0x1ed);
	assert_int_equal(seen.skip[2].target, ROOT);
	assert_int_equal(seen.skip[2].level, 3);
	machine_free(&m);
}

TEST(shared_tables_are_visited_once_per_set)
{
	struct walk_options o = whole(PAGING_4_LEVEL);
	const uint64_t other = 0x200000;
	struct machine_mem mem;
	struct walk_set set;
	struct err e = ERR_INIT;
	struct machine m;
	struct physmem *p;

	begin(&m, 4);
	machine_map(&m, ROOT, 0xffff800000000000, 0x5000, 1);
	machine_map(&m, other, 0x1000, 0x6000, 1);
	machine_u64(&m, other + 8 * 256, machine_get(&m, ROOT + 8 * 256));
	p = machine_mem_init(&mem, &m, RAM_LAST);
	CHECK_OK(walk_set_init(&set, p->ranges, &e), &e);
	walk_set(p, &set, &o, ROOT);
	assert_int_equal(seen.tables, 4);
	walk_set(p, &set, &o, other);
	assert_int_equal(seen.tables, 4);
	assert_int_equal(seen.counts.skipped[WALK_SEEN], 1);
	walk_set(p, &set, &o, other);
	assert_int_equal(seen.tables, 0);
	assert_int_equal(seen.stop, WALK_NO_ROOT);
	assert_int_equal(set.marked, 8);
	walk_set_clear(&set);
	walk_set(p, &set, &o, other);
	assert_int_equal(seen.tables, 7);
	walk_set_deinit(&set);
	machine_mem_deinit(&mem);
	machine_free(&m);
}

TEST(what_lies_outside_the_ranges_is_not_read)
{
	struct walk_options o = whole(PAGING_4_LEVEL);
	struct machine m;

	begin(&m, 4);
	machine_u64(&m, ROOT, (RAM_LAST + 1) | 0x63);
	machine_u64(&m, ROOT + 8, UINT64_C(0xffffffffff063));
	machine_u64(&m, ROOT + 16, 0x300063); /* in the ranges, but not there */
	walk_machine(&m, &o, ROOT);
	assert_int_equal(seen.counts.skipped[WALK_OUTSIDE], 2);
	assert_int_equal(seen.counts.skipped[WALK_UNREADABLE], 1);
	walk_machine(&m, &o, RAM_LAST + 1);
	assert_int_equal(seen.stop, WALK_NO_ROOT);
	assert_int_equal(seen.skip[0].reason, WALK_OUTSIDE);
	machine_free(&m);
}

TEST(leaves_may_name_frames_outside_the_ranges)
{
	struct walk_options o = whole(PAGING_4_LEVEL);
	struct machine m;

	begin(&m, 4);
	machine_map(&m, ROOT, 0x1000, 0xfee00000, 1); /* a device */
	walk_machine(&m, &o, ROOT);
	check_leaf(0, 0x1000, 0xfee00000, 0x1000);
	machine_free(&m);
}

TEST(only_the_asked_addresses_are_walked)
{
	struct walk_options o = whole(PAGING_4_LEVEL);
	struct machine m;

	begin(&m, 4);
	machine_map(&m, ROOT, 0x1000, 0x5000, 1);
	machine_map(&m, ROOT, 0x7000, 0x6000, 1);
	machine_map(&m, ROOT, 0xffff800000000000, 0x7000, 1);
	o.last = 0x6fff;
	walk_machine(&m, &o, ROOT);
	assert_int_equal(seen.leaves, 1);
	assert_int_equal(seen.tables, 4);
	o.first = 0x7fff; /* within a page */
	o.last = UINT64_MAX;
	walk_machine(&m, &o, ROOT);
	assert_int_equal(seen.leaves, 2);
	check_leaf(0, 0x7000, 0x6000, 0x1000);
	machine_free(&m);
}

/* Every table names the next 512 pages: as many tables as there is memory. */
static void fill_with(struct machine *m, uint64_t pages, uint64_t (*entry)(uint64_t i))
{
	for (uint64_t i = 0; i < pages; i++)
		for (uint64_t k = 0; k < 512; k++)
			machine_u64(m, ROOT + i * 0x1000 + 8 * k, entry(i * 512 + k));
}

static uint64_t all_bits(uint64_t i)
{
	(void)i;
	return UINT64_MAX;
}

static uint64_t everywhere(uint64_t i)
{
	return (ROOT + i % 64 * 0x1000) | 0x63;
}

static uint64_t lcg;

static uint64_t random_word(uint64_t i)
{
	(void)i;
	lcg = lcg * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return lcg ^ lcg >> 29;
}

static uint64_t random_table(uint64_t i)
{
	return (random_word(i) & 0x3ff000) | (random_word(i) & 0x7f);
}

TEST(all_bits_set_ends)
{
	struct walk_options o = whole(PAGING_4_LEVEL);
	struct machine m;

	begin(&m, 4);
	fill_with(&m, 4, all_bits);
	walk_machine(&m, &o, ROOT);
	assert_int_equal(seen.tables, 1);
	assert_int_equal(seen.counts.skipped[WALK_RESERVED], 512);
	o.mode = PAGING_PAE;
	walk_machine(&m, &o, ROOT);
	assert_int_equal(seen.counts.skipped[WALK_RESERVED], 4);
	machine_free(&m);
}

TEST(tables_that_name_each_other_end)
{
	static const enum paging_mode modes[] = { PAGING_PAE, PAGING_4_LEVEL, PAGING_5_LEVEL };
	struct machine m;

	begin(&m, 4);
	fill_with(&m, 64, everywhere);
	for (size_t i = 0; i < ARRAY_SIZE(modes); i++) {
		struct walk_options o = whole(modes[i]);

		walk_machine(&m, &o, ROOT);
		assert_true(seen.tables <= 64);
		assert_true(seen.tables > 32);
	}
	machine_free(&m);
}

TEST(random_tables_end)
{
	struct walk_options o = whole(PAGING_5_LEVEL);
	struct machine m;

	begin(&m, 4);
	for (lcg = 1; lcg < 20; lcg++) {
		const uint64_t seed = lcg;

		fill_with(&m, 64, seed % 2 ? random_word : random_table);
		o.mode = (enum paging_mode)(3 + seed % 3);
		walk_machine(&m, &o, ROOT);
		assert_true(seen.tables <= 65);
		lcg = seed;
	}
	machine_free(&m);
}

static uint64_t ticks;

static uint64_t ticking(void)
{
	return ticks++;
}

TEST(budget_ends_a_walk)
{
	struct walk_budget budget = { .pages = 10, .deadline = UINT64_MAX };
	struct walk_options o = whole(PAGING_4_LEVEL);
	struct machine m;

	begin(&m, 4);
	fill_with(&m, 64, everywhere);
	o.budget = &budget;
	walk_machine(&m, &o, ROOT);
	assert_int_equal(seen.tables, 10);
	assert_int_equal(seen.stop, WALK_OUT_OF_BUDGET);
	assert_int_equal(budget.pages, 0);
	budget = (struct walk_budget){ .pages = UINT64_MAX, .deadline = 7, .now = ticking };
	ticks = 0;
	walk_machine(&m, &o, ROOT);
	assert_int_equal(seen.tables, 7);
	assert_int_equal(seen.stop, WALK_OUT_OF_BUDGET);
	machine_free(&m);
}

TEST(bits_that_are_no_address_can_be_ignored)
{
	const uint64_t c_bit = UINT64_C(1) << 47; /* AMD SME */
	struct walk_options o = whole(PAGING_4_LEVEL);
	struct machine m;

	begin(&m, 4);
	machine_map(&m, ROOT, 0x1000, 0x5000 | c_bit, 1);
	machine_u64(&m, ROOT, machine_get(&m, ROOT) | c_bit);
	walk_machine(&m, &o, ROOT);
	assert_int_equal(seen.leaves, 0);
	o.ignore = c_bit;
	walk_machine(&m, &o, ROOT);
	check_leaf(0, 0x1000, 0x5000, 0x1000);
	machine_free(&m);
}

TEST(virtual_memory_is_read_across_pages)
{
	struct walk_budget budget = WALK_UNLIMITED;
	struct machine_mem mem;
	struct machine m;
	struct virt v;
	char text[9] = "";

	begin(&m, 4);
	/* The later page lies before the earlier one. */
	machine_map_fresh(&m, ROOT, 0xffff800000002000, 0x1000);
	machine_map_fresh(&m, ROOT, 0xffff800000001000, 0x1000);
	machine_put_va(&m, ROOT, 0xffff800000001ffc, "ramseal!", 8);
	v = (struct virt){ .mem = machine_mem_init(&mem, &m, RAM_LAST),
			   .mode = PAGING_4_LEVEL,
			   .dtb = ROOT,
			   .budget = &budget };
	assert_true(virt_read(&v, 0xffff800000001ffc, text, 8));
	assert_string_equal(text, "ramseal!");
	assert_false(virt_read(&v, 0xffff800000002ffc, text, 8));
	assert_false(virt_read(&v, 0x0000800000001ffc, text, 8)); /* not canonical */
	budget.pages = 4;
	assert_false(virt_read(&v, 0xffff800000001ffc, text, 1));
	machine_mem_deinit(&mem);
	machine_free(&m);
}

/*
 * Physical memory
 */

static const struct drv_ops fake_ops = {
	.name = "fake", .read_max = 16 * PAGE_SIZE, .read = fake_read, .close = fake_close
};

TEST(live_memory_has_times_and_holes)
{
	uint8_t page[PAGE_SIZE], want[PAGE_SIZE];
	struct physmem_page when[4];
	struct physmem_drv m;
	struct fake f;
	uint8_t run[4 * PAGE_SIZE];

	fake_init(&f, &fake_ops, 0x1000, 0x8fff);
	f.fails = fake_fails_at_k;
	f.k = 3;
	ticks = 100;
	physmem_drv_init(&m, &f.drv, ticking);
	assert_true(physmem_read_page(&m.mem, 0x2000, page, &when[0]));
	pattern(want, 0x2000, PAGE_SIZE);
	assert_memory_equal(page, want, PAGE_SIZE);
	assert_int_equal(when[0].start, 100);
	assert_int_equal(when[0].end, 101);
	assert_false(physmem_read_page(&m.mem, 0x3000, page, NULL));
	assert_false(physmem_read_page(&m.mem, 0x9000, page, NULL));
	assert_false(physmem_read_page(&m.mem, 0x2008, page, NULL));
	assert_int_equal(physmem_read_run(&m.mem, 0x2000, run, 4, when), 4);
	assert_true(when[0].readable && !when[1].readable && when[2].readable);
	assert_int_equal(physmem_read_run(&m.mem, 0x8000, run, 4, when), 1);
	fake_deinit(&f);
}

TEST(container_memory_prefers_the_tables)
{
	struct physmem_page when;
	uint8_t page[PAGE_SIZE];
	struct rsz_cursor *c;
	struct rsz_reader *r;
	struct physmem_rsz m;
	struct err e = ERR_INIT;
	struct mem_blob blob;
	uint32_t streams[2];
	struct build *b = calloc(1, sizeof(*b));

	build_begin(b, 7, 1);
	streams[1] = build_stream(b, RSZ_KIND_MEMORY, "memory");
	streams[0] = build_stream(b, RSZ_KIND_TABLES_BEFORE, "before");
	build_chunk(b, streams[0], 50);
	build_extent(b, 0x2000, "T");
	build_put(b);
	build_chunk(b, streams[1], 500);
	build_extent(b, 0x1000, "aM.?-");
	build_put(b);
	build_close(b);
	mem_blob_init(&blob, b->out.at, b->out.len);
	CHECK_OK(rsz_reader_open(&blob.blob, RSZ_TRUST_INDEX, &r, &e), &e);
	CHECK_OK(rsz_cursor_create(r, 2, &c, &e), &e);
	CHECK_OK(physmem_rsz_init(&m, r, c, streams, 2, &e), &e);
	assert_int_equal(m.ranges.count, 1);
	assert_int_equal(m.ranges.at[0].last, 0x5fff);
	assert_true(physmem_read_page(&m.mem, 0x1000, page, &when));
	assert_int_equal(page[0], 'a');
	assert_int_equal(when.start, 500);
	assert_true(physmem_read_page(&m.mem, 0x2000, page, &when));
	assert_int_equal(page[0], 'T');
	assert_int_equal(when.start, 50);
	assert_true(physmem_read_page(&m.mem, 0x3000, page, &when));
	assert_int_equal(page[0], 0);
	assert_false(physmem_read_page(&m.mem, 0x4000, page, &when));
	assert_false(physmem_read_page(&m.mem, 0x5000, page, &when)); /* skipped, not zeros */
	physmem_rsz_deinit(&m);
	rsz_cursor_destroy(c);
	rsz_reader_close(r);
	build_deinit(b);
	free(b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(four_levels_with_pages_of_three_sizes),
		cmocka_unit_test(large_pages_may_have_one_bit_below_their_frame),
		cmocka_unit_test(five_levels),
		cmocka_unit_test(pae_roots_share_a_page),
		cmocka_unit_test(entries_that_are_not_present_come_as_they_are),
		cmocka_unit_test(self_references_are_told_and_not_followed),
		cmocka_unit_test(shared_tables_are_visited_once_per_set),
		cmocka_unit_test(what_lies_outside_the_ranges_is_not_read),
		cmocka_unit_test(leaves_may_name_frames_outside_the_ranges),
		cmocka_unit_test(only_the_asked_addresses_are_walked),
		cmocka_unit_test(all_bits_set_ends),
		cmocka_unit_test(tables_that_name_each_other_end),
		cmocka_unit_test(random_tables_end),
		cmocka_unit_test(budget_ends_a_walk),
		cmocka_unit_test(bits_that_are_no_address_can_be_ignored),
		cmocka_unit_test(virtual_memory_is_read_across_pages),
		cmocka_unit_test(live_memory_has_times_and_holes),
		cmocka_unit_test(container_memory_prefers_the_tables),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
