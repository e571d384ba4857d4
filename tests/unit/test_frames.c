/* SPDX-License-Identifier: Apache-2.0 */
/* The frames of tls://, against bytes laid out by hand from agent/collect/stores/PROTOCOL.md. */
#include "tests/unit/test.h"

#include <stdlib.h>
#include <string.h>

#include "agent/collect/wire/frames.h"

#define ID     "0123456789abcdef"
#define Z7     "\0\0\0\0\0\0\0"
#define H32    "hhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhh"
#define R32    "rrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrr"
#define U64(c) c "\0\0\0\0\0\0\0"

struct sample {
	struct frame frame;
	const char *bytes;
	size_t len;
};

#define BYTES(text) .bytes = (text), .len = sizeof(text) - 1

static const struct sample samples[] = {
	{ { .type = FRAME_HELLO,
	    .hello = { .version = 1, .id = ID, .expected = 9, .acknowledged = 7, .name = "a\\b" } },
	  BYTES("\1\0\0\0"
		"\x33\0\0\0"
		"ramseal\n"
		"\1\0"
		"\3\0"
		"\0\0\0\0" ID U64("\x9") U64("\x7") "a\\b") },
	{ { .type = FRAME_WELCOME,
	    .welcome = { .version = 1, .idle_s = 300, .durable = 5, .most = 0x0102030405060708 } },
	  BYTES("\2\0\0\0"
		"\x18\0\0\0"
		"\1\0"
		"\0\0"
		"\x2c\1\0\0" U64("\5") "\x8\7\6\5\4\3\2\1") },
	{ { .type = FRAME_DATA, .data = { .offset = 5, .at = (const uint8_t *)"xyz", .len = 3 } },
	  BYTES("\3\0\0\0"
		"\xb\0\0\0" U64("\5") "xyz") },
	{ { .type = FRAME_ACK, .durable = 8 },
	  BYTES("\4\0\0\0"
		"\x8\0\0\0" U64("\x8")) },
	{ { .type = FRAME_PING },
	  BYTES("\5\0\0\0"
		"\0\0\0\0") },
	{ { .type = FRAME_END, .end = { .total = 8, .sealed = true, .sha256 = H32 } },
	  BYTES("\6\0\0\0"
		"\x30\0\0\0" U64("\x8") "\1" Z7 H32) },
	{ { .type = FRAME_DONE,
	    .done = { .total = 8,
		      .whole = 6,
		      .records = 2,
		      .finding = FOUND_CUT,
		      .sha256 = H32,
		      .root = R32 } },
	  BYTES("\7\0\0\0"
		"\x60\0\0\0" U64("\x8") U64("\6") U64("\2") "\3" Z7 H32 R32) },
	{ { .type = FRAME_REFUSED,
	    .refused = { .reason = REFUSED_FULL, .wait_ms = 1000, .text = "no room" } },
	  BYTES("\x8\0\0\0"
		"\xf\0\0\0"
		"\x8\0"
		"\0\0"
		"\xe8\3\0\0"
		"no room") },
};

static enum status get(const void *bytes, size_t len, struct frame *ret, struct err *e)
{
	enum frame_type type;
	size_t body;
	enum status st = frame_get_header(bytes, &type, &body, e);

	if (st)
		return st;
	assert_int_equal(body, len - FRAME_HEADER);
	return frame_get(type, (const uint8_t *)bytes + FRAME_HEADER, body, ret, e);
}

TEST(every_frame_has_the_bytes_of_the_protocol)
{
	static uint8_t out[FRAME_MAX];

	for (size_t i = 0; i < ARRAY_SIZE(samples); i++) {
		assert_int_equal(frame_put(&samples[i].frame, out), samples[i].len);
		assert_memory_equal(out, samples[i].bytes, samples[i].len);
	}
}

TEST(every_frame_is_read_back)
{
	static uint8_t out[FRAME_MAX];
	struct err e = ERR_INIT;
	struct frame f;

	for (size_t i = 0; i < ARRAY_SIZE(samples); i++) {
		CHECK_OK(get(samples[i].bytes, samples[i].len, &f, &e), &e);
		assert_int_equal(f.type, samples[i].frame.type);
		assert_int_equal(frame_put(&f, out), samples[i].len);
		assert_memory_equal(out, samples[i].bytes, samples[i].len);
	}
}

static size_t all_samples(uint8_t *ret)
{
	size_t len = 0;

	for (size_t i = 0; i < ARRAY_SIZE(samples); i++) {
		memcpy(ret + len, samples[i].bytes, samples[i].len);
		len += samples[i].len;
	}
	return len;
}

static void feed(struct frame_reader *r, const uint8_t *p, size_t len)
{
	size_t room;
	uint8_t *to = frame_reader_room(r, &room);

	assert_true(len <= room);
	memcpy(to, p, len);
	frame_reader_added(r, len);
}

static size_t count(struct frame_reader *r, size_t seen)
{
	struct err e = ERR_INIT;
	struct frame f;
	enum status st;

	while (!(st = frame_reader_next(r, &f, &e))) {
		assert_true(seen < ARRAY_SIZE(samples));
		assert_int_equal(f.type, samples[seen++].frame.type);
	}
	CHECK_STATUS(st, ST_END, &e);
	return seen;
}

TEST(a_stream_may_be_cut_anywhere)
{
	uint8_t all[1024];
	const size_t len = all_samples(all);
	struct err e = ERR_INIT;

	for (size_t cut = 0; cut <= len; cut++) {
		struct frame_reader r;
		size_t seen;

		CHECK_OK(frame_reader_init(&r, &e), &e);
		feed(&r, all, cut);
		seen = count(&r, 0);
		assert_true(frame_reader_is_inside(&r) || !cut || seen);
		feed(&r, all + cut, len - cut);
		assert_int_equal(count(&r, seen), ARRAY_SIZE(samples));
		assert_false(frame_reader_is_inside(&r));
		frame_reader_deinit(&r);
	}
}

TEST(a_stream_may_come_byte_by_byte)
{
	uint8_t all[1024];
	const size_t len = all_samples(all);
	struct err e = ERR_INIT;
	struct frame_reader r;
	size_t seen = 0;

	CHECK_OK(frame_reader_init(&r, &e), &e);
	for (size_t i = 0; i < len; i++) {
		feed(&r, all + i, 1);
		seen = count(&r, seen);
	}
	assert_int_equal(seen, ARRAY_SIZE(samples));
	frame_reader_deinit(&r);
}

TEST(the_largest_frame_fits)
{
	static uint8_t data[FRAME_DATA_MAX], out[FRAME_MAX];
	const struct frame f = { .type = FRAME_DATA, .data = { 0, data, sizeof(data) } };
	struct err e = ERR_INIT;
	struct frame_reader r;
	struct frame back;
	size_t room;

	assert_int_equal(frame_put(&f, out), FRAME_MAX);
	CHECK_OK(frame_reader_init(&r, &e), &e);
	feed(&r, (const uint8_t *)samples[4].bytes, samples[4].len);
	CHECK_OK(frame_reader_next(&r, &back, &e), &e);
	feed(&r, out, FRAME_MAX - 1);
	assert_int_equal(frame_reader_next(&r, &back, &e), ST_END);
	frame_reader_room(&r, &room);
	assert_int_equal(room, 1);
	feed(&r, out + FRAME_MAX - 1, 1);
	CHECK_OK(frame_reader_next(&r, &back, &e), &e);
	assert_int_equal(back.data.len, FRAME_DATA_MAX);
	frame_reader_deinit(&r);
}

/* One byte of a sample is another. */
static void is_refused(size_t sample, size_t at, uint8_t value, const char *why)
{
	struct err e = ERR_INIT;
	uint8_t bytes[256];
	struct frame f;

	memcpy(bytes, samples[sample].bytes, samples[sample].len);
	bytes[at] = value;
	CHECK_STATUS(get(bytes, samples[sample].len, &f, &e), ST_CORRUPT, &e);
	CHECK_HAS(e.message, why);
}

TEST(what_is_no_frame_is_refused)
{
	is_refused(0, 0, 0, "not a ramseal frame");
	is_refused(0, 0, 9, "not a ramseal frame");
	is_refused(0, 1, 1, "not a ramseal frame");
	is_refused(0, 3, 0x80, "not a ramseal frame");
	is_refused(3, 4, 7, "type 4 with 7 bytes");
	is_refused(4, 4, 1, "type 5 with 1 bytes");
	is_refused(2, 4, 8, "type 3 with 8 bytes");
	is_refused(2, 6, 2, "type 3 with");
	is_refused(0, 8, 'R', "not from ramseal");
	is_refused(0, 18, 2, "HELLO");
	is_refused(0, 18, 4, "HELLO");
	is_refused(0, 20, 1, "HELLO");
	is_refused(0, 57, 0, "HELLO");
	is_refused(1, 10, 1, "WELCOME");
	is_refused(5, 16, 2, "END");
	is_refused(5, 17, 1, "END");
	is_refused(6, 16, 9, "DONE");
	is_refused(6, 32, 6, "DONE");
	is_refused(6, 39, 1, "DONE");
	is_refused(7, 10, 1, "REFUSED");
	is_refused(7, 18, 0x1b, "REFUSED");
	is_refused(7, 18, 0x80, "REFUSED");
}

TEST(data_beyond_all_sizes_is_refused)
{
	struct err e = ERR_INIT;
	struct frame f;

	CHECK_STATUS(get("\3\0\0\0\xb\0\0\0\xfd\xff\xff\xff\xff\xff\xff\xffxyz", 19, &f, &e),
		     ST_CORRUPT, &e);
}

TEST(hello_of_another_version_tells_its_version)
{
	struct err e = ERR_INIT;
	struct frame f;

	CHECK_OK(get("\1\0\0\0\x30\0\0\0ramseal\n\7\0\xff\xff\1\1\1\1" ID ID, 56, &f, &e), &e);
	assert_int_equal(f.hello.version, 7);
	assert_string_equal(f.hello.name, "");
}

TEST(texts_are_made_fit)
{
	static uint8_t out[FRAME_MAX];
	struct frame f = { .type = FRAME_REFUSED, .refused.reason = REFUSED_DISK }, back;
	struct err e = ERR_INIT;
	size_t len;

	len = frame_put(&f, out);
	CHECK_OK(get(out, len, &back, &e), &e);
	assert_string_equal(back.refused.text, "disk");
	strcpy(f.refused.text, "caf\xc3\xa9\n");
	len = frame_put(&f, out);
	CHECK_OK(get(out, len, &back, &e), &e);
	assert_string_equal(back.refused.text, "caf???");
}

TEST(refusals_say_whether_they_pass)
{
	assert_true(refusal_is_passing(REFUSED_FULL));
	assert_true(refusal_is_passing(REFUSED_BUSY));
	assert_false(refusal_is_passing(REFUSED_NOT_YOURS));
	assert_false(refusal_is_passing(77));
	assert_string_equal(refusal_name(REFUSED_LOST), "lost");
	assert_string_equal(refusal_name(77), "unknown");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_frame_has_the_bytes_of_the_protocol),
		cmocka_unit_test(every_frame_is_read_back),
		cmocka_unit_test(a_stream_may_be_cut_anywhere),
		cmocka_unit_test(a_stream_may_come_byte_by_byte),
		cmocka_unit_test(the_largest_frame_fits),
		cmocka_unit_test(what_is_no_frame_is_refused),
		cmocka_unit_test(data_beyond_all_sizes_is_refused),
		cmocka_unit_test(hello_of_another_version_tells_its_version),
		cmocka_unit_test(texts_are_made_fit),
		cmocka_unit_test(refusals_say_whether_they_pass),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
