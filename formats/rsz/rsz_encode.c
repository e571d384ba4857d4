/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Chunks into frames, on any thread: zero pages found, hashed, compressed. rsz_writer.c puts them
 * in order.
 */
#include "formats/rsz/rsz_encode.h"

#include <libdeflate.h>
#include <string.h>
#include <zstd.h>
#include <zstd_errors.h>

#include "formats/base/bytes.h"
#include "formats/rsz/rsz_wire.h"

/* The zstd library's size_t errors become ours here and nowhere else. */
static enum status err_from_zstd_encoder(struct err *e, size_t code)
{
	return err_set(e, ST_SYSTEM, "zstd: %s", ZSTD_getErrorName(code));
}

/*
 * Frames
 */

/* RFC 8878, 3.1.1: magic, descriptor, 4-byte content size; then blocks of at most 128 KiB. */
#define STORE_FRAME_HEADER 9u
#define STORE_BLOCK_HEADER 3u
#define STORE_BLOCK_MAX    ((size_t)128 << 10)

static size_t store_bound(size_t content)
{
	return STORE_FRAME_HEADER + content + STORE_BLOCK_HEADER * (content / STORE_BLOCK_MAX + 1);
}

static size_t payload_bound(size_t content)
{
	return MAX(ZSTD_compressBound(content), store_bound(content));
}

enum status rsz_frame_init(struct rsz_frame *f, size_t length_max, size_t extents_max,
			   struct err *e)
{
	const size_t pages = length_max / PAGE_SIZE + extents_max;

	*f = (struct rsz_frame){
		.header_room = rsz__chunk_header_size(extents_max, MIN(pages, RSZ_RUNS_MAX)),
		.payload_room = payload_bound(length_max),
	};
	f->header = malloc(f->header_room);
	f->payload = malloc(f->payload_room);
	if (!f->header || !f->payload) {
		rsz_frame_deinit(f);
		return err_nomem(e);
	}
	return ST_OK;
}

void rsz_frame_deinit(struct rsz_frame *f)
{
	free(f->header);
	free(f->payload);
	*f = (struct rsz_frame){ 0 };
}

/*
 * Encoding
 */

struct rsz_encoder {
	ZSTD_CCtx *zstd;
	struct sha256 *sha;
	int level;
};

enum status rsz_encoder_create(int level, size_t length_max, struct rsz_encoder **ret,
			       struct err *e)
{
	struct rsz_encoder *x = calloc(1, sizeof(*x));
	enum status st;

	if (!x)
		return err_nomem(e);
	st = sha256_create(&x->sha, e);
	if (!st) {
		x->zstd = ZSTD_createCCtx();
		st = x->zstd ? ST_OK : err_nomem(e);
	}
	if (st) {
		rsz_encoder_destroy(x);
		return st;
	}
	rsz_encoder_set_level(x, level);
	*ret = x;
	return ST_OK;
}

void rsz_encoder_destroy(struct rsz_encoder *x)
{
	if (!x)
		return;
	sha256_destroy(x->sha);
	ZSTD_freeCCtx(x->zstd);
	free(x);
}

void rsz_encoder_set_level(struct rsz_encoder *x, int level)
{
	x->level = MAX(RSZ_LEVEL_MIN, MIN(level, RSZ_LEVEL_MAX));
	ZSTD_CCtx_setParameter(x->zstd, ZSTD_c_compressionLevel, x->level);
}

/* A zstd frame of raw blocks: the content as it is, readable by every zstd. */
static size_t store_as_zstd(uint8_t *to, const uint8_t *content, size_t len)
{
	/* Frame_Content_Size of 4 bytes (flag 2), Single_Segment, no checksum, no dictionary. */
	static const uint8_t descriptor = 2 << 6 | 1 << 5;
	struct appender a = { to };

	app_le32(&a, ZSTD_MAGICNUMBER);
	app_u8(&a, descriptor);
	app_le32(&a, (uint32_t)len);
	while (len) {
		const size_t n = MIN(len, STORE_BLOCK_MAX);
		const uint32_t last = n == len;
		const uint32_t block = (uint32_t)n << 3 | last;

		app_le16(&a, (uint16_t)block);
		app_u8(&a, (uint8_t)(block >> 16));
		app_bytes(&a, content, n);
		content += n;
		len -= n;
	}
	return (size_t)(a.at - to);
}

enum status rsz__encode_payload(struct rsz_encoder *x, const uint8_t *content, size_t len,
				struct rsz_frame *f, struct err *e)
{
	f->content = len;
	f->stored = 0;
	f->crc = 0;
	memset(f->sha256, 0, sizeof(f->sha256));
	if (!len)
		return ST_OK;

	sha256_of(x->sha, content, len, f->sha256);
	if (x->level == RSZ_LEVEL_STORE) {
		f->stored = store_as_zstd(f->payload, content, len);
	} else {
		f->stored = ZSTD_compress2(x->zstd, f->payload, f->payload_room, content, len);
		/* No memory to compress in is no reason to lose what was read. */
		if (ZSTD_getErrorCode(f->stored) == ZSTD_error_memory_allocation)
			f->stored = store_as_zstd(f->payload, content, len);
		if (ZSTD_isError(f->stored))
			return err_from_zstd_encoder(e, f->stored);
	}
	f->crc = libdeflate_crc32(0, f->payload, f->stored);
	return ST_OK;
}

/* Turns data pages without data into zero pages and moves the others together at the front. */
static size_t pack_data_pages(struct rsz_chunk *c)
{
	size_t from = 0, to = 0, page = 0;

	for (size_t i = 0; i < c->n_extents; i++) {
		uint32_t left = c->extents[i].length;

		for (; left; page++) {
			const size_t n = MIN(left, PAGE_SIZE);
			struct page_status *s = &c->pages[page];

			if (s->state == PAGE_DATA && n == PAGE_SIZE &&
			    bytes_are_zero(c->data + from, n))
				s->state = PAGE_ZERO;
			if (s->state == PAGE_DATA) {
				if (to != from)
					memmove(c->data + to, c->data + from, n);
				to += n;
			}
			from += n;
			left -= (uint32_t)n;
		}
	}
	return to;
}

/* How many pages from `i` on have the same state. */
static size_t run_of_pages_at(const struct rsz_chunk *c, size_t i)
{
	size_t n = 1;

	while (i + n < c->n_pages && page_status_same(c->pages[i], c->pages[i + n]))
		n++;
	return n;
}

static size_t count_runs(const struct rsz_chunk *c)
{
	size_t runs = 0;

	for (size_t i = 0; i < c->n_pages; i += run_of_pages_at(c, i))
		runs++;
	return runs;
}

/* Appends the runs behind the extents; returns how many there are. */
static size_t put_page_runs(const struct rsz_chunk *c, uint8_t *at)
{
	size_t runs = 0;

	for (size_t i = 0, n; i < c->n_pages; i += n) {
		n = run_of_pages_at(c, i);
		rsz__put_run(at + RSZ__RUN_SIZE * runs++, (uint16_t)n, c->pages[i]);
	}
	return runs;
}

/*
 * What ends before it begins was read at a time that nobody knows. A reader would reject it, and
 * with it the rest of the container.
 */
static struct rsz_extent with_possible_times(struct rsz_extent x)
{
	if (x.end < x.start)
		x.start = x.end = 0;
	return x;
}

void rsz__encode_header(const struct rsz_chunk *c, struct rsz_frame *f)
{
	uint8_t *const extents = f->header + 128;
	struct rsz__chunk fields = {
		.stream = c->stream,
		.extents = (uint32_t)c->n_extents,
		.length = (uint32_t)c->length,
		.start = c->start,
		.end = c->end,
	};

	for (size_t i = 0; i < c->n_extents; i++) {
		const struct rsz_extent x = with_possible_times(c->extents[i]);

		rsz__put_extent(extents + RSZ__EXTENT_SIZE * i, &x);
		fields.start = MIN(fields.start, x.start);
		fields.end = MAX(fields.end, x.end);
	}
	if (c->paged)
		fields.runs = (uint32_t)put_page_runs(c, extents + RSZ__EXTENT_SIZE * c->n_extents);
	rsz__put_chunk(f->header + RSZ__PREFIX_SIZE, &fields);
	f->header_length = rsz__chunk_header_size(fields.extents, fields.runs);
}

enum status rsz_encode(struct rsz_encoder *x, struct rsz_chunk *c, struct rsz_frame *f,
		       struct err *e)
{
	enum status st;
	size_t len;

	if (c->length > RSZ_CONTENT_MAX)
		return err_set(e, ST_SYSTEM, "chunk is longer than a record can hold");
	len = c->paged ? pack_data_pages(c) : c->length;
	/* Judged by what it takes: skipped memory may be long, and is one run without a payload. */
	if (rsz__chunk_header_size(c->n_extents, c->paged ? count_runs(c) : 0) > f->header_room ||
	    payload_bound(len) > f->payload_room)
		return err_set(e, ST_SYSTEM, "chunk is larger than its frame");
	st = rsz__encode_payload(x, c->data, len, f, e);
	if (!st)
		rsz__encode_header(c, f);
	return st;
}
