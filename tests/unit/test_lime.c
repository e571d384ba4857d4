/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/test.h"

#include <string.h>

#include "formats/image/lime.h"
#include "tests/gen/images.h"

static enum status parse(const struct image *i, struct lime *ret, struct err *e)
{
	struct mem_blob b;

	mem_blob_init(&b, i->at, i->len);
	return lime_init(ret, &b.blob, e);
}

static void refused(struct image *i, enum status want, const char *text)
{
	struct err e = ERR_INIT;
	struct lime l;

	CHECK_STATUS(parse(i, &l, &e), want, &e);
	CHECK_HAS(e.message, text);
	lime_deinit(&l);
	image_free(i);
}

static void two_records(struct image *i)
{
	lime_range(i, 0x1000, 0x1fff);
	lime_range(i, 0x3000, 0x30ff);
}

TEST(records_come_back_with_inclusive_ends)
{
	struct image i = { 0 };
	struct err e = ERR_INIT;
	struct lime l;

	two_records(&i);
	CHECK_OK(parse(&i, &l, &e), &e);
	assert_int_equal(l.count, 2);
	assert_int_equal(l.at[0].range.first, 0x1000);
	assert_int_equal(l.at[0].range.last, 0x1fff);
	assert_int_equal(l.at[0].offset, 32);
	assert_int_equal(l.at[1].range.last, 0x30ff);
	assert_int_equal(l.at[1].offset, 32 + 0x1000 + 32);
	assert_int_equal(l.end, LIME_WHOLE);
	lime_deinit(&l);
	image_free(&i);
}

TEST(what_does_not_begin_with_the_magic_is_not_mine)
{
	struct image i = { 0 };

	image_text(&i, "LiME");
	refused(&i, ST_NOT_MINE, "not a LiME");
	refused(&i, ST_NOT_MINE, "not a LiME");
}

TEST(wrong_first_header_is_corrupt)
{
	struct image i = { 0 };

	two_records(&i), image_u32(&i, 4, 2);
	refused(&i, ST_CORRUPT, "record 0: version 2");
	lime_header(&i, 0x3000, 0x2fff);
	refused(&i, ST_CORRUPT, "record 0: range 0x3000-0x2fff runs backwards");
	lime_header(&i, 0, UINT64_MAX);
	refused(&i, ST_CORRUPT, "record 0: range spans");
}

/* How the file ends, with `count` records in front of `rest` bytes. */
static void check_end(struct image *i, enum lime_end end, size_t count, uint64_t rest,
		      const char *problem)
{
	struct err e = ERR_INIT;
	struct lime l;

	CHECK_OK(parse(i, &l, &e), &e);
	assert_int_equal(l.end, end);
	assert_int_equal(l.count, count);
	assert_int_equal(l.rest, rest);
	CHECK_HAS(l.problem.message, problem);
	lime_deinit(&l);
	image_free(i);
}

TEST(what_is_wrong_behind_a_record_does_not_cost_that)
{
	struct image i = { 0 };

	two_records(&i), image_u8(&i, 32 + 0x1000, 0);
	check_end(&i, LIME_NO_HEADER, 1, 32 + 0x100, "magic is 0x4c694d00");
	two_records(&i), image_u64(&i, 32 + 0x1000 + 16, 0x2fff);
	check_end(&i, LIME_NO_HEADER, 1, 32 + 0x100, "range 0x3000-0x2fff runs backwards");
	two_records(&i), image_text(&i, "what a device held before, and it held more than that");
	check_end(&i, LIME_NO_HEADER, 2, 53, "magic is 0x74616877");
}

TEST(zeros_behind_the_last_record_are_no_record)
{
	struct image i = { 0 };

	for (size_t n = 1; n < 3 * PAGE_SIZE; n += n < 40 ? 1 : 1000) {
		two_records(&i), image_u8(&i, i.len + n - 1, 0);
		check_end(&i, LIME_ZEROS, 2, n, "");
		if (n < 2)
			continue;
		two_records(&i), image_u8(&i, i.len + n - 1, 1);
		check_end(&i, n < 32 ? LIME_CUT_HEADER : LIME_NO_HEADER, 2, n, "");
	}
}

/* Zeros without end, of which only so many are read. */
struct endless {
	struct blob blob;
	const struct image *front;
	uint64_t most;
};

static enum status endless_read(struct blob *b, uint64_t off, void *p, size_t len, size_t *got,
				struct err *e)
{
	struct endless *x = (struct endless *)b;

	memset(p, 0, len);
	if (off < x->front->len)
		memcpy(p, x->front->at + off, MIN(len, x->front->len - off));
	x->most = MAX(x->most, off + len);
	*got = len;
	return ST_OK;
}

TEST(of_zeros_without_end_some_are_read)
{
	struct image i = { 0 };
	struct endless x = { { .read_at = endless_read, .size = (uint64_t)1 << 50 }, &i, 0 };
	struct err e = ERR_INIT;
	struct lime l;

	two_records(&i);
	CHECK_OK(lime_init(&l, &x.blob, &e), &e);
	assert_int_equal(l.end, LIME_ZEROS);
	assert_in_range(x.most, LIME_ZEROS_MAX, LIME_ZEROS_MAX + i.len);
	lime_deinit(&l);
	image_free(&i);
}

TEST(reserved_bytes_are_ignored)
{
	struct image i = { 0 };
	struct err e = ERR_INIT;
	struct lime l;

	two_records(&i), image_u64(&i, 24, UINT64_MAX);
	CHECK_OK(parse(&i, &l, &e), &e);
	lime_deinit(&l);
	image_free(&i);
}

/* Wherever the file ends, the headers in front of the end count and no byte is taken for more. */
TEST(file_cut_anywhere_keeps_what_is_there)
{
	struct image i = { 0 };

	two_records(&i);
	for (size_t len = 32; len < i.len; len++) {
		struct mem_blob b;
		struct err e = ERR_INIT;
		struct lime l;

		mem_blob_init(&b, i.at, len);
		CHECK_OK(lime_init(&l, &b.blob, &e), &e);
		assert_int_equal(l.count, 1 + (len >= 32 + 0x1000 + 32));
		assert_int_equal(l.end, len == 32 + 0x1000                       ? LIME_WHOLE
					: len > 32 + 0x1000 && len < 64 + 0x1000 ? LIME_CUT_HEADER
										 : LIME_CUT_RANGE);
		lime_deinit(&l);
	}
	image_free(&i);
}

/* Memory of one range as it stands in the page cache of a file that a LiME file is written to. */
static void cached_header(struct image *i, size_t off, uint64_t first, uint64_t last)
{
	image_put(i, off, "EMiL", 4);
	image_u32(i, off + 4, 1);
	image_u64(i, off + 8, first);
	image_u64(i, off + 16, last);
	image_u64(i, off + 24, 0);
}

/* A record of which the last `lacks` bytes were not written. */
static void short_range(struct image *i, uint64_t first, uint64_t last, size_t lacks)
{
	lime_range(i, first, last);
	i->len -= lacks;
}

struct want {
	uint64_t first, present;
};

static void check_records(struct image *i, const struct want *want, size_t count, uint64_t lacked,
			  uint64_t passed)
{
	struct err e = ERR_INIT;
	struct lime l;

	CHECK_OK(parse(i, &l, &e), &e);
	assert_int_equal(l.count, count);
	for (size_t k = 0; k < count; k++) {
		assert_int_equal(l.at[k].range.first, want[k].first);
		assert_int_equal(l.at[k].present, want[k].present);
	}
	assert_int_equal(l.lacked, lacked);
	assert_int_equal(l.passed, passed);
	lime_deinit(&l);
	image_free(i);
}

#define CHECK_RECORDS(i, lacked, passed, ...)                                                      \
	do {                                                                                       \
		const struct want want_[] = { __VA_ARGS__ };                                       \
		check_records(i, want_, ARRAY_SIZE(want_), lacked, passed);                        \
	} while (0)

/* A write that failed: LiME goes on with the next range. */
TEST(header_inside_a_record_that_is_cut_is_found)
{
	static const size_t lacks[] = { 0x1000, 0x2000, 0x3000, 0x4000, 1, 37, 0x1fff, 0x2345 };

	for (size_t k = 0; k < ARRAY_SIZE(lacks); k++) {
		struct image i = { 0 };

		short_range(&i, 0x1000, 0x4fff, lacks[k]);
		lime_range(&i, 0x10000, 0x15fff);
		CHECK_RECORDS(&i, lacks[k], 0, { 0x1000, 0x4000 - lacks[k] }, { 0x10000, 0x6000 });
		/* The range that is cut goes beyond the end of the file. */
		short_range(&i, 0x1000, 0x4fff, lacks[k]);
		lime_range(&i, 0x10000, 0x10fff);
		lime_range(&i, 0x20000, 0x2003f);
		CHECK_RECORDS(&i, lacks[k], 0, { 0x1000, 0x4000 - lacks[k] }, { 0x10000, 0x1000 },
			      { 0x20000, 0x40 });
	}
}

/* Whoever begins again behind a first try that failed writes the same headers again. */
TEST(a_second_try_behind_a_first_one_is_found)
{
	struct image i = { 0 };

	short_range(&i, 0x1000, 0x4fff, 0x1000);
	lime_range(&i, 0x1000, 0x4fff);
	lime_range(&i, 0x10000, 0x10fff);
	CHECK_RECORDS(&i, 0x1000, 0, { 0x1000, 0x3000 }, { 0x1000, 0x4000 }, { 0x10000, 0x1000 });
}

TEST(two_records_in_a_row_can_be_cut)
{
	struct image i = { 0 };

	short_range(&i, 0x1000, 0x4fff, 0x1000);
	short_range(&i, 0x10000, 0x17fff, 0x5000);
	lime_range(&i, 0x20000, 0x20fff);
	CHECK_RECORDS(&i, 0x6000, 0, { 0x1000, 0x3000 }, { 0x10000, 0x3000 }, { 0x20000, 0x1000 });
	/* The last one, too: the disk was full. */
	lime_range(&i, 0x1000, 0x4fff);
	short_range(&i, 0x10000, 0x17fff, 0x5000);
	short_range(&i, 0x20000, 0x27fff, 0x1234);
	CHECK_RECORDS(&i, 0x5000, 0, { 0x1000, 0x4000 }, { 0x10000, 0x3000 },
		      { 0x20000, 0x8000 - 0x1234 });
	/* By a socket: of the one in the middle nothing tells that it is one. */
	short_range(&i, 0x1000, 0x4fff, 0x1234);
	short_range(&i, 0x10000, 0x17fff, 0x5432);
	lime_range(&i, 0x20000, 0x20fff);
	CHECK_RECORDS(&i, 0x1234 + 0x8000, 32 + 0x8000 - 0x5432, { 0x1000, 0x4000 - 0x1234 },
		      { 0x20000, 0x1000 }, { 0x10000, 0 });
}

TEST(headers_in_the_memory_are_no_records)
{
	struct image i = { 0 };

	/* That of this file and of earlier ones, in a record that is whole, is memory. */
	lime_range(&i, 0x1000, 0x8fff);
	cached_header(&i, 32 + 0x2040, 0x20000, 0x2ffff);
	lime_range(&i, 0x10000, 0x10fff);
	CHECK_RECORDS(&i, 0, 0, { 0x1000, 0x8000 }, { 0x10000, 0x1000 });
	/* One of this file, in a record that is cut. */
	short_range(&i, 0x1000, 0x8fff, 0x1000);
	cached_header(&i, 32 + 0x2000, 0x1000, 0x8fff);
	lime_range(&i, 0x10000, 0x10fff);
	CHECK_RECORDS(&i, 0x1000, 0, { 0x1000, 0x7000 }, { 0x10000, 0x1000 });
	/* One of an earlier file: what is behind it may be of either. */
	short_range(&i, 0x1000, 0x8fff, 0x1000);
	cached_header(&i, 32 + 0x2040, 0x20000, 0x2ffff);
	lime_range(&i, 0x10000, 0x10fff);
	CHECK_RECORDS(&i, 0x8000 - 0x2040 + 0x10000, 0x7000 - 0x2040, { 0x1000, 0x2040 },
		      { 0x10000, 0x1000 }, { 0x20000, 0 });
	/* Which has the range of a record that is found. */
	short_range(&i, 0x1000, 0x8fff, 0x1000);
	cached_header(&i, 32 + 0x2040, 0x10000, 0x1ffff);
	lime_range(&i, 0x10000, 0x1ffff);
	CHECK_RECORDS(&i, 0x8000 - 0x2040, 0x7000 - 0x2040, { 0x1000, 0x2040 },
		      { 0x10000, 0x10000 });
	/* And if the file ends before anything tells. */
	lime_range(&i, 0x1000, 0x8fff);
	cached_header(&i, 32 + 0x2040, 0x20000, 0x2ffff);
	i.len -= 0x1000;
	CHECK_RECORDS(&i, 0x8000 - 0x2040 + 0x10000, 0x7000 - 0x2040, { 0x1000, 0x2040 },
		      { 0x20000, 0 });
}

/*
 * A whole file of an earlier acquisition is in the page cache, page by page, and so in a record
 * that is cut: its headers lead from one to the next, and its memory is not that of its addresses
 * now.
 */
TEST(a_file_in_the_memory_of_a_cut_record_has_no_records)
{
	struct image i = { 0 };

	short_range(&i, 0x1000, 0x20fff, 0x1000);
	cached_header(&i, 32 + 0x4000, 0x40000, 0x43fff);
	cached_header(&i, 32 + 0x4000 + 32 + 0x4000, 0x50000, 0x53fff);
	lime_range(&i, 0x40000, 0x43fff);
	lime_range(&i, 0x50000, 0x53fff);
	CHECK_RECORDS(&i, 0x20000 - 0x4000, 0x1f000 - 0x4000, { 0x1000, 0x4000 },
		      { 0x40000, 0x4000 }, { 0x50000, 0x4000 });
	/* That of another machine has other ranges: that is not told apart. */
	short_range(&i, 0x1000, 0x20fff, 0x1000);
	cached_header(&i, 32 + 0x4000, 0x80000, 0x83fff);
	cached_header(&i, 32 + 0x4000 + 32 + 0x4000, 0x90000, 0x93fff);
	lime_range(&i, 0x40000, 0x43fff);
	CHECK_RECORDS(&i, 0x20000 - 0x4000, 0x1f000 - 0x4000 - 2 * (32 + 0x4000),
		      { 0x1000, 0x4000 }, { 0x80000, 0x4000 }, { 0x90000, 0x4000 },
		      { 0x40000, 0x4000 });
}

/* A first try whose records are whole but for the first one, and a second behind it. */
TEST(the_records_of_a_first_try_are_no_others_memory)
{
	struct image i = { 0 };

	short_range(&i, 0x1000, 0x8fff, 0x1000);
	lime_range(&i, 0x10000, 0x10fff);
	lime_range(&i, 0x1000, 0x8fff);
	lime_range(&i, 0x10000, 0x10fff);
	CHECK_RECORDS(&i, 0x1000, 32 + 0x1000, { 0x1000, 0x7000 }, { 0x1000, 0x8000 },
		      { 0x10000, 0x1000 });
}

/* AVML 0.16 and 0.17. Its ranges end one byte early. */
TEST(headers_of_avml_that_stand_alone_are_zeros)
{
	struct image i = { 0 };
	struct err e = ERR_INIT;
	struct lime l;

	lime_range(&i, 0x1000, 0x8ffe);
	lime_header(&i, 0x10000, 0x1fffe);
	lime_range(&i, 0x30000, 0x30ffe);
	lime_header(&i, 0x40000, 0x4fffe);
	CHECK_OK(parse(&i, &l, &e), &e);
	assert_int_equal(l.count, 4);
	assert_int_equal(l.end, LIME_WHOLE);
	assert_true(l.at[1].zeros && l.at[3].zeros && !l.at[0].zeros && !l.at[2].zeros);
	assert_int_equal(l.zeros, 2 * 0xffff);
	assert_int_equal(l.cut, 0);
	lime_deinit(&l);
	image_free(&i);

	/* A file that ends there may have been cut, and LiME's are not AVML's. */
	lime_range(&i, 0x1000, 0x8ffe);
	lime_header(&i, 0x10000, 0x1fffe);
	check_end(&i, LIME_CUT_RANGE, 2, 0, "");
	lime_range(&i, 0x1000, 0x8fff);
	lime_header(&i, 0x10000, 0x1ffff);
	lime_range(&i, 0x30000, 0x3ffff);
	CHECK_RECORDS(&i, 0x10000, 0, { 0x1000, 0x8000 }, { 0x10000, 0 }, { 0x30000, 0x10000 });
	/* A header that is memory, in a record that leads to the next. */
	lime_range(&i, 0x1000, 0x8ffe);
	cached_header(&i, 32, 0x10000, 0x1fffe);
	lime_range(&i, 0x30000, 0x3fffe);
	CHECK_RECORDS(&i, 0, 0, { 0x1000, 0x7fff }, { 0x30000, 0xffff });
}

TEST(record_behind_a_damaged_header_is_found)
{
	struct image i = { 0 };

	lime_range(&i, 0x1000, 0x3fff);
	lime_range(&i, 0x8000, 0x9fff);
	image_u8(&i, 32 + 0x3000, 0);
	lime_range(&i, 0x20000, 0x20fff);
	CHECK_RECORDS(&i, 0, 32 + 0x2000, { 0x1000, 0x3000 }, { 0x20000, 0x1000 });
	/* Its end is too far: it reaches into the next record, whose range tells better. */
	lime_range(&i, 0x1000, 0x3fff);
	image_u64(&i, 16, 0x13fff);
	lime_range(&i, 0x8000, 0x9fff);
	lime_range(&i, 0x20000, 0x20fff);
	CHECK_RECORDS(&i, 0x4000, 0, { 0x1000, 0x3000 }, { 0x8000, 0x2000 }, { 0x20000, 0x1000 });
	/* It is too near. */
	lime_range(&i, 0x1000, 0x3fff);
	image_u64(&i, 16, 0x1fff);
	lime_range(&i, 0x8000, 0x9fff);
	CHECK_RECORDS(&i, 0, 0x2000, { 0x1000, 0x1000 }, { 0x8000, 0x2000 });
}

TEST(old_records_behind_the_last_one_on_a_disk_are_none)
{
	struct image i = { 0 };
	struct mem_blob b;
	struct err e = ERR_INIT;
	struct lime l;

	lime_range(&i, 0x1000, 0x3fff);
	image_text(&i, "the rest of a page of an earlier file, which was longer than this");
	lime_range(&i, 0x8000, 0x9fff);
	mem_blob_init(&b, i.at, i.len);
	b.blob.device = true;
	CHECK_OK(lime_init(&l, &b.blob, &e), &e);
	assert_int_equal(l.count, 1);
	assert_int_equal(l.end, LIME_NO_HEADER);
	lime_deinit(&l);
	image_free(&i);
}

TEST(range_longer_than_the_file_is_a_cut_and_does_not_wrap)
{
	struct image i = { 0 };
	struct err e = ERR_INIT;
	struct lime l;

	lime_header(&i, 1, UINT64_MAX);
	image_text(&i, "memory, and enough of it that a header could be looked for in there");
	CHECK_OK(parse(&i, &l, &e), &e);
	assert_int_equal(l.count, 1);
	assert_int_equal(l.end, LIME_CUT_RANGE);
	lime_deinit(&l);
	image_free(&i);
}

TEST(thousands_of_records_come_back)
{
	struct image i = { 0 };
	struct err e = ERR_INIT;
	struct lime l;

	for (uint64_t k = 0; k < 5000; k++)
		lime_range(&i, k * 0x2000, k * 0x2000 + 7);
	CHECK_OK(parse(&i, &l, &e), &e);
	assert_int_equal(l.count, 5000);
	assert_int_equal(l.at[4999].range.first, 4999 * 0x2000);
	lime_deinit(&l);
	image_free(&i);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(records_come_back_with_inclusive_ends),
		cmocka_unit_test(what_does_not_begin_with_the_magic_is_not_mine),
		cmocka_unit_test(wrong_first_header_is_corrupt),
		cmocka_unit_test(what_is_wrong_behind_a_record_does_not_cost_that),
		cmocka_unit_test(zeros_behind_the_last_record_are_no_record),
		cmocka_unit_test(of_zeros_without_end_some_are_read),
		cmocka_unit_test(reserved_bytes_are_ignored),
		cmocka_unit_test(file_cut_anywhere_keeps_what_is_there),
		cmocka_unit_test(header_inside_a_record_that_is_cut_is_found),
		cmocka_unit_test(a_second_try_behind_a_first_one_is_found),
		cmocka_unit_test(two_records_in_a_row_can_be_cut),
		cmocka_unit_test(headers_in_the_memory_are_no_records),
		cmocka_unit_test(a_file_in_the_memory_of_a_cut_record_has_no_records),
		cmocka_unit_test(the_records_of_a_first_try_are_no_others_memory),
		cmocka_unit_test(headers_of_avml_that_stand_alone_are_zeros),
		cmocka_unit_test(record_behind_a_damaged_header_is_found),
		cmocka_unit_test(old_records_behind_the_last_one_on_a_disk_are_none),
		cmocka_unit_test(range_longer_than_the_file_is_a_cut_and_does_not_wrap),
		cmocka_unit_test(thousands_of_records_come_back),
	};

	return cmocka_run_group_tests_name("lime", tests, NULL, NULL);
}
