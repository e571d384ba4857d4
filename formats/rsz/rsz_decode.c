/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Payloads back into content, and chunks back into pages.
 */
#include <inttypes.h>
#include <libdeflate.h>
#include <string.h>
#define ZSTD_STATIC_LINKING_ONLY /* for ZSTD_getFrameHeader() */
#include <zstd.h>

#include "formats/base/bytes.h"
#include "formats/rsz/rsz_decode.h"
#include "formats/rsz/rsz_room.h"
#include "formats/rsz/rsz_wire.h"

struct rsz_decoder {
	ZSTD_DCtx *zstd; /* made for the first payload */
	struct sha256 *sha;
	uint8_t *content; /* for rsz_check(), as large as the largest so far */
	size_t content_room;
};

enum status rsz_decoder_create(struct rsz_decoder **ret, struct err *e)
{
	struct rsz_decoder *d = calloc(1, sizeof(*d));
	enum status st = d ? sha256_create(&d->sha, e) : err_nomem(e);

	if (st) {
		rsz_decoder_destroy(d);
		return st;
	}
	*ret = d;
	return ST_OK;
}

void rsz_decoder_destroy(struct rsz_decoder *d)
{
	if (!d)
		return;
	sha256_destroy(d->sha);
	ZSTD_freeDCtx(d->zstd);
	free(d->content);
	free(d);
}

/*
 * One data frame, as long as the header says, of the content size that the header says. Checked
 * before decompression, because ZSTD_decompressDCtx() takes any number of frames, skippable and
 * legacy ones too.
 */
static enum status check_zstd_frame(const struct rsz__prefix *p, const uint8_t *payload,
				    struct err *e)
{
	static const uint8_t dictionary_flag = 3; /* RFC 8878, 3.1.1.1.1 */
	ZSTD_frameHeader frame;

	if (p->stored < 5 || get_le32(payload) != ZSTD_MAGICNUMBER)
		return err_set(e, ST_CORRUPT, "payload is not a zstd frame");
	if (ZSTD_findFrameCompressedSize(payload, p->stored) != p->stored)
		return err_set(e, ST_CORRUPT, "payload is not exactly one zstd frame");
	if (ZSTD_getFrameContentSize(payload, p->stored) != p->content)
		return err_set(e, ST_CORRUPT, "payload states a different content size");
	if (payload[4] & dictionary_flag)
		return err_set(e, ST_CORRUPT, "payload needs a dictionary");
	if (ZSTD_getFrameHeader(&frame, payload, p->stored) != 0 ||
	    frame.windowSize > RSZ_CONTENT_MAX)
		return err_set(e, ST_CORRUPT, "payload needs a window of more than 16 MiB");
	return ST_OK;
}

/* What can be told of a payload without its content. Then there is a context to decompress in. */
static enum status check_payload_sum(struct rsz_decoder *d, const struct rsz__prefix *p,
				     const uint8_t *payload, struct err *e)
{
	enum status st;

	if (CHECKS_SUMS && libdeflate_crc32(0, payload, p->stored) != p->crc)
		return err_set(e, ST_CORRUPT, "payload does not match its CRC-32");
	st = check_zstd_frame(p, payload, e);
	if (st)
		return st;
	if (!d->zstd)
		d->zstd = ZSTD_createDCtx();
	return d->zstd ? ST_OK : err_nomem(e);
}

static enum status err_from_zstd_decoder(struct err *e, size_t code)
{
	return err_set(e, ST_CORRUPT, "zstd: %s", ZSTD_getErrorName(code));
}

static enum status err_length(struct err *e, size_t n, const struct rsz__prefix *p)
{
	return err_set(e, ST_CORRUPT, "payload of %zu bytes instead of %" PRIu32, n, p->content);
}

static enum status unpack_payload(struct rsz_decoder *d, const struct rsz__prefix *p,
				  const uint8_t *payload, uint8_t *to, struct err *e)
{
	enum status st;
	size_t n;

	if (!p->stored)
		return ST_OK;
	st = check_payload_sum(d, p, payload, e);
	if (st)
		return st;
	n = ZSTD_decompressDCtx(d->zstd, to, p->content, payload, p->stored);
	if (ZSTD_isError(n))
		return err_from_zstd_decoder(e, n);
	if (n != p->content)
		return err_length(e, n, p);
	return ST_OK;
}

enum status rsz__decode_payload(struct rsz_decoder *d, const struct rsz__prefix *p,
				const uint8_t *payload, uint8_t *to, struct err *e)
{
	uint8_t digest[SHA256_SIZE];
	const enum status st = unpack_payload(d, p, payload, to, e);

	if (st || !p->stored || !CHECKS_SUMS)
		return st;
	sha256_of(d->sha, to, p->content, digest);
	if (memcmp(digest, p->sha256, sizeof(digest)))
		return err_set(e, ST_CORRUPT, "content does not match its SHA-256");
	return ST_OK;
}

enum status rsz__begin_payload(struct rsz_decoder *d, const struct rsz__prefix *p,
			       const uint8_t *payload, struct rsz__steps *ret, struct err *e)
{
	enum status st;
	size_t n;

	*ret = (struct rsz__steps){ 0 };
	if (!p->stored)
		return ST_OK;
	st = check_payload_sum(d, p, payload, e);
	if (st)
		return st;
	n = ZSTD_DCtx_reset(d->zstd, ZSTD_reset_session_only);
	/* All steps write into one buffer, and refer back into it: nothing is copied. */
	if (!ZSTD_isError(n))
		n = ZSTD_DCtx_setParameter(d->zstd, ZSTD_d_stableOutBuffer, 1);
	if (ZSTD_isError(n))
		return err_set(e, ST_SYSTEM, "zstd: %s", ZSTD_getErrorName(n));
	ret->next = ZSTD_FRAMEHEADERSIZE_MIN(ZSTD_f_zstd1);
	return ST_OK;
}

/* The next header or block: zstd says how much it needs, and decodes no more than it is given. */
static enum status take_step(struct rsz_decoder *d, const struct rsz__prefix *p,
			     const uint8_t *payload, uint8_t *to, struct rsz__steps *s,
			     struct err *e)
{
	ZSTD_inBuffer in = { payload, MIN(s->taken + s->next, p->stored), s->taken };
	ZSTD_outBuffer out = { to, p->content, s->made };
	const size_t n = ZSTD_decompressStream(d->zstd, &out, &in);

	if (ZSTD_isError(n))
		return err_from_zstd_decoder(e, n);
	if (in.pos == s->taken && out.pos == s->made)
		return err_length(e, s->made, p);
	*s = (struct rsz__steps){ .taken = in.pos, .made = out.pos, .next = n };
	return ST_OK;
}

enum status rsz__continue_payload(struct rsz_decoder *d, const struct rsz__prefix *p,
				  const uint8_t *payload, uint8_t *to, size_t wanted,
				  struct rsz__steps *s, struct err *e)
{
	enum status st = ST_OK;

	while (s->made < wanted && !st)
		st = s->next ? take_step(d, p, payload, to, s, e) : err_length(e, s->made, p);
	return st;
}

/* What was there is lost. */
static enum status make_room_for_bytes(uint8_t **at, size_t *room, size_t len, struct err *e)
{
	if (len <= *room)
		return ST_OK;
	free(*at);
	*at = malloc(len);
	*room = *at ? len : 0;
	return *at ? ST_OK : err_nomem(e);
}

enum status rsz__make_data_room(struct rsz_loaded *l, size_t len, struct err *e)
{
	if (len <= l->data_room)
		return ST_OK;
	rsz__room_give(l->room, l->chunk.data);
	l->chunk.data = rsz__room_take(l->room, len);
	l->data_room = l->chunk.data ? len : 0;
	return l->chunk.data ? ST_OK : err_nomem(e);
}

enum status rsz__read_payload(struct blob *in, uint64_t offset, const struct rsz__prefix *p,
			      struct rsz_loaded *l, struct err *e)
{
	const enum status st = make_room_for_bytes(&l->payload, &l->payload_room, p->stored, e);

	return st ? st : blob_read(in, offset + p->header, l->payload, p->stored, e);
}

enum status rsz_content(struct rsz_decoder *d, const uint8_t *header, size_t header_length,
			const uint8_t *payload, const uint8_t **ret, size_t *ret_len, struct err *e)
{
	struct rsz__prefix p;
	enum status st = rsz__get_prefix(header, header_length, d->sha, &p, e);

	*ret_len = 0;
	if (st || !p.stored)
		return st;
	st = make_room_for_bytes(&d->content, &d->content_room, p.content, e);
	if (!st)
		st = rsz__decode_payload(d, &p, payload, d->content, e);
	*ret = d->content;
	*ret_len = st ? 0 : p.content;
	return st;
}

enum status rsz_check(struct rsz_decoder *d, const uint8_t *header, size_t header_length,
		      const uint8_t *payload, struct err *e)
{
	const uint8_t *content;
	size_t len;

	return rsz_content(d, header, header_length, payload, &content, &len, e);
}

enum status rsz_loaded_init(struct rsz_loaded *l, struct err *e)
{
	*l = (struct rsz_loaded){
		.chunk = {
			.extents = malloc(RSZ_EXTENTS_MAX * sizeof(struct rsz_extent)),
			.pages = malloc(RSZ_PAGES_MAX * sizeof(struct page_status)),
		},
		.record = UINT64_MAX,
		.header = malloc(RSZ_HEADER_MAX),
	};
	if (l->chunk.extents && l->chunk.pages && l->header)
		return ST_OK;
	rsz_loaded_deinit(l);
	return err_nomem(e);
}

void rsz_loaded_deinit(struct rsz_loaded *l)
{
	free(l->chunk.extents);
	free(l->chunk.pages);
	rsz__room_give(l->room, l->chunk.data);
	free(l->header);
	free(l->payload);
	*l = (struct rsz_loaded){ .record = UINT64_MAX };
}

void rsz__expand_header(const struct rsz__chunk *fields, bool paged, struct rsz_chunk *c)
{
	c->paged = paged;
	c->stream = fields->stream;
	c->length = fields->length;
	c->start = fields->start;
	c->end = fields->end;
	c->n_extents = fields->extents;
	c->n_pages = 0;
	for (uint32_t i = 0; i < fields->extents; i++)
		c->extents[i] = rsz__get_extent(fields->extents_at + (size_t)RSZ__EXTENT_SIZE * i);
	for (uint32_t i = 0; i < fields->runs; i++) {
		struct page_status status;
		uint16_t n = rsz__get_run(fields->runs_at + (size_t)RSZ__RUN_SIZE * i, &status);

		while (n--)
			c->pages[c->n_pages++] = status;
	}
}

/*
 * Data pages stand packed at the front of c->data; moves each to its place, from the last to the
 * first, and zeroes what lies between.
 */
static void spread_data_pages(struct rsz_chunk *c, size_t content)
{
	size_t page = c->n_pages, to = c->length, from = content;

	for (size_t i = c->n_extents; i-- > 0;) {
		const struct rsz_extent *x = &c->extents[i];
		/* Only the last page of an extent can be shorter. */
		size_t n = (x->length - 1) % PAGE_SIZE + 1;

		for (size_t left = rsz_extent_pages(x); left; left--, n = PAGE_SIZE) {
			to -= n;
			if (c->pages[--page].state != PAGE_DATA) {
				memset(c->data + to, 0, n);
				continue;
			}
			from -= n;
			if (from != to)
				memmove(c->data + to, c->data + from, n);
		}
	}
}

enum status rsz__decode_chunk(struct rsz_decoder *d, const struct rsz_stream_info *stream,
			      const struct rsz__prefix *p, bool digest_seen, struct rsz_loaded *l,
			      struct err *e)
{
	struct rsz__chunk fields;
	enum status st =
		rsz__get_chunk(l->header, p->header, stream->kind, stream->paged, &fields, e);

	if (!st)
		st = rsz__make_data_room(l, fields.length, e);
	if (!st && digest_seen)
		st = unpack_payload(d, p, l->payload, l->chunk.data, e);
	else if (!st)
		st = rsz__decode_payload(d, p, l->payload, l->chunk.data, e);
	if (st)
		return st;
	rsz__expand_header(&fields, stream->paged, &l->chunk);
	if (stream->paged)
		spread_data_pages(&l->chunk, p->content);
	return ST_OK;
}
