/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/test.h"

#include <string.h>

#include "formats/base/bytes.h"
#include "formats/base/xpress.h"

#define PAGE 4096

/*
 * An encoder that shares nothing with the decoder: greedy, with a search of all distances. Its
 * output is written into arrays of flags, and put together at the end of each group.
 */
struct encoder {
	uint8_t *out;
	size_t at;
	size_t word;   /* where the flags of this group are kept */
	unsigned used; /* flags of it */
	size_t half;   /* the byte whose upper half is free; 0: none, the first word lies there */
};

static void add_flag(struct encoder *c, uint32_t flag)
{
	if (c->used == 32) {
		c->word = c->at;
		c->at += 4;
		put_le32(c->out + c->word, 0);
		c->used = 0;
	}
	put_le32(c->out + c->word, get_le32(c->out + c->word) | flag << (31 - c->used++));
}

static void add_half(struct encoder *c, unsigned value)
{
	if (c->half) {
		c->out[c->half] = (uint8_t)(c->out[c->half] | value << 4);
		c->half = 0;
	} else {
		c->half = c->at;
		c->out[c->at++] = (uint8_t)value;
	}
}

static void add_match(struct encoder *c, size_t distance, size_t length)
{
	const size_t rest = length - 3;

	add_flag(c, 1);
	put_le16(c->out + c->at, (uint16_t)((distance - 1) * 8 + (rest < 7 ? rest : 7)));
	c->at += 2;
	if (rest < 7)
		return;
	add_half(c, (unsigned)(rest - 7 < 15 ? rest - 7 : 15));
	if (rest < 22)
		return;
	c->out[c->at++] = (uint8_t)(rest - 22 < 255 ? rest - 22 : 255);
	if (rest - 22 < 255)
		return;
	put_le16(c->out + c->at, (uint16_t)(rest < 0x10000 ? rest : 0));
	c->at += 2;
	if (rest >= 0x10000) {
		put_le32(c->out + c->at, (uint32_t)rest);
		c->at += 4;
	}
}

static size_t match_at(const uint8_t *in, size_t at, size_t size, size_t distance)
{
	size_t n = 0;

	while (at + n < size && in[at + n] == in[at + n - distance])
		n++;
	return n;
}

static size_t encode(const uint8_t *in, size_t size, uint8_t *out)
{
	struct encoder c = { .out = out, .used = 32 };

	for (size_t at = 0; at < size;) {
		size_t best = 0, distance = 0;

		for (size_t d = 1; d <= at && d <= 8192; d++) {
			const size_t n = match_at(in, at, size, d);

			if (n > best) {
				best = n;
				distance = d;
			}
		}
		if (best < 3) {
			add_flag(&c, 0);
			out[c.at++] = in[at++];
		} else {
			add_match(&c, distance, best);
			at += best;
		}
	}
	/* [MS-XCA] 2.3: the flags behind the last one are set. */
	do
		add_flag(&c, 1);
	while (c.used < 32);
	return c.at;
}

static void check_round(const uint8_t *in, size_t size)
{
	uint8_t *coded = malloc(2 * size + 64), *out = malloc(size + 1);
	const size_t n = encode(in, size, coded);
	size_t got = 0;

	/* With room to spare the end has to be found; without, there is nothing behind it. */
	assert_true(xpress_decode(coded, n, out, size + 1, &got));
	assert_int_equal(got, size);
	assert_memory_equal(out, in, size);
	assert_true(xpress_decode(coded, n, out, size, &got));
	assert_int_equal(got, size);
	free(coded);
	free(out);
}

/* [MS-XCA] 3.1. */
TEST(the_published_examples_are_decoded)
{
	static const uint8_t letters[] = { 0x3f, 0,   0,   0,   'a', 'b', 'c', 'd', 'e', 'f',
					   'g',  'h', 'i', 'j', 'k', 'l', 'm', 'n', 'o', 'p',
					   'q',  'r', 's', 't', 'u', 'v', 'w', 'x', 'y', 'z' };
	static const uint8_t abc[] = { 0xff, 0xff, 0xff, 0x1f, 0x61, 0x62, 0x63,
				       0x17, 0x00, 0x0f, 0xff, 0x26, 0x01 };
	uint8_t out[PAGE];
	size_t size;

	assert_true(xpress_decode(letters, sizeof(letters), out, sizeof(out), &size));
	assert_int_equal(size, 26);
	assert_memory_equal(out, "abcdefghijklmnopqrstuvwxyz", 26);

	assert_true(xpress_decode(abc, sizeof(abc), out, sizeof(out), &size));
	assert_int_equal(size, 300);
	for (size_t i = 0; i < size; i++)
		assert_int_equal(out[i], "abc"[i % 3]);
}

TEST(what_another_encoder_writes_comes_back)
{
	uint8_t page[PAGE];
	uint64_t x = 1;

	memset(page, 0, sizeof(page));
	check_round(page, sizeof(page));
	for (size_t kind = 0; kind < 64; kind++) {
		for (size_t i = 0; i < sizeof(page); i++) {
			x = x * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
			page[i] = (uint8_t)((x >> 33) % (1 + kind * 4) / (1 + kind % 3));
			if (kind % 5 == 1 && i > 700 && i % 61 > 20)
				page[i] = page[i - 700 + i / 128];
		}
		check_round(page, sizeof(page));
		check_round(page, 1 + kind * 7);
	}
}

/* Each of the four ways to write a length, and the last and first value of it. */
TEST(every_length_comes_back)
{
	static const size_t lengths[] = { 3,   4,   9,    10,    24,    25,    26,    278,
					  279, 280, 4000, 65537, 65538, 65539, 65540, 200000 };
	uint8_t *in = malloc(200001), *coded = malloc(64), *out = malloc(200002);

	memset(in, 'x', 200001);
	for (size_t i = 0; i < ARRAY_SIZE(lengths); i++) {
		const size_t size = lengths[i] + 1, n = encode(in, size, coded);
		size_t got = 0;

		assert_true(n < 64);
		assert_true(xpress_decode(coded, n, out, size + 1, &got));
		assert_int_equal(got, size);
		assert_memory_equal(out, in, size);
	}
	free(in);
	free(coded);
	free(out);
}

static bool refused(const uint8_t *in, size_t len)
{
	uint8_t out[64];
	size_t size;

	return !xpress_decode(in, len, out, sizeof(out), &size);
}

TEST(what_is_cut_or_reaches_out_is_refused)
{
	static const uint8_t no_literal[] = { 0, 0, 0, 0 };
	static const uint8_t half_match[] = { 0, 0, 0, 0x40, 'a', 0x00 };
	static const uint8_t before[] = { 0, 0, 0, 0x40, 'a', 0x08, 0x00 };
	static const uint8_t no_half[] = { 0, 0, 0, 0x40, 'a', 0x07, 0x00 };
	static const uint8_t no_byte[] = { 0, 0, 0, 0x40, 'a', 0x07, 0x00, 0x0f };
	static const uint8_t no_word[] = { 0, 0, 0, 0x40, 'a', 0x07, 0x00, 0x0f, 0xff, 0x01 };
	static const uint8_t small[] = { 0, 0, 0, 0x40, 'a', 0x07, 0x00, 0x0f, 0xff, 21, 0, 0xff };
	static const uint8_t no_long[] = {
		0, 0, 0, 0x40, 'a', 0x07, 0x00, 0x0f, 0xff, 0, 0, 1, 0, 0
	};
	static const uint8_t endless[] = { 0,    0, 0, 0x40, 'a',  0x07, 0x00, 0x0f,
					   0xff, 0, 0, 0xff, 0xff, 0xff, 0xff };
	static const uint8_t too_long[] = { 0, 0, 0, 0x40, 'a', 0x07, 0x00, 0x0f, 100 };

	assert_true(refused(NULL, 0));
	assert_true(refused(no_literal, 3));
	assert_true(refused(no_literal, sizeof(no_literal)));
	assert_true(refused(half_match, sizeof(half_match)));
	assert_true(refused(before, sizeof(before)));
	assert_true(refused(no_half, sizeof(no_half)));
	assert_true(refused(no_byte, sizeof(no_byte)));
	assert_true(refused(no_word, sizeof(no_word)));
	assert_true(refused(small, sizeof(small)));
	assert_true(refused(no_long, sizeof(no_long)));
	assert_true(refused(endless, sizeof(endless)));
	assert_true(refused(too_long, sizeof(too_long)));
}

/* A match that ends exactly with the room is none of these. */
TEST(the_last_byte_of_the_room_can_be_written)
{
	static const uint8_t exact[] = { 0, 0, 0, 0x40, 'a', 0x07, 0x00, 0x0f, 38 };
	uint8_t out[64];
	size_t size;

	assert_true(xpress_decode(exact, sizeof(exact), out, sizeof(out), &size));
	assert_int_equal(size, sizeof(out));
	assert_int_equal(out[63], 'a');
	assert_false(xpress_decode(exact, sizeof(exact), out, sizeof(out) - 1, &size));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_published_examples_are_decoded),
		cmocka_unit_test(what_another_encoder_writes_comes_back),
		cmocka_unit_test(every_length_comes_back),
		cmocka_unit_test(what_is_cut_or_reaches_out_is_refused),
		cmocka_unit_test(the_last_byte_of_the_room_can_be_written),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
