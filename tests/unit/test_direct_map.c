/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A machine of 8 MiB whose direct map has holes, and which is read through that map, as
 * /proc/kcore is: what is not mapped comes as zeros.
 */
#include "driver-interface/direct_map.h"

#include <string.h>

#include "formats/base/bytes.h"
#include "tests/gen/images.h"
#include "tests/unit/test.h"

#define PAGES   2048
#define RAM     (PAGES * (uint64_t)PAGE_SIZE)
#define BASE    UINT64_C(0xffff888000000000)
#define PAGE(n) ((uint64_t)(n) * PAGE_SIZE)
#define PRESENT 1
#define LARGE   0x80

/* Pages with tables. PTES is for the first 2 MiB; the rest are blocks of 2 MiB. */
enum { ROOT5 = 10, ROOT, PUDS, PMDS, PTES };

static const struct direct_format four_levels = { ARCH_X86_64, 12, 48 };
static const struct direct_format five_levels = { ARCH_X86_64, 12, 57 };

static uint8_t memory[RAM];
static bool unmapped[PAGES]; /* for who reads through the map, whatever tables say */
static size_t table_reads;
static struct direct_map map;
static uint8_t got[RAM];
/* Called before and after this page is read, as long as it is set. */
static uint64_t hook_at;
static void (*hook_before)(void), (*hook_after)(void);

static void set(unsigned page, size_t i, uint64_t entry)
{
	put_le64(memory + PAGE(page) + i * 8, entry);
}

static struct drv_result read_through(void *arg, uint64_t addr, void *buf, size_t len)
{
	const bool hooked = hook_at >= addr && hook_at < addr + len;

	(void)arg;
	table_reads += addr >= PAGE(ROOT5) && addr <= PAGE(PTES) && len == PAGE_SIZE;
	if (addr >= RAM)
		return (struct drv_result){ .error = DRV_NO_DATA, .exact = true };
	if (hooked && hook_before)
		hook_before();
	for (size_t at = 0; at < len; at += PAGE_SIZE) {
		const uint64_t page = (addr + at) / PAGE_SIZE;

		if (unmapped[page])
			memset((uint8_t *)buf + at, 0, PAGE_SIZE);
		else
			memcpy((uint8_t *)buf + at, memory + PAGE(page), PAGE_SIZE);
	}
	if (hooked && hook_after)
		hook_after();
	return (struct drv_result){ .good = len };
}

static int setup(void **state)
{
	(void)state;
	pattern(memory, 0, sizeof(memory));
	memset(unmapped, 0, sizeof(unmapped));
	memset(memory + PAGE(ROOT5), 0, PAGE(PTES - ROOT5));
	set(ROOT5, 511, PAGE(ROOT) | PRESENT);
	set(ROOT, 273, PAGE(PUDS) | PRESENT);
	set(PUDS, 0, PAGE(PMDS) | PRESENT);
	set(PMDS, 0, PAGE(PTES) | PRESENT);
	for (size_t i = 1; i < 4; i++)
		set(PMDS, i, i << 21 | PRESENT | LARGE);
	for (size_t i = 0; i < 512; i++)
		set(PTES, i, PAGE(i) | PRESENT);
	hook_before = hook_after = NULL;
	hook_at = UINT64_MAX;
	assert_true(direct_map_init(&map, PAGE(ROOT), BASE, &four_levels, RAM, read_through, NULL));
	return 0;
}

/* As memfd_secret does it: the page has content, and its entry goes. */
static void make_hole(unsigned page)
{
	set(PTES, page, PAGE(page));
	unmapped[page] = true;
}

static void fill_hole(unsigned page)
{
	set(PTES, page, PAGE(page) | PRESENT);
	unmapped[page] = false;
}

/* What one read of [first, last] gives: pages that are good, and behind them pages that are not. */
static void check(unsigned first, unsigned last, size_t good, size_t bad)
{
	const struct drv_result r = direct_map_read(&map, PAGE(first), got, PAGE(last - first + 1));

	assert_int_equal(r.good, PAGE(good));
	assert_int_equal(r.bad, bad);
	assert_int_equal(r.error, bad ? DRV_UNMAPPED : 0);
	assert_int_equal(r.exact, bad != 0);
	assert_memory_equal(got, memory + PAGE(first), PAGE(good));
}

TEST(hole_is_an_error_and_its_neighbours_are_read)
{
	for (unsigned i = 100; i < 164; i++)
		make_hole(i);
	check(90, 200, 10, 64);
	check(164, 200, 37, 0);
	check(100, 100, 0, 1);
	check(163, 163, 0, 1);
	check(99, 99, 1, 0);
}

TEST(page_of_zeros_that_is_mapped_is_one)
{
	memset(memory + PAGE(100), 0, PAGE(3));
	memset(memory + PAGE(600), 0, PAGE(300)); /* in blocks of 2 MiB */
	make_hole(103);
	check(90, 110, 13, 1);
	check(500, 1500, 1001, 0);
	check(100, 100, 1, 0);
}

TEST(blocks_can_be_holes_too)
{
	set(PMDS, 2, UINT64_C(2) << 21 | LARGE);
	for (unsigned i = 1024; i < 1536; i++)
		unmapped[i] = true;
	check(0, PAGES - 1, 1024, 512);
	check(1536, PAGES - 1, 512, 0);
	set(PUDS, 0, 0);
	unmapped[5] = true;
	check(0, 20, 5, 1);
}

static void make_hole_of_100(void)
{
	make_hole(100);
}

static void fill_hole_of_100(void)
{
	fill_hole(100);
	memset(memory + PAGE(100), 0, PAGE_SIZE);
}

/* Zeros are believed only of a page that was mapped on both sides of the read. */
TEST(holes_that_come_and_go_during_the_read_are_noticed)
{
	hook_at = PAGE(100);
	hook_before = make_hole_of_100;
	check(90, 110, 10, 1);

	setup(NULL);
	make_hole(100);
	direct_map_forget(&map);
	hook_at = PAGE(100);
	hook_after = fill_hole_of_100;
	check(90, 110, 10, 1);

	/* The next read finds it mapped, and its zeros are its own. */
	hook_after = NULL;
	check(90, 110, 21, 0);
}

TEST(what_reads_as_anything_but_zeros_was_mapped)
{
	set(PTES, 100, 0);
	check(90, 110, 21, 0);
	/* A kernel that claims holes everywhere loses its pages of zeros, and nothing else. */
	memset(memory + PAGE(300), 0, PAGE(2));
	for (size_t i = 0; i < 512; i++)
		set(PUDS, i, LARGE);
	check(0, PAGES - 1, 300, 2);
	check(302, PAGES - 1, PAGES - 302, 0);
}

/* Then the bytes are another page's. */
static void put_right(void)
{
	set(PTES, 100, PAGE(100) | PRESENT);
}

TEST(entry_that_names_another_frame_gives_another_page)
{
	set(PTES, 100, PAGE(200) | PRESENT);
	direct_map_forget(&map);
	check(90, 110, 10, 1);
	set(PMDS, 1, UINT64_C(2) << 21 | PRESENT | LARGE);
	check(511, 1030, 1, 512);
	/* It was so before the read, and not behind it: nobody knows, and bytes are kept. */
	hook_at = PAGE(100);
	hook_before = put_right;
	check(90, 110, 21, 0);
}

TEST(table_that_cannot_be_read_vouches_for_no_zeros)
{
	size_t n;

	memset(memory + PAGE(100), 0, PAGE_SIZE);
	set(PMDS, 0, RAM * 8 | PRESENT);
	assert_int_equal(direct_map_look(&map, PAGE(100), 1, &n),
			 DIRECT_MAPPED); /* as remembered */
	check(90, 110, 10, 1);
	assert_int_equal(direct_map_look(&map, PAGE(100), 1, &n), DIRECT_UNKNOWN);
	check(101, 110, 10, 0);
}

/* AMD's C-bit and TDX's shared bit stand above all memory. */
TEST(bit_above_memory_is_no_address)
{
	const uint64_t bit = UINT64_C(1) << 47;
	size_t n;

	set(ROOT, 273, PAGE(PUDS) | PRESENT | bit);
	set(PUDS, 0, PAGE(PMDS) | PRESENT | bit);
	set(PMDS, 0, PAGE(PTES) | PRESENT | bit);
	set(PMDS, 1, 1 << 21 | PRESENT | LARGE | bit);
	for (size_t i = 0; i < 512; i++)
		set(PTES, i, PAGE(i) | PRESENT | bit);
	direct_map_forget(&map);
	assert_int_equal(direct_map_look(&map, 0, PAGES, &n), DIRECT_MAPPED);
	assert_int_equal(n, PAGES);
	/* Two of them are a frame that does not exist. */
	set(PTES, 100, PAGE(100) | PRESENT | bit | bit >> 3);
	direct_map_forget(&map);
	assert_int_equal(direct_map_look(&map, PAGE(100), 9, &n), DIRECT_ELSEWHERE);
	assert_int_equal(n, 1);
}

TEST(answers_hold_for_as_many_pages_as_they_do)
{
	size_t n;

	make_hole(100);
	make_hole(101);
	direct_map_forget(&map);
	assert_int_equal(direct_map_look(&map, 0, PAGES, &n), DIRECT_MAPPED);
	assert_int_equal(n, 100);
	assert_int_equal(direct_map_look(&map, PAGE(100), PAGES, &n), DIRECT_HOLE);
	assert_int_equal(n, 2);
	assert_int_equal(direct_map_look(&map, PAGE(102), PAGES - 102, &n), DIRECT_MAPPED);
	assert_int_equal(n, PAGES - 102);
	/* From here on there are no tables at all. */
	assert_int_equal(direct_map_look(&map, RAM, 1 << 20, &n), DIRECT_HOLE);
	assert_int_equal(n, 1 << 20);
}

/* One page behind the other: tables are not read for each. */
TEST(single_pages_cost_few_reads_of_tables)
{
	direct_map_forget(&map);
	table_reads = 0;
	for (unsigned i = 0; i < 256; i++)
		check(i + 20, i + 20, 1, 0);
	assert_in_range(table_reads, 4, 4 * 5);
	/* And what is remembered makes no zeros of a hole, nor a hole of zeros. */
	make_hole(100);
	check(100, 100, 0, 1);
	fill_hole(100);
	memset(memory + PAGE(100), 0, PAGE_SIZE);
	check(100, 100, 1, 0);
}

TEST(tables_of_five_levels)
{
	assert_true(
		direct_map_init(&map, PAGE(ROOT5), BASE, &five_levels, RAM, read_through, NULL));
	make_hole(100);
	check(90, 110, 10, 1);
	set(ROOT5, 511, 0);
	assert_false(
		direct_map_init(&map, PAGE(ROOT5), BASE, &five_levels, RAM, read_through, NULL));
}

/* A root, base or number of levels that is wrong shows nothing of the root itself. */
TEST(tables_that_do_not_prove_themselves_are_none)
{
	assert_false(
		direct_map_init(&map, PAGE(PUDS), BASE, &four_levels, RAM, read_through, NULL));
	assert_false(direct_map_init(&map, PAGE(ROOT), BASE + (1 << 30), &four_levels, RAM,
				     read_through, NULL));
	assert_false(direct_map_init(&map, PAGE(ROOT), BASE + 0x100, &four_levels, RAM,
				     read_through, NULL));
	assert_false(
		direct_map_init(&map, PAGE(ROOT), BASE, &five_levels, RAM, read_through, NULL));
	assert_false(direct_map_init(&map, RAM, BASE, &four_levels, RAM, read_through, NULL));
	set(PTES, ROOT, PAGE(3) | PRESENT);
	assert_false(
		direct_map_init(&map, PAGE(ROOT), BASE, &four_levels, RAM, read_through, NULL));
}

/*
 * ARM64. Tables lie in the upper half of the RAM, each aligned to its size as they all have to be.
 */

/* PAGE_OFFSET less a PHYS_OFFSET of 0xffffccee00000000, as KASLR left it once. */
#define LINEAR     UINT64_C(0xffff331200000000)
#define ARM64_PAGE 3 /* a table, and a page in the last level */
#define ARM64_HOW  UINT64_C(0x0070000000000f00)

static const struct direct_format arm64_formats[] = {
	{ ARCH_ARM64, 12, 39 }, { ARCH_ARM64, 12, 48 }, { ARCH_ARM64, 12, 52 },
	{ ARCH_ARM64, 14, 36 }, { ARCH_ARM64, 14, 47 }, { ARCH_ARM64, 14, 48 },
	{ ARCH_ARM64, 14, 52 }, { ARCH_ARM64, 16, 42 }, { ARCH_ARM64, 16, 48 },
	{ ARCH_ARM64, 16, 52 },
};

static uint64_t next_table;

static uint64_t new_table(const struct direct_format *f)
{
	const uint64_t size = UINT64_C(1) << f->page_shift, at = next_table;

	assert_true(at + size <= RAM);
	memset(memory + at, 0, size);
	next_table += size;
	return at;
}

/* What else is in an entry: of LPA2 and of 64 KiB some of it would be the address. */
static uint64_t arm64_entry(const struct direct_format *f, uint64_t pa)
{
	const uint64_t in_address = f->page_shift == 16 ? 0xf000 : f->va_bits > 48 ? 0x300 : 0;

	return pa | ARM64_PAGE | (ARM64_HOW & ~in_address);
}

/* Where the entry of the last level is that maps this address, with tables on the way to it. */
static uint64_t arm64_slot(const struct direct_format *f, uint64_t root, uint64_t pa)
{
	const unsigned bits = f->page_shift - 3;
	const uint64_t va = (LINEAR + pa) & (UINT64_MAX >> (64 - f->va_bits));
	unsigned shift = f->page_shift;
	uint64_t table = root;

	while (shift + bits < f->va_bits)
		shift += bits;
	for (; shift > f->page_shift; shift -= bits) {
		const size_t mask = shift + bits < f->va_bits ? ((size_t)1 << bits) - 1 : SIZE_MAX;
		uint8_t *at = memory + table + ((va >> shift) & mask) * 8;

		if (!get_le64(at))
			put_le64(at, arm64_entry(f, new_table(f)));
		table = get_le64(at) & 0x0000ffffffffffff & ~((UINT64_C(1) << f->page_shift) - 1);
	}
	return table + ((va >> shift) & (((uint64_t)1 << bits) - 1)) * 8;
}

static uint64_t map_arm64(const struct direct_format *f)
{
	uint64_t root;

	next_table = RAM / 2;
	root = new_table(f);
	for (uint64_t pa = 0; pa < RAM; pa += UINT64_C(1) << f->page_shift)
		put_le64(memory + arm64_slot(f, root, pa), arm64_entry(f, pa));
	return root;
}

TEST(tables_of_arm64_in_each_granule)
{
	for (size_t i = 0; i < ARRAY_SIZE(arm64_formats); i++) {
		const struct direct_format *f = &arm64_formats[i];
		const unsigned pages = 1u << (f->page_shift - PAGE_SHIFT);
		const uint64_t root = map_arm64(f);
		const uint64_t slot = arm64_slot(f, root, PAGE(64));

		assert_true(direct_map_init(&map, root, LINEAR, f, RAM, read_through, NULL));
		check(0, 200, 201, 0);
		put_le64(memory + slot, arm64_entry(f, PAGE(64)) & ~UINT64_C(1)); /* not valid */
		for (unsigned n = 0; n < pages; n++)
			unmapped[64 + n] = true;
		check(60, 200, 4, pages);
		check(64 + pages, 200, 137 - pages, 0);
		put_le64(memory + slot, arm64_entry(f, PAGE(128)));
		check(64, 64, 0, 1);
		memset(unmapped, 0, sizeof(unmapped));
	}
}

/* Bits of an address that stand elsewhere in the entry name a frame that is far away. */
TEST(arm64_finds_all_bits_of_an_address)
{
	static const struct {
		struct direct_format format;
		uint64_t bits;
	} high[] = {
		{ { ARCH_ARM64, 12, 48 }, UINT64_C(1) << 47 },
		{ { ARCH_ARM64, 12, 52 }, UINT64_C(1) << 49 },
		{ { ARCH_ARM64, 12, 52 }, 0x200 },
		{ { ARCH_ARM64, 14, 52 }, 0x100 },
		{ { ARCH_ARM64, 16, 48 }, 0x1000 },
		{ { ARCH_ARM64, 16, 52 }, 0x8000 },
	};
	size_t one;

	for (size_t i = 0; i < ARRAY_SIZE(high); i++) {
		const struct direct_format *f = &high[i].format;
		const uint64_t root = map_arm64(f);

		put_le64(memory + arm64_slot(f, root, PAGE(64)),
			 arm64_entry(f, PAGE(64)) | high[i].bits);
		assert_true(direct_map_init(&map, root, LINEAR, f, RAM, read_through, NULL));
		assert_int_equal(direct_map_look(&map, PAGE(64), 1, &one), DIRECT_ELSEWHERE);
	}
}

/* The last level has no blocks, and the level of 512 GiB has none either. */
TEST(block_of_arm64_is_one_only_where_there_are_blocks)
{
	static const struct direct_format f = { ARCH_ARM64, 12, 48 };
	const uint64_t root = map_arm64(&f), slot = arm64_slot(&f, root, PAGE(1024));
	const uint64_t va = LINEAR & (UINT64_MAX >> 16);
	uint64_t table = root;
	size_t one;

	for (unsigned shift = 39; shift > 21; shift -= 9)
		table = get_le64(memory + table + (va >> shift) % 512 * 8) & 0x0000fffffffff000;
	put_le64(memory + table + (va >> 21) % 512 * 8, 0x1); /* a block of 2 MiB at 0 */
	assert_true(direct_map_init(&map, root, LINEAR, &f, RAM, read_through, NULL));
	check(0, 511, 512, 0);
	put_le64(memory + slot, PAGE(1024) | 1);
	direct_map_forget(&map);
	assert_int_equal(direct_map_look(&map, PAGE(1024), 1, &one), DIRECT_HOLE);
	put_le64(memory + root + (va >> 39) * 8, 1);
	direct_map_forget(&map);
	assert_int_equal(direct_map_look(&map, PAGE(512), 1, &one), DIRECT_HOLE);
}

TEST(formats_that_there_are_not_are_refused)
{
	static const struct direct_format deep = { ARCH_ARM64, 12, 60 };

	assert_false(direct_map_init(&map, PAGE(ROOT), BASE, &deep, RAM, read_through, NULL));
}

/* What fails for another reason goes on to fail for that. */
TEST(other_errors_stay_what_they_are)
{
	struct drv_result r;

	set(PUDS, 0, 0);
	r = direct_map_read(&map, RAM, got, PAGE(4));
	assert_int_equal(r.good, 0);
	assert_int_equal(r.error, DRV_NO_DATA);
	assert_true(r.exact);
}

#define MAP_TEST(name) cmocka_unit_test_setup(name, setup)

int main(void)
{
	const struct CMUnitTest tests[] = {
		MAP_TEST(hole_is_an_error_and_its_neighbours_are_read),
		MAP_TEST(page_of_zeros_that_is_mapped_is_one),
		MAP_TEST(blocks_can_be_holes_too),
		MAP_TEST(holes_that_come_and_go_during_the_read_are_noticed),
		MAP_TEST(what_reads_as_anything_but_zeros_was_mapped),
		MAP_TEST(entry_that_names_another_frame_gives_another_page),
		MAP_TEST(table_that_cannot_be_read_vouches_for_no_zeros),
		MAP_TEST(bit_above_memory_is_no_address),
		MAP_TEST(answers_hold_for_as_many_pages_as_they_do),
		MAP_TEST(single_pages_cost_few_reads_of_tables),
		MAP_TEST(tables_of_five_levels),
		MAP_TEST(tables_of_arm64_in_each_granule),
		MAP_TEST(arm64_finds_all_bits_of_an_address),
		MAP_TEST(block_of_arm64_is_one_only_where_there_are_blocks),
		MAP_TEST(formats_that_there_are_not_are_refused),
		MAP_TEST(tables_that_do_not_prove_themselves_are_none),
		MAP_TEST(other_errors_stay_what_they_are),
	};

	return cmocka_run_group_tests_name("direct_map", tests, NULL, NULL);
}
