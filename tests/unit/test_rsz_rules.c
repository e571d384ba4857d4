/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a reader must reject (SPEC.md) in records whose sums are right: each for its own reason, and
 * at its own place. That the container is rejected is not enough, because its root is another one
 * as soon as any record is.
 */
#include <string.h>

#include "formats/base/bytes.h"
#include "tests/unit/rsz_build.h"

/* The records of the container that is changed. */
enum {
	BEGIN,
	FILE_STREAM,
	MEMORY,
	TEXT,
	PAGES, /* "a.b?" at 0x1000, from 200 to 210 */
	PARTS, /* "-c" and "__", from 300 to 310 and to 320 */
	INDEX,
	CLOSE,
	RECORDS
};

/* Fields of every header, and where bodies have theirs (SPEC.md, sections 3 to 9). */
enum {
	SIZE = 4,
	MARK = 8,
	TYPE = 12,
	RESERVED_16 = 14,
	ID = 16,
	SEQUENCE = 32,
	OFFSET = 40,
	STORED = 48,
	CONTENT = 52,
	CRC = 56,
	RESERVED_32 = 60,
	SHA = 64,
	BODY = 96,
	BEGIN_TEXT = 120,
	STREAM_NAME = 120,
	EXTENT = 128,
	SECOND_EXTENT = EXTENT + 32,
	PAGES_RUN = EXTENT + 32,
	PARTS_RUN = EXTENT + 64,
	ROOT = BODY + 16,
};

static struct build made;
static size_t offsets[RECORDS];

static void make(void)
{
	static const uint8_t behind[16];
	uint32_t file, memory;
	struct err e = ERR_INIT;

	build_begin(&made, 7, 1);
	file = build_stream(&made, RSZ_KIND_MANIFEST, "memorz");
	memory = build_stream(&made, RSZ_KIND_MEMORY, "memory");
	build_text(&made, file, 0, "{\"begin\":1}\n");
	build_chunk(&made, memory, 200);
	build_extent(&made, 0x1000, "a.b?");
	build_put(&made);
	build_chunk(&made, memory, 300);
	build_extent(&made, 0x100000000, "-c");
	build_extent(&made, 0x8000, "__");
	build_put(&made);
	build_close(&made);
	/* So that the last record, too, can say that it is longer. */
	CHECK_OK(sink_write(&made.out.sink, behind, sizeof(behind), &e), &e);
}

/* Without payloads. Notes where records begin, if it is to. */
static void scan(size_t *ret_offsets, struct rsz_scan_result *ret)
{
	struct rsz_scan *s = NULL;
	struct rsz_record rec;
	struct err e = ERR_INIT;
	struct mem_blob blob;

	mem_blob_init(&blob, made.out.at, made.out.len);
	CHECK_OK(rsz_scan_create(&blob.blob, &s, &e), &e);
	while (!rsz_scan_next(s, &rec, &e))
		if (ret_offsets)
			ret_offsets[rec.sequence] = (size_t)rec.offset;
	rsz_scan_end(s, ret);
	rsz_scan_destroy(s);
}

/* Makes a header's digest fit what is in it. */
static void sign(uint8_t *header)
{
	static const uint8_t leaf = 0;
	const size_t len = 8 + get_le32(header + 4) - SHA256_SIZE;
	struct sha256 *h = NULL;
	struct err e = ERR_INIT;

	CHECK_OK(sha256_create(&h, &e), &e);
	sha256_begin(h);
	sha256_update(h, &leaf, 1);
	sha256_update(h, header, len);
	sha256_end(h, header + len);
	sha256_destroy(h);
}

/* Adds to a field of so many bytes. */
static void change(uint8_t *field, unsigned width, int64_t add)
{
	uint8_t all[8] = { 0 };

	memcpy(all, field, width);
	put_le64(all, get_le64(all) + (uint64_t)add);
	memcpy(field, all, width);
}

static void check_rejected(unsigned record, size_t at, unsigned width, int64_t add, const char *why)
{
	uint8_t *const header = made.out.at + offsets[record];
	struct rsz_scan_result end;
	uint8_t *before = malloc(made.out.len);

	assert_non_null(before);
	memcpy(before, made.out.at, made.out.len);
	change(header + at, width, add);
	sign(header);
	scan(NULL, &end);
	memcpy(made.out.at, before, made.out.len);
	free(before);
	if (end.end != RSZ_END_DAMAGED || end.whole != offsets[record] || !strstr(end.reason, why))
		fail_msg("record %u, offset %zu, %+d: %s up to %u: \"%s\", wanted \"%s\"", record,
			 at, (int)add, rsz_end_name(end.end), (unsigned)end.whole, end.reason, why);
}

#define MIB      ((int64_t)1 << 20)
#define PAGE     ((int64_t)PAGE_SIZE)
#define ONE_BYTE (INT64_C(1) << 32 | 1) /* stored, and of content */
#define AT       "extent at 0x"
#define LATE     "extent's times are outside those of its chunk"
#define LIST     "INDEX: does not list the records before it"
#define FITS     "CLOSE: does not fit the records before it"

static const struct rule {
	unsigned record, at, width;
	int64_t add;
	const char *why;
} rules[] = {
	{ PAGES, 0, 4, 1, "no record begins here" },
	{ PAGES, MARK, 1, 1, "no record begins here" },
	{ PAGES, MARK + 2, 1, 1, "no record begins here" },
	{ PAGES, MARK + 3, 1, 1, "format version 2" },
	{ PAGES, SIZE, 4, -116, "header of 100 bytes" },
	{ INDEX, SIZE, 4, 8, "header of 144 bytes" },
	{ CLOSE, SIZE, 4, 8, "header of 176 bytes" },
	{ PAGES, TYPE, 2, 3, "record type 6" },
	{ MEMORY, TYPE, 2, RSZ_BEGIN - RSZ_STREAM, "BEGIN is not the first record" },
	{ PAGES, RESERVED_16, 2, 1, "reserved bits" },
	{ PAGES, RESERVED_32, 4, 1, "reserved bits" },
	{ PAGES, SEQUENCE, 8, 1, "record 5 where 4 should be" },
	{ PAGES, SEQUENCE, 8, -1, "record 3 where 4 should be" },
	{ PAGES, OFFSET, 8, 1, "a record that was written at offset" },
	{ PAGES, OFFSET, 8, -1, "a record that was written at offset" },
	{ PAGES, CONTENT, 4, 16 * MIB, "payload of" },
	{ PAGES, STORED, 4, 17 * MIB, "payload of" },
	{ PAGES, CONTENT, 4, -2 * PAGE, "payload has only one of its two sizes" },
	{ CLOSE, CONTENT, 4, 1, "payload has only one of its two sizes" },
	{ BEGIN, STORED, 8, ONE_BYTE, "BEGIN: text of 9 bytes, or a payload" },
	{ MEMORY, STORED, 8, ONE_BYTE, "STREAM: reserved bits are set, or a payload" },
	{ CLOSE, STORED, 8, ONE_BYTE, "CLOSE: has a payload" },
	{ MEMORY, CRC, 4, 1, "sums without a payload" },
	{ MEMORY, SHA, 1, 1, "sums without a payload" },
	{ MEMORY, SHA + 31, 1, 1, "sums without a payload" },

	{ BEGIN, BODY, 4, 1, "BEGIN: version 2" },
	{ BEGIN, BODY + 4, 4, 1, "BEGIN: header is cut short" },
	{ BEGIN, BODY + 4, 4, -1, "BEGIN: header is 1 bytes too long" },
	{ BEGIN, BODY + 4, 4, RSZ_TEXT_MAX, "BEGIN: text of" },
	{ BEGIN, BEGIN_TEXT, 1, 0x80, "BEGIN: text that is not UTF-8" },

	{ MEMORY, BODY, 4, 1, "STREAM: number 2 after 1" },
	{ MEMORY, BODY, 4, -1, "STREAM: number 0 after 1" },
	{ MEMORY, BODY + 8, 4, 1, "STREAM: page size 4097" },
	{ MEMORY, BODY + 8, 4, -PAGE, "STREAM: page size 0" },
	{ FILE_STREAM, BODY + 8, 4, PAGE, "STREAM: page size 4096" },
	{ MEMORY, BODY + 12, 4, -6, "STREAM: name of 0" },
	{ MEMORY, BODY + 12, 4, RSZ_NAME_MAX, "STREAM: name of 4102" },
	{ MEMORY, BODY + 12, 4, 1, "STREAM: header is cut short" },
	{ MEMORY, BODY + 16, 4, RSZ_META_MAX, "STREAM: name of 6 and metadata of 65" },
	{ MEMORY, BODY + 16, 4, -1, "STREAM: header is 1 bytes too long" },
	{ MEMORY, BODY + 20, 4, 1, "STREAM: reserved bits" },
	{ MEMORY, STREAM_NAME, 1, -'m', "a NUL byte in a text" },
	{ MEMORY, STREAM_NAME + 5, 1, 1, "\"memorz\" is declared twice" },
	{ MEMORY, STREAM_NAME, 1, 0x80, "STREAM: text that is not UTF-8" },
	{ MEMORY, STREAM_NAME + 6, 1, 0x80, "STREAM: text that is not UTF-8" },

	{ PAGES, BODY, 4, 1, "stream 2 is not declared" },
	{ PAGES, BODY + 4, 4, -1, "CHUNK: 0 extents" },
	{ PAGES, BODY + 4, 4, RSZ_EXTENTS_MAX, "CHUNK: 4097 extents" },
	{ PAGES, BODY + 4, 4, 1, "CHUNK: header is cut short" },
	{ PAGES, BODY + 8, 4, RSZ_RUNS_MAX, "4100 runs" },
	{ PAGES, BODY + 8, 4, -1, "CHUNK: header is 8 bytes too long" },
	{ PAGES, BODY + 12, 4, -4 * PAGE, "CHUNK: length or time" },
	{ PAGES, BODY + 12, 4, 16 * MIB, "CHUNK: length or time" },
	{ PAGES, BODY + 12, 4, 1, "CHUNK: extents of 16384 bytes, length 16385" },
	{ PARTS, BODY + 12, 4, -1, "CHUNK: extents of 16384 bytes, length 16383" },
	{ PAGES, BODY + 16, 8, 11, "CHUNK: length or time" },
	{ PAGES, BODY + 16, 8, 1, LATE },
	{ PAGES, BODY + 24, 8, -1, LATE },
	{ TEXT, EXTENT + 8, 4, -12, "extent of 0 bytes" },
	{ TEXT, EXTENT, 8, INT64_MAX, AT },
	{ PAGES, EXTENT, 8, 1, AT },
	{ PAGES, EXTENT, 8, (int64_t)PHYS_LIMIT - 0x1000, AT },
	{ PAGES, EXTENT, 8, (int64_t)PHYS_LIMIT - 0x4000, AT },
	{ PAGES, EXTENT + 8, 4, 1, "extent of 16385 bytes" },
	{ PAGES, EXTENT + 8, 4, -1, AT },
	{ PAGES, EXTENT + 12, 2, 1, "extent of pass 1 for reason 0" },
	{ PAGES, EXTENT + 14, 2, 1, "extent of pass 0 for reason 1" },
	{ PAGES, EXTENT + 12, 4, 4 << 16 | 1, "extent of pass 1 for reason 4" },
	{ PAGES, EXTENT + 16, 8, -1, LATE },
	{ PAGES, EXTENT + 24, 8, 1, LATE },
	{ PARTS, EXTENT + 16, 8, 15, LATE }, /* from 315 to 310, and the chunk is from 300 to 320 */
	{ PARTS, SECOND_EXTENT + 24, 8, -15, LATE },

	{ TEXT, CONTENT, 4, 1, "page states in a stream without pages" },
	{ PARTS, PARTS_RUN + 16, 2, -1, "pages without a state" },
	{ PAGES, PAGES_RUN, 2, -1, "run of 0 pages" },
	{ PAGES, PAGES_RUN + 24, 2, 1, "states without a page" },
	{ PARTS, PARTS_RUN + 8, 2, 1, "states without a page" },
	{ PAGES, PAGES_RUN + 2, 1, PAGE_STATES, "run of 1 pages in state" },
	{ PAGES, PAGES_RUN + 3, 1, 1, "run of 1 pages in state" },
	{ PAGES, PAGES_RUN + 4, 4, 1, "detail on a page of" },
	{ PARTS, PARTS_RUN + 4, 4, -SKIP_NOT_MAPPED, "skipped for reason 0" },
	{ PARTS, PARTS_RUN + 4, 4, SKIP_REASONS - SKIP_NOT_MAPPED, "skipped for reason 5" },
	{ PAGES, PAGES_RUN + 8 + 2, 1, PAGE_DATA - PAGE_ZERO, "adjacent runs of the same state" },
	{ PAGES, PAGES_RUN + 2, 1, PAGE_HOLE - PAGE_DATA,
	  "4096 bytes of data pages, content of 8" },

	{ INDEX, BODY, 4, 1, "INDEX: 7 entries" },
	{ INDEX, BODY, 4, -1, "INDEX: 5 entries" },
	{ INDEX, BODY + 4, 4, 1, "INDEX: 6 entries" },
	{ INDEX, BODY + 8, 8, 1, LIST },
	{ INDEX, SHA, 1, 1, LIST },
	{ INDEX, SHA + 31, 1, 1, LIST },

	{ CLOSE, BODY, 8, 1, FITS },
	{ CLOSE, BODY, 8, -1, FITS },
	{ CLOSE, BODY + 8, 8, 1, FITS },
	{ CLOSE, BODY + 8, 8, -1, FITS },
	{ CLOSE, ROOT, 1, 1, "its root is not that of the records" },
	{ CLOSE, ROOT + 31, 1, 1, "its root is not that of the records" },
};

TEST(each_field_is_judged_where_it_stands)
{
	struct rsz_scan_result end;

	make();
	scan(offsets, &end);
	assert_string_equal(end.reason, "");
	assert_int_equal(end.end, RSZ_END_SEALED);
	assert_int_equal(end.records, RECORDS);
	for (size_t i = 0; i < ARRAY_SIZE(rules); i++)
		check_rejected(rules[i].record, rules[i].at, rules[i].width, rules[i].add,
			       rules[i].why);
	for (unsigned i = 0; i < RSZ_ID_SIZE; i++)
		check_rejected(PAGES, ID + i, 1, 1, "a record of another container");
	scan(NULL, &end);
	assert_int_equal(end.end, RSZ_END_SEALED);
	build_deinit(&made);
}

/* What a zstd frame of one page says of itself, and what stands behind its block. */
static const struct frame_rule {
	uint8_t front[10];
	size_t n_front;
	uint8_t behind[9];
	size_t n_behind;
	const char *why; /* NULL: nothing is wrong */
} frame_rules[] = {
	{ { 0xa0, 0, 16, 0, 0 }, 5, { 0 }, 0, NULL },
	/* Dictionaries: that of number 0 is none, and yet it may not be asked for. */
	{ { 0xa1, 0, 0, 16, 0, 0 }, 6, { 0 }, 0, "dictionary" },
	{ { 0xa2, 0, 0, 0, 16, 0, 0 }, 7, { 0 }, 0, "dictionary" },
	{ { 0xa3, 0, 0, 0, 0, 0, 16, 0, 0 }, 9, { 0 }, 0, "dictionary" },
	/* Windows of 16 MiB, and of an eighth more. */
	{ { 0x80, 0x70, 0, 16, 0, 0 }, 6, { 0 }, 0, NULL },
	{ { 0x80, 0x71, 0, 16, 0, 0 }, 6, { 0 }, 0, "window" },
	/* The reserved bit. */
	{ { 0xa8, 0, 16, 0, 0 }, 5, { 0 }, 0, "" },
	/* No size, and others. */
	{ { 0x00, 0x50 }, 2, { 0 }, 0, "a different content size" },
	{ { 0xa0, 1, 16, 0, 0 }, 5, { 0 }, 0, "a different content size" },
	{ { 0xa0, 255, 15, 0, 0 }, 5, { 0 }, 0, "a different content size" },
	/* A byte, an empty frame, a frame that is skipped. */
	{ { 0xa0, 0, 16, 0, 0 }, 5, { 0 }, 1, "not exactly one zstd frame" },
	{ { 0xa0, 0, 16, 0, 0 },
	  5,
	  { 0x28, 0xb5, 0x2f, 0xfd, 0x20, 0, 1, 0, 0 },
	  9,
	  "not exactly one" },
	{ { 0xa0, 0, 16, 0, 0 }, 5, { 0x50, 0x2a, 0x4d, 0x18, 0, 0, 0, 0 }, 8, "not exactly one" },
};

static void make_frame(const struct frame_rule *r, struct rsz_frame *f)
{
	/* One raw block of 4096 bytes, and the last (RFC 8878, 3.1.1.2). */
	static const uint8_t magic[] = { 0x28, 0xb5, 0x2f, 0xfd }, block[] = { 1, 0x80, 0 };
	uint8_t page[PAGE_SIZE];
	struct appender a = { f->payload };

	memset(page, 'a', sizeof(page));
	app_bytes(&a, magic, sizeof(magic));
	app_bytes(&a, r->front, r->n_front);
	app_bytes(&a, block, sizeof(block));
	app_bytes(&a, page, sizeof(page));
	app_bytes(&a, r->behind, r->n_behind);
	f->stored = (size_t)(a.at - f->payload);
	f->crc = build_crc(f->payload, f->stored);
}

/* The first chunk of what was made. */
static enum status check_payload(struct err *e)
{
	struct rsz_decoder *decoder = NULL;
	struct rsz_scan *s = NULL;
	struct rsz_record rec;
	struct mem_blob blob;
	enum status st;

	mem_blob_init(&blob, made.out.at, made.out.len);
	CHECK_OK(rsz_decoder_create(&decoder, e), e);
	CHECK_OK(rsz_scan_create(&blob.blob, &s, e), e);
	do
		CHECK_OK(rsz_scan_next(s, &rec, e), e);
	while (rec.type != RSZ_CHUNK);
	st = rsz_check(decoder, rec.header, rec.header_length,
		       made.out.at + rec.offset + rec.header_length, e);
	rsz_scan_destroy(s);
	rsz_decoder_destroy(decoder);
	return st;
}

TEST(each_payload_is_one_frame_as_it_must_be)
{
	for (size_t i = 0; i < ARRAY_SIZE(frame_rules); i++) {
		const struct frame_rule *r = &frame_rules[i];
		struct err e = ERR_INIT;
		enum status st;

		build_begin(&made, 7, RSZ_LEVEL_STORE);
		build_chunk(&made, build_stream(&made, RSZ_KIND_MEMORY, "memory"), 100);
		build_extent(&made, 0, "a");
		CHECK_OK(rsz_encode(made.encoder, &made.chunk, &made.frame, &e), &e);
		make_frame(r, &made.frame);
		CHECK_OK(rsz_writer_put(made.writer, &made.frame, &e), &e);
		st = check_payload(&e);
		if (st != (r->why ? ST_CORRUPT : ST_OK) || (r->why && !strstr(e.message, r->why)))
			fail_msg("frame %zu: %s: \"%s\", wanted \"%s\"", i, status_text(st),
				 e.message, r->why ? r->why : "");
		build_deinit(&made);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_field_is_judged_where_it_stands),
		cmocka_unit_test(each_payload_is_one_frame_as_it_must_be),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
