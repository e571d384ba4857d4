/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/test.h"

#include <stdlib.h>
#include <string.h>

#include "formats/base/lz4.h"

#define PAGE 4096

static uint8_t out[PAGE];
static size_t size;

static bool decode(const uint8_t *in, size_t len)
{
	memset(out, 0xee, sizeof(out));
	return lz4_decode(in, len, out, sizeof(out), &size);
}

/* What LZ4_compress_default() of liblz4 1.9.4 made of them. */
TEST(blocks_of_liblz4_are_decoded)
{
	static const uint8_t abc[] = { 0x3f, 'a',  'b',  'c',  0x03, 0x00, 0xff, 0xff, 0xff, 0xff,
				       0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
				       0xff, 0xf4, 0x50, 'c',  'a',  'b',  'c',  'a' };
	static const uint8_t zero[] = { 0x1f, 0x00, 0x01, 0x00, 0xff, 0xff, 0xff, 0xff, 0xff,
					0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
					0xff, 0xf6, 0x50, 0x00, 0x00, 0x00, 0x00, 0x00 };
	static const uint8_t text[] = { 0xf2, 0x07, 0x70, 0x61, 0x67, 0x65, 0x20, 0x30, 0x30, 0x20,
					0x6f, 0x66, 0x20, 0x74, 0x68, 0x65, 0x20, 0x73, 0x74, 0x6f,
					0x72, 0x65, 0x2c, 0x20, 0x16, 0x00, 0x1f, 0x31, 0x16, 0x00,
					0x02, 0x1f, 0x34, 0x16, 0x00, 0x02, 0x1f, 0x39, 0x16, 0x00,
					0x01, 0x2f, 0x31, 0x36, 0x16, 0x00, 0x01, 0x2f, 0x32, 0x35,
					0x16, 0x00, 0x01, 0x1f, 0x33, 0x2c, 0x00, 0x02, 0x1f, 0x34,
					0x58, 0x00, 0x02, 0x1f, 0x36, 0x84, 0x00, 0x02, 0x1f, 0x38,
					0xb0, 0x00, 0x03, 0x1f, 0x33, 0x6e, 0x00, 0x01, 0x17, 0x32,
					0x42, 0x00, 0x50, 0x6f, 0x72, 0x65, 0x2c, 0x20 };
	char want[512];
	int n = 0;

	assert_true(decode(abc, sizeof(abc)));
	assert_int_equal(size, PAGE);
	for (size_t i = 0; i < PAGE; i++)
		assert_int_equal(out[i], "abc"[i % 3]);
	assert_true(decode(zero, sizeof(zero)));
	assert_int_equal(size, PAGE);
	for (size_t i = 0; i < PAGE; i++)
		assert_int_equal(out[i], 0);
	assert_true(decode(text, sizeof(text)));
	for (int i = 0; i < 12; i++)
		n += snprintf(want + n, sizeof(want) - (size_t)n, "page %02d of the store, ",
			      i * i % 97);
	assert_int_equal(size, n);
	assert_memory_equal(out, want, size);
}

/*
 * An encoder that shares nothing with the decoder: greedy, with a search of all distances.
 */

static size_t put_more(uint8_t *to, size_t length)
{
	size_t n = 0;

	if (length < 15)
		return 0;
	for (length -= 15; length >= 255; length -= 255)
		to[n++] = 255;
	to[n++] = (uint8_t)length;
	return n;
}

static size_t put_sequence(uint8_t *to, const uint8_t *literals, size_t n, size_t distance,
			   size_t length)
{
	const size_t match = distance ? length - 4 : 0;
	size_t at = 1;

	to[0] = (uint8_t)((n < 15 ? n : 15) << 4 | (match < 15 ? match : 15));
	at += put_more(to + at, n);
	memcpy(to + at, literals, n);
	at += n;
	if (!distance)
		return at;
	to[at++] = (uint8_t)distance;
	to[at++] = (uint8_t)(distance >> 8);
	return at + put_more(to + at, match);
}

/* The longest match that a block may have there. */
static size_t find_match(const uint8_t *in, size_t at, size_t len, size_t *ret_distance)
{
	size_t best = 0;

	for (size_t d = 1; d <= at && at + 12 <= len; d++) {
		size_t n = 0;

		while (at + n < len - 5 && in[at + n] == in[at + n - d])
			n++;
		if (n > best) {
			best = n;
			*ret_distance = d;
		}
	}
	return best;
}

static size_t encode(const uint8_t *in, size_t len, uint8_t *to)
{
	size_t n = 0, from = 0, at = 0, distance = 0;

	while (at < len) {
		const size_t length = find_match(in, at, len, &distance);

		if (length < 4) {
			at++;
			continue;
		}
		n += put_sequence(to + n, in + from, at - from, distance, length);
		at += length;
		from = at;
	}
	return n + put_sequence(to + n, in + from, len - from, 0, 0);
}

static void check_round(const uint8_t *in, size_t len)
{
	uint8_t *coded = malloc(2 * len + 64), *back = malloc(len + 1);
	const size_t n = encode(in, len, coded);
	size_t got = 0;

	assert_true(lz4_decode(coded, n, back, len + 1, &got));
	assert_int_equal(got, len);
	assert_memory_equal(back, in, len);
	assert_true(lz4_decode(coded, n, back, len, &got));
	assert_int_equal(got, len);
	/* It has neither room for a byte less, nor an end before its end. */
	assert_false(len && lz4_decode(coded, n, back, len - 1, &got));
	assert_false(lz4_decode(coded, n - 1, back, len, &got) && got == len);
	free(coded);
	free(back);
}

TEST(what_another_encoder_writes_comes_back)
{
	uint8_t page[PAGE];
	uint64_t x = 1;

	memset(page, 0, sizeof(page));
	check_round(page, sizeof(page));
	for (size_t kind = 0; kind < 20; kind++) {
		for (size_t i = 0; i < sizeof(page); i++) {
			x = x * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
			page[i] = (uint8_t)((x >> 33) % (1 + kind * 10) / (1 + kind % 3));
			if (kind % 5 == 1 && i > 700 && i % 61 > 20)
				page[i] = page[i - 700 + i / 128];
		}
		check_round(page, sizeof(page));
		check_round(page, 1 + kind * 7);
	}
}

/* Around each number of bytes that a length takes. */
TEST(every_length_comes_back)
{
	static const size_t lengths[] = { 13,  14,  15,  16,  17,  30,  31,  32,
					  33,  34,  35,  36,  269, 270, 271, 272,
					  285, 286, 287, 288, 289, 290, 291, 70000 };
	uint8_t *in = malloc(2 * 70000);

	for (size_t i = 0; i < ARRAY_SIZE(lengths); i++) {
		memset(in, 'x', lengths[i]);
		check_round(in, lengths[i]);
		for (size_t k = 0; k < lengths[i] && k < 300; k++)
			in[k] = (uint8_t)(k * 89 + k / 256);
		check_round(in, lengths[i] < 300 ? lengths[i] : 300);
	}
	free(in);
}

#define REFUSED(...)                                                                               \
	do {                                                                                       \
		static const uint8_t in[] = { __VA_ARGS__ };                                       \
		assert_false(decode(in, sizeof(in)));                                              \
	} while (0)

TEST(what_is_cut_or_reaches_out_is_refused)
{
	assert_false(decode(NULL, 0));
	REFUSED(0x20, 'a');                                        /* two literals */
	REFUSED(0xf0);                                             /* and a length */
	REFUSED(0xf0, 0xff, 0xff);                                 /* that does not end */
	REFUSED(0x10, 'a', 0x01);                                  /* half a distance */
	REFUSED(0x10, 'a', 0x00, 0x00, 0x50, 1, 2, 3, 4, 5);       /* of nothing */
	REFUSED(0x1f, 'a', 0x02, 0x00, 0x50, 0x50, 1, 2, 3, 4, 5); /* in front of it all */
	REFUSED(0x1f, 'a', 0x01, 0x00, 0xff);                      /* no length of the match */
	REFUSED(0x10, 'a', 0x01, 0x00);                            /* nothing behind a match */
	REFUSED(0x10, 'a', 0x01, 0x00, 0x40, 1, 2, 3, 4);          /* not enough */
	REFUSED(0x10, 'a', 0x01, 0x00, 0x70, 1, 2, 3, 4, 5, 6, 7); /* and it begins too late */
}

TEST(the_last_byte_of_the_room_can_be_written)
{
	static const uint8_t exact[] = { 0x12, 'a', 0x01, 0x00, 0x60, 1, 2, 3, 4, 5, 6 };
	uint8_t room[13];

	assert_true(lz4_decode(exact, sizeof(exact), room, sizeof(room), &size));
	assert_int_equal(size, sizeof(room));
	assert_memory_equal(room, "aaaaaaa\1\2\3\4\5\6", sizeof(room));
	assert_false(lz4_decode(exact, sizeof(exact), room, sizeof(room) - 1, &size));
	assert_false(lz4_decode(exact, sizeof(exact), room, 6, &size));
	assert_false(lz4_decode(exact, sizeof(exact), room, 0, &size));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(blocks_of_liblz4_are_decoded),
		cmocka_unit_test(what_another_encoder_writes_comes_back),
		cmocka_unit_test(every_length_comes_back),
		cmocka_unit_test(what_is_cut_or_reaches_out_is_refused),
		cmocka_unit_test(the_last_byte_of_the_room_can_be_written),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
