/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "formats/base/bytes.h"
#include "formats/rsz/merkle.h"
#include "tests/unit/rsz_build.h"

/* Two streams, gathered extents, every page state, an index, a manifest: 8 records. */
static void build_small(struct build *b, uint8_t id, int level)
{
	uint32_t memory, manifest;

	build_begin(b, id, level);
	manifest = build_stream(b, RSZ_KIND_MANIFEST, "manifest");
	memory = build_stream(b, RSZ_KIND_MEMORY, "memory");
	build_text(b, manifest, 0, "{\"begin\":1}\n");
	build_chunk(b, memory, 200);
	build_extent(b, 0x1000, "a.b?");
	build_put(b);
	build_chunk(b, memory, 300);
	build_extent(b, 0x100000000, "-c");
	build_extent(b, 0x8000, "_");
	build_put(b);
	build_text(b, manifest, 12, "{\"end\":1}\n");
	build_close(b);
}

#define SMALL_RECORDS 9

static void check_page(struct rsz_cursor *c, uint32_t stream, uint64_t address, char want)
{
	struct err e = ERR_INIT;
	struct rsz_page page;

	CHECK_OK(rsz_cursor_page(c, stream, address, &page, &e), &e);
	if (want == ' ') {
		assert_false(page.captured);
		return;
	}
	assert_true(page.captured);
	switch (want) {
	case '.':
		assert_int_equal(page.status.state, PAGE_ZERO);
		break;
	case '?':
		assert_int_equal(page.status.state, PAGE_UNREADABLE);
		assert_int_equal(page.status.detail, 5);
		break;
	case '-':
		assert_int_equal(page.status.state, PAGE_SKIPPED);
		assert_int_equal(page.status.detail, SKIP_NOT_MAPPED);
		break;
	case '_':
		assert_int_equal(page.status.state, PAGE_HOLE);
		break;
	default:
		assert_int_equal(page.status.state, PAGE_DATA);
		for (size_t i = 0; i < PAGE_SIZE; i++)
			assert_int_equal(page.data[i], want);
		return;
	}
	assert_true(bytes_are_zero(page.data, PAGE_SIZE));
}

/* Opens, runs the checks on a stream ("address letter" pairs), closes. */
struct want {
	uint64_t address;
	char page;
};

static void check_pages(const void *p, size_t len, uint32_t stream, const struct want *w, size_t n)
{
	struct rsz_reader *r = NULL;
	struct rsz_cursor *c = NULL;
	struct err e = ERR_INIT;
	struct mem_blob blob;

	mem_blob_init(&blob, p, len);
	CHECK_OK(rsz_reader_open(&blob.blob, RSZ_TRUST_INDEX, &r, &e), &e);
	CHECK_OK(rsz_cursor_create(r, 1, &c, &e), &e);
	for (size_t i = 0; i < n; i++)
		check_page(c, stream, w[i].address, w[i].page);
	rsz_cursor_destroy(c);
	rsz_reader_close(r);
}

static const struct want small_pages[] = {
	{ 0x0000, ' ' },      { 0x1000, 'a' },      { 0x2000, '.' },      { 0x3000, 'b' },
	{ 0x4000, '?' },      { 0x5000, ' ' },      { 0x8000, '_' },      { 0x9000, ' ' },
	{ 0x100000000, '-' }, { 0x100001000, 'c' }, { 0x100002000, ' ' },
};

TEST(sealed_container_reads_back)
{
	static const int levels[] = { RSZ_LEVEL_STORE, 1, -5, 19 };
	static struct build b;

	for (size_t i = 0; i < ARRAY_SIZE(levels); i++) {
		struct rsz_scan_result result;

		build_small(&b, 7, levels[i]);
		verify_bytes(b.out.at, b.out.len, &result);
		assert_string_equal(result.reason, "");
		assert_int_equal(result.end, RSZ_END_SEALED);
		assert_int_equal(result.records, SMALL_RECORDS);
		assert_memory_equal(result.root, b.root, SHA256_SIZE);
		check_pages(b.out.at, b.out.len, 1, small_pages, ARRAY_SIZE(small_pages));
		build_deinit(&b);
	}
}

TEST(same_content_has_the_same_content_hashes_at_every_level)
{
	static struct build b;
	uint8_t sums[2][SHA256_SIZE];

	for (int level = 0; level < 2; level++) {
		build_begin(&b, 7, level);
		build_chunk(&b, build_stream(&b, RSZ_KIND_MEMORY, "memory"), 200);
		build_extent(&b, 0x1000, "a.b?");
		CHECK_OK(rsz_encode(b.encoder, &b.chunk, &b.frame, NULL), &(struct err)ERR_INIT);
		memcpy(sums[level], b.frame.sha256, SHA256_SIZE);
		build_deinit(&b);
	}
	assert_memory_equal(sums[0], sums[1], SHA256_SIZE);
}

/* Also if the record's own digest covers the wrong one, which no damage makes. */
TEST(content_has_each_byte_of_its_sha256)
{
	for (size_t i = 0; i < SHA256_SIZE; i++) {
		static struct build b;
		struct rsz_scan_result result;
		struct err e = ERR_INIT;

		build_begin(&b, 7, 1);
		build_chunk(&b, build_stream(&b, RSZ_KIND_MEMORY, "memory"), 200);
		build_extent(&b, 0x1000, "ab");
		CHECK_OK(rsz_encode(b.encoder, &b.chunk, &b.frame, &e), &e);
		b.frame.sha256[i] ^= 1;
		CHECK_OK(rsz_writer_put(b.writer, &b.frame, &e), &e);
		build_close(&b);
		verify_bytes(b.out.at, b.out.len, &result);
		assert_int_equal(result.end, RSZ_END_DAMAGED);
		build_deinit(&b);
	}
}

TEST(text_streams_come_back_whole)
{
	static struct build b;
	struct rsz_reader *r = NULL;
	struct rsz_cursor *c = NULL;
	struct err e = ERR_INIT;
	struct mem_blob blob;
	const uint8_t *text;
	uint64_t at = 0;
	size_t len;

	build_small(&b, 7, 1);
	mem_blob_init(&blob, b.out.at, b.out.len);
	CHECK_OK(rsz_reader_open(&blob.blob, RSZ_TRUST_INDEX, &r, &e), &e);
	CHECK_OK(rsz_cursor_create(r, 1, &c, &e), &e);
	CHECK_OK(rsz_cursor_next_text(c, 0, &at, &text, &len, &e), &e);
	assert_int_equal(len, 12);
	assert_memory_equal(text, "{\"begin\":1}\n", len);
	CHECK_OK(rsz_cursor_next_text(c, 0, &at, &text, &len, &e), &e);
	assert_int_equal(len, 10);
	assert_memory_equal(text, "{\"end\":1}\n", len);
	CHECK_STATUS(rsz_cursor_next_text(c, 0, &at, &text, &len, &e), ST_END, &e);
	rsz_cursor_destroy(c);
	rsz_reader_close(r);
	build_deinit(&b);
}

TEST(every_flipped_bit_is_found)
{
	static struct build b;

	build_small(&b, 7, 1);
	for (size_t i = 0; i < b.out.len; i++) {
		for (int bit = 0; bit < 8; bit++) {
			struct rsz_scan_result result;

			b.out.at[i] ^= (uint8_t)(1 << bit);
			verify_bytes(b.out.at, b.out.len, &result);
			if (result.end == RSZ_END_SEALED)
				fail_msg("bit %d of byte %zu goes unnoticed", bit, i);
			b.out.at[i] ^= (uint8_t)(1 << bit);
		}
	}
	build_deinit(&b);
}

/* Whatever bit of BEGIN is wrong, what stands behind it can be read. */
TEST(every_flipped_bit_of_begin_costs_nothing_else)
{
	static struct build b;
	struct rsz_scan_result result;
	size_t first;

	build_small(&b, 7, 1);
	first = 8 + get_le32(b.out.at + 4);
	for (size_t i = 0; i < 8 * first; i++) {
		struct rsz_reader *r = NULL;
		struct err e = ERR_INIT;
		struct mem_blob blob;

		b.out.at[i / 8] ^= (uint8_t)(1 << i % 8);
		mem_blob_init(&blob, b.out.at, b.out.len);
		CHECK_OK(rsz_reader_open(&blob.blob, RSZ_TRUST_INDEX, &r, &e), &e);
		result = *rsz_reader_end(r);
		assert_int_equal(result.end, RSZ_END_DAMAGED);
		assert_int_equal(result.whole, 0);
		CHECK_HAS(result.reason, "offset 0: ");
		/* The root is right but where BEGIN's own digest has suffered. */
		CHECK_HAS(result.reason,
			  i / 8 < first - 32 ? "; after it: sealed" : "its root is not");
		assert_int_equal(rsz_reader_identity(r)->id[0], 7);
		assert_int_equal(rsz_reader_identity(r)->wall, 0);
		assert_true(rsz_reader_streams(r) > 0);
		rsz_reader_close(r);
		b.out.at[i / 8] ^= (uint8_t)(1 << i % 8);
	}
	build_deinit(&b);
}

TEST(every_truncation_opens_up_to_the_last_whole_record)
{
	static struct build b;
	struct rsz_scan_result result;
	uint64_t whole = 0;
	size_t first;

	build_small(&b, 7, 1);
	first = 8 + get_le32(b.out.at + 4);
	for (size_t len = 0; len < b.out.len; len++) {
		struct rsz_reader *r = NULL;
		struct err e = ERR_INIT;
		struct mem_blob blob;
		uint8_t *copy = malloc(len ? len : 1);

		assert_non_null(copy);
		memcpy(copy, b.out.at, len); /* so that a read behind the end is seen */
		mem_blob_init(&blob, copy, len);
		verify_bytes(copy, len, &result);
		if (len < 12) { /* magic and mark */
			CHECK_STATUS(rsz_reader_open(&blob.blob, RSZ_TRUST_INDEX, &r, &e), ST_INPUT,
				     &e);
		} else {
			assert_int_equal(result.end,
					 result.whole == len ? RSZ_END_UNSEALED : RSZ_END_CUT);
			assert_true(len < first ? !result.whole : result.whole >= first);
			assert_true(result.whole >= whole);
			whole = result.whole;
			CHECK_OK(rsz_reader_open(&blob.blob, RSZ_TRUST_INDEX, &r, &e), &e);
			assert_int_equal(rsz_reader_end(r)->whole, whole);
			assert_int_not_equal(rsz_reader_end(r)->end, RSZ_END_SEALED);
			rsz_reader_close(r);
		}
		free(copy);
	}
	assert_int_equal(whole, b.out.len - 176); /* all but CLOSE */
	build_deinit(&b);
}

static void refuse_stream(struct build *b, const char *name, const char *message)
{
	struct err e = ERR_INIT;
	uint32_t n = 0;

	CHECK_STATUS(rsz_writer_stream(b->writer, RSZ_KIND_FILE, name, NULL, &n, &e), ST_SYSTEM,
		     &e);
	CHECK_HAS(e.message, message);
}

static void refuse_text(struct build *b, uint32_t stream, uint64_t address)
{
	struct err e = ERR_INIT;

	CHECK_STATUS(rsz_writer_text(b->writer, stream, &address, "text", 4, 100, &e), ST_SYSTEM,
		     &e);
}

static void refuse_put(struct build *b)
{
	struct err e = ERR_INIT;

	CHECK_OK(rsz_encode(b->encoder, &b->chunk, &b->frame, &e), &e);
	CHECK_STATUS(rsz_writer_put(b->writer, &b->frame, &e), ST_SYSTEM, &e);
}

TEST(writer_refuses_what_its_reader_rejects_and_goes_on)
{
	struct rsz_scan_result result;
	struct build b;
	uint32_t memory, log;
	char name[16];

	build_begin(&b, 1, 1);
	memory = build_stream(&b, RSZ_KIND_MEMORY, "memory");
	log = build_stream(&b, RSZ_KIND_LOG, "log");
	refuse_stream(&b, "log", "declared twice");
	refuse_stream(&b, "", "name of 0");
	refuse_stream(&b, "\xff", "not UTF-8");
	refuse_text(&b, log, (1ull << 63) - 3);
	refuse_text(&b, log, UINT64_MAX);
	refuse_text(&b, memory, 0);
	refuse_text(&b, log + 1, 0);
	build_text(&b, log, (1ull << 63) - 4, "last");

	build_chunk(&b, memory, 100);
	build_extent(&b, 1ull << 52, "a");
	refuse_put(&b);
	build_chunk(&b, memory, 100);
	build_extent(&b, 0x1001, "a");
	refuse_put(&b);
	build_chunk(&b, memory, 100);
	build_extent(&b, 0x1000, "a");
	b.extents[0].pass = 1; /* and no reason */
	refuse_put(&b);
	build_chunk(&b, memory, 100);
	build_extent(&b, 0x1000, "a");
	build_put(&b);

	for (unsigned i = 2; i < RSZ_STREAMS_MAX; i++) {
		snprintf(name, sizeof(name), "%u", i);
		build_stream(&b, RSZ_KIND_FILE, name);
	}
	refuse_stream(&b, "one too many", "after 4096 streams");
	assert_true(rsz_writer_has_stream(b.writer, "4095"));
	assert_false(rsz_writer_has_stream(b.writer, "one too many"));
	build_close(&b);
	verify_bytes(b.out.at, b.out.len, &result);
	assert_int_equal(result.end, RSZ_END_SEALED);
	build_deinit(&b);
}

/* A STREAM that did not fit on the disk is not there: its name is free when there is room again. */
TEST(stream_that_did_not_fit_can_be_declared_again)
{
	struct rsz_scan_result result;
	struct err e = ERR_INIT;
	struct build b;
	uint32_t n = 0;

	build_begin(&b, 1, 1);
	b.out.limit = b.out.len + 20;
	CHECK_STATUS(rsz_writer_stream(b.writer, RSZ_KIND_LOG, "log", NULL, &n, &e), ST_OUTPUT, &e);
	b.out.limit = SIZE_MAX;
	b.out.len = (size_t)rsz_writer_whole(b.writer);
	rsz_writer_resume(b.writer);
	build_text(&b, build_stream(&b, RSZ_KIND_LOG, "log"), 0, "text");
	build_close(&b);
	verify_bytes(b.out.at, b.out.len, &result);
	assert_int_equal(result.end, RSZ_END_SEALED);
	build_deinit(&b);
}

/* What did not fit is written again at its address, and nothing is missing before it. */
TEST(text_that_did_not_fit_goes_on_at_its_address)
{
	enum { PIECE = 128 << 10 }; /* goes into one record */
	static char text[2 * PIECE];
	struct rsz_scan_result result;
	struct err e = ERR_INIT;
	struct build b;
	uint64_t address = 0;
	uint32_t log;

	memset(text, 'a', sizeof(text));
	build_begin(&b, 1, 1);
	log = build_stream(&b, RSZ_KIND_LOG, "log");
	b.out.limit = b.out.len + 300; /* one record has some 220 bytes */
	CHECK_STATUS(rsz_writer_text(b.writer, log, &address, text, sizeof(text), 100, &e),
		     ST_OUTPUT, &e);
	assert_int_equal(address, PIECE);
	b.out.limit = SIZE_MAX;
	b.out.len = (size_t)rsz_writer_whole(b.writer);
	rsz_writer_resume(b.writer);
	CHECK_OK(rsz_writer_text(b.writer, log, &address, text + PIECE, PIECE, 100, &e), &e);
	assert_int_equal(address, 2 * PIECE);
	build_close(&b);
	verify_bytes(b.out.at, b.out.len, &result);
	assert_int_equal(result.end, RSZ_END_SEALED);
	assert_int_equal(result.records, 6); /* BEGIN, STREAM, the two, INDEX, CLOSE */
	build_deinit(&b);
}

/* The records of a container: offsets[i] .. offsets[i + 1]. */
static size_t record_offsets(const struct build *b, size_t *offsets)
{
	struct rsz_scan *scan = NULL;
	struct rsz_record rec;
	struct err e = ERR_INIT;
	struct mem_blob blob;
	size_t n = 0;

	mem_blob_init(&blob, b->out.at, b->out.len);
	CHECK_OK(rsz_scan_create(&blob.blob, &scan, &e), &e);
	while (!rsz_scan_next(scan, &rec, &e))
		offsets[n++] = (size_t)rec.offset;
	offsets[n] = b->out.len;
	rsz_scan_destroy(scan);
	return n;
}

/* Puts the listed records (by number) one after the other and verifies the result. */
static void expect_found(const uint8_t *const from[], const size_t *offsets, const size_t *order,
			 size_t n, const char *what)
{
	struct rsz_scan_result result;
	uint8_t *made = malloc(1 << 20);
	size_t len = 0;

	assert_non_null(made);
	for (size_t i = 0; i < n; i++) {
		const size_t k = order[i];

		memcpy(made + len, from[i] + offsets[k], offsets[k + 1] - offsets[k]);
		len += offsets[k + 1] - offsets[k];
	}
	verify_bytes(made, len, &result);
	if (result.end == RSZ_END_SEALED)
		fail_msg("%s goes unnoticed", what);
	free(made);
}

TEST(dropped_doubled_swapped_and_foreign_records_are_found)
{
	static struct build b, other;
	const uint8_t *from[SMALL_RECORDS + 1];
	size_t offsets[SMALL_RECORDS + 1], order[SMALL_RECORDS + 1], n;

	build_small(&b, 7, 1);
	build_small(&other, 8, 1);
	n = record_offsets(&b, offsets);
	assert_int_equal(n, SMALL_RECORDS);
	assert_int_equal(b.out.len, other.out.len);

	for (size_t i = 0; i <= n; i++)
		from[i] = b.out.at;
	for (size_t k = 0; k < n; k++) {
		for (size_t i = 0; i < n - 1; i++)
			order[i] = i < k ? i : i + 1;
		expect_found(from, offsets, order, n - 1, "a dropped record");

		for (size_t i = 0; i < n + 1; i++)
			order[i] = i <= k ? i : i - 1;
		expect_found(from, offsets, order, n + 1, "a doubled record");

		for (size_t j = k + 1; j < n; j++) {
			for (size_t i = 0; i < n; i++)
				order[i] = i == k ? j : i == j ? k : i;
			expect_found(from, offsets, order, n, "a swap of records");
		}
		for (size_t i = 0; i < n; i++)
			order[i] = i;
		from[k] = other.out.at;
		expect_found(from, offsets, order, n, "a foreign record");
		from[k] = b.out.at;
	}
	build_deinit(&b);
	build_deinit(&other);
}

TEST(newest_capture_of_an_address_counts)
{
	static struct build b;
	uint32_t memory;
	const struct want wants[] = {
		{ 0x1000, 'a' }, { 0x2000, 'B' }, { 0x3000, 'C' }, { 0x4000, 'D' },
		{ 0x5000, 'e' }, { 0x6000, 'f' }, { 0x7000, 'x' }, { 0x8000, ' ' },
	};

	build_begin(&b, 7, 1);
	memory = build_stream(&b, RSZ_KIND_MEMORY, "memory");
	build_chunk(&b, memory, 100);
	build_extent(&b, 0x1000, "abcdef");
	build_put(&b);
	build_chunk(&b, memory, 200);
	build_extent(&b, 0x7000, "y");
	build_extent(&b, 0x2000, "Bxx");
	build_extent(&b, 0x7000, "x"); /* later in the same record */
	build_put(&b);
	build_chunk(&b, memory, 300);
	build_extent(&b, 0x3000, "CD");
	b.extents[0].pass = 2;
	b.extents[0].reason = RSZ_TABLE_CHANGED;
	build_put(&b);
	check_pages(b.out.at, b.out.len, memory, wants, ARRAY_SIZE(wants)); /* unsealed */
	build_close(&b);
	check_pages(b.out.at, b.out.len, memory, wants, ARRAY_SIZE(wants)); /* by its index */
	build_deinit(&b);
}

struct visit {
	size_t chunks;
	uint64_t pages;
	size_t stop_at; /* the chunk at which it fails; SIZE_MAX: none */
};

static enum status visit_chunk(void *arg, const struct rsz_record *rec, const struct rsz_chunk *c,
			       struct err *e)
{
	struct visit *v = arg;

	(void)rec;
	if (v->chunks++ == v->stop_at)
		return err_set(e, ST_SYSTEM, "enough");
	for (size_t i = 0; c->paged && i < c->n_extents; i++)
		v->pages += rsz_extent_pages(&c->extents[i]);
	return ST_OK;
}

TEST(every_chunk_is_visited_once_until_one_is_refused)
{
	static struct build b;
	struct visit all = { .stop_at = SIZE_MAX }, some = { .stop_at = 2 };
	struct rsz_scan_result end;
	struct err e = ERR_INIT;
	struct mem_blob blob;

	build_small(&b, 7, 1);
	mem_blob_init(&blob, b.out.at, b.out.len);
	CHECK_OK(rsz_scan_chunks(&blob.blob, visit_chunk, &all, &end, &e), &e);
	assert_int_equal(end.end, RSZ_END_SEALED);
	assert_int_equal(all.chunks, 4);
	assert_int_equal(all.pages, 4 + 2 + 1);
	CHECK_STATUS(rsz_scan_chunks(&blob.blob, visit_chunk, &some, NULL, &e), ST_SYSTEM, &e);
	assert_int_equal(some.chunks, 3);
	assert_int_equal(some.pages, 4);
	build_deinit(&b);
}

/* A blob that counts what is read through it. */
struct counting_blob {
	struct blob blob;
	struct mem_blob memory;
	size_t bytes;
};

static enum status counting_read_at(struct blob *b, uint64_t off, void *p, size_t len, size_t *got,
				    struct err *e)
{
	struct counting_blob *c = (struct counting_blob *)b;
	const enum status st = c->memory.blob.read_at(&c->memory.blob, off, p, len, got, e);

	c->bytes += *got;
	return st;
}

/* The same chunks, of the one walk that opens. */
TEST(opening_shows_every_chunk_until_one_is_refused)
{
	static struct build b;
	struct visit all = { .stop_at = SIZE_MAX }, some = { .stop_at = 2 };
	struct counting_blob counting = { .blob.read_at = counting_read_at };
	struct rsz_reader *r = NULL;
	struct err e = ERR_INIT;
	size_t walk;

	build_small(&b, 7, 1);
	mem_blob_init(&counting.memory, b.out.at, b.out.len);
	counting.blob.size = b.out.len;
	CHECK_OK(rsz_reader_open(&counting.blob, RSZ_TRUST_NOTHING, &r, &e), &e);
	rsz_reader_close(r);
	walk = counting.bytes;
	counting.bytes = 0;
	CHECK_OK(rsz_reader_open_watched(&counting.blob, visit_chunk, &all, &r, &e), &e);
	assert_int_equal(counting.bytes, walk);
	assert_int_equal(rsz_reader_end(r)->end, RSZ_END_SEALED);
	assert_int_equal(rsz_reader_streams(r), 2);
	assert_int_equal(all.chunks, 4);
	assert_int_equal(all.pages, 4 + 2 + 1);
	rsz_reader_close(r);
	CHECK_STATUS(rsz_reader_open_watched(&counting.blob, visit_chunk, &some, &r, &e), ST_SYSTEM,
		     &e);
	assert_int_equal(some.chunks, 3);
	build_deinit(&b);
}

/*
 * Whatever the clock says, the record is one that a reader takes: its window holds its extents',
 * and of what ended before it began nobody knows the time.
 */
TEST(times_never_cost_a_record)
{
	static struct build b;
	struct rsz_scan_result verdict;
	struct rsz_reader *r = NULL;
	struct rsz_cursor *c = NULL;
	struct rsz_page page;
	struct err e = ERR_INIT;
	struct mem_blob blob;
	uint32_t stream;

	build_begin(&b, 7, 1);
	stream = build_stream(&b, RSZ_KIND_MEMORY, "memory");
	build_chunk(&b, stream, 1000);
	build_extent(&b, 0x1000, "a");
	build_extent(&b, 0x4000, "b");
	build_extent(&b, 0x8000, "c");
	b.extents[0].start = 900;
	b.extents[1].end = 2000;
	b.extents[2].start = 500;
	b.extents[2].end = 499;
	b.chunk.end = 999;
	build_put(&b);
	build_close(&b);
	verify_bytes(b.out.at, b.out.len, &verdict);
	assert_int_equal(verdict.end, RSZ_END_SEALED);
	mem_blob_init(&blob, b.out.at, b.out.len);
	CHECK_OK(rsz_reader_open(&blob.blob, RSZ_TRUST_INDEX, &r, &e), &e);
	CHECK_OK(rsz_cursor_create(r, 2, &c, &e), &e);
	CHECK_OK(rsz_cursor_page(c, stream, 0x1000, &page, &e), &e);
	assert_int_equal(page.start, 900);
	CHECK_OK(rsz_cursor_page(c, stream, 0x4000, &page, &e), &e);
	assert_int_equal(page.end, 2000);
	CHECK_OK(rsz_cursor_page(c, stream, 0x8000, &page, &e), &e);
	assert_int_equal(page.data[0], 'c');
	assert_int_equal(page.start, 0);
	assert_int_equal(page.end, 0);
	rsz_cursor_destroy(c);
	rsz_reader_close(r);
	build_deinit(&b);
}

TEST(capture_times_come_back_per_extent)
{
	static struct build b;
	struct rsz_reader *r = NULL;
	struct rsz_cursor *c = NULL;
	struct rsz_page page;
	struct err e = ERR_INIT;
	struct mem_blob blob;

	build_small(&b, 7, 1);
	mem_blob_init(&blob, b.out.at, b.out.len);
	CHECK_OK(rsz_reader_open(&blob.blob, RSZ_TRUST_INDEX, &r, &e), &e);
	CHECK_OK(rsz_cursor_create(r, 2, &c, &e), &e);
	CHECK_OK(rsz_cursor_page(c, 1, 0x8000, &page, &e), &e);
	assert_int_equal(page.start, 310);
	assert_int_equal(page.end, 320);
	CHECK_OK(rsz_cursor_page(c, 1, 0x100001000, &page, &e), &e);
	assert_int_equal(page.start, 300);
	assert_int_equal(page.end, 310);
	rsz_cursor_destroy(c);
	rsz_reader_close(r);
	build_deinit(&b);
}

/* How many bytes of the container it takes to read the first of two chunks again. */
static uint64_t bytes_of_a_second_look(struct build *b, size_t bound)
{
	struct rsz_reader *r = NULL;
	struct rsz_cursor *c = NULL;
	struct rsz_page page;
	struct err e = ERR_INIT;
	struct counting_blob counting = { .blob.read_at = counting_read_at };

	mem_blob_init(&counting.memory, b->out.at, b->out.len);
	counting.blob.size = b->out.len;
	CHECK_OK(rsz_reader_open(&counting.blob, RSZ_TRUST_INDEX, &r, &e), &e);
	CHECK_OK(rsz_cursor_create(r, 8, &c, &e), &e);
	rsz_cursor_bound(c, bound);
	CHECK_OK(rsz_cursor_page(c, 0, 0, &page, &e), &e);
	CHECK_OK(rsz_cursor_page(c, 0, PAGE_SIZE, &page, &e), &e);
	counting.bytes = 0;
	CHECK_OK(rsz_cursor_page(c, 0, 0, &page, &e), &e);
	assert_true(page.captured);
	rsz_cursor_destroy(c);
	rsz_reader_close(r);
	return counting.bytes;
}

TEST(a_bounded_cursor_keeps_as_many_bytes)
{
	static struct build b;
	uint32_t memory;

	build_begin(&b, 7, 1);
	memory = build_stream(&b, RSZ_KIND_MEMORY, "memory");
	for (uint64_t i = 0; i < 2; i++) {
		build_chunk(&b, memory, i);
		build_extent(&b, i * PAGE_SIZE, "o");
		build_put(&b);
	}
	build_close(&b);
	assert_int_equal(bytes_of_a_second_look(&b, 0), 0);
	assert_int_equal(bytes_of_a_second_look(&b, 4 * PAGE_SIZE), 0);
	assert_int_not_equal(bytes_of_a_second_look(&b, PAGE_SIZE), 0);
	assert_int_not_equal(bytes_of_a_second_look(&b, 1), 0);
	build_deinit(&b);
}

/* The digest of a chunk's content is not computed again; a change of what is stored is seen. */
TEST(a_chunk_that_changes_after_it_was_read_is_noticed)
{
	static struct build b;
	struct rsz_reader *r = NULL;
	struct rsz_cursor *c = NULL;
	struct rsz_page page;
	struct err e = ERR_INIT;
	struct mem_blob blob;
	uint32_t memory;
	size_t end;

	build_begin(&b, 7, 1);
	memory = build_stream(&b, RSZ_KIND_MEMORY, "memory");
	build_chunk(&b, memory, 0);
	build_extent(&b, 0, "o");
	build_put(&b);
	end = b.out.len;
	build_chunk(&b, memory, 1);
	build_extent(&b, PAGE_SIZE, "o");
	build_put(&b);
	build_close(&b);
	mem_blob_init(&blob, b.out.at, b.out.len);
	CHECK_OK(rsz_reader_open(&blob.blob, RSZ_TRUST_INDEX, &r, &e), &e);
	CHECK_OK(rsz_cursor_create(r, 1, &c, &e), &e);
	for (unsigned i = 0; i < 3; i++) {
		CHECK_OK(rsz_cursor_page(c, 0, 0, &page, &e), &e);
		CHECK_OK(rsz_cursor_page(c, 0, PAGE_SIZE, &page, &e), &e);
	}
	b.out.at[end - 1] ^= 1; /* of the first chunk's payload */
	assert_int_equal(rsz_cursor_page(c, 0, 0, &page, &e), ST_CORRUPT);
	b.out.at[end - 1] ^= 1;
	CHECK_OK(rsz_cursor_page(c, 0, 0, &page, &e), &e);
	rsz_cursor_destroy(c);
	rsz_reader_close(r);
	build_deinit(&b);
}

/* There are fewer places for that note than records: one that takes another's is hashed itself. */
TEST(each_chunk_is_hashed_though_others_were)
{
	enum { GOOD = 15, BAD = 60 };
	static struct build b;
	struct rsz_reader *r = NULL;
	struct rsz_cursor *c = NULL;
	struct rsz_page page;
	struct err e = ERR_INIT;
	struct mem_blob blob;
	uint32_t memory;

	build_begin(&b, 7, 1);
	memory = build_stream(&b, RSZ_KIND_MEMORY, "memory");
	for (uint64_t i = 0; i < GOOD + BAD; i++) {
		build_chunk(&b, memory, i);
		build_extent(&b, i * PAGE_SIZE, "o");
		CHECK_OK(rsz_encode(b.encoder, &b.chunk, &b.frame, &e), &e);
		b.frame.sha256[0] ^= i >= GOOD;
		CHECK_OK(rsz_writer_put(b.writer, &b.frame, &e), &e);
	}
	build_close(&b);
	mem_blob_init(&blob, b.out.at, b.out.len);
	CHECK_OK(rsz_reader_open(&blob.blob, RSZ_TRUST_INDEX, &r, &e), &e);
	CHECK_OK(rsz_cursor_create(r, 1, &c, &e), &e);
	for (uint64_t i = 0; i < GOOD; i++)
		CHECK_OK(rsz_cursor_page(c, memory, i * PAGE_SIZE, &page, &e), &e);
	for (uint64_t i = GOOD; i < GOOD + BAD; i++)
		assert_int_equal(rsz_cursor_page(c, memory, i * PAGE_SIZE, &page, &e), ST_CORRUPT);
	rsz_cursor_destroy(c);
	rsz_reader_close(r);
	build_deinit(&b);
}

/* Enough entries for three INDEX records, and read back by address through them. */
TEST(many_extents_make_a_chain_of_indexes)
{
	static struct build b;
	struct rsz_scan_result result;
	struct want wants[8];
	uint32_t memory;

	build_begin(&b, 7, 1);
	memory = build_stream(&b, RSZ_KIND_MEMORY, "memory");
	for (uint64_t i = 0; i < 160; i++) {
		build_chunk(&b, memory, i);
		/* Downwards, with gaps, so that nothing is in order. */
		for (uint64_t k = 0; k < BUILD_PAGES_MAX; k++)
			build_extent(&b, ((200 - i) * BUILD_PAGES_MAX + k) * 0x3000,
				     i % 2 ? "z" : "o");
		build_put(&b);
	}
	build_close(&b);
	verify_bytes(b.out.at, b.out.len, &result);
	assert_string_equal(result.reason, "");
	assert_int_equal(result.end, RSZ_END_SEALED);
	assert_int_equal(result.records, 1 + 1 + 160 + 3 + 1);
	for (uint64_t i = 0; i < ARRAY_SIZE(wants); i++)
		wants[i] = (struct want){ ((200 - i * 20) * BUILD_PAGES_MAX + i) * 0x3000 +
						  (i % 2) * 0x1000,
					  i % 2 ? ' ' : 'o' };
	check_pages(b.out.at, b.out.len, memory, wants, ARRAY_SIZE(wants));
	build_deinit(&b);
}

TEST(full_disk_leaves_whole_records_and_can_be_closed_after_a_cut)
{
	static struct build b;
	struct rsz_scan_result result;
	struct err e = ERR_INIT;
	uint32_t memory;

	build_begin(&b, 7, RSZ_LEVEL_STORE);
	memory = build_stream(&b, RSZ_KIND_MEMORY, "memory");
	b.out.limit = 20000;
	for (uint64_t i = 0;; i++) {
		build_chunk(&b, memory, 100);
		build_extent(&b, i * 0x1000, "abcd");
		CHECK_OK(rsz_encode(b.encoder, &b.chunk, &b.frame, &e), &e);
		if (rsz_writer_put(b.writer, &b.frame, &e))
			break;
	}
	b.out.len += 100; /* a part of the record reached the disk */
	verify_bytes(b.out.at, b.out.len, &result);
	assert_int_equal(result.end, RSZ_END_CUT);
	assert_int_equal(result.whole, rsz_writer_whole(b.writer));
	CHECK_STATUS(rsz_writer_close(b.writer, b.root, &e), ST_OUTPUT, &e);

	b.out.len = (size_t)rsz_writer_whole(b.writer);
	rsz_writer_resume(b.writer);
	build_close(&b);
	verify_bytes(b.out.at, b.out.len, &result);
	assert_string_equal(result.reason, "");
	assert_int_equal(result.end, RSZ_END_SEALED);
	build_deinit(&b);
}

TEST(damaged_text_costs_its_own_piece)
{
	static struct build b;
	struct rsz_reader *r = NULL;
	struct rsz_cursor *c = NULL;
	struct err e = ERR_INIT;
	struct mem_blob blob;
	const uint8_t *text;
	uint8_t *place;
	uint64_t at = 0;
	size_t len;

	build_begin(&b, 7, RSZ_LEVEL_STORE);
	build_stream(&b, RSZ_KIND_LOG, "log");
	build_text(&b, 0, 0, "first\n");
	build_text(&b, 0, 6, "second\n");
	build_close(&b);
	for (place = b.out.at; memcmp(place, "first", 5) != 0; place++)
		assert_true(place + 5 < b.out.at + b.out.len);
	*place ^= 1;
	mem_blob_init(&blob, b.out.at, b.out.len);
	CHECK_OK(rsz_reader_open(&blob.blob, RSZ_TRUST_NOTHING, &r, &e), &e);
	CHECK_OK(rsz_cursor_create(r, 1, &c, &e), &e);
	CHECK_STATUS(rsz_cursor_next_text(c, 0, &at, &text, &len, &e), ST_CORRUPT, &e);
	assert_int_equal(len, 6);
	CHECK_OK(rsz_cursor_next_text(c, 0, &at, &text, &len, &e), &e);
	assert_int_equal(len, 7);
	assert_memory_equal(text, "second\n", len);
	CHECK_STATUS(rsz_cursor_next_text(c, 0, &at, &text, &len, &e), ST_END, &e);
	rsz_cursor_destroy(c);
	rsz_reader_close(r);
	build_deinit(&b);
}

/* SPEC.md, section 7: byte by byte, and a page is no exception. */
TEST(page_of_two_captures_has_the_bytes_of_both)
{
	static struct build b;
	struct rsz_reader *r = NULL;
	struct rsz_cursor *c = NULL;
	struct page_status status[3];
	static uint8_t data[3 * PAGE_SIZE];
	struct err e = ERR_INIT;
	struct mem_blob blob;
	uint32_t file;

	build_begin(&b, 7, 1);
	file = build_stream(&b, RSZ_KIND_FILE, "C:/hive");
	build_chunk(&b, file, 100);
	build_extent(&b, 0, "aaa");
	build_put(&b);
	for (size_t pass = 1; pass < 3; pass++) {
		build_chunk(&b, file, 100 + 100 * pass);
		build_extent(&b, 0, pass == 1 ? "bb" : ".");
		b.extents[0].length -= 96;
		b.chunk.length -= 96;
		build_put(&b);
	}
	build_close(&b);
	mem_blob_init(&blob, b.out.at, b.out.len);
	CHECK_OK(rsz_reader_open(&blob.blob, RSZ_TRUST_INDEX, &r, &e), &e);
	CHECK_OK(rsz_cursor_create(r, 1, &c, &e), &e);
	CHECK_OK(rsz_cursor_read(c, file, 0, data, 3, status, NULL, &e), &e);
	for (size_t i = 0; i < sizeof(data); i++)
		assert_int_equal(data[i], i < 4000 ? 0 : i < 8096 ? 'b' : 'a');
	for (size_t i = 0; i < 3; i++)
		assert_int_equal(status[i].state, PAGE_DATA);
	rsz_cursor_destroy(c);
	rsz_reader_close(r);
	build_deinit(&b);
}

/* Extents of one page, more than an INDEX lists, in three streams; each page is captured twice. */
static void build_many(struct build *b)
{
	uint32_t streams[3];

	build_begin(b, 7, 1);
	for (size_t i = 0; i < 3; i++)
		streams[i] = build_stream(b, RSZ_KIND_MEMORY, (const char *[]){ "a", "b", "c" }[i]);
	for (uint64_t i = 0; i < 600; i++) {
		build_chunk(b, streams[i % 3], i);
		for (uint64_t k = 0; k < 8; k++)
			build_extent(b, ((i / 6 * 8 + k) * (i % 3 + 1)) * PAGE_SIZE, "0");
		build_put(b);
	}
	build_close(b);
}

/* Numbers of extents count from the first one in the file, however it was opened. */
TEST(index_and_walk_tell_the_same_of_every_extent)
{
	static struct build b;
	struct rsz_reader *r[2];
	struct rsz_segment seg[2];
	struct err e = ERR_INIT;
	struct mem_blob blob;
	size_t seen = 0, covered = 0;

	build_many(&b);
	mem_blob_init(&blob, b.out.at, b.out.len);
	CHECK_OK(rsz_reader_open(&blob.blob, RSZ_TRUST_INDEX, &r[0], &e), &e);
	CHECK_OK(rsz_reader_open(&blob.blob, RSZ_TRUST_NOTHING, &r[1], &e), &e);
	for (uint32_t s = 0; s < 3; s++)
		for (uint64_t at = 0; rsz_reader_next(r[0], s, at, &seg[0]); seen++) {
			assert_true(rsz_reader_next(r[1], s, at, &seg[1]));
			assert_memory_equal(&seg[0], &seg[1], sizeof(seg[0]));
			assert_int_equal(rsz_reader_record(r[0], seg[0].extent),
					 rsz_reader_record(r[1], seg[1].extent));
			/* The second of two captures. */
			assert_int_equal(seg[0].extent / 8 / 3 % 2, 1);
			at = seg[0].address + seg[0].length;
		}
	assert_int_equal(seen, 3 * 800);
	for (uint64_t i = 0; i < 4800; i++) {
		assert_int_equal(rsz_reader_is_covered(r[0], i), rsz_reader_is_covered(r[1], i));
		covered += rsz_reader_is_covered(r[0], i);
	}
	assert_int_equal(covered, 2400);
	rsz_reader_close(r[0]);
	rsz_reader_close(r[1]);
	build_deinit(&b);
}

TEST(short_last_page_keeps_its_length)
{
	static struct build b;
	struct rsz_reader *r = NULL;
	struct rsz_cursor *c = NULL;
	struct rsz_page page;
	struct err e = ERR_INIT;
	struct mem_blob blob;
	uint32_t file;

	build_begin(&b, 7, 1);
	file = build_stream(&b, RSZ_KIND_FILE, "C:/hive");
	build_chunk(&b, file, 100);
	build_extent(&b, 0, "a.b");
	b.extents[0].length -= 4000;
	b.chunk.length -= 4000;
	build_put(&b);
	build_close(&b);
	mem_blob_init(&blob, b.out.at, b.out.len);
	CHECK_OK(rsz_reader_open(&blob.blob, RSZ_TRUST_INDEX, &r, &e), &e);
	CHECK_OK(rsz_cursor_create(r, 1, &c, &e), &e);
	CHECK_OK(rsz_cursor_page(c, file, 0x2000, &page, &e), &e);
	assert_int_equal(page.length, 96);
	assert_int_equal(page.data[95], 'b');
	/* Those before it are whole, and where they were. */
	check_page(c, file, 0, 'a');
	check_page(c, file, 0x1000, '.');
	rsz_cursor_destroy(c);
	rsz_reader_close(r);
	build_deinit(&b);
}

/* An acquisition that stops names the rest as skipped, in frames that are made for its chunks. */
TEST(skipped_memory_of_any_length_fits_into_a_small_frame)
{
	static struct page_status pages[RSZ_CONTENT_MAX / PAGE_SIZE];
	static struct build b;
	struct rsz_extent extent = { .address = 0x100000, .length = RSZ_CONTENT_MAX };
	struct rsz_chunk chunk = {
		.paged = true,
		.extents = &extent,
		.n_extents = 1,
		.pages = pages,
		.n_pages = ARRAY_SIZE(pages),
		.length = RSZ_CONTENT_MAX,
		.data = b.data,
	};
	struct rsz_frame small = { 0 };
	struct err e = ERR_INIT;

	for (size_t i = 0; i < ARRAY_SIZE(pages); i++)
		pages[i] = (struct page_status){ PAGE_SKIPPED, SKIP_SOURCE_FAILED };
	build_begin(&b, 7, 1);
	chunk.stream = build_stream(&b, RSZ_KIND_MEMORY, "memory");
	CHECK_OK(rsz_frame_init(&small, 4 * PAGE_SIZE, 1, &e), &e);
	CHECK_OK(rsz_encode(b.encoder, &chunk, &small, &e), &e);
	assert_int_equal(small.stored, 0);

	/* With as many runs as pages it does not fit, and is refused. */
	for (size_t i = 0; i < ARRAY_SIZE(pages); i += 2)
		pages[i].detail = SKIP_NOT_MAPPED;
	CHECK_STATUS(rsz_encode(b.encoder, &chunk, &small, &e), ST_SYSTEM, &e);
	rsz_frame_deinit(&small);
	build_deinit(&b);
}

TEST(content_that_does_not_fit_into_its_frame_is_refused)
{
	static const int levels[] = { RSZ_LEVEL_STORE, 1 };
	static struct build b;
	struct rsz_frame small = { 0 };
	struct err e = ERR_INIT;

	for (size_t i = 0; i < ARRAY_SIZE(levels); i++) {
		build_begin(&b, 7, levels[i]);
		build_chunk(&b, build_stream(&b, RSZ_KIND_MEMORY, "memory"), 200);
		build_extent(&b, 0x1000, "aaaaaaaa");
		CHECK_OK(rsz_frame_init(&small, 4 * PAGE_SIZE, 1, &e), &e);
		CHECK_STATUS(rsz_encode(b.encoder, &b.chunk, &small, &e), ST_SYSTEM, &e);
		rsz_frame_deinit(&small);
		build_deinit(&b);
	}
}

TEST(one_page_costs_one_chunk)
{
	static struct build b;
	struct counting_blob counting = { .blob.read_at = counting_read_at };
	struct rsz_reader *r = NULL;
	struct rsz_cursor *c = NULL;
	struct rsz_page page;
	struct err e = ERR_INIT;
	uint32_t memory;

	build_begin(&b, 7, RSZ_LEVEL_STORE);
	memory = build_stream(&b, RSZ_KIND_MEMORY, "memory");
	for (uint64_t i = 0; i < 50; i++) {
		build_chunk(&b, memory, 100);
		build_extent(&b, i * 0x4000, "abcd");
		build_put(&b);
	}
	build_close(&b);
	mem_blob_init(&counting.memory, b.out.at, b.out.len);
	counting.blob.size = b.out.len;
	CHECK_OK(rsz_reader_open(&counting.blob, RSZ_TRUST_INDEX, &r, &e), &e);
	CHECK_OK(rsz_cursor_create(r, 1, &c, &e), &e);
	assert_in_range(counting.bytes, 1, 5 * PAGE_SIZE); /* its ends, not its 50 chunks */

	counting.bytes = 0;
	CHECK_OK(rsz_cursor_page(c, memory, 33 * 0x4000 + 0x1000, &page, &e), &e);
	assert_int_equal(page.data[0], 'b');
	/* A header is read with a page of guesswork; the payload is four pages and some bytes. */
	assert_in_range(counting.bytes, 4 * PAGE_SIZE, 5 * PAGE_SIZE + 1000);

	counting.bytes = 0;
	CHECK_OK(rsz_cursor_page(c, memory, 33 * 0x4000 + 0x2000, &page, &e), &e);
	assert_int_equal(page.data[0], 'c');
	assert_int_equal(counting.bytes, 0); /* the same chunk, still decoded */
	rsz_cursor_destroy(c);
	rsz_reader_close(r);
	build_deinit(&b);
}

/* RFC 6962's own definition, by recursion, against the one that grows leaf by leaf. */
static void tree_by_definition(struct sha256 *h, const uint8_t (*leaf)[SHA256_SIZE], size_t n,
			       uint8_t *ret)
{
	uint8_t both[1 + 2 * SHA256_SIZE] = { 1 };
	size_t k = 1;

	if (n == 1) {
		memcpy(ret, leaf[0], SHA256_SIZE);
		return;
	}
	while (k * 2 < n)
		k *= 2;
	tree_by_definition(h, leaf, k, both + 1);
	tree_by_definition(h, leaf + k, n - k, both + 1 + SHA256_SIZE);
	sha256_of(h, both, sizeof(both), ret);
}

TEST(root_is_that_of_rfc_6962)
{
	static uint8_t leaves[70][SHA256_SIZE];
	uint8_t got[SHA256_SIZE], want[SHA256_SIZE];
	struct merkle m = { 0 };
	struct sha256 *h = NULL;
	struct err e = ERR_INIT;

	CHECK_OK(sha256_create(&h, &e), &e);
	for (size_t n = 1; n <= ARRAY_SIZE(leaves); n++) {
		memset(leaves[n - 1], (int)n, SHA256_SIZE);
		merkle_add(&m, h, leaves[n - 1]);
		merkle_root(&m, h, got);
		tree_by_definition(h, leaves, n, want);
		assert_memory_equal(got, want, SHA256_SIZE);
	}
	sha256_destroy(h);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sealed_container_reads_back),
		cmocka_unit_test(same_content_has_the_same_content_hashes_at_every_level),
		cmocka_unit_test(content_has_each_byte_of_its_sha256),
		cmocka_unit_test(text_streams_come_back_whole),
		cmocka_unit_test(every_flipped_bit_is_found),
		cmocka_unit_test(every_flipped_bit_of_begin_costs_nothing_else),
		cmocka_unit_test(every_truncation_opens_up_to_the_last_whole_record),
		cmocka_unit_test(writer_refuses_what_its_reader_rejects_and_goes_on),
		cmocka_unit_test(stream_that_did_not_fit_can_be_declared_again),
		cmocka_unit_test(text_that_did_not_fit_goes_on_at_its_address),
		cmocka_unit_test(dropped_doubled_swapped_and_foreign_records_are_found),
		cmocka_unit_test(newest_capture_of_an_address_counts),
		cmocka_unit_test(every_chunk_is_visited_once_until_one_is_refused),
		cmocka_unit_test(opening_shows_every_chunk_until_one_is_refused),
		cmocka_unit_test(times_never_cost_a_record),
		cmocka_unit_test(capture_times_come_back_per_extent),
		cmocka_unit_test(a_bounded_cursor_keeps_as_many_bytes),
		cmocka_unit_test(a_chunk_that_changes_after_it_was_read_is_noticed),
		cmocka_unit_test(each_chunk_is_hashed_though_others_were),
		cmocka_unit_test(many_extents_make_a_chain_of_indexes),
		cmocka_unit_test(full_disk_leaves_whole_records_and_can_be_closed_after_a_cut),
		cmocka_unit_test(damaged_text_costs_its_own_piece),
		cmocka_unit_test(page_of_two_captures_has_the_bytes_of_both),
		cmocka_unit_test(index_and_walk_tell_the_same_of_every_extent),
		cmocka_unit_test(short_last_page_keeps_its_length),
		cmocka_unit_test(one_page_costs_one_chunk),
		cmocka_unit_test(skipped_memory_of_any_length_fits_into_a_small_frame),
		cmocka_unit_test(content_that_does_not_fit_into_its_frame_is_refused),
		cmocka_unit_test(root_is_that_of_rfc_6962),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
