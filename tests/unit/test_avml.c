/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/test.h"

#include <string.h>

#include "formats/image/avml.h"
#include "tests/gen/images.h"

#define BLOCK ((size_t)3 * SNAPPY_PLAIN_MAX + 1234)

static void put_header(struct image *i, uint64_t first, uint64_t last)
{
	const size_t at = i->len;

	image_text(i, "AVML");
	image_u32(i, at + 4, 2);
	image_u64(i, at + 8, first);
	image_u64(i, at + 16, last);
	image_u64(i, at + 24, 0);
}

/* Stored chunks; every other one is shorter than it might be. */
static void put_block(struct image *i, uint64_t first, size_t len)
{
	static uint8_t data[SNAPPY_PLAIN_MAX];
	const uint64_t last = first + len - 1;
	size_t begin;

	put_header(i, first, last);
	begin = i->len;
	image_put(i, i->len, SNAPPY_IDENTIFIER, SNAPPY_IDENTIFIER_SIZE);
	for (size_t n; len; len -= n, first += n) {
		n = len < SNAPPY_PLAIN_MAX ? len : SNAPPY_PLAIN_MAX - (len & 64);
		pattern(data, first, n);
		image_u32(i, i->len, 1 | (uint32_t)(n + 4) << 8);
		image_u32(i, i->len, snappy_masked_crc(data, n));
		image_put(i, i->len, data, n);
	}
	image_u64(i, i->len, i->len - begin);
}

static void open_image(struct image *i, struct mem_blob *b, struct avml *a)
{
	struct err e = ERR_INIT;

	mem_blob_init(b, i->at, i->len);
	CHECK_OK(avml_init(a, &b->blob, &e), &e);
}

/* `len` bytes at `plain` are those of the address. */
static void check_bytes(struct avml *a, uint64_t plain, uint64_t addr, size_t len)
{
	uint8_t *got = malloc(len), *want = malloc(len);
	struct err e = ERR_INIT;
	size_t n = 0;

	assert_true(got && want);
	CHECK_OK(avml_read(a, plain, got, len, &n, &e), &e);
	assert_int_equal(n, len);
	pattern(want, addr, len);
	assert_memory_equal(got, want, len);
	free(got);
	free(want);
}

TEST(crc_is_that_of_the_rfc)
{
	/* RFC 3720, B.4: 32 bytes of zeros, of ones, and 0 to 31; masked as snappy does it. */
	static const uint32_t want[] = { 0x8a9136aa, 0x62a8ab43, 0x46dd794e };
	uint8_t p[32];

	for (int k = 0; k < 3; k++) {
		for (int n = 0; n < 32; n++)
			p[n] = (uint8_t)(k == 0 ? 0 : k == 1 ? 0xff : n);
		assert_int_equal(snappy_masked_crc(p, sizeof(p)),
				 (want[k] >> 15 | want[k] << 17) + 0xa282ead8u);
	}
}

#define PACKED(text) (const uint8_t *)(text), sizeof(text) - 1

static void decodes(const uint8_t *packed, size_t len, const char *want)
{
	uint8_t got[128];

	assert_true(snappy_decode(packed, len, got, strlen(want)));
	assert_memory_equal(got, want, strlen(want));
	/* Neither a byte more nor less, in or out. */
	for (size_t n = 0; n < len; n++)
		assert_false(snappy_decode(packed, n, got, strlen(want)));
	assert_false(snappy_decode(packed, len, got, strlen(want) - 1));
	assert_false(snappy_decode(packed, len, got, strlen(want) + 1));
}

TEST(every_element_is_decoded)
{
	decodes(PACKED("\x03\x08xab"), "xab");
	decodes(PACKED("\x03\xf0\x02xab"), "xab");
	decodes(PACKED("\x03\xf4\x02\0xab"), "xab");
	decodes(PACKED("\x03\xf8\x02\0\0xab"), "xab");
	decodes(PACKED("\x03\xfc\x02\0\0\0xab"), "xab");
	decodes(PACKED("\x07\x08xab\x01\x02"), "xababab");
	decodes(PACKED("\x06\x08xab\x0a\x03\0"), "xabxab");
	decodes(PACKED("\x04\x08xab\x03\x01\0\0\0"), "xabb");
}

TEST(what_is_no_snappy_is_refused)
{
	uint8_t got[128];
	static const struct {
		const char *p;
		size_t len;
	} bad[] = {
		{ "\x07\x08xab\x01\0", 7 },           /* back to itself */
		{ "\x07\x08xab\x01\x04", 7 },         /* in front of the first byte */
		{ "\x07\x01\x01\x08xab", 7 },         /* begins with a copy */
		{ "\x07\xfc\xff\xff\xff\xffxab", 9 }, /* a literal of 4 GiB */
		{ "\x04\x08xab\x0b\x01\0\0\0", 9 },   /* three bytes more than there are */
		{ "\x87\x80\x80\x80\x80\x01x", 7 },   /* a length of six bytes */
	};

	for (size_t k = 0; k < ARRAY_SIZE(bad); k++)
		assert_false(snappy_decode((const uint8_t *)bad[k].p, bad[k].len, got, 7));
}

TEST(bytes_are_found_in_any_order)
{
	struct image i = { 0 };
	struct mem_blob b;
	struct avml a;

	put_block(&i, 0x1000, BLOCK);
	put_block(&i, 0x10000000, 50);
	put_block(&i, 0x20000000, 9 * SNAPPY_PLAIN_MAX);
	open_image(&i, &b, &a);
	assert_int_equal(a.count, 3);
	assert_int_equal(a.end, AVML_WHOLE);
	assert_int_equal(a.plain, BLOCK + 50 + 9 * SNAPPY_PLAIN_MAX);
	assert_true(a.n_points < 3 + 4); /* not one for each chunk */
	for (size_t k = 0; k < 3; k++)
		check_bytes(&a, a.at[k].plain, a.at[k].range.first, (size_t)a.at[k].present);
	for (size_t at = BLOCK; at > 4096; at -= 4096)
		check_bytes(&a, at - 4096, 0x1000 + at - 4096, 4096);
	for (size_t k = 0, at = 0; k < 2000; k++, at = (at * 7 + 12345) % (8 * SNAPPY_PLAIN_MAX))
		check_bytes(&a, BLOCK + 50 + at, 0x20000000 + at, 333);
	avml_deinit(&a);
	image_free(&i);
}

TEST(a_damaged_chunk_is_told_each_time_and_its_neighbours_are_read)
{
	struct image i = { 0 };
	struct mem_blob b;
	struct avml a;
	uint8_t got[16];
	size_t n;

	put_block(&i, 0, BLOCK);
	i.at[42 + 8 + 100] ^= 1;
	open_image(&i, &b, &a);
	for (int k = 0; k < 3; k++)
		assert_int_equal(avml_read(&a, 4096, got, 16, &n, NULL), ST_CORRUPT);
	assert_int_equal(n, 0);
	check_bytes(&a, SNAPPY_PLAIN_MAX, SNAPPY_PLAIN_MAX, BLOCK - SNAPPY_PLAIN_MAX);
	assert_int_equal(avml_read(&a, 0, got, 16, &n, NULL), ST_CORRUPT);
	avml_deinit(&a);
	image_free(&i);
}

TEST(a_header_that_another_follows_is_a_block_of_zeros)
{
	struct image i = { 0 };
	struct mem_blob b;
	struct avml a;
	uint8_t got[2] = { 1, 1 };
	size_t n;

	put_header(&i, 0x10000, 0x1ffff);
	put_header(&i, 0x20000, 0x2ffff);
	put_block(&i, 0x30000, 4096);
	put_header(&i, 0x40000, 0x40000 + AVML_ZEROS_MAX); /* longer than any that is left out */
	put_block(&i, 0x5000000, 4096);
	open_image(&i, &b, &a);
	assert_int_equal(a.count, 5);
	assert_int_equal(a.zeros, 0x20000);
	assert_int_equal(a.at[3].present, 0);
	assert_int_equal(a.damaged, 1);
	assert_int_equal(avml_read(&a, 0x1ffff, got, 1, &n, NULL), ST_OK);
	assert_int_equal(got[0], 0);
	check_bytes(&a, 0x20000, 0x30000, 4096);
	check_bytes(&a, 0x21000, 0x5000000, 4096);
	avml_deinit(&a);
	image_free(&i);
}

/* Each length in the file once wrong: the other blocks are found, and the search is not endless. */
TEST(blocks_behind_a_damaged_length_are_found)
{
	struct image i = { 0 };
	struct mem_blob b;
	struct avml a;
	size_t second, third;

	put_block(&i, 0, BLOCK);
	second = i.len;
	put_block(&i, 0x100000, BLOCK);
	third = i.len;
	put_block(&i, 0x200000, BLOCK);
	for (size_t at = second; at < third; at += at < second + 54 ? 1 : 1009) {
		i.at[at] ^= 0x40;
		open_image(&i, &b, &a);
		assert_in_range(a.count, 2, 3);
		assert_int_equal(a.at[a.count - 1].range.first, 0x200000);
		assert_int_equal(a.end, AVML_WHOLE);
		check_bytes(&a, 0, 0, BLOCK);
		check_bytes(&a, a.at[a.count - 1].plain, 0x200000, BLOCK);
		avml_deinit(&a);
		i.at[at] ^= 0x40;
	}
	image_free(&i);
}

TEST(claims_are_bounded)
{
	struct image i = { 0 };
	struct mem_blob b;
	struct avml a;

	put_block(&i, 0x1000, 4096);
	image_u64(&i, 16, UINT64_MAX);
	i.len -= 100; /* nothing tells that it is the range which is wrong */
	open_image(&i, &b, &a);
	assert_int_equal(a.overstated, 1);
	assert_int_equal(a.at[0].range.last, 0x1000);
	assert_int_equal(a.end, AVML_CUT);
	avml_deinit(&a);
	image_free(&i);
}

static void refused(struct image *i, enum status want, const char *text)
{
	struct err e = ERR_INIT;
	struct mem_blob b;
	struct avml a;

	mem_blob_init(&b, i->at, i->len);
	CHECK_STATUS(avml_init(&a, &b.blob, &e), want, &e);
	CHECK_HAS(e.message, text);
	avml_deinit(&a);
	image_free(i);
}

TEST(what_cannot_be_read_at_all_is_refused)
{
	struct image i = { 0 };

	image_text(&i, "AVM");
	refused(&i, ST_NOT_MINE, "not an AVML");
	put_header(&i, 0, 0xfff);
	image_u32(&i, 4, 1);
	refused(&i, ST_INPUT, "version 1");
	put_header(&i, 0x1000, 0xfff);
	refused(&i, ST_CORRUPT, "first header");
	put_header(&i, 0, UINT64_MAX);
	refused(&i, ST_CORRUPT, "first header");
	put_header(&i, 0, 0xfff);
	image_u64(&i, 24, 1);
	refused(&i, ST_CORRUPT, "first header");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(crc_is_that_of_the_rfc),
		cmocka_unit_test(every_element_is_decoded),
		cmocka_unit_test(what_is_no_snappy_is_refused),
		cmocka_unit_test(bytes_are_found_in_any_order),
		cmocka_unit_test(a_damaged_chunk_is_told_each_time_and_its_neighbours_are_read),
		cmocka_unit_test(a_header_that_another_follows_is_a_block_of_zeros),
		cmocka_unit_test(blocks_behind_a_damaged_length_are_found),
		cmocka_unit_test(claims_are_bounded),
		cmocka_unit_test(what_cannot_be_read_at_all_is_refused),
	};

	return cmocka_run_group_tests_name("avml", tests, NULL, NULL);
}
