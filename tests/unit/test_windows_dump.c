/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/test.h"

#include <string.h>

#include "formats/image/windows_dump.h"
#include "tests/gen/images.h"

#define FIRST_PAGE 0x4000

static void put_header(struct image *i, uint32_t type)
{
	for (size_t at = 0; at < 0x2000; at += 4)
		image_put(i, at, "PAGE", 4);
	image_put(i, 0, "PAGEDU64", 8);
	image_u32(i, 0xc, 22621);
	image_u64(i, 0x10, 0x1aa002);
	image_u32(i, 0x30, 0x8664);
	image_u32(i, 0x34, 8);
	image_u32(i, 0x38, 0x161);
	image_u32(i, 0xf98, type);
	image_u64(i, 0xfa8, 132500000000000000);
}

static void put_runs(struct image *i, const uint64_t (*runs)[2], uint32_t count)
{
	uint64_t pages = 0;

	for (uint32_t n = 0; n < count; n++) {
		image_u64(i, 0x98 + 16 * n, runs[n][0]);
		image_u64(i, 0xa0 + 16 * n, runs[n][1]);
		pages += runs[n][1];
	}
	image_u32(i, 0x88, count);
	image_u64(i, 0x90, pages);
}

static void put_bitmap(struct image *i, const uint8_t *map, size_t bits)
{
	uint64_t pages = 0;

	for (size_t n = 0; n < bits; n++)
		pages += map[n / 8] >> n % 8 & 1;
	image_put(i, 0x2000, "SDMPDUMP", 8);
	image_u64(i, 0x2020, FIRST_PAGE);
	image_u64(i, 0x2028, pages);
	image_u64(i, 0x2030, bits);
	image_put(i, 0x2038, map, (bits + 7) / 8);
	image_put(i, FIRST_PAGE + (size_t)pages * PAGE_SIZE, "", 0);
}

static enum status parse(const struct image *i, struct windows_dump *d, struct err *e)
{
	struct mem_blob b;

	mem_blob_init(&b, i->at, i->len);
	return windows_dump_init(d, &b.blob, e);
}

static void refused(struct image *i, enum status want, const char *text)
{
	struct err e = ERR_INIT;
	struct windows_dump d;

	CHECK_STATUS(parse(i, &d, &e), want, &e);
	CHECK_HAS(e.message, text);
	windows_dump_deinit(&d);
	image_free(i);
}

TEST(header_is_read)
{
	static const uint64_t runs[][2] = { { 1, 158 }, { 0x1000, 2 }, { 0x100, 0 } };
	struct image i = { 0 };
	struct err e = ERR_INIT;
	struct windows_dump d;

	put_header(&i, 1);
	put_runs(&i, runs, 3);
	image_put(&i, 0x2000 + 160 * PAGE_SIZE, "", 0);
	CHECK_OK(parse(&i, &d, &e), &e);
	assert_int_equal(d.build, 22621);
	assert_int_equal(d.processors, 8);
	assert_int_equal(d.bug_check, 0x161);
	assert_int_equal(d.dtb, 0x1aa002);
	assert_int_equal(d.system_time, 132500000000000000);
	assert_int_equal(d.count, 2); /* a run without pages is none */
	assert_int_equal(d.at[0].range.first, 0x1000);
	assert_int_equal(d.at[0].range.last, 0x9efff);
	assert_int_equal(d.at[0].offset, 0x2000);
	assert_int_equal(d.at[1].offset, 0x2000 + 158 * PAGE_SIZE);
	assert_false(d.cut);
	windows_dump_deinit(&d);
	i.len--;
	CHECK_OK(parse(&i, &d, &e), &e);
	assert_true(d.cut);
	windows_dump_deinit(&d);
	image_free(&i);
}

TEST(what_is_not_set_is_not_told)
{
	static const uint8_t map[] = { 1 };
	struct image i = { 0 };
	struct err e = ERR_INIT;
	struct windows_dump d;

	put_header(&i, 5);
	put_bitmap(&i, map, 1);
	image_put(&i, 0x10, "PAGEPAGE", 8);
	image_put(&i, 0xfa8, "PAGEPAGE", 8);
	CHECK_OK(parse(&i, &d, &e), &e);
	assert_int_equal(d.dtb, 0);
	assert_int_equal(d.system_time, 0);
	assert_int_equal(d.ram.count, 0);
	windows_dump_deinit(&d);
	image_free(&i);
}

/* All of two bytes, so that runs begin and end at each bit, across bytes and at the end. */
TEST(every_bitmap_of_sixteen_bits_is_read)
{
	for (unsigned v = 1; v < 0x10000; v += v < 0x400 ? 1 : 37) {
		const uint8_t map[] = { (uint8_t)v, (uint8_t)(v >> 8) };
		struct image i = { 0 };
		struct err e = ERR_INIT;
		struct windows_dump d;
		uint64_t offset = FIRST_PAGE;
		unsigned seen = 0;

		put_header(&i, 6);
		put_bitmap(&i, map, 16);
		CHECK_OK(parse(&i, &d, &e), &e);
		for (size_t n = 0; n < d.count; n++) {
			assert_int_equal(d.at[n].offset, offset);
			offset += range_bytes(d.at[n].range);
			for (uint64_t a = d.at[n].range.first; a < d.at[n].range.last;
			     a += PAGE_SIZE)
				seen |= 1u << (a / PAGE_SIZE);
		}
		assert_int_equal(seen, v);
		windows_dump_deinit(&d);
		image_free(&i);
	}
}

TEST(bits_behind_the_last_do_not_count)
{
	static const uint8_t map[] = { 0xff, 0xff };
	struct image i = { 0 };
	struct err e = ERR_INIT;
	struct windows_dump d;

	put_header(&i, 6);
	put_bitmap(&i, map, 11);
	CHECK_OK(parse(&i, &d, &e), &e);
	assert_int_equal(d.count, 1);
	assert_int_equal(d.at[0].range.last, 11 * PAGE_SIZE - 1);
	windows_dump_deinit(&d);
	image_free(&i);
}

TEST(runs_that_lie_are_refused)
{
	static const uint64_t good[][2] = { { 1, 2 } };
	static const uint64_t high[][2] = { { UINT64_C(1) << 40, 1 } };
	static const uint64_t wraps[][2] = { { 1, UINT64_MAX }, { 1, 3 } };
	struct image i = { 0 };

	put_header(&i, 1);
	put_runs(&i, good, 1);
	image_u64(&i, 0x90, 1);
	refused(&i, ST_CORRUPT, "1 pages, but its runs have 2");
	put_header(&i, 1);
	put_runs(&i, high, 1);
	refused(&i, ST_CORRUPT, "beyond 2^52");
	put_header(&i, 1);
	put_runs(&i, wraps, 2);
	refused(&i, ST_CORRUPT, "beyond 2^52");
	put_header(&i, 1);
	image_u32(&i, 0x88, 44);
	image_u64(&i, 0x90, 44);
	refused(&i, ST_CORRUPT, "room for 43");
	put_header(&i, 1);
	refused(&i, ST_CORRUPT, "no runs");
}

TEST(other_files_are_refused)
{
	struct image i = { 0 };

	image_text(&i, "PAGEDU6");
	refused(&i, ST_NOT_MINE, "not a crash dump");
	image_text(&i, "PAGEDU64");
	refused(&i, ST_CORRUPT, "cut short");
	put_header(&i, 4);
	refused(&i, ST_INPUT, "type 4");
	put_header(&i, 1);
	image_u32(&i, 0x30, 0xaa64);
	refused(&i, ST_INPUT, "ARM64");
	put_header(&i, 5);
	refused(&i, ST_CORRUPT, "ends at");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(header_is_read),
		cmocka_unit_test(what_is_not_set_is_not_told),
		cmocka_unit_test(every_bitmap_of_sixteen_bits_is_read),
		cmocka_unit_test(bits_behind_the_last_do_not_count),
		cmocka_unit_test(runs_that_lie_are_refused),
		cmocka_unit_test(other_files_are_refused),
	};

	return cmocka_run_group_tests_name("windows_dump", tests, NULL, NULL);
}
