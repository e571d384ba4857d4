/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/test.h"

#include <errno.h>
#include <string.h>

#include "formats/base/bytes.h"
#include "tsk-extract/compare.h"
#include "tsk-extract/extract.h"
#include "tsk-extract/name.h"
#include "tsk-extract/record.h"

static struct extent on_disk(uint64_t file, uint64_t length, uint64_t disk)
{
	return (struct extent){ .file = file, .length = length, .disk = disk };
}

static void add(struct extent_list *l, struct extent x)
{
	struct err e = ERR_INIT;

	CHECK_OK(extent_list_add(l, x, &e), &e);
}

static void settle(struct extent_list *l, uint64_t length, size_t overlaps)
{
	struct err e = ERR_INIT;
	size_t found = 0;

	CHECK_OK(extent_list_settle(l, length, &found, &e), &e);
	assert_int_equal(found, overlaps);
}

static void check_extent(const struct extent_list *l, size_t i, struct extent want)
{
	assert_true(i < l->count);
	assert_int_equal(l->at[i].file, want.file);
	assert_int_equal(l->at[i].length, want.length);
	assert_int_equal(l->at[i].disk, want.disk);
	assert_int_equal(l->at[i].kind, want.kind);
}

TEST(extents_are_sorted_joined_and_cut_at_the_end)
{
	_cleanup_extents_ struct extent_list l = { 0 };

	add(&l, on_disk(8192, 4096, 40960));
	add(&l, on_disk(0, 4096, 4096));
	add(&l, on_disk(4096, 4096, 8192));
	add(&l, on_disk(12288, 4096, 45056));
	settle(&l, 14000, 0);
	assert_int_equal(l.count, 2);
	check_extent(&l, 0, on_disk(0, 8192, 4096));
	check_extent(&l, 1, on_disk(8192, 14000 - 8192, 40960));
}

TEST(gaps_between_extents_are_lost_not_zero)
{
	_cleanup_extents_ struct extent_list l = { 0 };

	add(&l, on_disk(4096, 4096, 4096));
	settle(&l, 12288, 0);
	assert_int_equal(l.count, 3);
	check_extent(&l, 0, (struct extent){ .length = 4096, .kind = EXTENT_LOST });
	check_extent(&l, 2, (struct extent){ .file = 8192, .length = 4096, .kind = EXTENT_LOST });
	assert_int_equal(extent_list_fragments(&l), 1);
}

TEST(extents_that_overlap_are_counted_and_cut)
{
	_cleanup_extents_ struct extent_list l = { 0 };

	add(&l, on_disk(0, 8192, 0x10000));
	add(&l, on_disk(4096, 8192, 0x20000));
	add(&l, on_disk(4096, 4096, 0x30000));
	settle(&l, 12288, 2);
	assert_int_equal(l.count, 2);
	check_extent(&l, 1, on_disk(8192, 4096, 0x21000));
}

TEST(find_hits_the_extent_and_nothing_behind_the_end)
{
	_cleanup_extents_ struct extent_list l = { 0 };

	for (uint64_t i = 0; i < 1000; i++)
		add(&l, on_disk(i * 4096, 4096, i * 8192));
	settle(&l, 4096000, 0);
	for (uint64_t i = 0; i < 1000; i++) {
		assert_ptr_equal(extent_list_find(&l, i * 4096), &l.at[i]);
		assert_ptr_equal(extent_list_find(&l, i * 4096 + 4095), &l.at[i]);
	}
	assert_null(extent_list_find(&l, 4096000));
}

TEST(changes_are_what_moved_grew_or_became_a_hole)
{
	_cleanup_extents_ struct extent_list before = { 0 }, now = { 0 }, changes = { 0 };
	struct err e = ERR_INIT;

	add(&before, on_disk(0, 8192, 0));
	add(&before, on_disk(8192, 8192, 65536));
	settle(&before, 16384, 0);
	add(&now, on_disk(0, 4096, 0));                           /* stays */
	add(&now, on_disk(4096, 4096, 131072));                   /* moved */
	add(&now, (struct extent){ 8192, 4096, 0, EXTENT_HOLE }); /* given up */
	add(&now, on_disk(12288, 4096, 69632));                   /* stays */
	add(&now, on_disk(16384, 4096, 200704));                  /* grew */
	settle(&now, 20480, 0);
	CHECK_OK(extent_list_changes(&before, &now, &changes, &e), &e);
	assert_int_equal(changes.count, 3);
	check_extent(&changes, 0, on_disk(4096, 4096, 131072));
	check_extent(&changes, 1, (struct extent){ 8192, 4096, 0, EXTENT_HOLE });
	check_extent(&changes, 2, on_disk(16384, 4096, 200704));
}

TEST(a_file_that_only_shrank_has_nothing_to_copy_again)
{
	_cleanup_extents_ struct extent_list before = { 0 }, now = { 0 }, changes = { 0 };
	struct err e = ERR_INIT;

	add(&before, on_disk(0, 8192, 4096));
	settle(&before, 8192, 0);
	add(&now, on_disk(0, 4096, 4096));
	settle(&now, 4096, 0);
	CHECK_OK(extent_list_changes(&before, &now, &changes, &e), &e);
	assert_int_equal(changes.count, 0);
}

static void check_path(const char *text, size_t depth, const char *last, const char *stream)
{
	_cleanup_path_ struct ntfs_path p = { 0 };
	char name[NAME_UTF8_SIZE];
	struct err e = ERR_INIT;

	CHECK_OK(ntfs_path_parse(text, &p, &e), &e);
	assert_int_equal(p.depth, depth);
	name_to_utf8(&p.part[depth - 1], name, sizeof(name));
	assert_string_equal(name, last);
	name_to_utf8(&p.stream, name, sizeof(name));
	assert_string_equal(name, stream);
}

TEST(paths_take_either_slash_and_a_stream)
{
	check_path("pagefile.sys", 1, "pagefile.sys", "");
	check_path("/Windows\\System32//config/SYSTEM", 4, "SYSTEM", "");
	check_path("a:b", 1, "a", "b");
	check_path("dir/a::$DATA", 2, "a", "");
	check_path("a:b:$data", 1, "a", "b");
	check_path("$MFT", 1, "$MFT", "");
	check_path("con", 1, "con", "");
	check_path("\xc3\xa4\xf0\x9f\x98\x80", 1, "\xc3\xa4\xf0\x9f\x98\x80", "");
}

TEST(paths_that_cannot_be_are_refused_with_a_reason)
{
	static const struct {
		const char *text, *reason;
	} cases[] = {
		{ "", "names no file" },
		{ "///", "names no file" },
		{ "a/../b", "\"..\"" },
		{ ".", "\".\"" },
		{ "C:\\pagefile.sys", "drive letter" },
		{ "c:", "drive letter" },
		{ "\\\\.\\PhysicalDrive0", "device" },
		{ "//?/C:/pagefile.sys", "device" },
		{ "\\??\\C:\\pagefile.sys", "device" },
		{ "a:b/c", "at the end" },
		{ "ab:", "stream without a name" },
		{ "a:b:$INDEX_ALLOCATION", "$DATA" },
		{ "\xff", "not UTF-8" },
		{ "\xc0\xaf", "not UTF-8" },
	};
	_cleanup_path_ struct ntfs_path p = { 0 };

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct err e = ERR_INIT;

		CHECK_STATUS(ntfs_path_parse(cases[i].text, &p, &e), ST_USAGE, &e);
		CHECK_HAS(e.message, cases[i].reason);
	}
}

/* As many as Windows can have in a path, and one more. */
TEST(paths_of_many_parts_are_taken)
{
	const size_t size = 2 * (PATH_DEPTH_MAX + 2);
	char *text = malloc(size);
	_cleanup_path_ struct ntfs_path p = { 0 };
	struct err e = ERR_INIT;

	assert_non_null(text);
	for (size_t i = 0; i < size; i++)
		text[i] = i % 2 ? '/' : 'x';
	text[2 * PATH_DEPTH_MAX - 1] = '\0';
	check_path(text, PATH_DEPTH_MAX, "x", "");
	text[2 * PATH_DEPTH_MAX - 1] = '/';
	text[2 * PATH_DEPTH_MAX + 1] = '\0';
	CHECK_STATUS(ntfs_path_parse(text, &p, &e), ST_USAGE, &e);
	CHECK_HAS(e.message, "more than 16384 parts");
	free(text);
}

TEST(names_survive_the_way_to_utf8_and_back)
{
	struct name n, back;
	char text[NAME_UTF8_SIZE];

	/* A pair, a lone high and a lone low surrogate, and the largest unit. */
	const uint16_t units[] = { 0xd83d, 0xde00, 'x', 0xd800, 'y', 0xdc00, 0xffff };

	memcpy(n.unit, units, sizeof(units));
	n.count = ARRAY_SIZE(units);
	name_to_utf8(&n, text, sizeof(text));
	assert_true(name_from_utf8(text, strlen(text), &back));
	assert_true(name_same(&n, &back));
	for (n.count = 0; n.count < NAME_MAX_UNITS; n.count++)
		n.unit[n.count] = 0xffff;
	name_to_utf8(&n, text, sizeof(text));
	assert_int_equal(strlen(text), sizeof(text) - 1);
}

/* mkntfs's boot sector of a volume with 4096-byte clusters, where it matters. */
static void make_boot(uint8_t sector[static 512])
{
	memset(sector, 0, 512);
	memcpy(sector + 3, "NTFS    ", 8);
	put_le16(sector + 11, 512);
	sector[13] = 8;
	put_le64(sector + 40, 131071);
	put_le64(sector + 48, 4);
	sector[64] = 0xf6;
	sector[68] = 1;
	put_le16(sector + 510, 0xaa55);
}

TEST(boot_sector_gives_the_geometry)
{
	uint8_t sector[512];
	struct ntfs_boot b;
	struct err e = ERR_INIT;

	make_boot(sector);
	CHECK_OK(ntfs_boot_parse(sector, &b, &e), &e);
	assert_int_equal(b.cluster, 4096);
	assert_int_equal(b.record, 1024);
	assert_int_equal(b.index_record, 4096);
	assert_int_equal(b.clusters, 131071 / 8);
	sector[13] = 0xf4; /* 2^12 sectors */
	CHECK_OK(ntfs_boot_parse(sector, &b, &e), &e);
	assert_int_equal(b.cluster, 2 << 20);
}

TEST(boot_sectors_that_make_no_sense_are_corrupt)
{
	static const struct {
		uint16_t at;
		uint8_t value;
	} changes[] = { { 3, 'X' },   { 11, 1 }, { 13, 0 },    { 13, 3 },    { 13, 0xf3 },
			{ 13, 0x81 }, { 64, 0 }, { 64, 0xe0 }, { 64, 0xff }, { 68, 3 },
			{ 48, 0 },    { 55, 1 }, { 47, 0xff }, { 510, 0 } };

	for (size_t i = 0; i < ARRAY_SIZE(changes); i++) {
		uint8_t sector[512];
		struct ntfs_boot b;
		struct err e = ERR_INIT;

		make_boot(sector);
		sector[changes[i].at] = changes[i].value;
		CHECK_STATUS(ntfs_boot_parse(sector, &b, &e), ST_CORRUPT, &e);
	}
}

TEST(torn_record_is_corrupt_and_a_sound_one_is_mended)
{
	uint8_t record[1024] = "FILE";
	struct err e = ERR_INIT;

	put_le16(record + 4, 48);
	put_le16(record + 6, 3);
	memcpy(record + 48,
	       "\x07\x00"
	       "ab"
	       "cd",
	       6);
	put_le16(record + 510, 7);
	put_le16(record + 1022, 7);
	CHECK_OK(fixup_apply(record, sizeof(record), "FILE", &e), &e);
	assert_memory_equal(record + 510, "ab", 2);
	assert_memory_equal(record + 1022, "cd", 2);
	put_le16(record + 510, 7);
	CHECK_STATUS(fixup_apply(record, sizeof(record), "FILE", &e), ST_CORRUPT, &e);
	assert_string_equal(e.message, "sector 1 is torn (update sequence)");
	CHECK_STATUS(fixup_apply(record, sizeof(record), "INDX", &e), ST_CORRUPT, &e);
	put_le16(record + 6, 200);
	CHECK_STATUS(fixup_apply(record, sizeof(record), "FILE", &e), ST_CORRUPT, &e);
}

/* A device of 64 KiB whose bytes name their sector, and some of whose sectors fail. */
struct faulty_reader {
	struct reader reader;
	const uint64_t *bad; /* sectors, ended by UINT64_MAX */
};

static uint32_t faulty_read(struct reader *r, uint64_t off, void *buf, size_t len, size_t *good)
{
	const struct faulty_reader *f = (struct faulty_reader *)r;

	for (*good = 0; *good < len; (*good)++) {
		const uint64_t sector = (off + *good) / 512;

		for (const uint64_t *b = f->bad; *b != UINT64_MAX; b++)
			if (*b == sector)
				return EIO;
		((uint8_t *)buf)[*good] = (uint8_t)(sector + 1);
	}
	return 0;
}

static void faulty_close(struct reader *r)
{
	free(r);
}

static struct extract *open_faulty(const uint64_t *bad, uint64_t size)
{
	static const struct reader_ops ops = { .kind = "faulty",
					       .read = faulty_read,
					       .close = faulty_close };
	struct faulty_reader *f = calloc(1, sizeof(*f));
	struct extract *x = NULL;
	struct err e = ERR_INIT;

	assert_non_null(f);
	f->reader = (struct reader){ .ops = &ops, .size = size, .sector = 512 };
	f->bad = bad;
	CHECK_OK(extract_open_whole(&f->reader, "faulty", &x, &e), &e);
	return x;
}

TEST(bad_sectors_are_recorded_to_the_sector_and_the_rest_is_read)
{
	static const uint64_t bad[] = { 3, 16, 17, 127, UINT64_MAX };
	struct extract *x = open_faulty(bad, 65536);
	uint8_t buf[65536];
	struct page_status status[16];
	struct extract_piece piece;
	struct err e = ERR_INIT;
	const struct extract_bad *found;
	size_t n;

	CHECK_OK(extract_next(x, buf, sizeof(buf), status, &piece, &e), &e);
	assert_int_equal(piece.length, sizeof(buf));
	for (size_t i = 0; i < sizeof(buf); i++) {
		const size_t s = i / 512;
		const bool is_bad = s == 3 || s == 16 || s == 17 || s == 127;

		assert_int_equal(buf[i], is_bad ? 0 : s + 1);
	}
	for (size_t p = 0; p < 16; p++) {
		const bool is_bad = p == 0 || p == 2 || p == 15;

		assert_int_equal(status[p].state, is_bad ? PAGE_UNREADABLE : PAGE_DATA);
		assert_int_equal(status[p].detail, is_bad ? EIO : 0);
	}
	found = extract_bad(x, &n);
	assert_int_equal(n, 3);
	assert_int_equal(found[1].offset, 16 * 512);
	assert_int_equal(found[1].length, 2 * 512);
	CHECK_STATUS(extract_next(x, buf, sizeof(buf), status, &piece, &e), ST_END, &e);
	extract_close(x);
}

/* Gives up within a sector; what lies behind that it reads again. */
static uint32_t torn_read(struct reader *r, uint64_t off, void *buf, size_t len, size_t *good)
{
	const uint64_t torn = 5 * 512 + 100;

	(void)r;
	*good = off <= torn && torn - off < len ? (size_t)(torn - off) : len;
	memset(buf, 'x', *good);
	return *good < len ? EIO : 0;
}

TEST(a_sector_of_which_only_a_part_came_is_bad)
{
	static const struct reader_ops ops = { .kind = "torn",
					       .read = torn_read,
					       .close = faulty_close };
	struct reader *r = calloc(1, sizeof(*r));
	struct extract *x = NULL;
	uint8_t buf[8192];
	struct page_status status[2];
	struct extract_piece piece;
	struct err e = ERR_INIT;
	const struct extract_bad *found;
	size_t n;

	assert_non_null(r);
	*r = (struct reader){ .ops = &ops, .size = sizeof(buf), .sector = 512 };
	CHECK_OK(extract_open_whole(r, "torn", &x, &e), &e);
	CHECK_OK(extract_next(x, buf, sizeof(buf), status, &piece, &e), &e);
	for (size_t i = 0; i < sizeof(buf); i++)
		assert_int_equal(buf[i], i / 512 == 5 ? 0 : 'x');
	assert_int_equal(status[0].state, PAGE_UNREADABLE);
	assert_int_equal(status[1].state, PAGE_DATA);
	found = extract_bad(x, &n);
	assert_int_equal(n, 1);
	assert_int_equal(found[0].offset, 5 * 512);
	assert_int_equal(found[0].length, 512);
	extract_close(x);
}

/* A file in use, as another way gives it: one page is of another time at the first look. */
struct second_way {
	struct reader reader;
	const uint8_t *truth;
	unsigned looks;
};

static uint32_t second_way_read(struct reader *r, uint64_t off, void *buf, size_t len, size_t *good)
{
	struct second_way *w = (struct second_way *)r;

	memcpy(buf, w->truth + off, len);
	*good = len;
	if (!w->looks++)
		((uint8_t *)buf)[2 * PAGE_SIZE + 9] ^= 1; /* settles */
	if (off <= 5 * PAGE_SIZE && off + len > 5 * PAGE_SIZE)
		((uint8_t *)buf)[5 * PAGE_SIZE - off] ^= 1; /* stays */
	if (off + len == 8 * PAGE_SIZE)
		*good = len - PAGE_SIZE; /* the last is not given */
	return *good < len ? EIO : 0;
}

TEST(two_ways_to_read_a_file_are_compared)
{
	static const struct reader_ops ops = { .kind = "second", .read = second_way_read };
	static uint8_t bytes[9 * PAGE_SIZE];
	struct second_way w = { .reader = { .ops = &ops, .size = 8 * PAGE_SIZE, .sector = 512 },
				.truth = bytes };
	struct reader *r = NULL;
	struct extract *x = NULL;
	struct comparison c;
	struct err e = ERR_INIT;

	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (uint8_t)(i / PAGE_SIZE + i % 251);
	CHECK_OK(reader_open_memory(bytes, sizeof(bytes), 512, &r, &e), &e);
	CHECK_OK(extract_open_whole(r, "first", &x, &e), &e);
	CHECK_OK(compare_file(x, &w.reader, &c, &e), &e);
	assert_int_equal(c.same, 5);
	assert_int_equal(c.settled, 1);
	assert_int_equal(c.different, 1);
	assert_int_equal(c.unread, 1);
	assert_int_equal(c.first_different, 5 * PAGE_SIZE);
	assert_true(c.other_size);
	extract_close(x);
}

TEST(pages_that_the_volume_does_not_give_are_not_called_the_same)
{
	static const uint64_t bad[] = { 9, UINT64_MAX }; /* in the second page */
	struct extract *x = open_faulty(bad, 4 * PAGE_SIZE);
	static uint8_t bytes[4 * PAGE_SIZE];
	struct reader *r = NULL;
	struct comparison c;
	struct err e = ERR_INIT;

	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = i / 512 == 9 ? 0 : (uint8_t)(i / 512 + 1);
	CHECK_OK(reader_open_memory(bytes, sizeof(bytes), 512, &r, &e), &e);
	CHECK_OK(compare_file(x, r, &c, &e), &e);
	assert_int_equal(c.same, 3);
	assert_int_equal(c.unread, 1);
	assert_int_equal(c.different, 0);
	assert_false(c.other_size);
	reader_close(r);
	extract_close(x);
}

TEST(the_last_page_may_be_short)
{
	static const uint64_t none[] = { UINT64_MAX };
	struct extract *x = open_faulty(none, 4096 + 512);
	uint8_t buf[8192];
	struct page_status status[2];
	struct extract_piece piece;
	struct err e = ERR_INIT;

	CHECK_OK(extract_next(x, buf, 4096, status, &piece, &e), &e);
	CHECK_OK(extract_next(x, buf, 4096, status, &piece, &e), &e);
	assert_int_equal(piece.offset, 4096);
	assert_int_equal(piece.length, 512);
	assert_int_equal(status[0].state, PAGE_DATA);
	CHECK_STATUS(extract_next(x, buf, 4096, status, &piece, &e), ST_END, &e);
	extract_close(x);
}

TEST(attribute_that_points_out_of_its_record_ends_the_walk)
{
	uint8_t record[1024] = "FILE";
	struct attribute a;
	struct attribute_walk w = { .record = record, .size = sizeof(record) };

	put_le16(record + 20, 56);   /* first attribute */
	put_le32(record + 24, 1024); /* bytes in use */
	put_le32(record + 56, ATTRIBUTE_DATA);
	put_le32(record + 60, 32);
	put_le32(record + 56 + 16, 8);
	put_le16(record + 56 + 20, 24);
	put_le32(record + 88, ATTRIBUTE_DATA);
	put_le32(record + 92, 32);
	put_le32(record + 88 + 16, 9); /* one byte more than there is */
	put_le16(record + 88 + 20, 24);
	assert_true(attribute_next(&w, &a));
	assert_int_equal(a.value_size, 8);
	assert_false(attribute_next(&w, &a));
	w.at = 88;
	put_le32(record + 92, 2000);
	assert_false(attribute_next(&w, &a));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(extents_are_sorted_joined_and_cut_at_the_end),
		cmocka_unit_test(gaps_between_extents_are_lost_not_zero),
		cmocka_unit_test(extents_that_overlap_are_counted_and_cut),
		cmocka_unit_test(find_hits_the_extent_and_nothing_behind_the_end),
		cmocka_unit_test(changes_are_what_moved_grew_or_became_a_hole),
		cmocka_unit_test(a_file_that_only_shrank_has_nothing_to_copy_again),
		cmocka_unit_test(paths_take_either_slash_and_a_stream),
		cmocka_unit_test(paths_that_cannot_be_are_refused_with_a_reason),
		cmocka_unit_test(paths_of_many_parts_are_taken),
		cmocka_unit_test(names_survive_the_way_to_utf8_and_back),
		cmocka_unit_test(boot_sector_gives_the_geometry),
		cmocka_unit_test(boot_sectors_that_make_no_sense_are_corrupt),
		cmocka_unit_test(torn_record_is_corrupt_and_a_sound_one_is_mended),
		cmocka_unit_test(bad_sectors_are_recorded_to_the_sector_and_the_rest_is_read),
		cmocka_unit_test(a_sector_of_which_only_a_part_came_is_bad),
		cmocka_unit_test(two_ways_to_read_a_file_are_compared),
		cmocka_unit_test(pages_that_the_volume_does_not_give_are_not_called_the_same),
		cmocka_unit_test(the_last_page_may_be_short),
		cmocka_unit_test(attribute_that_points_out_of_its_record_ends_the_walk),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
