/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/test.h"

#include "driver-interface/extents.h"
#include "tests/unit/drv_check.h"

#define LOAD 1
#define NOTE 4

TEST(raw_file_is_one_range)
{
	struct image i = { 0 };
	struct drv *d;
	size_t count = 0;

	image_memory(&i, 0, 0, 9 * PAGE_SIZE);
	d = open_image("file", &i);
	CHECK_MAP(d, 0, "file size", { 0, 9 * PAGE_SIZE - 1 });
	drv_note_parts(d, true);
	check_data(d, 0, 9 * PAGE_SIZE - 1);
	CHECK_PAGE(d, 9 * PAGE_SIZE, PAGE_SKIPPED, SKIP_NOT_MAPPED);
	assert_null(d->info.note);
	assert_string_equal(drv_parts(d, &count)[0].source, "file");
	assert_int_equal(count, 1);
	assert_int_equal(drv_parts(d, &count)[0].range.first, 0);
	assert_int_equal(drv_parts(d, &count)[0].range.last, 9 * PAGE_SIZE - 1);
	drv_close(d);
	image_free(&i);
}

TEST(part_of_a_page_at_the_end_of_a_raw_file_is_left_out_and_told)
{
	struct image i = { 0 };
	struct drv *d;

	image_memory(&i, 0, 0, 2 * PAGE_SIZE + 100);
	d = open_image("file", &i);
	CHECK_MAP(d, 0, "file size", { 0, 2 * PAGE_SIZE - 1 });
	assert_int_equal(d->info.maps[0].faults.partial, 1);
	CHECK_HAS(d->info.note, "inside a page");
	check_data(d, 0, 2 * PAGE_SIZE - 1);
	drv_close(d);
	image_free(&i);
}

TEST(files_that_are_no_memory_are_named)
{
	static const char *const heads[][2] = {
		{ "PAGEDU64", "Windows crash dump" }, { "EVF\x09\x0d\x0a\xff", "E01" },
		{ "\x28\xb5\x2f\xfd", "zstd" },       { "\x50\x2a\x4d\x18", "container" },
		{ "\x5e\x2a\x4d\x18", "container" },
	};

	for (size_t k = 0; k < ARRAY_SIZE(heads); k++) {
		struct image i = { 0 };

		image_put(&i, PAGE_SIZE, "", 0);
		image_put(&i, 0, heads[k][0], strlen(heads[k][0]));
		refuse_image("file", &i, ST_INPUT, heads[k][1]);
	}
}

TEST(file_shorter_than_a_page_is_refused)
{
	struct image i = { 0 };

	refuse_image("file", &i, ST_INPUT, "0 bytes");
	image_put(&i, PAGE_SIZE - 1, "", 0);
	refuse_image("file", &i, ST_INPUT, "4095 bytes");
}

TEST(missing_file_is_an_input_error)
{
	struct err e = ERR_INIT;
	struct drv *d = NULL;

	CHECK_STATUS(drv_open("file:/nowhere/image", &d, &e), ST_INPUT, &e);
	CHECK_HAS(e.message, "file: /nowhere/image");
	CHECK_STATUS(drv_open("file:/", &d, &e), ST_INPUT, &e);
	CHECK_STATUS(drv_open("file", &d, &e), ST_USAGE, &e);
	CHECK_STATUS(drv_open("file:", &d, &e), ST_USAGE, &e);
	CHECK_STATUS(drv_open("elif:x", &d, &e), ST_USAGE, &e);
	CHECK_HAS(e.message, "\"elif\"");
}

TEST(lime_records_are_the_map)
{
	struct image i = { 0 };
	struct drv *d;

	lime_range(&i, 0x1000, 0x9fbff);
	lime_range(&i, 0x100000, 0x102fff);
	d = open_image("file", &i);
	CHECK_MAP(d, 0, "LiME headers", { 0x1000, 0x9efff }, { 0x100000, 0x102fff });
	check_data(d, 0x1000, 0x9efff);
	check_data(d, 0x100000, 0x102fff);
	drv_close(d);
	image_free(&i);
}

/* Bytes of one page in two records, as LiME writes where /proc/iomem is split inside a page. */
TEST(page_split_between_two_lime_records_is_put_together)
{
	struct image i = { 0 };
	struct drv *d;

	lime_range(&i, 0x1000, 0x2017);
	lime_range(&i, 0x2018, 0x3c57);
	lime_range(&i, 0x3c58, 0x4fff);
	d = open_image("file", &i);
	CHECK_MAP(d, 0, "LiME headers", { 0x1000, 0x4fff });
	check_data(d, 0x1000, 0x4fff);
	drv_close(d);
	image_free(&i);
}

TEST(what_a_cut_lime_file_lacks_is_unreadable)
{
	struct image i = { 0 };
	struct drv *d;

	lime_range(&i, 0x1000, 0x2fff);
	lime_range(&i, 0x8000, 0xcfff);
	i.len -= 0x2800;
	d = open_image("file", &i);
	CHECK_HAS(d->info.note, "cut short");
	check_data(d, 0x1000, 0x2fff);
	check_data(d, 0x8000, 0x9fff);
	CHECK_PAGE(d, 0xa000, PAGE_UNREADABLE, DRV_NO_DATA);
	CHECK_PAGE(d, 0xc000, PAGE_UNREADABLE, DRV_NO_DATA);
	drv_close(d);
	image_free(&i);
}

TEST(corrupt_lime_file_is_refused_with_its_record)
{
	struct image i = { 0 };

	lime_range(&i, 0x1000, 0x1fff);
	lime_header(&i, 0x3000, 0x2fff);
	refuse_image("file", &i, ST_CORRUPT, "record 1: ");
}

TEST(lime_records_that_lie_are_counted_and_every_byte_is_read_once)
{
	struct image i = { 0 };
	struct drv *d;

	lime_range(&i, 0x5000, 0x8fff);
	lime_range(&i, 0x1000, 0x6fff); /* unsorted, overlapping */
	lime_range(&i, 0x2000, 0x2fff); /* inside */
	lime_header(&i, PHYS_LIMIT, PHYS_LIMIT + 7);
	image_text(&i, "8 bytes.");
	d = open_image("file", &i);
	CHECK_MAP(d, 0, "LiME headers", { 0x1000, 0x8fff });
	assert_int_equal(d->info.maps[0].faults.unsorted, 1);
	assert_int_equal(d->info.maps[0].faults.overlapping, 2);
	assert_int_equal(d->info.maps[0].faults.beyond, 1);
	check_data(d, 0x1000, 0x8fff);
	drv_close(d);
	image_free(&i);
}

TEST(extents_inside_others_are_dropped)
{
	struct extents x = { 0 };
	struct err e = ERR_INIT;

	CHECK_OK(extents_add(&x, 0x3000, 0x1000, 7, &e), &e);
	CHECK_OK(extents_add(&x, 0x1000, 0x8000, 100, &e), &e);
	CHECK_OK(extents_add(&x, 0x1000, 0x1000, 8, &e), &e);
	CHECK_OK(extents_add(&x, 0x8000, 0x2000, 500, &e), &e);
	CHECK_OK(extents_add(&x, 0x8000, 0, 9, &e), &e);
	extents_tidy(&x);
	assert_int_equal(x.count, 2);
	assert_int_equal(x.at[0].range.last, 0x8fff);
	assert_int_equal(x.at[0].offset, 100);
	assert_int_equal(x.at[1].range.first, 0x9000);
	assert_int_equal(x.at[1].range.last, 0x9fff);
	assert_int_equal(x.at[1].offset, 0x1000 + 500);
	extents_deinit(&x);
}

TEST(core_is_read_at_its_physical_addresses)
{
	static const char info[] = "SYMBOL(_stext)=ffffffff9e000000\n"
				   "SYMBOL(init_top_pgt)=ffffffff9f610000\n"
				   "NUMBER(phys_base)=-486539264\n";
	const struct phdr p[] = {
		{ NOTE, 0x400, 0, 0, 0, 0 },
		{ LOAD, 0x2000, 0, 0x100000, 0x3000, 0x5000 }, /* two pages are not in it */
		{ LOAD, 0x5000, 0, 0x1000, 0x2000, 0x2000 },   /* unsorted */
		{ LOAD, 0x1000, 0xffffc90000000000, UINT64_MAX, 0x1000, 0x1000 },
		{ LOAD, 0x7000, 0, 0x200000, 0x2000, 0x2000 }, /* past the end of the file */
	};
	struct image i = { 0 };
	struct drv *d;

	elf_header(&i, p, 5);
	image_u64(&i, 64 + 32, elf_note(&i, 0x400, "VMCOREINFO", info, sizeof(info) - 1) - 0x400);
	image_memory(&i, 0x2000, 0x100000, 0x3000);
	image_memory(&i, 0x5000, 0x1000, 0x2000);
	image_memory(&i, 0x7000, 0x200000, 0x1000);
	d = open_image("file", &i);
	CHECK_MAP(d, 0, "ELF program headers", { 0x1000, 0x2fff }, { 0x100000, 0x104fff },
		  { 0x200000, 0x201fff });
	check_data(d, 0x1000, 0x2fff);
	check_data(d, 0x100000, 0x102fff);
	CHECK_PAGE(d, 0x103000, PAGE_SKIPPED, SKIP_NOT_MAPPED);
	CHECK_PAGE(d, 0x104000, PAGE_SKIPPED, SKIP_NOT_MAPPED);
	CHECK_PAGE(d, 0x200000, PAGE_DATA, 0);
	CHECK_PAGE(d, 0x201000, PAGE_UNREADABLE, DRV_NO_DATA);
	CHECK_HAS(d->info.note, "cut short");
	assert_true(d->info.has_kernel_base && d->info.has_kernel_phys && d->info.has_cr3);
	assert_int_equal(d->info.kernel_base, 0xffffffff9e000000);
	assert_int_equal(d->info.kernel_phys, 0x1000000);
	assert_int_equal(d->info.cr3, 0x2610000);
	assert_non_null(d->info.notes);
	drv_close(d);
	image_free(&i);
}

TEST(core_without_physical_addresses_is_refused)
{
	const struct phdr p[] = {
		{ LOAD, 0x1000, 0x400000, 0, 0x1000, 0x1000 },
		{ LOAD, 0x2000, 0x600000, 0, 0x1000, 0x1000 },
	};
	struct image i = { 0 };

	elf_header(&i, p, 2);
	image_put(&i, 0x3000, "", 0);
	refuse_image("file", &i, ST_INPUT, "without physical addresses");
}

TEST(core_with_ram_at_zero_is_read)
{
	const struct phdr p = { LOAD, 0x1000, 0, 0, 0x2000, 0x2000 };
	struct image i = { 0 };
	struct drv *d;

	elf_header(&i, &p, 1);
	image_memory(&i, 0x1000, 0, 0x2000);
	d = open_image("file", &i);
	check_data(d, 0, 0x1fff);
	drv_close(d);
	image_free(&i);
}

TEST(other_elf_files_are_refused_not_taken_for_raw)
{
	struct image i = { 0 };

	elf_header(&i, NULL, 0);
	image_u16(&i, 16, 2);
	image_put(&i, 2 * PAGE_SIZE, "", 0);
	refuse_image("file", &i, ST_INPUT, "not a core");
}

TEST(thousands_of_runs_are_read)
{
	struct image i = { 0 };
	struct drv *d;

	for (uint64_t k = 0; k < 5000; k++)
		lime_range(&i, k * 0x3000, k * 0x3000 + 0xfff);
	d = open_image("file", &i);
	assert_int_equal(d->info.maps[0].ranges.count, 5000);
	for (uint64_t k = 0; k < 5000; k++) {
		CHECK_PAGE(d, k * 0x3000, PAGE_DATA, 0);
		CHECK_PAGE(d, k * 0x3000 + 0x1000, PAGE_SKIPPED, SKIP_NOT_MAPPED);
	}
	drv_close(d);
	image_free(&i);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(raw_file_is_one_range),
		cmocka_unit_test(part_of_a_page_at_the_end_of_a_raw_file_is_left_out_and_told),
		cmocka_unit_test(files_that_are_no_memory_are_named),
		cmocka_unit_test(file_shorter_than_a_page_is_refused),
		cmocka_unit_test(missing_file_is_an_input_error),
		cmocka_unit_test(lime_records_are_the_map),
		cmocka_unit_test(page_split_between_two_lime_records_is_put_together),
		cmocka_unit_test(what_a_cut_lime_file_lacks_is_unreadable),
		cmocka_unit_test(corrupt_lime_file_is_refused_with_its_record),
		cmocka_unit_test(lime_records_that_lie_are_counted_and_every_byte_is_read_once),
		cmocka_unit_test(extents_inside_others_are_dropped),
		cmocka_unit_test(core_is_read_at_its_physical_addresses),
		cmocka_unit_test(core_without_physical_addresses_is_refused),
		cmocka_unit_test(core_with_ram_at_zero_is_read),
		cmocka_unit_test(other_elf_files_are_refused_not_taken_for_raw),
		cmocka_unit_test(thousands_of_runs_are_read),
	};

	return cmocka_run_group_tests_name("file", tests, NULL, NULL);
}
