/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Opening a file of each kind is stopped at each of its reads, one after the other: whatever the
 * reader makes of a read that fails, the file is not opened, and nothing more is asked or read.
 */
#include "tests/unit/test.h"

#include <string.h>
#include <zlib.h>

#include "formats/image/kdump.h"
#include "formats/image/snappy.h"
#include "tests/unit/drv_check.h"

/* How often drv_stop() was asked, and when it says so; 0: never. */
static unsigned asked, stop_at;

static const char *stop_here(void)
{
	/* Whoever was told to stop does not ask again. */
	if (stop_at)
		assert_in_range(asked, 0, stop_at - 1);
	return ++asked == stop_at ? "a test" : NULL;
}

static void use_hook(unsigned at)
{
	asked = 0;
	stop_at = at;
	drv_stop = stop_here;
}

/* A page that a reader has, and one that it asks nobody for. */
static void read_open(struct drv *d)
{
	const unsigned before = asked;
	uint8_t page[PAGE_SIZE];
	struct page_status s;
	struct err e = ERR_INIT;

	CHECK_OK(drv_read_pages(d, d->info.maps[0].ranges.at[0].first, page, 1, &s, &e), &e);
	assert_int_equal(s.state, PAGE_DATA);
	assert_int_equal(asked, before);
}

/* Takes `least` reads or more. Frees the image. */
static void check_stops(const char *name, struct image *i, unsigned least)
{
	unsigned total;
	struct drv *d;

	use_hook(0);
	d = open_image(name, i);
	total = asked;
	assert_true(total >= least);
	read_open(d);
	drv_close(d);
	for (unsigned n = 1; n <= total; n++) {
		struct err e = ERR_INIT;
		struct drv *none = NULL;
		char spec[128];

		snprintf(spec, sizeof(spec), "%s:%s", name, i->path);
		use_hook(n);
		CHECK_STATUS(drv_open(spec, &none, &e), ST_INTERRUPTED, &e);
		CHECK_HAS(e.message, "interrupted by a test while it was opened");
		CHECK_HAS(e.message, i->path);
		assert_null(none);
		assert_int_equal(asked, n);
	}
	drv_stop = NULL;
	d = open_image(name, i);
	drv_close(d);
	image_free(i);
}

#define CHUNKS 40

/* One block of stored chunks, and one of zeros in front of it. */
static void put_avml(struct image *i)
{
	static uint8_t data[SNAPPY_PLAIN_MAX];
	const uint64_t first = 0x20000, len = (uint64_t)CHUNKS * SNAPPY_PLAIN_MAX;
	const uint64_t blocks[][2] = { { 0x10000, 0x1ffff }, { first, first + len - 1 } };
	size_t begin;

	for (size_t n = 0; n < ARRAY_SIZE(blocks); n++) {
		const size_t at = i->len;

		image_put(i, at, "AVML\2\0\0\0", 8);
		image_u64(i, at + 8, blocks[n][0]);
		image_u64(i, at + 16, blocks[n][1]);
		image_u64(i, at + 24, 0);
	}
	begin = i->len;
	image_put(i, i->len, SNAPPY_IDENTIFIER, SNAPPY_IDENTIFIER_SIZE);
	for (uint64_t at = 0; at < len; at += sizeof(data)) {
		pattern(data, first + at, sizeof(data));
		image_u32(i, i->len, 1 | (uint32_t)(sizeof(data) + 4) << 8);
		image_u32(i, i->len, snappy_masked_crc(data, sizeof(data)));
		image_put(i, i->len, data, sizeof(data));
	}
	image_u64(i, i->len, i->len - begin);
}

TEST(avml)
{
	struct image i = { 0 };

	put_avml(&i);
	check_stops("file", &i, CHUNKS);
}

/* The same behind a piece that is damaged: the next block is searched for. */
TEST(avml_that_is_searched)
{
	struct image i = { 0 };

	put_avml(&i);
	put_avml(&i);
	i.at[64 + SNAPPY_IDENTIFIER_SIZE] = 0x7f; /* the kind of a chunk that nobody knows */
	check_stops("file", &i, CHUNKS);
}

TEST(lime_in_a_zlib_stream)
{
	struct image plain = { 0 }, i = { 0 };
	uint8_t *out;
	uLongf len;

	lime_range(&plain, 0x1000, 0x1000 + (1 << 20) - 1);
	/* What stands there twice is compared, and a read of that which fails is no error. */
	lime_range(&plain, 0x8000, 0x8000 + (1 << 20) - 1);
	len = compressBound((uLong)plain.len);
	out = malloc(len);
	assert_non_null(out);
	assert_int_equal(compress2(out, &len, plain.at, (uLong)plain.len, Z_NO_COMPRESSION), Z_OK);
	image_put(&i, 0, out, len);
	check_stops("file", &i, (2 << 20) / (64 << 10));
	free(out);
	image_free(&plain);
}

TEST(lime)
{
	struct image i = { 0 };

	for (uint64_t first = 0; first < 20 * 0x4000; first += 0x4000)
		lime_range(&i, first, first + 0x2fff);
	check_stops("file", &i, 20);
}

#define MAP_AT    0x2038
#define MAP_BYTES ((size_t)3 * 64 << 10)

TEST(dump_of_windows)
{
	const size_t first = (MAP_AT + MAP_BYTES + PAGE_SIZE) & ~(PAGE_SIZE - 1);
	struct image i = { 0 };

	for (size_t at = 0; at < 0x2000; at += 4)
		image_put(&i, at, "PAGE", 4);
	image_put(&i, 0, "PAGEDU64", 8);
	image_u32(&i, 0x30, 0x8664);
	image_u32(&i, 0xf98, 5);
	image_put(&i, 0x2000, "SDMPDUMP", 8);
	image_u64(&i, 0x2020, first);
	image_u64(&i, 0x2028, 2);
	image_u64(&i, 0x2030, 8 * MAP_BYTES);
	image_u8(&i, MAP_AT, 2);
	image_u8(&i, MAP_AT + MAP_BYTES - 1, 2);
	image_put(&i, first + 2 * PAGE_SIZE, "", 0);
	check_stops("file", &i, 5);
}

#define KDUMP_BLOCKS 6 /* of each bitmap */

/* A page that is stored, and others that are left out. */
static void put_kdump(struct image *i)
{
	const size_t bitmap_1 = 2 * PAGE_SIZE, bitmap_2 = bitmap_1 + KDUMP_BLOCKS * PAGE_SIZE;
	const size_t descriptor = bitmap_2 + KDUMP_BLOCKS * PAGE_SIZE;

	image_put(i, 0, KDUMP_SIGNATURE, KDUMP_SIGNATURE_SIZE);
	image_u32(i, KDUMP_SIGNATURE_SIZE, KDUMP_VERSION);
	image_u32(i, KDUMP_BLOCK_SIZE, PAGE_SIZE);
	image_u32(i, KDUMP_SUB_HEADER_BLOCKS, 1);
	image_u32(i, KDUMP_BITMAP_BLOCKS, 2 * KDUMP_BLOCKS);
	image_u32(i, KDUMP_CPUS, 1);
	image_u64(i, PAGE_SIZE + KDUMP_SUB_MAX_MAPNR, KDUMP_BLOCKS * PAGE_SIZE * 8);
	image_u8(i, bitmap_1, 0xff);
	image_u8(i, bitmap_2, 1);
	image_u64(i, descriptor, descriptor + PAGE_SIZE);
	image_u32(i, descriptor + 8, PAGE_SIZE);
	image_u64(i, descriptor + PAGE_SIZE, 0);
	image_memory(i, descriptor + PAGE_SIZE, 0, PAGE_SIZE);
}

TEST(kdump)
{
	struct image i = { 0 };

	put_kdump(&i);
	check_stops("file", &i, 2 * KDUMP_BLOCKS);
}

static void put_be64(struct image *i, size_t off, uint64_t v)
{
	image_u64(i, off, __builtin_bswap64(v));
}

/* A record for each block, as of a dump that went through a pipe. */
TEST(kdump_that_is_flattened)
{
	struct image plain = { 0 }, i = { 0 };
	size_t blocks;

	put_kdump(&plain);
	blocks = plain.len / PAGE_SIZE;
	image_put(&i, 0, KDUMP_FLAT_SIGNATURE, KDUMP_FLAT_SIGNATURE_SIZE);
	put_be64(&i, 16, KDUMP_FLAT_TYPE);
	put_be64(&i, 24, KDUMP_FLAT_VERSION);
	image_put(&i, KDUMP_FLAT_HEADER_SIZE, "", 0);
	for (size_t n = 0; n < blocks; n++) {
		put_be64(&i, i.len, n * PAGE_SIZE);
		put_be64(&i, i.len, PAGE_SIZE);
		image_put(&i, i.len, plain.at + n * PAGE_SIZE, PAGE_SIZE);
	}
	put_be64(&i, i.len, KDUMP_FLAT_END);
	put_be64(&i, i.len, KDUMP_FLAT_END);
	check_stops("file", &i, 2 * KDUMP_BLOCKS + (unsigned)blocks);
	image_free(&plain);
}

TEST(core)
{
	const struct phdr p[] = { { 1, 0x1000, 0, 0x1000, 0x3000, 0x3000 },
				  { 1, 0x4000, 0, 0x8000, 0x1000, 0x1000 } };
	struct image i = { 0 };

	elf_header(&i, p, ARRAY_SIZE(p));
	image_memory(&i, 0x1000, 0x1000, 0x3000);
	image_memory(&i, 0x4000, 0x8000, 0x1000);
	check_stops("file", &i, 1);
}

/* What is none of them is looked at by all. */
TEST(raw)
{
	struct image i = { 0 };

	image_memory(&i, 0, 0, 3 * PAGE_SIZE);
	check_stops("file", &i, 6);
}

/* Nothing of it is read before it is open. */
TEST(raw_by_name_does_not_ask)
{
	struct image i = { 0 };
	struct drv *d;

	image_memory(&i, 0, 0, 3 * PAGE_SIZE);
	use_hook(1);
	d = open_image("raw", &i);
	assert_int_equal(asked, 0);
	read_open(d);
	drv_close(d);
	drv_stop = NULL;
	image_free(&i);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(avml),
		cmocka_unit_test(avml_that_is_searched),
		cmocka_unit_test(lime_in_a_zlib_stream),
		cmocka_unit_test(lime),
		cmocka_unit_test(dump_of_windows),
		cmocka_unit_test(kdump),
		cmocka_unit_test(kdump_that_is_flattened),
		cmocka_unit_test(core),
		cmocka_unit_test(raw),
		cmocka_unit_test(raw_by_name_does_not_ask),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
