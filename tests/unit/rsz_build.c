/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/rsz_build.h"

#include <string.h>

void build_begin(struct build *b, uint8_t id, int level)
{
	struct err e = ERR_INIT;
	struct rsz_begin begin = { .wall = 1700000000000000000, .mono = 100, .text = "unit test" };

	memset(b, 0, sizeof(*b));
	memset(begin.id, id, sizeof(begin.id));
	mem_sink_init(&b->out, SIZE_MAX);
	CHECK_OK(rsz_encoder_create(level, sizeof(b->data), &b->encoder, &e), &e);
	CHECK_OK(rsz_frame_init(&b->frame, sizeof(b->data), BUILD_PAGES_MAX, &e), &e);
	CHECK_OK(rsz_writer_create(&b->out.sink, &begin, &b->writer, &e), &e);
}

uint32_t build_stream(struct build *b, enum rsz_kind kind, const char *name)
{
	struct err e = ERR_INIT;
	uint32_t n = 0;

	CHECK_OK(rsz_writer_stream(b->writer, kind, name, "{\"error_numbers\":\"errno\"}", &n, &e),
		 &e);
	return n;
}

void build_chunk(struct build *b, uint32_t stream, uint64_t time)
{
	b->chunk = (struct rsz_chunk){
		.stream = stream,
		.paged = true,
		.extents = b->extents,
		.pages = b->pages,
		.data = b->data,
		.start = time,
		.end = time,
	};
}

static struct page_status status_of(char state)
{
	switch (state) {
	case '?':
		return (struct page_status){ PAGE_UNREADABLE, 5 };
	case '-':
		return (struct page_status){ PAGE_SKIPPED, SKIP_NOT_MAPPED };
	case '_':
		return (struct page_status){ PAGE_HOLE, 0 };
	default:
		return (struct page_status){ PAGE_DATA, 0 };
	}
}

void build_extent(struct build *b, uint64_t address, const char *states)
{
	struct rsz_chunk *c = &b->chunk;
	const size_t pages = strlen(states);

	b->extents[c->n_extents++] = (struct rsz_extent){
		.address = address,
		.length = (uint32_t)(pages * PAGE_SIZE),
		.start = c->end,
		.end = c->end + 10,
	};
	for (size_t i = 0; i < pages; i++) {
		memset(b->data + c->length, states[i] == '.' ? 0 : states[i], PAGE_SIZE);
		c->length += PAGE_SIZE;
		b->pages[c->n_pages++] = status_of(states[i]);
	}
	c->end += 10;
}

void build_put(struct build *b)
{
	struct err e = ERR_INIT;

	CHECK_OK(rsz_encode(b->encoder, &b->chunk, &b->frame, &e), &e);
	CHECK_OK(rsz_writer_put(b->writer, &b->frame, &e), &e);
}

void build_text(struct build *b, uint32_t stream, uint64_t address, const char *text)
{
	struct err e = ERR_INIT;

	CHECK_OK(rsz_writer_text(b->writer, stream, &address, text, strlen(text), 100, &e), &e);
}

void build_close(struct build *b)
{
	struct err e = ERR_INIT;

	CHECK_OK(rsz_writer_close(b->writer, b->root, &e), &e);
}

void build_deinit(struct build *b)
{
	rsz_writer_destroy(b->writer);
	rsz_encoder_destroy(b->encoder);
	rsz_frame_deinit(&b->frame);
	mem_sink_deinit(&b->out);
}

/* As the format's (RFC 1952, section 8), bit by bit. */
uint32_t build_crc(const uint8_t *p, size_t len)
{
	uint32_t crc = ~UINT32_C(0);

	for (size_t i = 0; i < len; i++) {
		crc ^= p[i];
		for (int bit = 0; bit < 8; bit++)
			crc = crc >> 1 ^ (crc & 1 ? UINT32_C(0xedb88320) : 0);
	}
	return ~crc;
}

void verify_bytes(const void *p, size_t len, struct rsz_scan_result *ret)
{
	static struct rsz_decoder *decoder; /* made once: some tests verify thousands of times */
	struct rsz_scan *scan = NULL;
	struct rsz_record rec;
	struct err e = ERR_INIT;
	struct mem_blob blob;
	enum status st;

	memset(ret, 0, sizeof(*ret));
	mem_blob_init(&blob, p, len);
	st = rsz_scan_create(&blob.blob, &scan, &e);
	if (st) {
		assert_int_equal(st, ST_INPUT);
		ret->end = RSZ_END_DAMAGED;
		return;
	}
	if (!decoder)
		CHECK_OK(rsz_decoder_create(&decoder, &e), &e);
	while (!(st = rsz_scan_next(scan, &rec, &e))) {
		const uint8_t *payload = blob.at + rec.offset + rec.header_length;

		if (rsz_check(decoder, rec.header, rec.header_length, payload, &e)) {
			ret->end = RSZ_END_DAMAGED;
			ret->whole = rec.offset;
			break;
		}
	}
	if (st) {
		assert_int_equal(st, ST_END);
		rsz_scan_end(scan, ret);
	}
	rsz_scan_destroy(scan);
}
