/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/test.h"

#include <stdlib.h>
#include <string.h>

#include "formats/base/bytes.h"
#include "formats/base/page.h"
#include "tsk-extract/extract.h"
#include "tsk-extract/slot_map.h"

/*
 * The kernel's two ways, in its own units and its own steps, so that nothing of slot_map.c is in
 * them. Each fills slot_at[]: the device page of every slot.
 */

#define SLOTS_MAX 4096

static uint64_t slot_at[SLOTS_MAX];
static size_t n_slots;

/* A made-up file: the device block of each of its blocks. */
#define BLOCKS_MAX (SLOTS_MAX * 4)

static uint64_t block_at[BLOCKS_MAX];
static uint64_t file_size; /* bytes */
static unsigned block_bits;

static uint64_t bmap(uint64_t block)
{
	assert_true(block < BLOCKS_MAX);
	return block_at[block];
}

/* mm/page_io.c of Linux 6.1.192, generic_swapfile_activate(): probe by probe. */
static void activate_by_blocks(uint64_t max)
{
	const unsigned blocks_per_page = 4096 >> block_bits;
	const uint64_t last_block = file_size >> block_bits;
	uint64_t probe_block = 0;

	n_slots = 0;
	while (probe_block + blocks_per_page <= last_block && n_slots < max) {
		const uint64_t first_block = bmap(probe_block);
		unsigned same = 1;

		if (first_block & (blocks_per_page - 1)) {
			probe_block++;
			continue;
		}
		while (same < blocks_per_page && bmap(probe_block + same) == first_block + same)
			same++;
		if (same < blocks_per_page) {
			probe_block++;
			continue;
		}
		slot_at[n_slots++] = first_block >> (12 - block_bits);
		probe_block += blocks_per_page;
	}
}

struct data_run {
	uint64_t addr, length; /* bytes */
};

/* iomap_swapfile_add_extent() */
static void add_run(const struct data_run *r, uint64_t max)
{
	const uint64_t first_ppage = (r->addr + 4095) / 4096;
	const uint64_t next_ppage = (r->addr + r->length) / 4096;

	for (uint64_t p = first_ppage; p < next_ppage && n_slots < max; p++)
		slot_at[n_slots++] = p;
}

/*
 * fs/iomap/swapfile.c of Linux 6.1.192, iomap_swapfile_activate(): joins what follows on the
 * device.
 */
static void activate_by_extents(uint64_t max)
{
	const uint64_t block = UINT64_C(1) << block_bits, pages = file_size / 4096;
	struct data_run r = { 0 };

	n_slots = 0;
	for (uint64_t i = 0; i * block < pages * 4096; i++) {
		if (r.length && r.addr + r.length == bmap(i) * block) {
			r.length += block;
			continue;
		}
		if (r.length)
			add_run(&r, max);
		r = (struct data_run){ bmap(i) * block, block };
	}
	if (r.length)
		add_run(&r, max);
}

/*
 * What slot_map.c is given: one extent for every block, as FIEMAP might have it, joined by
 * settling.
 */

static void list_blocks(struct extent_list *l)
{
	const uint64_t block = UINT64_C(1) << block_bits;
	struct err e = ERR_INIT;

	for (uint64_t i = 0; i * block < file_size; i++) {
		const struct extent x = { .file = i * block,
					  .length = block,
					  .disk = bmap(i) * block };

		CHECK_OK(extent_list_add(l, x, &e), &e);
	}
	CHECK_OK(extent_list_settle(l, file_size, NULL, &e), &e);
}

static void lay_out(unsigned bits, uint64_t blocks)
{
	block_bits = bits;
	file_size = blocks << bits;
	assert_true(blocks <= BLOCKS_MAX);
}

/* Runs of 1 to `longest` blocks, here and there on the device, none of them twice. */
static void lay_out_randomly(unsigned bits, uint64_t blocks, unsigned longest, unsigned seed)
{
	uint64_t at = 1000, x = seed * UINT64_C(0x9e3779b97f4a7c15) + 1;

	lay_out(bits, blocks);
	for (uint64_t i = 0; i < blocks;) {
		uint64_t n;

		x = x * UINT64_C(6364136223846793005) + 1442695040888963407;
		n = 1 + (x >> 33) % longest;
		at += (x >> 50) % 7; /* 0: it goes on where the last one ended */
		while (n-- && i < blocks)
			block_at[i++] = at++;
	}
}

static void make(uint64_t last_page, struct slot_map *ret)
{
	_cleanup_extents_ struct extent_list blocks = { 0 };
	const struct slot_facts facts = {
		.size = file_size,
		.last_page = last_page,
		.in_use = (n_slots - 1) * 4096,
	};
	struct err e = ERR_INIT;

	list_blocks(&blocks);
	CHECK_OK(slot_map_make(&blocks, &facts, ret, &e), &e);
}

static uint64_t place_of(const struct slot_map *m, uint64_t offset)
{
	const struct extent *x = extent_list_find(&m->extents, offset);

	assert_non_null(x);
	return x->disk + (offset - x->file);
}

/* Behind the slots comes every block that is no part of them, in the order of the file. */
static void check_rest(const struct slot_map *m)
{
	const uint64_t block = UINT64_C(1) << block_bits;
	uint64_t next = 0;

	for (uint64_t at = m->slots * 4096; at < file_size; at += block) {
		const uint64_t place = place_of(m, at);

		while (next * block < file_size && bmap(next) * block != place)
			next++;
		assert_true(next * block < file_size);
		for (size_t i = 0; i < n_slots; i++)
			assert_int_not_equal(place / 4096, slot_at[i]);
		next++;
	}
}

/* Each slot is where the kernel has it, on one page. */
static void check_map(const struct slot_map *m)
{
	const struct extent *last = &m->extents.at[m->extents.count - 1];

	assert_int_equal(m->slots, n_slots);
	for (size_t i = 0; i < n_slots; i++) {
		assert_int_equal(place_of(m, i * 4096), slot_at[i] * 4096);
		assert_int_equal(place_of(m, i * 4096 + 4095), slot_at[i] * 4096 + 4095);
	}
	assert_int_equal(last->file + last->length, file_size);
	check_rest(m);
}

static void check_against_kernel(uint64_t max)
{
	struct slot_map by_blocks = { 0 }, by_extents = { 0 };

	activate_by_blocks(max);
	if (n_slots < 2)
		return;
	make(max - 1, &by_blocks);
	check_map(&by_blocks);
	activate_by_extents(max);
	make(max - 1, &by_extents);
	check_map(&by_extents);
	slot_map_deinit(&by_blocks);
	slot_map_deinit(&by_extents);
}

TEST(slots_are_where_the_kernel_puts_them)
{
	for (unsigned bits = 9; bits <= 12; bits++)
		for (unsigned longest = 1; longest < 40; longest += 3)
			for (unsigned seed = 0; seed < 8; seed++) {
				lay_out_randomly(bits, 900, longest, seed);
				check_against_kernel(file_size / 4096);
			}
}

/* The two ways see one page more or less at the end of a file that ends within a page. */
TEST(slots_of_a_file_that_ends_within_a_page)
{
	for (unsigned seed = 0; seed < 64; seed++) {
		lay_out_randomly(10, 403 + seed % 4, 30, seed);
		check_against_kernel(file_size / 4096);
	}
}

TEST(slots_end_where_the_header_says)
{
	for (unsigned seed = 0; seed < 32; seed++) {
		lay_out_randomly(10, 400, 60, seed);
		check_against_kernel(20);
	}
}

TEST(blocks_of_a_page_keep_their_order)
{
	struct slot_map m = { 0 };

	lay_out_randomly(12, 300, 9, 7);
	activate_by_extents(299); /* the last page came behind mkswap */
	make(298, &m);
	for (uint64_t i = 0; i < 300; i++) {
		const struct extent *x = extent_list_find(&m.extents, i * 4096);

		assert_int_equal(x->disk + (i * 4096 - x->file), bmap(i) * 4096);
	}
	slot_map_deinit(&m);
}

/*
 * One KiB beside a page's border: the first slot begins at 3 KiB of the file, and all others behind
 * it.
 */
TEST(unaligned_extent_moves_every_slot)
{
	struct slot_map m = { 0 };

	lay_out(10, 40);
	for (uint64_t i = 0; i < 40; i++)
		block_at[i] = 8193 + i;
	activate_by_extents(10);
	assert_int_equal(n_slots, 9);
	make(9, &m);
	assert_int_equal(m.extents.count, 3);
	assert_int_equal(m.extents.at[0].disk, 8196 * 1024);
	assert_int_equal(m.extents.at[0].length, 9 * 4096);
	assert_int_equal(m.extents.at[1].disk, 8193 * 1024);
	assert_int_equal(m.extents.at[1].length, 3 * 1024);
	assert_int_equal(m.extents.at[2].disk, (8193 + 39) * 1024);
	assert_int_equal(m.extents.at[2].length, 1024);
	assert_int_equal(m.fragments, 1);
	slot_map_deinit(&m);
}

static void check_refused(const struct extent_list *blocks, uint64_t in_use, const char *why)
{
	const struct slot_facts facts = { file_size, file_size / 4096 - 1, in_use };
	struct slot_map m = { 0 };
	struct err e = ERR_INIT;

	CHECK_STATUS(slot_map_make(blocks, &facts, &m, &e), ST_INPUT, &e);
	CHECK_HAS(e.message, why);
	assert_int_equal(m.slots, 0);
	assert_null(m.extents.at);
}

TEST(what_disagrees_with_the_kernel_is_refused)
{
	_cleanup_extents_ struct extent_list blocks = { 0 };
	struct err e = ERR_INIT;

	lay_out_randomly(10, 400, 60, 1);
	list_blocks(&blocks);
	activate_by_extents(100);
	check_refused(&blocks, (n_slots - 2) * 4096, "slots");
	check_refused(&blocks, n_slots * 4096, "slots");
	check_refused(&blocks, 99 * 4096, "slots"); /* as if nothing were left out */
	check_refused(&blocks, UINT64_MAX, "slots");

	file_size += 4096;
	CHECK_OK(extent_list_settle(&blocks, file_size, NULL, &e), &e);
	check_refused(&blocks, (n_slots - 1) * 4096, "hole at 409600");
	extent_list_deinit(&blocks);
	CHECK_OK(extent_list_add(&blocks,
				 (struct extent){ 0, 8192, UINT64_MAX - 4096, EXTENT_DISK }, &e),
		 &e);
	check_refused(&blocks, 4096, "device");
}

TEST(another_place_is_another_map)
{
	struct slot_map a = { 0 }, b = { 0 };

	lay_out_randomly(10, 400, 60, 2);
	activate_by_extents(100);
	make(99, &a);
	make(99, &b);
	assert_true(slot_map_same(&a, &b));
	b.extents.at[1].disk += 4096;
	assert_false(slot_map_same(&a, &b));
	slot_map_deinit(&b);
	assert_false(slot_map_same(&a, &b));
	slot_map_deinit(&a);
}

/* Reads a device of which every block has its number in it. */
TEST(page_n_of_the_copy_is_slot_n)
{
	static uint8_t device[2000 << 10], page[PAGE_SIZE];
	struct slot_map m = { 0 };
	struct extract *x = NULL;
	struct extract_piece piece;
	struct page_status status;
	struct reader *r = NULL;
	struct err e = ERR_INIT;

	lay_out_randomly(10, 401, 20, 3);
	activate_by_blocks(100);
	make(99, &m);
	for (uint64_t i = 0; i < sizeof(device) / 8; i++)
		put_le64(device + 8 * i, i / 128);
	CHECK_OK(reader_open_memory(device, sizeof(device), 512, &r, &e), &e);
	CHECK_OK(extract_open_extents(r, "swapfile", &m.extents, &x, &e), &e);
	assert_int_equal(extract_first(x)->size, 401 << 10);
	for (uint64_t i = 0; i < m.slots; i++) {
		CHECK_OK(extract_read(x, i * PAGE_SIZE, page, PAGE_SIZE, &status, &piece, &e), &e);
		assert_int_equal(status.state, PAGE_DATA);
		for (uint64_t k = 0; k < 4; k++)
			assert_int_equal(get_le64(page + 1024 * k), slot_at[i] * 4 + k);
	}
	extract_close(x);
	slot_map_deinit(&m);
}

TEST(header_is_what_swapon_takes)
{
	uint8_t header[SWAP_HEADER_SIZE] = { 0 };
	uint64_t last = 0;
	struct err e = ERR_INIT;

	CHECK_STATUS(swap_header_parse(header, &last, &e), ST_INPUT, &e);
	memcpy(header + 4086, "SWAPSPACE2", 10);
	CHECK_STATUS(swap_header_parse(header, &last, &e), ST_INPUT, &e);
	put_le32(header + 1024, 1);
	put_le32(header + 1028, 24575);
	CHECK_OK(swap_header_parse(header, &last, &e), &e);
	assert_int_equal(last, 24575);
	put_le32(header + 1032, 3);
	CHECK_STATUS(swap_header_parse(header, &last, &e), ST_INPUT, &e);
	CHECK_HAS(e.message, "bad pages");
	put_le32(header + 1032, 0);
	memcpy(header + 4086, "SWAP-SPACE", 10); /* of Linux before 2.1 */
	CHECK_STATUS(swap_header_parse(header, &last, &e), ST_INPUT, &e);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(slots_are_where_the_kernel_puts_them),
		cmocka_unit_test(slots_of_a_file_that_ends_within_a_page),
		cmocka_unit_test(slots_end_where_the_header_says),
		cmocka_unit_test(blocks_of_a_page_keep_their_order),
		cmocka_unit_test(unaligned_extent_moves_every_slot),
		cmocka_unit_test(what_disagrees_with_the_kernel_is_refused),
		cmocka_unit_test(another_place_is_another_map),
		cmocka_unit_test(page_n_of_the_copy_is_slot_n),
		cmocka_unit_test(header_is_what_swapon_takes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
