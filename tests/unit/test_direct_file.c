/* SPDX-License-Identifier: Apache-2.0 */
/* A file past the cache, beside one that is written as one likes: the disk takes whole units. */
#include "tests/unit/test.h"

#include <string.h>

#include "agent/shared/output/direct_file.h"
#include "formats/base/defs.h"

#define ROOM ((size_t)8 << 20)

static struct disk {
	struct direct_io io;
	size_t unit;
	uint8_t at[ROOM];
	size_t size, limit; /* no byte behind `limit` is taken */
	unsigned writes;
} disk;

static void check_whole(uint64_t at, const void *p, size_t len)
{
	assert_int_equal(at % disk.unit, 0);
	assert_int_equal(len % disk.unit, 0);
	assert_int_equal((uintptr_t)p % disk.unit, 0);
	assert_true(len && at + len <= ROOM);
}

static enum status disk_write(struct direct_io *io, uint64_t at, const void *p, size_t len,
			      struct err *e)
{
	check_whole(at, p, len);
	disk.writes++;
	if (at + len > disk.limit)
		return err_set(e, ST_OUTPUT, "full");
	memcpy(disk.at + at, p, len);
	disk.size = MAX(disk.size, (size_t)at + len);
	return ST_OK;
}

static enum status disk_read(struct direct_io *io, uint64_t at, void *p, size_t len, size_t *got,
			     struct err *e)
{
	check_whole(at, p, len);
	*got = at < disk.size ? MIN(len, disk.size - (size_t)at) : 0;
	memcpy(p, disk.at + at, *got);
	return ST_OK;
}

static enum status disk_resize(struct direct_io *io, uint64_t size, struct err *e)
{
	assert_true(size <= ROOM);
	if (size > disk.size)
		memset(disk.at + disk.size, 0, (size_t)size - disk.size);
	disk.size = (size_t)size;
	return ST_OK;
}

static struct direct_file *begin(size_t unit)
{
	struct direct_file *ret = NULL;
	struct err e = ERR_INIT;

	memset(&disk, 0, sizeof(disk));
	disk.io = (struct direct_io){ disk_write, disk_read, disk_resize };
	disk.unit = unit;
	disk.limit = ROOM;
	CHECK_OK(direct_file_create(&disk.io, unit, &ret, &e), &e);
	return ret;
}

static uint8_t model[ROOM], other[ROOM];
static size_t length;
static uint32_t seed;

static uint32_t draw(uint32_t below)
{
	seed = seed * 1664525 + 1013904223;
	return (seed >> 8) % below;
}

/* Few bytes or many, and often just what fills a unit. */
static size_t draw_length(size_t unit)
{
	switch (draw(4)) {
	case 0:
		return draw(200);
	case 1:
		return (size_t)(1 + draw(3)) * unit - length % unit;
	case 2:
		return draw(200000);
	default:
		return draw((uint32_t)(2 * unit));
	}
}

static void fill_other(size_t n)
{
	for (size_t i = 0; i < n; i++)
		other[i] = (uint8_t)draw(256);
}

static void step(struct direct_file *d, size_t unit)
{
	size_t n = MIN(draw_length(unit), ROOM / 2 - length), at, got;
	struct err e = ERR_INIT;

	switch (draw(8)) {
	case 0:
		CHECK_OK(direct_file_skip(d, n, &e), &e);
		memset(model + length, 0, n);
		length += n;
		break;
	case 1:
		length = length ? draw((uint32_t)length + 1) : 0;
		CHECK_OK(direct_file_cut(d, length, draw(2), &e), &e);
		break;
	case 2:
		at = length ? draw((uint32_t)length) : 0;
		n = MIN(n, length - at);
		fill_other(n);
		CHECK_OK(direct_file_rewrite(d, at, other, n, &e), &e);
		memcpy(model + at, other, n);
		break;
	case 3:
		CHECK_OK(direct_file_settle(d, &e), &e);
		assert_int_equal(disk.size, length);
		assert_memory_equal(disk.at, model, length);
		break;
	case 4:
		at = draw((uint32_t)length + 10);
		CHECK_OK(direct_file_read(d, at, other, n, &got, &e), &e);
		assert_int_equal(got, at < length ? MIN(n, length - at) : 0);
		assert_memory_equal(other, model + at, got);
		break;
	default:
		fill_other(n);
		CHECK_OK(direct_file_write(d, other, n, &e), &e);
		memcpy(model + length, other, n);
		length += n;
	}
	assert_int_equal(direct_file_end(d), length);
}

TEST(file_is_what_was_written_whatever_the_order)
{
	static const size_t units[] = { 512, DIRECT_UNIT, DIRECT_UNIT_MAX };
	struct err e = ERR_INIT;

	for (size_t u = 0; u < ARRAY_SIZE(units); u++) {
		for (uint32_t s = 1; s <= 20; s++) {
			struct direct_file *d = begin(units[u]);

			seed = s;
			length = 0;
			for (unsigned i = 0; i < 60; i++)
				step(d, units[u]);
			CHECK_OK(direct_file_settle(d, &e), &e);
			assert_int_equal(disk.size, length);
			assert_memory_equal(disk.at, model, length);
			direct_file_destroy(d);
		}
	}
}

/* Of what a program that is killed had written, at most this is missing. */
TEST(little_waits_and_few_requests_are_made)
{
	struct direct_file *d = begin(DIRECT_UNIT);
	struct err e = ERR_INIT;

	memset(model, 7, ROOM);
	for (size_t n = 0; n < ROOM / 2; n += 100) {
		CHECK_OK(direct_file_write(d, model, 100, &e), &e);
		assert_true(direct_file_end(d) - disk.size < 65536);
	}
	assert_true(disk.writes <= ROOM / 2 / 61440 + 1);
	direct_file_destroy(d);
}

/*
 * Requests end where records do, so that of one that does not fit nothing is on the disk, and what
 * it would have had is there for the end.
 */
TEST(record_that_does_not_fit_leaves_its_room)
{
	struct direct_file *d = begin(DIRECT_UNIT);
	struct err e = ERR_INIT;
	uint64_t whole = 0;
	enum status st = ST_OK;

	disk.limit = (4 << 20) + 600000;
	while (!st) {
		whole = direct_file_end(d);
		st = direct_file_write(d, model, 300, &e);
		if (!st)
			st = direct_file_write(d, model, 1 << 20, &e);
	}
	CHECK_OK(direct_file_cut(d, whole, true, &e), &e);
	assert_int_equal(whole, 4 * ((1 << 20) + 300));
	CHECK_OK(direct_file_write(d, model, 590000, &e), &e);
	CHECK_OK(direct_file_settle(d, &e), &e);
	assert_int_equal(disk.size, whole + 590000);
	direct_file_destroy(d);
}

/* As output.h has it: what did not fit is taken back, and the end is written in what that gives. */
TEST(full_disk_loses_nothing_that_stays)
{
	struct direct_file *d = begin(DIRECT_UNIT);
	struct err e = ERR_INIT;
	size_t whole;

	disk.limit = 300000;
	seed = 5;
	fill_other(1 << 20);
	memcpy(model, other, 1 << 20);
	CHECK_OK(direct_file_write(d, model, 250000, &e), &e);
	whole = (size_t)direct_file_end(d);
	CHECK_STATUS(direct_file_write(d, model + whole, 200000, &e), ST_OUTPUT, &e);
	CHECK_OK(direct_file_cut(d, whole, true, &e), &e);
	CHECK_OK(direct_file_write(d, model + whole, 1000, &e), &e);
	CHECK_OK(direct_file_settle(d, &e), &e);
	assert_int_equal(disk.size, whole + 1000);
	assert_memory_equal(disk.at, model, whole + 1000);
	direct_file_destroy(d);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(file_is_what_was_written_whatever_the_order),
		cmocka_unit_test(little_waits_and_few_requests_are_made),
		cmocka_unit_test(record_that_does_not_fit_leaves_its_room),
		cmocka_unit_test(full_disk_loses_nothing_that_stays),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
