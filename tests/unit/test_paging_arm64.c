/* SPDX-License-Identifier: Apache-2.0 */
/* ARM64's page tables, in every format that Linux has. */
#include "tests/unit/test.h"

#include <string.h>

#include "agent/shared/kernel/linux_arm64.h"
#include "agent/shared/paging/arm64_pte.h"
#include "agent/shared/paging/walk.h"
#include "tests/gen/arm64.h"
#include "tests/unit/machine_mem.h"

#define RAM_LAST UINT64_C(0x3fffffff) /* 1 GiB */
#define FIRST    UINT64_C(0x100000)
#define LEAVES   64

struct seen {
	size_t tables, leaves, skips;
	struct walk_leaf leaf[LEAVES];
	struct walk_table table[LEAVES];
	struct walk_skip skip[LEAVES];
	struct walk_counts counts;
	enum walk_stop stop;
};

static struct walk w;
static struct seen seen;

static const struct {
	enum paging_mode mode;
	unsigned shift, va, levels;
} kernels[] = {
	{ PAGING_ARM64_4K_39, 12, 39, 3 },  { PAGING_ARM64_4K_48, 12, 48, 4 },
	{ PAGING_ARM64_4K_52, 12, 52, 5 },  { PAGING_ARM64_16K_36, 14, 36, 2 },
	{ PAGING_ARM64_16K_47, 14, 47, 3 }, { PAGING_ARM64_16K_48, 14, 48, 4 },
	{ PAGING_ARM64_16K_52, 14, 52, 4 }, { PAGING_ARM64_64K_42, 16, 42, 2 },
	{ PAGING_ARM64_64K_48, 16, 48, 3 }, { PAGING_ARM64_64K_52, 16, 52, 3 },
};

static void walk_it(struct physmem *mem, struct walk_set *set, const struct walk_options *o,
		    uint64_t dtb)
{
	enum walk_event event;

	seen = (struct seen){ 0 };
	walk_begin(&w, mem, set, o, dtb);
	while ((event = walk_next(&w)) != WALK_END) {
		if (event == WALK_TABLE && seen.tables++ < LEAVES)
			seen.table[seen.tables - 1] = w.table;
		if (event == WALK_LEAF && seen.leaves++ < LEAVES)
			seen.leaf[seen.leaves - 1] = w.leaf;
		if (event == WALK_SKIP && seen.skips++ < LEAVES)
			seen.skip[seen.skips - 1] = w.skip;
	}
	assert_int_equal(walk_next(&w), WALK_END);
	seen.counts = w.counts;
	seen.stop = w.stop;
}

static void walk_machine(struct machine *m, const struct walk_options *o, uint64_t dtb)
{
	struct machine_mem mem;
	struct walk_set set;
	struct err e = ERR_INIT;
	struct physmem *p = machine_mem_init(&mem, m, RAM_LAST);

	CHECK_OK(walk_set_init(&set, p->ranges, &e), &e);
	walk_it(p, &set, o, dtb);
	walk_set_deinit(&set);
	machine_mem_deinit(&mem);
}

/* A pair of roots. */
static struct arm64 begin(struct machine *m, unsigned shift, unsigned va, uint64_t root[2])
{
	const struct arm64 a = { m, shift, va };

	*m = (struct machine){ .next = FIRST };
	for (int i = 0; i < 2; i++)
		root[i] = arm64_new_table(&a, arm64_levels(&a));
	return a;
}

static struct walk_options whole(enum paging_mode mode, uint64_t kernel_dtb)
{
	return (struct walk_options){ .mode = mode, .last = UINT64_MAX, .kernel_dtb = kernel_dtb };
}

static void check_leaf(size_t i, uint64_t va, uint64_t frame, uint64_t size)
{
	assert_true(i < seen.leaves);
	assert_int_equal(seen.leaf[i].entry.va, va);
	assert_int_equal(seen.leaf[i].entry.frame, frame);
	assert_int_equal(seen.leaf[i].entry.size, size);
	assert_int_equal(seen.leaf[i].entry.kind, ENTRY_LEAF);
}

static bool translate(struct machine *m, enum paging_mode mode, const uint64_t root[2], uint64_t va,
		      uint64_t *got)
{
	struct machine_mem mem;
	struct virt v = { .mem = machine_mem_init(&mem, m, RAM_LAST),
			  .mode = mode,
			  .dtb = root[0],
			  .kernel_dtb = root[1] };
	const bool ok = virt_translate(&v, va, got);

	machine_mem_deinit(&mem);
	return ok;
}

static void check_translates(struct machine *m, enum paging_mode mode, const uint64_t root[2],
			     uint64_t va, uint64_t want)
{
	uint64_t got = 0;

	assert_true(translate(m, mode, root, va, &got));
	assert_int_equal(got, want);
}

/* The highest and the lowest page of both ends, and blocks of the second level. */
TEST(every_kernel_has_two_ends_of_pages_and_blocks)
{
	for (size_t k = 0; k < ARRAY_SIZE(kernels); k++) {
		const uint64_t page = UINT64_C(1) << kernels[k].shift;
		const uint64_t block = page << (kernels[k].shift - 3);
		const uint64_t end = UINT64_C(1) << kernels[k].va;
		const enum paging_mode mode = kernels[k].mode;
		struct machine m;
		uint64_t root[2];
		const struct arm64 a = begin(&m, kernels[k].shift, kernels[k].va, root);
		const struct walk_options o = whole(mode, root[1]);

		assert_int_equal(paging_format(mode)->levels, kernels[k].levels);
		arm64_map(&a, root[0], 0, 5 * page, 1);
		arm64_map(&a, root[0], end - page, 6 * page, 1);
		arm64_map(&a, root[0], block, 2 * block, 2);
		arm64_map(&a, root[1], 0 - end, 7 * page, 1);
		arm64_map(&a, root[1], 0 - page, 8 * page, 1);
		walk_machine(&m, &o, root[0]);
		assert_int_equal(seen.stop, WALK_COMPLETE);
		assert_int_equal(seen.leaves, 5);
		check_leaf(0, 0, 5 * page, page);
		check_leaf(1, block, 2 * block, block);
		check_leaf(2, end - page, 6 * page, page);
		check_leaf(3, 0 - end, 7 * page, page);
		check_leaf(4, 0 - page, 8 * page, page);
		check_translates(&m, mode, root, 0x123, 5 * page + 0x123);
		check_translates(&m, mode, root, block + page + 9, 2 * block + page + 9);
		check_translates(&m, mode, root, end - 1, 7 * page - 1);
		check_translates(&m, mode, root, 0 - end, 7 * page);
		check_translates(&m, mode, root, UINT64_MAX, 9 * page - 1);
		machine_free(&m);
	}
}

TEST(the_kernels_own_space_has_nothing_below)
{
	struct machine m;
	uint64_t root[2], got;
	const struct arm64 a = begin(&m, 12, 48, root);
	const struct walk_options o = whole(PAGING_ARM64_4K_48, root[1]);
	const struct walk_options user_only = whole(PAGING_ARM64_4K_48, 0);

	arm64_map(&a, root[0], 0x5000, 0x7000, 1);
	arm64_map(&a, root[1], UINT64_C(0xffff000000005000), 0x8000, 1);
	walk_machine(&m, &o, root[1]);
	assert_int_equal(seen.leaves, 1);
	check_leaf(0, UINT64_C(0xffff000000005000), 0x8000, 0x1000);
	assert_false(
		translate(&m, PAGING_ARM64_4K_48, (uint64_t[]){ root[1], root[1] }, 0x5000, &got));
	walk_machine(&m, &user_only, root[0]);
	assert_int_equal(seen.leaves, 1);
	check_leaf(0, 0x5000, 0x7000, 0x1000);
	assert_false(translate(&m, PAGING_ARM64_4K_48, (uint64_t[]){ root[0], 0 },
			       UINT64_C(0xffff000000005000), &got));
	machine_free(&m);
}

TEST(asid_and_cnp_are_not_part_of_a_root)
{
	assert_int_equal(paging_root(PAGING_ARM64_4K_48, UINT64_C(0x1234000041234001)), 0x41234000);
	assert_int_equal(paging_root(PAGING_ARM64_16K_48, UINT64_C(0x12340000412340f1)),
			 0x412340f0);
	/* 64 KiB: bits 5:2 are bits 51:48 of the address. */
	assert_int_equal(paging_root(PAGING_ARM64_64K_52, UINT64_C(0x1234000041230001) | 5 << 2),
			 UINT64_C(0x5000041230000));
	assert_int_equal(paging_root(PAGING_ARM64_64K_52, 0x41231fc1), 0x41230000); /* its size */
	assert_int_equal(paging_root(PAGING_ARM64_4K_52, UINT64_C(0xffff000041234081) | 15 << 2),
			 UINT64_C(0xf000041234080));
}

TEST(addresses_have_52_bits_where_the_format_has_them)
{
	const uint64_t pa = UINT64_C(0xa123456780000);
	static const enum paging_mode with[] = { PAGING_ARM64_4K_52, PAGING_ARM64_16K_52,
						 PAGING_ARM64_64K_48 };
	static const struct arm64 made[] = { { NULL, 12, 52 }, { NULL, 14, 52 }, { NULL, 16, 48 } };

	for (size_t i = 0; i < ARRAY_SIZE(with); i++) {
		const uint64_t raw = arm64_leaf_entry(&made[i], pa, 1);
		const struct entry page = entry_judge(with[i], 1, 0, 0, raw, 0);
		const struct entry table =
			entry_judge(with[i], 2, 0, 0, arm64_table_entry(&made[i], pa), 0);

		assert_int_equal(page.kind, ENTRY_LEAF);
		assert_int_equal(page.frame, pa);
		assert_int_equal(table.kind, ENTRY_TABLE);
		assert_int_equal(table.frame, pa);
	}
}

TEST(flags_do_not_reach_the_frame)
{
	/* Everything that is software's, permission's or a hint's: 63:50, 11:2. */
	const uint64_t flags = UINT64_C(0xfffc000000000ffc);
	struct entry e = entry_judge(PAGING_ARM64_4K_48, 1, 0, 3, 0x41235000 | flags | 3, 0);

	assert_int_equal(e.kind, ENTRY_LEAF);
	assert_int_equal(e.frame, 0x41235000);
	assert_int_equal(e.va, 0x3000);
	/* nT, of a block */
	e = entry_judge(PAGING_ARM64_4K_48, 2, 0, 1, 0x41210000 | 0x401, 0);
	assert_int_equal(e.kind, ENTRY_LEAF);
	assert_int_equal(e.frame, 0x41200000);
}

static void check_reserved(enum paging_mode mode, unsigned level, uint64_t raw)
{
	assert_int_equal(entry_judge(mode, level, 0, 0, raw, 0).kind, ENTRY_RESERVED);
}

TEST(impossible_entries_are_told)
{
	check_reserved(PAGING_ARM64_4K_48, 1, 0x41234001);             /* a block of 4 KiB */
	check_reserved(PAGING_ARM64_4K_48, 4, UINT64_C(0x8000000001)); /* one of 512 GiB */
	check_reserved(PAGING_ARM64_4K_39, 2, 0x41202001);             /* not aligned */
	check_reserved(PAGING_ARM64_4K_39, 3, 0x40200001);
	check_reserved(PAGING_ARM64_4K_48, 1, UINT64_C(0x1000041234003)); /* bit 48 */
	check_reserved(PAGING_ARM64_4K_48, 2, UINT64_C(0x2000041234003)); /* bit 49 */
	check_reserved(PAGING_ARM64_64K_48, 1, UINT64_C(0x1000041230003));
	check_reserved(PAGING_ARM64_16K_47, 3, UINT64_C(0x1000000001)); /* one of 64 GiB */
	check_reserved(PAGING_ARM64_16K_47, 1, 0x41235003);             /* not aligned */
	check_reserved(PAGING_ARM64_16K_52, 1, 0x41235003);
	check_reserved(PAGING_ARM64_64K_42, 1, 0x41230001);
	assert_int_equal(entry_judge(PAGING_ARM64_4K_52, 4, 0, 0, 1, 0).kind, ENTRY_LEAF);
	assert_int_equal(entry_judge(PAGING_ARM64_16K_52, 3, 0, 0, 1, 0).kind, ENTRY_LEAF);
	assert_int_equal(entry_judge(PAGING_ARM64_4K_48, 1, 0, 0, 2, 0).kind, ENTRY_ABSENT);
	assert_int_equal(entry_judge(PAGING_ARM64_4K_48, 1, 0, 0, 0, 0).kind, ENTRY_ZERO);
}

TEST(an_address_belongs_to_the_end_that_bit_55_says)
{
	assert_int_equal(paging_canonical(PAGING_ARM64_4K_39, UINT64_C(0x7fffffffff)),
			 UINT64_C(0x7fffffffff));
	assert_int_equal(paging_canonical(PAGING_ARM64_4K_39, UINT64_C(0xb700007f12345000)),
			 UINT64_C(0x7f12345000)); /* a tag */
	assert_int_equal(paging_canonical(PAGING_ARM64_4K_48, UINT64_C(0x00ff000012345000)),
			 UINT64_C(0xffff000012345000));
	assert_int_equal(paging_user_last(PAGING_ARM64_64K_42), UINT64_C(0x3ffffffffff));
	assert_int_equal(paging_kernel_first(PAGING_ARM64_4K_52), UINT64_C(0xfff0000000000000));
	assert_int_equal(paging_user_last(PAGING_4_LEVEL), UINT64_C(0x7fffffffffff));
	assert_int_equal(paging_kernel_first(PAGING_4_LEVEL), UINT64_C(0xffff800000000000));
	assert_int_equal(paging_kernel_first(PAGING_5_LEVEL), UINT64_C(0xff00000000000000));
}

TEST(addresses_between_the_ends_lead_nowhere)
{
	struct machine m;
	uint64_t root[2], got;
	const struct arm64 a = begin(&m, 12, 39, root);

	arm64_map(&a, root[0], 0, 0x7000, 1);
	arm64_map(&a, root[1], UINT64_C(0xffffff8000000000), 0x8000, 1);
	assert_false(translate(&m, PAGING_ARM64_4K_39, root, UINT64_C(0x8000000000), &got));
	assert_false(translate(&m, PAGING_ARM64_4K_39, root, UINT64_C(0xffffff0000000000), &got));
	assert_false(translate(&m, PAGING_ARM64_4K_39, root, UINT64_C(0x0100000000000000), &got));
	machine_free(&m);
}

/* Of 16 pages one is missing: its part is told, and the others are read. */
TEST(a_large_table_is_read_in_parts)
{
	struct machine m;
	uint64_t root[2], table;
	const struct arm64 a = begin(&m, 16, 42, root);
	const struct walk_options o = whole(PAGING_ARM64_64K_42, 0);
	struct walk_options one = o;

	arm64_map(&a, root[0], 0, 0x50000, 1);
	arm64_map(&a, root[0], UINT64_C(600) << 16, 0x60000, 1);
	arm64_map(&a, root[0], UINT64_C(8191) << 16, 0x70000, 1);
	table = arm64_entry(&a, root[0], 0, 1);
	machine_forget(&m, table + 0x1000);
	walk_machine(&m, &o, root[0]);
	assert_int_equal(seen.tables, 16 + 15);
	assert_int_equal(seen.leaves, 2);
	check_leaf(0, 0, 0x50000, 0x10000);
	check_leaf(1, UINT64_C(8191) << 16, 0x70000, 0x10000);
	assert_int_equal(seen.leaf[1].pa, table + UINT64_C(8) * 8191);
	assert_int_equal(seen.skips, 1);
	assert_int_equal(seen.skip[0].reason, WALK_UNREADABLE);
	assert_int_equal(seen.skip[0].va, UINT64_C(512) << 16);
	assert_int_equal(seen.skip[0].target, table + 0x1000);
	assert_int_equal(seen.stop, WALK_COMPLETE);
	one.first = one.last = UINT64_C(8191) << 16;
	walk_machine(&m, &one, root[0]);
	assert_int_equal(seen.tables, 2); /* the page of each table that has it */
	assert_int_equal(seen.leaves, 1);
	machine_free(&m);
}

TEST(circles_are_told_and_not_followed)
{
	struct machine m;
	uint64_t root[2], table;
	const struct arm64 a = begin(&m, 14, 47, root);
	const struct walk_options o = whole(PAGING_ARM64_16K_47, root[1]);

	arm64_map(&a, root[0], 0, 0x50000, 1);
	table = arm64_entry(&a, root[0], 0, 2);
	machine_u64(&m, root[0] + 8 * 2000, arm64_table_entry(&a, root[0]));
	machine_u64(&m, table + 8 * 1999, arm64_table_entry(&a, root[0]));
	machine_u64(&m, table + 8 * 1998, arm64_table_entry(&a, table));
	machine_u64(&m, root[1], arm64_table_entry(&a, root[0])); /* from the other end */
	walk_machine(&m, &o, root[0]);
	assert_int_equal(seen.counts.skipped[WALK_SELF], 3);
	assert_int_equal(seen.counts.skipped[WALK_SEEN], 4);
	assert_int_equal(seen.leaves, 1);
	machine_free(&m);
}

TEST(tables_beyond_memory_are_told)
{
	struct machine m;
	uint64_t root[2];
	const struct arm64 a = begin(&m, 16, 52, root);
	const struct walk_options o = whole(PAGING_ARM64_64K_52, root[1]);

	machine_u64(&m, root[0], arm64_table_entry(&a, UINT64_C(0xf000000010000)));
	walk_machine(&m, &o, root[0]);
	assert_int_equal(seen.counts.skipped[WALK_OUTSIDE], 16);
	assert_int_equal(seen.leaves, 0);
	assert_int_equal(seen.stop, WALK_COMPLETE);
	walk_machine(&m, &o, UINT64_C(0x40000000));
	assert_int_equal(seen.stop, WALK_NO_ROOT);
	machine_free(&m);
}

/* The kernel's end belongs to each process: a second one has seen it. */
TEST(processes_share_the_kernels_root)
{
	struct machine m;
	uint64_t root[2], other;
	const struct arm64 a = begin(&m, 12, 48, root);
	const struct walk_options o = whole(PAGING_ARM64_4K_48, root[1]);
	struct err e = ERR_INIT;
	struct machine_mem mem;
	struct walk_set set;
	struct physmem *p;

	other = arm64_new_table(&a, 4);
	arm64_map(&a, other, 0x9000, 0xa000, 1);
	arm64_map(&a, root[1], UINT64_MAX - 0xfff, 0x8000, 1);
	p = machine_mem_init(&mem, &m, RAM_LAST);
	CHECK_OK(walk_set_init(&set, p->ranges, &e), &e);
	walk_it(p, &set, &o, root[0]);
	assert_int_equal(seen.leaves, 1);
	walk_it(p, &set, &o, other);
	assert_int_equal(seen.leaves, 1);
	check_leaf(0, 0x9000, 0xa000, 0x1000);
	assert_int_equal(seen.counts.skipped[WALK_SEEN], 1);
	assert_int_equal(seen.stop, WALK_COMPLETE);
	walk_set_deinit(&set);
	machine_mem_deinit(&mem);
	machine_free(&m);
}

/* With 64 KiB pages and 48 bits a root has 64 entries, and shares its page with others. */
TEST(small_roots_share_a_page)
{
	struct machine m;
	uint64_t root[2];
	const struct arm64 a = begin(&m, 16, 48, root);
	const struct walk_options o = whole(PAGING_ARM64_64K_48, root[0] + 0x200);

	arm64_map(&a, root[0] + 0x400, 0x10000, 0x50000, 1);
	arm64_map(&a, root[0] + 0x200, UINT64_MAX - 0xffff, 0x60000, 1);
	arm64_map(&a, root[0], 0x20000, 0x70000, 1);
	walk_machine(&m, &o, root[0] + 0x400);
	assert_int_equal(seen.leaves, 2);
	check_leaf(0, 0x10000, 0x50000, 0x10000);
	check_leaf(1, UINT64_MAX - 0xffff, 0x60000, 0x10000);
	machine_free(&m);
}

TEST(modes_are_found_by_granule_and_bits)
{
	enum paging_mode mode;

	for (size_t k = 0; k < ARRAY_SIZE(kernels); k++) {
		assert_true(paging_mode_of_arm64(UINT64_C(1) << kernels[k].shift, kernels[k].va,
						 &mode));
		assert_int_equal(mode, kernels[k].mode);
	}
	assert_false(paging_mode_of_arm64(4096, 47, &mode));
	assert_false(paging_mode_of_arm64(65536, 39, &mode));
	assert_false(paging_mode_of_arm64(0, 0, &mode));
	assert_null(paging_format_find((enum paging_mode)0));
	assert_null(paging_format_find(PAGING_MODES));
	assert_non_null(paging_format_find(PAGING_PAE));
}

/*
 * The kernel, by VMCOREINFO
 */

/* As Debian's 6.12 writes it, of a machine whose RAM begins at 1 GiB. */
#define IMAGE    UINT64_C(0xffff800080000000)
#define IMAGE_PA UINT64_C(0x200000)
#define TEXT                                                                                       \
	"OSRELEASE=6.12.1-arm64\nPAGESIZE=4096\nSYMBOL(swapper_pg_dir)=ffff800080010000\n"         \
	"SYMBOL(_stext)=ffff800080020000\nNUMBER(VA_BITS)=48\n"                                    \
	"NUMBER(kimage_voffset)=0xffff80007fe00000\nNUMBER(PHYS_OFFSET)=0x40000000\n"              \
	"NUMBER(TCR_EL1_T1SZ)=0x10\n"

/* The same text with one thing replaced. */
static struct vmcoreinfo told(const char *what, const char *by)
{
	struct vmcoreinfo v = { 0 };
	const char *at = strstr(TEXT, what);

	assert_non_null(at);
	v.len = (size_t)snprintf(v.text, sizeof(v.text), "%.*s%s%s", (int)(at - TEXT), TEXT, by,
				 at + strlen(what));
	return v;
}

static void check_refused(const char *what, const char *by, const char *message)
{
	const struct vmcoreinfo v = told(what, by);
	struct arm64_kernel k;
	struct err e = ERR_INIT;

	assert_int_equal(arm64_kernel_init(&k, &v, &e), ST_CORRUPT);
	assert_non_null(strstr(e.message, message));
	assert_null(strchr(e.message, '\n'));
}

TEST(vmcoreinfo_tells_where_the_tables_are)
{
	struct vmcoreinfo v = told("", "");
	struct err e = ERR_INIT;
	struct arm64_kernel k;

	assert_true(vmcoreinfo_is_arm64(&v));
	CHECK_OK(arm64_kernel_init(&k, &v, &e), &e);
	assert_int_equal(k.mode, PAGING_ARM64_4K_48);
	assert_int_equal(k.page_size, 4096);
	assert_int_equal(k.root, IMAGE_PA + 0x10000);
	assert_int_equal(k.linear_base, UINT64_C(0xfffeffffc0000000));
	v = told("OSRELEASE=6.12.1", "OSRELEASE=4.19.1"); /* the other half */
	CHECK_OK(arm64_kernel_init(&k, &v, &e), &e);
	assert_int_equal(k.linear_base, UINT64_C(0xffff7fffc0000000));
	v = told("NUMBER(TCR_EL1_T1SZ)=0x10\n", ""); /* older kernels */
	CHECK_OK(arm64_kernel_init(&k, &v, &e), &e);
	assert_int_equal(k.mode, PAGING_ARM64_4K_48);
	v = told("NUMBER(kimage_voffset)=0xffff80007fe00000\n", "");
	assert_false(vmcoreinfo_is_arm64(&v));
}

TEST(t1sz_tells_more_than_va_bits)
{
	struct vmcoreinfo v = told("PAGESIZE=4096", "PAGESIZE=65536");
	struct err e = ERR_INIT;
	struct arm64_kernel k;

	memcpy(strstr(v.text, "VA_BITS)=48"), "VA_BITS)=52", 11);
	CHECK_OK(arm64_kernel_init(&k, &v, &e), &e);
	assert_int_equal(k.mode, PAGING_ARM64_64K_48);
	assert_int_equal(k.root, IMAGE_PA + 0x10000 + 0x1e00);
	v = told("PAGESIZE=4096", "PAGESIZE=16384");
	memcpy(strstr(v.text, "VA_BITS)=48"), "VA_BITS)=52", 11);
	memcpy(strstr(v.text, "T1SZ)=0x10"), "T1SZ)=0x11", 10);
	CHECK_OK(arm64_kernel_init(&k, &v, &e), &e);
	assert_int_equal(k.mode, PAGING_ARM64_16K_47);
	assert_int_equal(k.root, IMAGE_PA + 0x10000);
}

TEST(vmcoreinfo_that_lies_is_refused_with_one_line)
{
	check_refused("PAGESIZE=4096", "PAGESIZE=8192", "pages of 8192 bytes");
	check_refused("PAGESIZE=4096\n", "", "pages of 0 bytes");
	check_refused("VA_BITS)=48", "VA_BITS)=47", "no Linux for ARM64 has");
	check_refused("VA_BITS)=48", "VA_BITS)=99999999999", "no Linux for ARM64 has");
	check_refused("VA_BITS)=48", "VA_BITS)=39", "contradicts itself");
	check_refused("T1SZ)=0x10", "T1SZ)=0xffffffffffffffff", "contradicts itself");
	check_refused("T1SZ)=0x10", "T1SZ)=0x19", "contradicts itself");
	check_refused("0xffff80007fe00000", "0x1000", "no place for them");
	check_refused("0xffff80007fe00000", "0xffff80007fe00800", "no place for them");
	check_refused("0xffff80007fe00000", "0xffff8000zz", "does not say where");
	check_refused("SYMBOL(swapper_pg_dir)=ffff800080010000", "SYMBOL(swapper_pg_dir)=10000",
		      "no place for them");
}

/* Its own tables, which map 2 MiB of the image and the linear map's page of the root. */
static void begin_kernel(struct machine *m, uint64_t linear)
{
	const struct arm64 a = { m, 12, 48 };
	const uint64_t root = IMAGE_PA + 0x10000;

	*m = (struct machine){ .next = UINT64_C(0x800000) };
	machine_page(m, root);
	arm64_map(&a, root, IMAGE, IMAGE_PA, 2);
	arm64_map(&a, root, linear + root, root, 1);
}

static enum status check_kernel(struct machine *m, const struct vmcoreinfo *v,
				struct arm64_kernel *k, struct err *e)
{
	struct machine_mem mem;
	struct physmem *p = machine_mem_init(&mem, m, RAM_LAST);
	struct virt space;
	enum status st;

	CHECK_OK(arm64_kernel_init(k, v, e), e);
	space = arm64_kernel_space(k, p, NULL);
	st = arm64_kernel_check(k, v, &space, e);
	machine_mem_deinit(&mem);
	return st;
}

TEST(the_tables_must_have_the_kernel_where_vmcoreinfo_says)
{
	const struct vmcoreinfo v = told("0x40000000", "0x0");
	const struct vmcoreinfo lying = told("0x40000000", "0x80000000");
	const struct vmcoreinfo apart =
		told("SYMBOL(_stext)=ffff800080020000", "SYMBOL(_stext)=ffff800080220000");
	const uint64_t linear = UINT64_C(0xffff000000000000);
	const struct arm64 a = { NULL, 12, 48 };
	struct err e = ERR_INIT;
	struct arm64_kernel k;
	struct machine m;

	begin_kernel(&m, linear);
	CHECK_OK(check_kernel(&m, &v, &k, &e), &e);
	assert_true(k.has_linear);
	assert_int_equal(k.linear_base, linear);
	CHECK_OK(check_kernel(&m, &lying, &k, &e), &e);
	assert_false(k.has_linear);
	assert_int_equal(check_kernel(&m, &apart, &k, &e), ST_CORRUPT);
	assert_non_null(strstr(e.message, "do not map the kernel's code"));
	machine_u64(&m, arm64_entry(&(struct arm64){ &m, 12, 48 }, k.root, IMAGE, 2),
		    arm64_leaf_entry(&a, 0x400000, 2));
	e = (struct err)ERR_INIT;
	assert_int_equal(check_kernel(&m, &v, &k, &e), ST_CORRUPT);
	assert_non_null(strstr(e.message,
			       "have the kernel's code at 0x420000, but VMCOREINFO at 0x220000"));
	machine_free(&m);
}

/*
 * Entries that are not present
 */

static const struct linux_pte_layout *kinds_of(uint32_t version)
{
	const struct linux_pte_layout *ret = NULL;

	for (size_t i = 0; i < linux_pte_layout_count; i++)
		if (linux_pte_layouts[i].since <= version)
			ret = &linux_pte_layouts[i];
	return ret;
}

static struct pte decode(uint32_t version, enum paging_mode mode, unsigned level, uint64_t raw)
{
	const struct arm64_pte_context c = { arm64_pte_layout_find(version), kinds_of(version),
					     true, mode, 48 };

	assert_non_null(c.layout);
	return arm64_pte_decode(&c, level, raw);
}

static void check_swap(uint32_t version, uint64_t raw, uint32_t file, uint64_t slot)
{
	const struct pte p = decode(version, PAGING_ARM64_4K_48, 1, raw);

	assert_int_equal(p.state, PTE_SWAP);
	assert_int_equal(p.file, file);
	assert_int_equal(p.slot, slot);
	assert_false(p.has_frame);
}

TEST(swap_entries_stand_where_the_version_has_them)
{
	const uint64_t slot = UINT64_C(0x12345);

	check_swap(510, 3 << 2 | slot << 8, 3, slot);
	check_swap(601, 3 << 3 | slot << 8, 3, slot);
	check_swap(612, 3 << 6 | slot << 12, 3, slot);
	check_swap(612, UINT64_C(0x3ffffffffffff) << 12, 0, UINT64_C(0x3ffffffffffff));
	assert_true(decode(601, PAGING_ARM64_4K_48, 1, 1 << 2 | slot << 8).exclusive);
	assert_false(decode(510, PAGING_ARM64_4K_48, 1, 1 << 2 | slot << 8).exclusive);
	assert_true(decode(612, PAGING_ARM64_4K_48, 1, 1 << 2 | slot << 12).exclusive);
	assert_true(decode(612, PAGING_ARM64_4K_48, 1, 1 << 3 | slot << 12).uffd_wp);
	/* Nobody has looked at what lies between, or beyond. */
	assert_null(arm64_pte_layout_find(606));
	assert_null(arm64_pte_layout_find(613));
	assert_null(arm64_pte_layout_find(0));
}

TEST(no_kernel_writes_such_swap_entries)
{
	assert_int_equal(decode(601, PAGING_ARM64_4K_48, 1, UINT64_C(1) << 60).state, PTE_UNKNOWN);
	assert_int_equal(decode(612, PAGING_ARM64_4K_48, 1, 1 << 4 | 1 << 12).state, PTE_UNKNOWN);
	assert_int_equal(decode(510, PAGING_ARM64_4K_48, 1, 1 << 7 | 1 << 8).state, PTE_UNKNOWN);
	assert_int_equal(decode(612, PAGING_ARM64_4K_48, 1, 2 | 1 << 12).state, PTE_UNKNOWN);
}

static void check_kept(uint32_t version, enum paging_mode mode, unsigned level, uint64_t raw,
		       uint64_t frame)
{
	const struct pte p = decode(version, mode, level, raw);

	assert_int_equal(p.state, PTE_PROT_NONE);
	assert_true(p.has_frame);
	assert_int_equal(p.frame, frame);
}

TEST(prot_none_keeps_its_frame)
{
	const uint64_t old = UINT64_C(1) << 58, new = 1 << 11, invalid = UINT64_C(1) << 59;
	const struct arm64 lpa = { NULL, 16, 52 };
	const uint64_t far = UINT64_C(0xa000041230000);

	check_kept(601, PAGING_ARM64_4K_48, 1, old | 0x41235000 | 2, 0x41235000);
	check_kept(612, PAGING_ARM64_4K_48, 1, new | 0x41235000 | 2, 0x41235000);
	check_kept(601, PAGING_ARM64_4K_48, 2, invalid | 0x41200000, 0x41200000);
	check_kept(612, PAGING_ARM64_64K_52, 1,
		   (arm64_leaf_entry(&lpa, far, 1) & ~UINT64_C(1)) | new, far);
	/* Not aligned as a block is. */
	assert_int_equal(decode(612, PAGING_ARM64_4K_48, 2, new | 0x41201000).state, PTE_UNKNOWN);
	assert_int_equal(decode(601, PAGING_ARM64_4K_48, 1, invalid | 0x41235000).state,
			 PTE_UNKNOWN);
	assert_int_equal(decode(612, PAGING_ARM64_4K_48, 1, 0x41235f43).frame, 0x41235000);
	assert_int_equal(decode(612, PAGING_ARM64_4K_48, 1, 0x41235f41).state, PTE_UNKNOWN);
	assert_int_equal(decode(612, PAGING_ARM64_4K_48, 1, 0).state, PTE_EMPTY);
}

/* The types of 6.12 are 32 less a marker, four devices, three migrations and a poisoned one. */
TEST(special_entries_have_the_kernels_frame_numbers)
{
	const uint64_t migration = 24, marker = 31;
	const struct pte small =
		decode(612, PAGING_ARM64_4K_48, 1, migration << 6 | UINT64_C(0x41235) << 12);
	const struct pte large =
		decode(612, PAGING_ARM64_64K_48, 1, migration << 6 | UINT64_C(0x4123) << 12);
	/* Young and dirty, above 48 bits. */
	const uint64_t aged = migration << 6 | (UINT64_C(0x4123) | UINT64_C(3) << 32) << 12;
	struct arm64_pte_context unsure = { arm64_pte_layout_find(612), kinds_of(612), true,
					    PAGING_ARM64_64K_48, 0 };
	const struct pte mark = decode(612, PAGING_ARM64_4K_48, 1, marker << 6 | 2 << 12);

	assert_int_equal(small.state, PTE_MIGRATION);
	assert_int_equal(small.frame, 0x41235000);
	assert_int_equal(large.state, PTE_MIGRATION);
	assert_int_equal(large.frame, 0x41230000);
	assert_int_equal(decode(612, PAGING_ARM64_64K_48, 1, aged).frame, 0x41230000);
	assert_int_equal(arm64_pte_decode(&unsure, 1, aged).state, PTE_UNKNOWN);
	assert_int_equal(mark.state, PTE_MARKER);
	assert_int_equal(mark.marker, LINUX_MARKER_POISONED);
	assert_int_equal(decode(612, PAGING_ARM64_4K_48, 1, marker << 6).state, PTE_UNKNOWN);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_kernel_has_two_ends_of_pages_and_blocks),
		cmocka_unit_test(the_kernels_own_space_has_nothing_below),
		cmocka_unit_test(asid_and_cnp_are_not_part_of_a_root),
		cmocka_unit_test(addresses_have_52_bits_where_the_format_has_them),
		cmocka_unit_test(flags_do_not_reach_the_frame),
		cmocka_unit_test(impossible_entries_are_told),
		cmocka_unit_test(an_address_belongs_to_the_end_that_bit_55_says),
		cmocka_unit_test(addresses_between_the_ends_lead_nowhere),
		cmocka_unit_test(a_large_table_is_read_in_parts),
		cmocka_unit_test(circles_are_told_and_not_followed),
		cmocka_unit_test(tables_beyond_memory_are_told),
		cmocka_unit_test(processes_share_the_kernels_root),
		cmocka_unit_test(small_roots_share_a_page),
		cmocka_unit_test(modes_are_found_by_granule_and_bits),
		cmocka_unit_test(swap_entries_stand_where_the_version_has_them),
		cmocka_unit_test(no_kernel_writes_such_swap_entries),
		cmocka_unit_test(prot_none_keeps_its_frame),
		cmocka_unit_test(special_entries_have_the_kernels_frame_numbers),
		cmocka_unit_test(vmcoreinfo_tells_where_the_tables_are),
		cmocka_unit_test(t1sz_tells_more_than_va_bits),
		cmocka_unit_test(vmcoreinfo_that_lies_is_refused_with_one_line),
		cmocka_unit_test(the_tables_must_have_the_kernel_where_vmcoreinfo_says),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
