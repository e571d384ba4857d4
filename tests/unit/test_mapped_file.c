/* SPDX-License-Identifier: Apache-2.0 */
/* What memory says of a mapped file: any of it can be lost, or a lie. */
#include "tests/unit/test.h"

#include "agent/examine/process/mapped_file.h"
#include "tests/unit/sparse_view.h"

#define OBJECT  UINT64_C(0xffffc00000001010) /* a FILE_OBJECT */
#define VPB     UINT64_C(0xffffc00000002020)
#define CONTEXT UINT64_C(0xffffc00000003030)
#define IMAGE   UINT64_C(0x7ff600000000)
#define PE      0x80

static struct sparse memory;
static struct memory_view view;
static struct mapped_file file;

static int set_up(void **state)
{
	(void)state;
	view = sparse_view(&memory);
	sparse_u64(&memory, OBJECT + 0x10, VPB);
	sparse_u64(&memory, OBJECT + 0x18, CONTEXT);
	sparse_u16(&memory, VPB, 10);
	sparse_u32(&memory, VPB + 0x18, 0x12345678);
	sparse_u32(&memory, CONTEXT + 4, 0x40);
	sparse_u64(&memory, CONTEXT + 0x18, 0x3000);
	sparse_u64(&memory, CONTEXT + 0x20, 0x2345);
	sparse_u64(&memory, CONTEXT + 0x28, 0x2345);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	sparse_deinit(&memory);
	return 0;
}

static void look(void)
{
	mapped_file_read(&view, OBJECT, 0, &file);
}

static void volume_and_size_are_found(void **state)
{
	(void)state;
	look();
	assert_true(file.has_serial && file.has_size && !file.has_header);
	assert_int_equal(file.serial, 0x12345678);
	assert_int_equal(file.size, 0x2345);
	/* No object, or one in the process's own half. */
	mapped_file_read(&view, 0, 0, &file);
	assert_false(file.has_serial || file.has_size);
	mapped_file_read(&view, 0x10000, 0, &file);
	assert_false(file.has_serial || file.has_size);
}

static void what_is_no_volume_has_no_serial_number(void **state)
{
	(void)state;
	sparse_u16(&memory, VPB, 9);
	look();
	assert_false(file.has_serial);
	sparse_u16(&memory, VPB, 10);
	sparse_u32(&memory, VPB + 0x18, 0); /* a file system without one */
	look();
	assert_false(file.has_serial);
	sparse_u32(&memory, VPB + 0x18, 1);
	sparse_lose(&memory, VPB, true);
	look();
	assert_false(file.has_serial);
	assert_true(file.has_size);
	sparse_lose(&memory, VPB, false);
	sparse_u64(&memory, OBJECT + 0x10, IMAGE);
	look();
	assert_false(file.has_serial);
}

static void sizes_that_cannot_be_are_none(void **state)
{
	static const struct {
		uint64_t allocated, size, valid;
		uint8_t flags;
		bool is_size;
	} all[] = {
		{ 0x3000, 0x2345, 0, 0x40, true },
		{ 0x2345, 0x2345, 0x2345, 0xff, true },
		{ 0x3000, 0x2345, INT64_MAX, 0x40, true },
		{ 0x3000, 0x2345, UINT64_MAX, 0x40, true },
		{ 0x3000, 0x2345, 0x2346, 0x40, false }, /* more is valid than there is */
		{ 0x2344, 0x2345, 0, 0x40, false },      /* and than was allocated */
		{ UINT64_MAX, 0x2345, 0, 0x40, false },  /* more than a disk has */
		{ 0x3000, 0, 0, 0x40, false },           /* of which no page can be mapped */
		{ 0x3000, 0x2345, 0x2345, 0x3f, false }, /* no such header */
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(all); i++) {
		sparse_u64(&memory, CONTEXT + 0x18, all[i].allocated);
		sparse_u64(&memory, CONTEXT + 0x20, all[i].size);
		sparse_u64(&memory, CONTEXT + 0x28, all[i].valid);
		sparse_u32(&memory, CONTEXT + 4, all[i].flags);
		look();
		if (file.has_size != all[i].is_size)
			fail_msg("%zu is %sa size", i, file.has_size ? "" : "not ");
	}
	sparse_u64(&memory, OBJECT + 0x18, IMAGE);
	look();
	assert_false(file.has_size);
}

static size_t put_headers(uint8_t *at, bool narrow)
{
	uint8_t *pe = at + PE;

	memset(at, 0, 0x400);
	memcpy(at, "MZ", 2);
	put_le32(at + 0x3c, PE);
	memcpy(pe, "PE", 2);
	put_le16(pe + 4, narrow ? 0x14c : 0x8664);
	put_le32(pe + 8, 0x5f000000);
	put_le16(pe + 24, narrow ? 0x10b : 0x20b);
	put_le32(pe + 24 + (narrow ? 28 : 24), 0x10000000);
	put_le32(pe + 24 + 56, 0x5000);
	put_le32(pe + 24 + 64, 0xabcd);
	put_le32(pe + 24 + (narrow ? 92 : 108), 16);
	put_le32(pe + 24 + (narrow ? 96 : 112) + 44, 0x30); /* of relocations */
	return 0x400;
}

static void headers_of_memory_and_file_are_compared(void **state)
{
	uint8_t bytes[0x400];
	struct pe_program program;

	(void)state;
	for (int narrow = 0; narrow < 2; narrow++) {
		const size_t size = put_headers(bytes, narrow);

		sparse_put(&memory, IMAGE, bytes, size);
		mapped_file_read(&view, OBJECT, IMAGE, &file);
		assert_true(file.has_header);
		assert_int_equal(file.header.checksum, 0xabcd);
		assert_int_equal(file.header.image_base, 0x10000000);
		assert_int_equal(file.header.relocations, 0x30);
		/* Relocated, which is no difference. */
		put_le32(bytes + PE + 24 + (narrow ? 28 : 24), 0x20000000);
		assert_true(mapped_file_header(bytes, size, &program));
		assert_true(mapped_file_same_header(&file.header, &program));
		for (size_t i = 0; i < 3; i++) {
			static const size_t fields[] = { 8, 24 + 56, 24 + 64 };

			bytes[PE + fields[i]] ^= 1;
			assert_true(mapped_file_header(bytes, size, &program));
			assert_false(mapped_file_same_header(&file.header, &program));
			bytes[PE + fields[i]] ^= 1;
		}
		/* Cut anywhere it is none, or has no relocations that anybody knows. */
		for (size_t n = 0; n < PE + 24 + 120; n++)
			assert_false(mapped_file_header(bytes, n, &program));
		sparse_lose(&memory, IMAGE, true);
		mapped_file_read(&view, OBJECT, IMAGE, &file);
		assert_false(file.has_header);
		sparse_lose(&memory, IMAGE, false);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(volume_and_size_are_found, set_up, tear_down),
		cmocka_unit_test_setup_teardown(what_is_no_volume_has_no_serial_number, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(sizes_that_cannot_be_are_none, set_up, tear_down),
		cmocka_unit_test_setup_teardown(headers_of_memory_and_file_are_compared, set_up,
						tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
