/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pages that are read before all of their chunk is decoded: the same as otherwise, and checked as
 * rsz_cursor_allow_glances() says.
 */
#include <string.h>

#include "tests/unit/rsz_build.h"

/* What rsz_reader.h says. */
#define PAGES_AT_ONCE 8
#define GLANCES       3

/* One chunk with every state, and a gap in the middle; for zstd its content is two blocks. */
static const char front[] = "abcdefgh.jkl?nop-rst_vwx..ABCDEF";
static const char rest[] = "GHIJKLMNOPQRSTUVWXYZ012345678912";
#define REST_AT ((uint64_t)0x80000000)
#define N_FRONT (sizeof(front) - 1)
#define N_REST  (sizeof(rest) - 1)

struct opened {
	struct build b;
	struct mem_blob blob;
	struct rsz_reader *reader;
};

/* What is wrong with the chunk. */
enum wrong { NOTHING, SHA, CRC };

static void open_chunk(struct opened *o, int level, enum wrong wrong)
{
	struct build *b = &o->b;
	struct err e = ERR_INIT;
	uint32_t memory;

	build_begin(b, 7, level);
	memory = build_stream(b, RSZ_KIND_MEMORY, "memory");
	build_chunk(b, memory, 100);
	build_extent(b, 0, front);
	build_extent(b, REST_AT, rest);
	CHECK_OK(rsz_encode(b->encoder, &b->chunk, &b->frame, &e), &e);
	b->frame.sha256[0] ^= wrong == SHA;
	b->frame.crc ^= wrong == CRC;
	CHECK_OK(rsz_writer_put(b->writer, &b->frame, &e), &e);
	build_close(b);
	mem_blob_init(&o->blob, b->out.at, b->out.len);
	CHECK_OK(rsz_reader_open(&o->blob.blob, RSZ_TRUST_INDEX, &o->reader, &e), &e);
}

static void open_end(struct opened *o)
{
	rsz_reader_close(o->reader);
	build_deinit(&o->b);
}

static struct rsz_cursor *open_cursor(const struct opened *o)
{
	struct rsz_cursor *c = NULL;
	struct err e = ERR_INIT;

	CHECK_OK(rsz_cursor_create(o->reader, 2, &c, &e), &e);
	rsz_cursor_bound(c, 1 << 20);
	CHECK_OK(rsz_cursor_allow_glances(c, &e), &e);
	return c;
}

/* The text that made the page, which is 0 where none is. */
static char want_of(uint64_t address)
{
	const uint64_t page = address / PAGE_SIZE, later = page - REST_AT / PAGE_SIZE;

	if (address >= REST_AT)
		return later < N_REST ? rest[later] : 0;
	return page < N_FRONT ? front[page] : 0;
}

static enum page_state state_of(char want)
{
	return want == '.'           ? PAGE_ZERO
	       : want == '?'         ? PAGE_UNREADABLE
	       : want == '_'         ? PAGE_HOLE
	       : want && want != '-' ? PAGE_DATA
				     : PAGE_SKIPPED;
}

static void check_read(struct rsz_cursor *c, uint64_t address, size_t pages)
{
	static uint8_t buf[32 * PAGE_SIZE];
	struct page_status status[32];
	struct err e = ERR_INIT;

	memset(buf, 0xee, sizeof(buf));
	CHECK_OK(rsz_cursor_read(c, 0, address, buf, pages, status, NULL, &e), &e);
	for (size_t i = 0; i < pages; i++) {
		const char want = want_of(address + i * PAGE_SIZE);

		assert_int_equal(status[i].state, state_of(want));
		for (size_t k = 0; k < PAGE_SIZE; k++)
			assert_int_equal(buf[i * PAGE_SIZE + k],
					 status[i].state == PAGE_DATA ? want : 0);
	}
}

static enum status read_one(struct rsz_cursor *c, uint64_t address, size_t pages, struct err *e)
{
	static uint8_t buf[32 * PAGE_SIZE];
	struct page_status status[32];

	return rsz_cursor_read(c, 0, address, buf, pages, status, NULL, e);
}

TEST(a_glance_gives_what_the_whole_chunk_has)
{
	static const int levels[] = { RSZ_LEVEL_STORE, 1, 9 };
	static struct opened o;

	for (size_t l = 0; l < ARRAY_SIZE(levels); l++) {
		open_chunk(&o, levels[l], NOTHING);
		for (size_t pages = 1; pages <= PAGES_AT_ONCE + 1; pages++)
			for (size_t i = 0; i < N_FRONT; i++) {
				struct rsz_cursor *c = open_cursor(&o);

				check_read(c, i * PAGE_SIZE, pages);
				check_read(c, REST_AT + i * PAGE_SIZE, pages);
				check_read(c, (N_FRONT - 1 - i) * PAGE_SIZE, 1);
				check_read(c, 0, 32); /* and now it is loaded */
				check_read(c, REST_AT + i * PAGE_SIZE, pages);
				rsz_cursor_destroy(c);
			}
		open_end(&o);
	}
}

/* A content that does not match its SHA-256 shows what was read without that check, and when. */
TEST(after_some_glances_the_content_is_checked)
{
	static struct opened o;
	struct err e = ERR_INIT;
	struct rsz_cursor *c;

	open_chunk(&o, 1, SHA);
	c = open_cursor(&o);
	for (size_t i = 0; i < GLANCES; i++)
		check_read(c, (GLANCES - i) * PAGE_SIZE, 2);
	CHECK_STATUS(read_one(c, 0, 1, &e), ST_CORRUPT, &e);
	assert_non_null(strstr(e.message, "SHA-256"));
	/* And what is known to be damaged is not given again. */
	for (size_t i = 0; i < 3; i++)
		CHECK_STATUS(read_one(c, 0, 1, &e), ST_CORRUPT, &e);
	rsz_cursor_destroy(c);

	c = open_cursor(&o);
	CHECK_STATUS(read_one(c, 0, PAGES_AT_ONCE + 1, &e), ST_CORRUPT, &e);
	CHECK_STATUS(read_one(c, 0, 1, &e), ST_CORRUPT, &e);
	rsz_cursor_destroy(c);

	/* Who did not allow it sees nothing of it. */
	CHECK_OK(rsz_cursor_create(o.reader, 1, &c, &e), &e);
	CHECK_STATUS(read_one(c, 0, 1, &e), ST_CORRUPT, &e);
	rsz_cursor_destroy(c);
	open_end(&o);
}

/* Pages without content as well: their neighbours are what tells that something is wrong. */
TEST(a_glance_checks_the_whole_payload)
{
	static struct opened o;

	open_chunk(&o, 1, CRC);
	for (size_t i = 0; i < N_FRONT; i++) {
		struct err e = ERR_INIT;
		struct rsz_cursor *c = open_cursor(&o);

		CHECK_STATUS(read_one(c, i * PAGE_SIZE, 1, &e), ST_CORRUPT, &e);
		assert_non_null(strstr(e.message, "CRC-32"));
		rsz_cursor_destroy(c);
	}
	open_end(&o);
}

/* Bytes of the payload are changed one by one, and the CRC-32 is made right: zstd is on its own. */
TEST(payloads_that_do_not_decompress_are_damage)
{
	static struct opened o;
	size_t refused = 0;

	open_chunk(&o, 1, NOTHING);
	const size_t stored = o.b.frame.stored;
	open_end(&o);
	for (size_t at = 0; at < stored; at++) {
		struct err e = ERR_INIT;
		struct build *b = &o.b;
		struct rsz_cursor *c;
		enum status st;

		build_begin(b, 7, 1);
		build_chunk(b, build_stream(b, RSZ_KIND_MEMORY, "memory"), 100);
		build_extent(b, 0, front);
		build_extent(b, REST_AT, rest);
		CHECK_OK(rsz_encode(b->encoder, &b->chunk, &b->frame, &e), &e);
		b->frame.payload[at] ^= 0x41;
		b->frame.crc = build_crc(b->frame.payload, b->frame.stored);
		CHECK_OK(rsz_writer_put(b->writer, &b->frame, &e), &e);
		build_close(b);
		mem_blob_init(&o.blob, b->out.at, b->out.len);
		CHECK_OK(rsz_reader_open(&o.blob.blob, RSZ_TRUST_INDEX, &o.reader, &e), &e);
		c = open_cursor(&o);
		st = read_one(c, REST_AT + (N_REST - 1) * PAGE_SIZE, 1, &e);
		assert_true(!st || st == ST_CORRUPT);
		refused += st != ST_OK;
		rsz_cursor_destroy(c);
		open_end(&o);
	}
	assert_int_not_equal(refused, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_glance_gives_what_the_whole_chunk_has),
		cmocka_unit_test(after_some_glances_the_content_is_checked),
		cmocka_unit_test(a_glance_checks_the_whole_payload),
		cmocka_unit_test(payloads_that_do_not_decompress_are_damage),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
