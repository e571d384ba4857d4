/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/test.h"

#include <string.h>
#include <zlib.h>

#include "formats/image/inflated.h"
#include "tests/gen/images.h"

#define PLAIN ((size_t)3 << 20)

/* Half of it repeats, so that windows matter. */
static uint8_t *make_plain(void)
{
	uint8_t *p = malloc(PLAIN);
	uint32_t x = 1;

	assert_non_null(p);
	for (size_t n = 0; n < PLAIN; n++) {
		x = x * 1664525 + 1013904223;
		p[n] = n % 700 < 350 || n < 2000 ? (uint8_t)(x >> 24) : p[n - 1 - x % 1999];
	}
	return p;
}

static void pack(struct image *i, const uint8_t *plain, size_t len, int level, int bits, int memory)
{
	z_stream z = { 0 };
	uint8_t *out = malloc(2 * len + 1000);

	assert_non_null(out);
	assert_int_equal(deflateInit2(&z, level, Z_DEFLATED, bits, memory, Z_DEFAULT_STRATEGY),
			 Z_OK);
	z.next_in = (z_const Bytef *)(uintptr_t)plain;
	z.avail_in = (uInt)len;
	z.next_out = out;
	z.avail_out = (uInt)(2 * len + 1000);
	assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
	image_put(i, 0, out, z.total_out);
	deflateEnd(&z);
	free(out);
}

static void open_packed(struct image *i, struct mem_blob *b, struct inflated *ret, uint64_t spacing,
			size_t places)
{
	struct err e = ERR_INIT;

	mem_blob_init(b, i->at, i->len);
	CHECK_OK(inflated_init(ret, &b->blob, spacing, places, &e), &e);
}

static void check_at(struct inflated *i, const uint8_t *plain, uint64_t at, size_t len)
{
	static uint8_t got[100000];
	struct err e = ERR_INIT;
	size_t n = 0;

	CHECK_OK(i->blob.read_at(&i->blob, at, got, len, &n, &e), &e);
	assert_int_equal(n, MIN(len, i->blob.size - at));
	assert_memory_equal(got, plain + at, n);
}

TEST(bytes_are_the_same_in_any_order)
{
	static const struct {
		int level, bits, memory;
		uint64_t spacing;
		size_t places;
	} how[] = {
		{ 6, 11, 5, INFLATED_SPACING, INFLATED_PLACES }, /* LiME's */
		{ 6, 11, 5, 0, INFLATED_PLACES },                /* each block */
		{ 9, 15, 9, 10000, INFLATED_PLACES },
		{ 1, 9, 1, 5000, 100000 }, /* and every other forgotten, several times */
		{ 0, 15, 8, 5000, 1000000 },
		{ 6, 15, 8, 5000, 1 },
	};
	uint8_t *plain = make_plain();

	for (size_t k = 0; k < ARRAY_SIZE(how); k++) {
		struct image i = { 0 };
		struct inflated u;
		struct mem_blob b;

		pack(&i, plain, PLAIN, how[k].level, how[k].bits, how[k].memory);
		image_text(&i, "behind");
		open_packed(&i, &b, &u, how[k].spacing, how[k].places);
		assert_int_equal(u.end, INFLATED_WHOLE);
		assert_int_equal(u.blob.size, PLAIN);
		assert_int_equal(u.packed_end, i.len - 6);
		for (size_t at = 0; at < PLAIN; at += 99991)
			check_at(&u, plain, at, 99991);
		for (size_t n = 0, at = 0; n < 60; n++, at = (at * 31 + 1234567) % PLAIN)
			check_at(&u, plain, at, 1 + n * 1601);
		inflated_deinit(&u);
		image_free(&i);
	}
	free(plain);
}

TEST(what_a_cut_stream_has_is_there)
{
	uint8_t *plain = make_plain();
	struct image i = { 0 };
	struct inflated u;
	struct mem_blob b;
	size_t len;

	pack(&i, plain, 50000, 6, 11, 5);
	len = i.len;
	/* Its first bytes, some of the rest, and each of the last, which are a sum. */
	for (size_t cut = 2, end = len - 20; cut < len;
	     cut += cut < 50 || cut >= end ? 1 : MIN(end - cut, (size_t)777)) {
		i.len = cut;
		open_packed(&i, &b, &u, 0, INFLATED_PLACES);
		assert_int_equal(u.end, INFLATED_CUT);
		assert_in_range(u.blob.size, cut / 2 > 150 ? cut / 2 : 0, 50000);
		if (u.blob.size)
			check_at(&u, plain, 0, (size_t)u.blob.size);
		inflated_deinit(&u);
	}
	image_free(&i);
	free(plain);
}

/* But for those that change no byte: a copy of the same from elsewhere, the bits behind the end. */
TEST(no_flipped_bit_is_missed)
{
	uint8_t *plain = make_plain();
	struct image i = { 0 };
	struct inflated u;
	struct mem_blob b;
	size_t same = 0;

	pack(&i, plain, 20000, 6, 11, 5);
	for (size_t bit = 16; bit < 8 * i.len; bit += 61) {
		i.at[bit / 8] ^= (uint8_t)(1u << bit % 8);
		open_packed(&i, &b, &u, 0, INFLATED_PLACES);
		if (u.end == INFLATED_WHOLE) {
			same++;
			assert_int_equal(u.blob.size, 20000);
			check_at(&u, plain, 0, 20000);
		}
		inflated_deinit(&u);
		i.at[bit / 8] ^= (uint8_t)(1u << bit % 8);
	}
	assert_in_range(same, 0, i.len * 8 / 61 / 10);
	image_free(&i);
	free(plain);
}

/* Bits of a stream in the making, the lowest of a byte first (RFC 1951, 3.1.1). */
struct bits {
	struct image *i;
	uint32_t held;
	unsigned count;
};

static void put_bits(struct bits *b, uint32_t v, unsigned count)
{
	b->held |= v << b->count;
	for (b->count += count; b->count >= 8; b->count -= 8, b->held >>= 8)
		image_u8(b->i, b->i->len, (uint8_t)b->held);
}

/* One block of fixed codes (3.2.6): a zero, and then 258 of what is one byte back, `n` times. */
static void put_zeros(struct image *i, size_t n)
{
	struct bits b = { .i = i };

	image_put(i, 0, "\x78\x9c", 2);
	put_bits(&b, 3, 3);    /* the last block, and its kind */
	put_bits(&b, 0x0c, 8); /* 0: 00110000, as every code with its highest bit first */
	while (n--) {
		put_bits(&b, 0xa3, 8); /* 285: 11000101 */
		put_bits(&b, 0, 5);    /* one byte back */
	}
	put_bits(&b, 0, 7); /* 256: the end */
	put_bits(&b, 0, 7);
}

TEST(a_block_without_end_is_damage)
{
	struct image i = { 0 };
	struct inflated u;
	struct mem_blob b;

	put_zeros(&i, INFLATED_BLOCK_MAX / 258 - 1);
	open_packed(&i, &b, &u, INFLATED_SPACING, INFLATED_PLACES);
	assert_int_equal(u.end, INFLATED_CUT); /* it has no checksum */
	assert_int_equal(u.blob.size, 1 + (INFLATED_BLOCK_MAX / 258 - 1) * 258);
	inflated_deinit(&u);
	image_free(&i);
	put_zeros(&i, 2 * INFLATED_BLOCK_MAX / 258);
	open_packed(&i, &b, &u, INFLATED_SPACING, INFLATED_PLACES);
	assert_int_equal(u.end, INFLATED_DAMAGED);
	assert_in_range(u.blob.size, INFLATED_BLOCK_MAX, INFLATED_BLOCK_MAX + INFLATED_PIECE);
	inflated_deinit(&u);
	image_free(&i);
}

static void refused(const char *p, size_t len)
{
	struct err e = ERR_INIT;
	struct inflated u;
	struct mem_blob b;
	uint8_t got[4];
	size_t n;

	mem_blob_init(&b, p, len);
	CHECK_STATUS(inflated_init(&u, &b.blob, 1, 1, &e), ST_NOT_MINE, &e);
	CHECK_STATUS(inflated_probe(&b.blob, got, sizeof(got), &n, &e), ST_NOT_MINE, &e);
	inflated_deinit(&u);
}

TEST(what_has_no_header_of_zlib_is_not_mine)
{
	refused("", 0);
	refused("\x78", 1);
	refused("\x78\x9d", 2); /* the sum */
	refused("\x79\x9b", 2); /* another method */
	refused("\x88\x1c", 2); /* a window of 64 KiB */
	refused("\x78\xbb", 2); /* a dictionary */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bytes_are_the_same_in_any_order),
		cmocka_unit_test(what_a_cut_stream_has_is_there),
		cmocka_unit_test(no_flipped_bit_is_missed),
		cmocka_unit_test(a_block_without_end_is_damage),
		cmocka_unit_test(what_has_no_header_of_zlib_is_not_mine),
	};

	return cmocka_run_group_tests_name("inflated", tests, NULL, NULL);
}
