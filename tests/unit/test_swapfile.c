/* SPDX-License-Identifier: Apache-2.0 */
/* What a Linux kernel answers about a swap file, made up. */
#include "tests/unit/test.h"

#include <linux/btrfs_tree.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "formats/base/bytes.h"
#include "tests/unit/scratch.h"
#include "tsk-extract/btrfs_linux.h"
#include "tsk-extract/swapfile_linux.h"

static struct fiemap_extent extent(uint64_t logical, uint64_t length, uint64_t physical,
				   uint32_t flags)
{
	return (struct fiemap_extent){
		.fe_logical = logical,
		.fe_length = length,
		.fe_physical = physical,
		.fe_flags = flags,
	};
}

TEST(fiemap_is_taken_batch_by_batch)
{
	const struct fiemap_extent first[] = { extent(0, 4096, 8192, FIEMAP_EXTENT_UNWRITTEN),
					       extent(4096, 4096, 81920, 0) };
	const struct fiemap_extent second =
		extent(8192, 4096, 40960, FIEMAP_EXTENT_LAST | FIEMAP_EXTENT_MERGED);
	_cleanup_extents_ struct extent_list l = { 0 };
	uint64_t from = 0;
	bool last = true;
	struct err e = ERR_INIT;

	CHECK_OK(swapfile__take_extents(first, 2, &l, &from, &last, &e), &e);
	assert_false(last);
	assert_int_equal(from, 8192);
	CHECK_OK(swapfile__take_extents(&second, 1, &l, &from, &last, &e), &e);
	assert_true(last);
	assert_int_equal(l.count, 3);
	assert_int_equal(l.at[2].file, 8192);
	assert_int_equal(l.at[2].disk, 40960);
	CHECK_OK(swapfile__take_extents(NULL, 0, &l, &from, &last, &e), &e);
	assert_true(last);
	CHECK_STATUS(swapfile__take_extents(first, 1, &l, &from, &last, &e), ST_INPUT, &e);
}

TEST(extents_that_are_no_place_are_refused)
{
	static const struct {
		uint32_t flags;
		const char *why;
	} cases[] = {
		{ FIEMAP_EXTENT_DELALLOC | FIEMAP_EXTENT_UNKNOWN, "not allocated" },
		{ FIEMAP_EXTENT_UNKNOWN, "unknown place" },
		{ FIEMAP_EXTENT_DATA_INLINE | FIEMAP_EXTENT_NOT_ALIGNED, "in an inode" },
		{ FIEMAP_EXTENT_ENCODED | FIEMAP_EXTENT_LAST, "compressed" },
		{ FIEMAP_EXTENT_SHARED, "shared" },
		{ FIEMAP_EXTENT_NOT_ALIGNED, "aligned" },
		{ UINT32_C(1) << 30, "0x40000000" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		const struct fiemap_extent x = extent(0, 4096, 8192, cases[i].flags);
		_cleanup_extents_ struct extent_list l = { 0 };
		uint64_t from = 0;
		bool last;
		struct err e = ERR_INIT;

		CHECK_STATUS(swapfile__take_extents(&x, 1, &l, &from, &last, &e), ST_INPUT, &e);
		CHECK_HAS(e.message, cases[i].why);
	}
}

static struct btrfs_ioctl_search_args answer;
static uint8_t *answer_end;

static void begin_answer(void)
{
	memset(&answer, 0, sizeof(answer));
	answer_end = (uint8_t *)answer.buf;
}

/* As the chunk tree has it, little-endian whatever the machine. */
static void add_chunk(uint64_t logical, uint64_t length, uint64_t type, uint64_t device,
		      uint64_t physical)
{
	const struct btrfs_ioctl_search_header h = {
		.objectid = BTRFS_FIRST_CHUNK_TREE_OBJECTID,
		.type = BTRFS_CHUNK_ITEM_KEY,
		.offset = logical,
		.len = 80,
	};
	uint8_t item[80] = { 0 };

	put_le64(item, length);
	put_le64(item + 24, type);
	put_le16(item + 44, 1);
	put_le64(item + 48, device);
	put_le64(item + 56, physical);
	memcpy(answer_end, &h, sizeof(h));
	memcpy(answer_end + sizeof(h), item, sizeof(item));
	answer_end += sizeof(h) + sizeof(item);
	answer.key.nr_items++;
}

#define MIB UINT64_C(1048576)

/* Two chunks that follow each other logically, and lie the other way round on the device. */
static struct btrfs_chunks two_chunks(uint64_t type, uint64_t device)
{
	struct btrfs_chunks l = { 0 };
	uint64_t last = 0;
	struct err e = ERR_INIT;

	begin_answer();
	add_chunk(13 * MIB, 8 * MIB, BTRFS_BLOCK_GROUP_DATA, 1, 100 * MIB);
	add_chunk(21 * MIB, 8 * MIB, BTRFS_BLOCK_GROUP_DATA | type, device, 50 * MIB);
	CHECK_OK(btrfs__take_items(&l, &answer, &last, &e), &e);
	assert_int_equal(l.count, 2);
	assert_int_equal(last, 21 * MIB);
	return l;
}

static enum status place(struct btrfs_chunks l, uint64_t logical, struct extent_list *blocks,
			 struct err *e)
{
	const struct extent x = { .file = 0, .length = 4 * MIB, .disk = logical };
	uint64_t device = 0;
	enum status st = extent_list_add(blocks, x, e);

	if (!st)
		st = btrfs__place_all(&l, blocks, &device, e);
	if (!st)
		assert_int_equal(device, 1);
	free(l.at);
	return st;
}

TEST(btrfs_extent_across_two_chunks_lies_in_two_places)
{
	_cleanup_extents_ struct extent_list blocks = { 0 };
	struct err e = ERR_INIT;

	CHECK_OK(place(two_chunks(0, 1), 18 * MIB, &blocks, &e), &e);
	assert_int_equal(blocks.count, 2);
	assert_int_equal(blocks.at[0].disk, 105 * MIB);
	assert_int_equal(blocks.at[0].length, 3 * MIB);
	assert_int_equal(blocks.at[1].file, 3 * MIB);
	assert_int_equal(blocks.at[1].disk, 50 * MIB);
	assert_int_equal(blocks.at[1].length, MIB);
}

TEST(btrfs_that_swapon_refuses_is_refused)
{
	static const struct {
		uint64_t type, device, logical;
		const char *why;
	} cases[] = {
		{ BTRFS_BLOCK_GROUP_RAID1, 1, 18 * MIB, "profile" },
		{ BTRFS_BLOCK_GROUP_DUP, 1, 22 * MIB, "profile" },
		{ 0, 2, 18 * MIB, "more than one device" },
		{ 0, 1, 12 * MIB, "no chunk" },
		{ 0, 1, 28 * MIB, "no chunk" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		_cleanup_extents_ struct extent_list blocks = { 0 };
		struct err e = ERR_INIT;

		CHECK_STATUS(place(two_chunks(cases[i].type, cases[i].device), cases[i].logical,
				   &blocks, &e),
			     ST_INPUT, &e);
		CHECK_HAS(e.message, cases[i].why);
	}
}

TEST(btrfs_items_that_do_not_fit_are_refused)
{
	struct btrfs_chunks l = { 0 };
	struct btrfs_ioctl_search_header h;
	uint64_t last;
	struct err e = ERR_INIT;

	begin_answer();
	add_chunk(13 * MIB, 8 * MIB, BTRFS_BLOCK_GROUP_DATA, 1, 100 * MIB);
	memcpy(&h, answer.buf, sizeof(h));
	h.len = 79;
	memcpy(answer.buf, &h, sizeof(h));
	CHECK_STATUS(btrfs__take_items(&l, &answer, &last, &e), ST_INPUT, &e);
	h.len = sizeof(answer.buf);
	memcpy(answer.buf, &h, sizeof(h));
	CHECK_STATUS(btrfs__take_items(&l, &answer, &last, &e), ST_INPUT, &e);
	assert_int_equal(l.count, 0);
	free(l.at);
}

/* Of a file whose first block lies at 7 KiB of its device, and whose others lie at 2 KiB. */
TEST(header_is_looked_for_where_the_blocks_are)
{
	static const struct extent parts[] = { { 0, 1024, 7168, EXTENT_DISK },
					       { 1024, 7168, 2048, EXTENT_DISK } };
	const struct extent_list blocks = { .at = (struct extent *)(uintptr_t)parts, .count = 2 };
	uint8_t header[SWAP_HEADER_SIZE], device[9216] = { 0 };
	struct reader *r = NULL;
	struct err e = ERR_INIT;

	for (size_t i = 0; i < sizeof(header); i++)
		header[i] = (uint8_t)(i / 7);
	memcpy(device + 7168, header, 1024);
	memcpy(device + 2048, header + 1024, 3072);
	CHECK_OK(reader_open_memory(device, sizeof(device), 512, &r, &e), &e);
	assert_true(swapfile__has_header(r, &blocks, header));
	device[2048 + 3071] ^= 1;
	assert_false(swapfile__has_header(r, &blocks, header));
	reader_close(r);
	CHECK_OK(reader_open_memory(device, 7000, 512, &r, &e), &e);
	assert_false(swapfile__has_header(r, &blocks, header)); /* the device is shorter */
	reader_close(r);
}

/* Whatever file system this runs on: it never comes to its extents. */
TEST(file_without_a_header_is_no_swap_file)
{
	static const uint8_t zeros[16384];
	struct scratch s;
	struct slot_map m = { 0 };
	char *device = NULL;
	struct err e = ERR_INIT;

	scratch_init(&s);
	CHECK_STATUS(swapfile_map(scratch_path(&s, "swapfile"), 12288, &m, &device, &e), ST_INPUT,
		     &e);
	CHECK_HAS(e.message, "No such file");
	scratch_write(&s, "swapfile", zeros, sizeof(zeros));
	CHECK_STATUS(swapfile_map(scratch_path(&s, "swapfile"), 12288, &m, &device, &e), ST_INPUT,
		     &e);
	CHECK_HAS(e.message, "header");
	assert_null(device);
	assert_int_equal(m.slots, 0);
	scratch_deinit(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(fiemap_is_taken_batch_by_batch),
		cmocka_unit_test(extents_that_are_no_place_are_refused),
		cmocka_unit_test(btrfs_extent_across_two_chunks_lies_in_two_places),
		cmocka_unit_test(btrfs_that_swapon_refuses_is_refused),
		cmocka_unit_test(btrfs_items_that_do_not_fit_are_refused),
		cmocka_unit_test(header_is_looked_for_where_the_blocks_are),
		cmocka_unit_test(file_without_a_header_is_no_swap_file),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
