/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/test.h"

#include <stdlib.h>
#include <string.h>

#include "formats/base/lzo.h"

#define PAGE 4096

static uint8_t out[PAGE];
static size_t size;

static bool decode(const uint8_t *in, size_t len)
{
	memset(out, 0xee, sizeof(out));
	return lzo_decode(in, len, out, sizeof(out), &size);
}

static void check_text(const uint8_t *in, size_t len)
{
	char want[512];
	int n = 0;

	for (int i = 0; i < 12; i++)
		n += snprintf(want + n, sizeof(want) - (size_t)n, "page %02d of the store, ",
			      i * i % 97);
	assert_true(decode(in, len));
	assert_int_equal(size, n);
	assert_memory_equal(out, want, size);
}

/* What lzo1x_1_compress() and, the last one, lzo1x_999_compress() of liblzo2 2.10 made of them. */
TEST(blocks_of_liblzo2_are_decoded)
{
	static const uint8_t abc[] = { 0x03, 'a',  'b',  'c', 'a',  'b', 'c', 0x20, 0,    0,   0,
				       0,    0,    0,    0,   0,    0,   0,   0,    0,    0,   0,
				       0,    0xda, 0x14, 0,   0x0b, 'c', 'a', 'b',  'c',  'a', 'b',
				       'c',  'a',  'b',  'c', 'a',  'b', 'c', 'a',  0x11, 0,   0 };
	static const uint8_t zero[] = { 0x02, 0, 0, 0, 0, 0, 0x20, 0,    0, 0,    0, 0, 0, 0, 0, 0,
					0,    0, 0, 0, 0, 0, 0xda, 0x10, 0, 0x0c, 0, 0, 0, 0, 0, 0,
					0,    0, 0, 0, 0, 0, 0,    0,    0, 0x11, 0, 0 };
	static const uint8_t text[] = { 0x00, 0x04, 0x70, 0x61, 0x67, 0x65, 0x20, 0x30, 0x30, 0x20,
					0x6f, 0x66, 0x20, 0x74, 0x68, 0x65, 0x20, 0x73, 0x74, 0x6f,
					0x72, 0x65, 0x2c, 0x20, 0xb5, 0x02, 0x31, 0x33, 0x55, 0x00,
					0x34, 0x33, 0x55, 0x00, 0x39, 0x32, 0x56, 0x00, 0x31, 0x36,
					0x32, 0x56, 0x00, 0x32, 0x35, 0x32, 0x55, 0x00, 0x33, 0x33,
					0xad, 0x00, 0x34, 0x33, 0x5d, 0x01, 0x36, 0x33, 0x0d, 0x02,
					0x38, 0x34, 0xbd, 0x02, 0x33, 0x32, 0xb4, 0x01, 0x0e, 0x32,
					0x34, 0x20, 0x6f, 0x66, 0x20, 0x74, 0x68, 0x65, 0x20, 0x73,
					0x74, 0x6f, 0x72, 0x65, 0x2c, 0x20, 0x11, 0x00, 0x00 };
	static const uint8_t best[] = { 0x27, 0x70, 0x61, 0x67, 0x65, 0x20, 0x30, 0x30, 0x20, 0x6f,
					0x66, 0x20, 0x74, 0x68, 0x65, 0x20, 0x73, 0x74, 0x6f, 0x72,
					0x65, 0x2c, 0x20, 0xb5, 0x02, 0x31, 0x33, 0x55, 0x00, 0x34,
					0x33, 0x55, 0x00, 0x39, 0x32, 0x56, 0x00, 0x31, 0x36, 0x32,
					0x56, 0x00, 0x32, 0x35, 0x32, 0x55, 0x00, 0x33, 0x33, 0xad,
					0x00, 0x34, 0x33, 0x5d, 0x01, 0x36, 0x33, 0x0d, 0x02, 0x38,
					0x34, 0xbd, 0x02, 0x33, 0x33, 0x0c, 0x02, 0x2e, 0x04, 0x01,
					0x11, 0x00, 0x00 };
	static const uint8_t nothing[] = { 0x11, 0, 0 };

	assert_true(decode(abc, sizeof(abc)));
	assert_int_equal(size, PAGE);
	for (size_t i = 0; i < PAGE; i++)
		assert_int_equal(out[i], "abc"[i % 3]);
	assert_true(decode(zero, sizeof(zero)));
	assert_int_equal(size, PAGE);
	for (size_t i = 0; i < PAGE; i++)
		assert_int_equal(out[i], 0);
	check_text(text, sizeof(text));
	check_text(best, sizeof(best));
	assert_true(decode(nothing, sizeof(nothing)));
	assert_int_equal(size, 0);
}

/*
 * An encoder that shares nothing with the decoder: it says for each copy which instruction to use,
 * so that all of them occur.
 */

struct writer {
	uint8_t bytes[2 * 70000 + 64], plain[2 * 70000];
	size_t n, at;
	size_t literals; /* since the last copy; how many it announced is put in afterwards */
	size_t flags;    /* where that is; 0: nothing was copied yet */
};

static void put(struct writer *w, size_t byte)
{
	w->bytes[w->n++] = (uint8_t)byte;
}

/* `bits` of an instruction whose other bits are `code`, and what does not fit behind it. */
static void put_length(struct writer *w, size_t code, size_t length, size_t max)
{
	if (length <= max) {
		put(w, code | length);
		return;
	}
	put(w, code);
	for (length -= max; length > 255; length -= 255)
		put(w, 0);
	put(w, length);
}

/* Literals whose values nothing else has. */
static void put_literals(struct writer *w, size_t n)
{
	if (!w->flags && n && n < 4)
		put(w, 17 + n);
	else if (!w->flags && n && n <= 238)
		put(w, 17 + n);
	else if (n && n < 4)
		w->bytes[w->flags] |= (uint8_t)n;
	else if (n)
		put_length(w, 0, n - 3, 15);
	for (size_t i = 0; i < n; i++) {
		w->plain[w->at] = (uint8_t)(w->at * 89 + w->at / 256);
		put(w, w->plain[w->at++]);
	}
	w->literals = n;
}

static void put_copy(struct writer *w, unsigned kind, size_t distance, size_t length)
{
	const size_t d = distance - 1;

	assert_true(distance <= w->at);
	w->flags = w->n;
	switch (kind) {
	case 0: /* 2 bytes behind 1 to 3 literals, 3 behind more */
		put(w, ((w->literals < 4 ? d : d - 2048) & 3) << 2);
		put(w, (w->literals < 4 ? d : d - 2048) >> 2);
		break;
	case 1:
		put_length(w, 16 | (distance - 16384) >> 14 << 3, length - 2, 7);
		w->flags = w->n;
		put(w, (distance - 16384) << 2 & 0xff);
		put(w, (distance - 16384) >> 6 & 0xff);
		break;
	case 2:
		put_length(w, 32, length - 2, 31);
		w->flags = w->n;
		put(w, d << 2 & 0xff);
		put(w, d >> 6);
		break;
	case 3:
		put(w, 64 | (length - 3) << 5 | (d & 7) << 2);
		put(w, d >> 3);
		break;
	default:
		put(w, 128 | (length - 5) << 5 | (d & 7) << 2);
		put(w, d >> 3);
		break;
	}
	for (size_t i = 0; i < length; i++, w->at++)
		w->plain[w->at] = w->plain[w->at - distance];
	w->literals = 0;
}

static void check_written(struct writer *w)
{
	uint8_t *back = malloc(w->at + 1), *coded;
	size_t got = 0;

	put(w, 17);
	put(w, 0);
	put(w, 0);
	coded = malloc(w->n);
	memcpy(coded, w->bytes, w->n);
	assert_true(lzo_decode(coded, w->n, back, w->at + 1, &got));
	assert_int_equal(got, w->at);
	assert_memory_equal(back, w->plain, got);
	assert_true(lzo_decode(coded, w->n, back, w->at, &got));
	/* It has neither room for a byte less, nor an end before its end. */
	assert_false(w->at && lzo_decode(coded, w->n, back, w->at - 1, &got));
	assert_false(lzo_decode(coded, w->n - 1, back, w->at, &got));
	free(coded);
	free(back);
	memset(w, 0, sizeof(*w));
}

static struct writer *new_writer(void)
{
	struct writer *w = calloc(1, sizeof(*w));

	assert_non_null(w);
	return w;
}

TEST(every_number_of_literals_comes_back)
{
	static const size_t numbers[] = { 0,   1,   2,   3,   4,   5,   17,   18,
					  19,  20,  21,  22,  237, 238, 239,  272,
					  273, 274, 275, 527, 528, 529, 70000 };
	struct writer *w = new_writer();

	for (size_t i = 0; i < ARRAY_SIZE(numbers); i++) {
		put_literals(w, numbers[i]);
		check_written(w);
		put_literals(w, 300);
		put_copy(w, 3, 9, 4);
		put_literals(w, numbers[i]);
		put_copy(w, 3, 9, 4);
		check_written(w);
	}
	free(w);
}

/* Around the bounds of each instruction: distances, and lengths in its own bits and behind it. */
TEST(every_copy_comes_back)
{
	static const struct {
		unsigned kind;
		size_t distance, length, literals;
	} copies[] = {
		{ 0, 1, 2, 1 },        { 0, 1024, 2, 3 },    { 0, 517, 2, 2 },
		{ 0, 2049, 3, 4 },     { 0, 3072, 3, 9 },    { 0, 2500, 3, 4 },
		{ 1, 16385, 3, 0 },    { 1, 16385, 9, 1 },   { 1, 16385, 10, 0 },
		{ 1, 32767, 264, 0 },  { 1, 32768, 265, 2 }, { 1, 49151, 9, 4 },
		{ 1, 40000, 1000, 0 }, { 2, 1, 3, 0 },       { 2, 16384, 33, 1 },
		{ 2, 255, 34, 0 },     { 2, 3, 288, 4 },     { 2, 2, 289, 0 },
		{ 2, 1, 60000, 3 },    { 3, 1, 3, 0 },       { 3, 2048, 4, 4 },
		{ 3, 7, 3, 3 },        { 4, 1, 5, 0 },       { 4, 2048, 8, 1 },
		{ 4, 100, 6, 0 },      { 4, 8, 7, 4 },
	};
	struct writer *w = new_writer();

	for (size_t i = 0; i < ARRAY_SIZE(copies); i++)
		for (size_t behind = 0; behind < 5; behind++) {
			put_literals(w, 50000);
			put_copy(w, 4, 5, 5);
			put_literals(w, copies[i].literals);
			put_copy(w, copies[i].kind, copies[i].distance, copies[i].length);
			put_literals(w, behind);
			put_copy(w, 2, 11, 11);
			check_written(w);
		}
	free(w);
}

#define REFUSED(...)                                                                               \
	do {                                                                                       \
		static const uint8_t in[] = { __VA_ARGS__ };                                       \
		assert_false(decode(in, sizeof(in)));                                              \
	} while (0)

TEST(what_is_cut_or_reaches_out_is_refused)
{
	assert_false(decode(NULL, 0));
	REFUSED(0x11);                                     /* half an end */
	REFUSED(0x11, 0);                                  /* and most of one */
	REFUSED(0x11, 0, 0, 0);                            /* something behind the end */
	REFUSED(0x12, 'a');                                /* no end */
	REFUSED(0x14, 'a', 'b');                           /* three literals */
	REFUSED(0x00);                                     /* their number */
	REFUSED(0x00, 0, 0, 0);                            /* that does not end */
	REFUSED(0x12, 'a', 0x00, 0x01, 0x11, 0, 0);        /* before the output: 5 of 1 */
	REFUSED(0x15, 1, 2, 3, 4, 0x00, 0, 0x11, 0, 0);    /* 2,049 of 4 */
	REFUSED(0x16, 1, 2, 3, 4, 5, 0x00, 0, 0x11, 0, 0); /* and of 5 */
	REFUSED(0x12, 'a', 0x40 | 4, 0, 0x11, 0, 0);       /* 2 of 1 */
	REFUSED(0x12, 'a', 0xe0 | 4, 0, 0x11, 0, 0);       /* 2 of 1 */
	REFUSED(0x12, 'a', 0x21, 0x04, 0, 0x11, 0, 0);     /* 2 of 1 */
	REFUSED(0x12, 'a', 0x11, 0x04, 0, 0x11, 0, 0);     /* 16,385 of 1 */
	REFUSED(0x12, 'a', 0x19, 0, 0, 0x11, 0, 0);        /* 32,768 of 1: no end */
	REFUSED(0x40, 0, 0x11, 0, 0);                      /* of nothing */
	REFUSED(0x12, 'a', 0x21, 0x01, 0, 'b');            /* no end behind a copy and a literal */
	REFUSED(0x12, 'a', 0x20, 0, 0, 0);                 /* no length */
	REFUSED(0x12, 'a', 0x21, 0x02, 0, 'b');            /* one literal of two */
}

TEST(the_last_byte_of_the_room_can_be_written)
{
	static const uint8_t exact[] = { 0x12, 'a', 0x21, 0x02, 0, 'b', 'c', 0x11, 0, 0 };
	uint8_t room[6];

	assert_true(lzo_decode(exact, sizeof(exact), room, sizeof(room), &size));
	assert_int_equal(size, sizeof(room));
	assert_memory_equal(room, "aaaabc", sizeof(room));
	for (size_t less = 0; less < sizeof(room); less++)
		assert_false(lzo_decode(exact, sizeof(exact), room, less, &size));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(blocks_of_liblzo2_are_decoded),
		cmocka_unit_test(every_number_of_literals_comes_back),
		cmocka_unit_test(every_copy_comes_back),
		cmocka_unit_test(what_is_cut_or_reaches_out_is_refused),
		cmocka_unit_test(the_last_byte_of_the_room_can_be_written),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
