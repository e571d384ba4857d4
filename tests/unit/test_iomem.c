/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/test.h"

#include <string.h>

#include "driver-interface/iomem.h"
#include "tests/gen/images.h"

static enum status parse(const char *text, struct range_list *ret, struct err *e)
{
	return iomem_parse(text, strlen(text), ret, e);
}

static void refused(const char *text, enum status want, const char *message)
{
	_cleanup_ranges_ struct range_list l = { 0 };
	struct err e = ERR_INIT;

	CHECK_STATUS(parse(text, &l, &e), want, &e);
	CHECK_HAS(e.message, message);
}

#define CHECK_RANGE(r, want_first, want_last)                                                      \
	do {                                                                                       \
		assert_int_equal((r).first, want_first);                                           \
		assert_int_equal((r).last, want_last);                                             \
	} while (0)

TEST(ends_are_inclusive_and_children_are_not_extra)
{
	_cleanup_ranges_ struct range_list l = { 0 };
	struct err e = ERR_INIT;

	CHECK_OK(parse("00000000-00000fff : Reserved\n"
		       "00001000-0009fbff : System RAM\n"
		       "0009fc00-000fffff : Reserved\n"
		       "  000f0000-000fffff : System ROM\n"
		       "00100000-bffdffff : System RAM\n"
		       "  01000000-01e02966 : Kernel code\n"
		       "  02000000-0277cfff : Kernel rodata\n"
		       "100000000-13fffffff : System RAM\n",
		       &l, &e),
		 &e);
	assert_int_equal(l.count, 3);
	CHECK_RANGE(l.at[0], 0x1000, 0x9fbff);
	CHECK_RANGE(l.at[1], 0x100000, 0xbffdffff);
	CHECK_RANGE(l.at[2], 0x100000000, 0x13fffffff);
}

TEST(ram_that_drivers_added_is_ram_at_any_depth)
{
	_cleanup_ranges_ struct range_list l = { 0 };
	struct err e = ERR_INIT;

	CHECK_OK(parse("00001000-0009ffff : System RAM\n"
		       "140000000-33fffffff : virtio0\n"
		       "  140000000-1bfffffff : System RAM (virtio_mem)\n"
		       "    150000000-15fffffff : System RAM\n" /* inside: no extra range */
		       "400000000-4ffffffff : Persistent Memory\n"
		       "  400000000-4ffffffff : namespace0.0\n"
		       "    410000000-4ffffffff : dax0.0\n"
		       "      410000000-4ffffffff : System RAM (kmem)\n"
		       "500000000-5ffffffff : System RAM",
		       &l, &e),
		 &e);
	assert_int_equal(l.count, 4);
	CHECK_RANGE(l.at[1], 0x140000000, 0x1bfffffff);
	CHECK_RANGE(l.at[2], 0x410000000, 0x4ffffffff);
	CHECK_RANGE(l.at[3], 0x500000000, 0x5ffffffff);
}

TEST(names_that_only_look_like_ram_are_not)
{
	_cleanup_ranges_ struct range_list l = { 0 };
	struct err e = ERR_INIT;

	CHECK_OK(parse("1000-1fff : System RAM\n"
		       "2000-2fff : System RAMDAC\n"
		       "3000-3fff : System RAM buffer\n"
		       "4000-4fff : System RO\n"
		       "5000-5fff : Not System RAM\n"
		       "6000-6fff : System RAM (\n"
		       "7000-7fff : System RAM (kmem\n",
		       &l, &e),
		 &e);
	assert_int_equal(l.count, 1);
}

TEST(hidden_addresses_are_a_lack_of_rights)
{
	refused("00000000-00000000 : Reserved\n"
		"00000000-00000000 : System RAM\n"
		"  00000000-00000000 : Kernel code\n"
		"00000000-00000000 : System RAM\n",
		ST_NO_PRIVILEGE, "run as root");
}

TEST(map_without_ram_is_no_source)
{
	refused("", ST_NO_SOURCE, "no System RAM");
	refused("00000000-00000fff : Reserved\n", ST_NO_SOURCE, "no System RAM");
	refused("\n\n : \n", ST_NO_SOURCE, "no System RAM");
}

TEST(ram_line_that_makes_no_sense_is_corrupt_and_numbered)
{
	refused("1000-1fff : System RAM\n3000-2fff : System RAM\n", ST_CORRUPT,
		"line 2: range 0x3000-0x2fff runs backwards");
	refused("1000 : System RAM\n", ST_CORRUPT, "line 1: \"1000\"");
	refused("1000- : System RAM\n", ST_CORRUPT, "line 1");
	refused("-1fff : System RAM\n", ST_CORRUPT, "line 1");
	refused("1000-1fff  : System RAM\n", ST_CORRUPT, "line 1");
	refused("10000000000000000-1ffffffffffffffff : System RAM\n", ST_CORRUPT, "line 1");
	refused("0x1000-0x1fff : System RAM\n", ST_CORRUPT, "line 1");
	refused("1000-1f\x10 : System RAM\n", ST_CORRUPT, "line 1");
}

TEST(other_lines_are_not_judged)
{
	_cleanup_ranges_ struct range_list l = { 0 };
	struct err e = ERR_INIT;

	CHECK_OK(parse("what is this\nzz-yy : device\n1000-1fff : System RAM\n\n", &l, &e), &e);
	assert_int_equal(l.count, 1);
}

TEST(lies_about_ranges_come_out_as_counted_faults)
{
	_cleanup_ranges_ struct range_list l = { 0 };
	struct range_faults faults;
	struct err e = ERR_INIT;

	CHECK_OK(parse("100000-2fffff : System RAM\n"
		       "1000-9fbff : System RAM\n"
		       "200000-3fffff : System RAM\n"
		       "ffffffffff000-ffffffffffffffff : System RAM\n"
		       "10000000000000-1ffffffffffffff : System RAM\n",
		       &l, &e),
		 &e);
	range_list_tidy(&l, &faults);
	assert_int_equal(l.count, 3);
	CHECK_RANGE(l.at[0], 0x1000, 0x9efff);
	CHECK_RANGE(l.at[1], 0x100000, 0x3fffff);
	CHECK_RANGE(l.at[2], 0xffffffffff000, 0xfffffffffffff);
	assert_int_equal(faults.unsorted, 1);
	assert_int_equal(faults.overlapping, 1);
	assert_int_equal(faults.beyond, 2);
	assert_int_equal(faults.partial, 1);
}

TEST(file_of_more_than_a_mebibyte_is_read_to_its_end)
{
	_cleanup_ranges_ struct range_list l = { 0 };
	struct image i = { 0 };
	struct err e = ERR_INIT;
	char line[80];
	uint64_t at = 0x1000;

	while (i.len < 1 << 20) {
		snprintf(line, sizeof(line),
			 "  %08llx-%08llx : 0000:00:1f.0 some device's window\n",
			 (unsigned long long)at, (unsigned long long)at + 0xfff);
		image_text(&i, line);
		at += 0x1000;
	}
	for (size_t k = 0; k < 5000; k++, at += 0x2000) {
		snprintf(line, sizeof(line), "%08llx-%08llx : System RAM\n", (unsigned long long)at,
			 (unsigned long long)at + 0xfff);
		image_text(&i, line);
	}
	iomem_set_path(image_save(&i));
	CHECK_OK(iomem_read(&l, &e), &e);
	assert_int_equal(l.count, 5000);
	assert_int_equal(l.at[4999].last, at - 0x2000 + 0xfff);
	iomem_set_path(NULL);
	image_free(&i);
}

TEST(missing_file_is_named)
{
	_cleanup_ranges_ struct range_list l = { 0 };
	struct err e = ERR_INIT;

	iomem_set_path("/nowhere/iomem");
	CHECK_STATUS(iomem_read(&l, &e), ST_NO_SOURCE, &e);
	CHECK_HAS(e.message, "/nowhere/iomem");
	iomem_set_path(NULL);
	assert_string_equal(iomem_path(), "/proc/iomem");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ends_are_inclusive_and_children_are_not_extra),
		cmocka_unit_test(ram_that_drivers_added_is_ram_at_any_depth),
		cmocka_unit_test(names_that_only_look_like_ram_are_not),
		cmocka_unit_test(hidden_addresses_are_a_lack_of_rights),
		cmocka_unit_test(map_without_ram_is_no_source),
		cmocka_unit_test(ram_line_that_makes_no_sense_is_corrupt_and_numbered),
		cmocka_unit_test(other_lines_are_not_judged),
		cmocka_unit_test(lies_about_ranges_come_out_as_counted_faults),
		cmocka_unit_test(file_of_more_than_a_mebibyte_is_read_to_its_end),
		cmocka_unit_test(missing_file_is_named),
	};

	return cmocka_run_group_tests_name("iomem", tests, NULL, NULL);
}
