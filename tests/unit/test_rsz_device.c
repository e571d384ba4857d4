/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Containers on a device, which keeps what was on it: here an older container that ran longer, so
 * that its records, its index and its end stand behind the newer one.
 */
#include <string.h>

#include "agent/shared/container/verify.h"
#include "formats/base/bytes.h"
#include "tests/unit/rsz_build.h"

#define OLD_ID 8
#define NEW_ID 7

static struct build old, new;
static uint8_t *disk;
static size_t disk_size; /* as long as the older one, or longer */

static void make(struct build *b, uint8_t id, unsigned chunks)
{
	uint32_t memory;

	build_begin(b, id, RSZ_LEVEL_STORE);
	memory = build_stream(b, RSZ_KIND_MEMORY, "memory");
	for (unsigned i = 0; i < chunks; i++) {
		/*
		 * No page is the same in both: else a record could be whole before it is written.
		 */
		const char states[] = { (char)('A' + id), '.', (char)('a' + id), '?', '\0' };

		build_chunk(b, memory, 100);
		build_extent(b, i * 0x10000, states);
		build_put(b);
	}
	build_close(b);
}

/* The first `len` bytes of the newer container over the older one. */
static void write_new(size_t len)
{
	memcpy(disk, old.out.at, old.out.len);
	memcpy(disk, new.out.at, len);
}

static enum status check(bool device, struct rsz_scan_result *ret)
{
	struct err e = ERR_INIT;
	struct mem_blob blob;

	mem_blob_init(&blob, disk, disk_size);
	blob.blob.device = device;
	return container_verify(&blob.blob, 1, PROGRESS_QUIET, ret, NULL, &e);
}

TEST(what_follows_the_end_is_told_and_not_taken)
{
	for (int device = 0; device <= 1; device++) {
		struct rsz_reader *r = NULL;
		struct rsz_scan_result end;
		struct rsz_segment seg;
		struct err e = ERR_INIT;
		struct mem_blob blob;
		uint64_t at = 0;

		write_new(new.out.len);
		assert_int_equal(check(device, &end), ST_OK);
		assert_int_equal(end.whole, new.out.len);
		assert_int_equal(end.behind, old.out.len - new.out.len);
		assert_memory_equal(end.root, new.root, SHA256_SIZE);

		/* Also for who starts at the end, where the older one's is. */
		mem_blob_init(&blob, disk, disk_size);
		CHECK_OK(rsz_reader_open(&blob.blob, RSZ_TRUST_INDEX, &r, &e), &e);
		assert_memory_equal(rsz_reader_end(r)->root, new.root, SHA256_SIZE);
		assert_int_equal(rsz_reader_end(r)->behind, old.out.len - new.out.len);
		while (rsz_reader_next(r, 0, at, &seg))
			at = seg.address + seg.length;
		assert_int_equal(at, 2 * 0x10000 + 4 * PAGE_SIZE);
		rsz_reader_close(r);
	}
}

TEST(nothing_of_a_container_follows_its_end)
{
	struct rsz_scan_result end;

	write_new(new.out.len);
	memcpy(disk + new.out.len, new.out.at, 32);
	assert_int_equal(check(true, &end), ST_CORRUPT);
	assert_int_equal(end.end, RSZ_END_DAMAGED);
	assert_int_equal(end.whole, new.out.len - 176);
	disk[new.out.len + 31] ^= 1; /* of another identity */
	assert_int_equal(check(true, &end), ST_OK);
}

/* The offset of the last record that begins at or before `at`, and where it ends. */
static size_t record_at(size_t at, size_t *ret_end)
{
	size_t from = 0;

	for (;;) {
		*ret_end = from + 8 + get_le32(new.out.at + from + 4) +
			   get_le32(new.out.at + from + 48);
		if (at < *ret_end)
			return from;
		from = *ret_end;
	}
}

/* The same without the payloads, in a time that allows every place to be tried. */
static void scan(bool device, struct rsz_scan_result *ret)
{
	struct rsz_scan *scan = NULL;
	struct rsz_record rec;
	struct err e = ERR_INIT;
	struct mem_blob blob;

	mem_blob_init(&blob, disk, disk_size);
	blob.blob.device = device;
	CHECK_OK(rsz_scan_create(&blob.blob, &scan, &e), &e);
	while (!rsz_scan_next(scan, &rec, &e))
		;
	rsz_scan_end(scan, ret);
	rsz_scan_destroy(scan);
}

TEST(writer_that_was_stopped_has_damaged_nothing)
{
	const size_t first = 8 + get_le32(new.out.at + 4);
	size_t from = 0;

	for (size_t len = first; len < new.out.len; len += len - from < 40 ? 1 : 53) {
		struct rsz_scan_result end;
		size_t next;

		from = record_at(len, &next);
		write_new(len);
		scan(true, &end);
		assert_in_range(end.end, RSZ_END_UNSEALED, RSZ_END_CUT);
		/* Old bytes in a payload nobody sees who does not look at it. */
		assert_true(end.whole == from || end.whole == next);
		/* In a file nothing else should stand there. */
		scan(false, &end);
		assert_int_equal(end.end, RSZ_END_DAMAGED);
	}
}

TEST(payload_that_was_cut_is_told_from_a_damaged_one)
{
	size_t from = 0, next = 0;

	for (size_t len = 8 + get_le32(new.out.at + 4); len < new.out.len; len = next + 1) {
		struct rsz_scan_result end;

		from = record_at(len, &next);
		for (unsigned part = 1; part <= 3; part++) {
			len = from + (next - from) * part / 4;
			write_new(len);
			assert_int_equal(check(true, &end), ST_CORRUPT);
			assert_in_range(end.end, RSZ_END_UNSEALED, RSZ_END_CUT);
			assert_int_equal(end.whole, from);
			/* What was written of the record is within what counts as cut. */
			assert_true(end.cut >= len - from || from + end.cut == next);
			assert_true(from + end.cut <= old.out.len);
		}
	}
}

/* A record further on shows that the writer was not stopped here. */
TEST(damage_before_other_records_is_damage)
{
	size_t next = 0;
	const size_t close = record_at(new.out.len - 1, &next);

	for (size_t at = 200; at < close; at += 1511) {
		struct rsz_scan_result end;

		write_new(new.out.len);
		disk[at] ^= 4;
		assert_int_equal(check(true, &end), ST_CORRUPT);
		assert_int_equal(end.end, RSZ_END_DAMAGED);
	}
}

/* Nor was it where the records behind it had been read already. */
TEST(damage_before_records_that_were_read_ahead_is_damage)
{
	size_t index, next = 0;
	const size_t close = record_at(new.out.len - 1, &next);
	unsigned damaged = 0;

	index = record_at(close - 1, &next);
	for (size_t at = record_at(0, &next); at < index; at = next) {
		struct rsz_scan_result end;

		record_at(at, &next);
		/* A payload; but the last record's may be where it was stopped. */
		if (!get_le32(new.out.at + at + 48) || next == index)
			continue;
		write_new(index);
		disk[next - 1] ^= 4;
		assert_int_equal(check(true, &end), ST_CORRUPT);
		assert_int_equal(end.end, RSZ_END_DAMAGED);
		assert_int_equal(end.whole, at);
		damaged++;
	}
	assert_int_equal(damaged, 2);
}

/* The first bytes of a header of ours, which says that it stands at `at`. */
static void put_header(uint8_t *p, uint64_t at)
{
	memcpy(p, new.out.at, 48);
	put_le64(p + 40, at);
}

/* Memory that was captured has such headers: of what was written already, and of what never was. */
TEST(header_that_says_it_stands_elsewhere_is_no_record)
{
	static const int64_t away[] = { -1000, -1, 1, 1000 };
	struct rsz_scan_result end;
	size_t next;

	(void)record_at(200, &next);
	for (size_t i = 0; i < ARRAY_SIZE(away); i++) {
		write_new(next);
		put_header(disk + next + 3000, next + 3000 + (uint64_t)away[i]);
		scan(true, &end);
		assert_int_equal(end.end, RSZ_END_UNSEALED);
		assert_int_equal(end.whole, next);
	}
	put_header(disk + next + 3000, next + 3000);
	scan(true, &end);
	assert_int_equal(end.end, RSZ_END_DAMAGED);
}

/* They are looked for in pieces of a MiB: one that lies in two of them, or at the end, is seen. */
TEST(record_behind_damage_is_found_wherever_it_begins)
{
	struct rsz_scan_result end;
	size_t next, size;

	(void)record_at(200, &next);
	size = next + (1 << 20) + 100;
	disk = realloc(disk, size);
	assert_non_null(disk);
	for (size_t before = 0; before <= 60; before++) {
		const size_t at = next + 1 + (1 << 20) - before;

		memset(disk, 0, size);
		memcpy(disk, new.out.at, next);
		put_header(disk + at, at);
		disk_size = size;
		scan(true, &end);
		assert_int_equal(end.end, RSZ_END_DAMAGED);
		disk_size = at + 48;
		scan(true, &end);
		assert_int_equal(end.end, RSZ_END_DAMAGED);
	}
	disk_size = old.out.len;
}

static int set_up(void **state)
{
	(void)state;
	make(&old, OLD_ID, 5);
	make(&new, NEW_ID, 3);
	disk_size = old.out.len;
	disk = malloc(disk_size);
	return !disk;
}

static int tear_down(void **state)
{
	(void)state;
	build_deinit(&old);
	build_deinit(&new);
	free(disk);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_follows_the_end_is_told_and_not_taken),
		cmocka_unit_test(nothing_of_a_container_follows_its_end),
		cmocka_unit_test(writer_that_was_stopped_has_damaged_nothing),
		cmocka_unit_test(payload_that_was_cut_is_told_from_a_damaged_one),
		cmocka_unit_test(damage_before_other_records_is_damage),
		cmocka_unit_test(damage_before_records_that_were_read_ahead_is_damage),
		cmocka_unit_test(header_that_says_it_stands_elsewhere_is_no_record),
		cmocka_unit_test(record_behind_damage_is_found_wherever_it_begins),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
