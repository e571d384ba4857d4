/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Glances. Whoever reads pages here and there waits for the decompression and the SHA-256 of a
 * megabyte each time. So the first few pages of a chunk are decoded without the rest, and whoever
 * comes back while a cache of this size would still have it gets the whole: the rule of "2Q"
 * (Johnson and Shasha, VLDB 1994), whose list of what was asked for and is not kept is `glanced`.
 */
#include <string.h>

#include "formats/rsz/rsz_cursor_internal.h"

/* Of more pages at a time, all of a chunk is decoded: its next ones are asked for next. */
#define GLANCE_PAGES 8

/*
 * So many before a chunk is loaded: together they take as long as that does (a glance decodes half
 * on average, and hashes nothing). Who waits so long never pays more than double of what the best
 * would have been (Karlin, Manasse, Rudolph, Sleator, Algorithmica 3, 1988: "snoopy caching").
 */
#define GLANCES      3

/* What a chunk usually has at most: so many bytes of a bound are one more to be remembered. */
#define USUAL_CHUNK  ((size_t)1 << 20)

void rsz__glances_destroy(struct front *f)
{
	if (!f)
		return;
	rsz_decoder_destroy(f->decoder);
	rsz_loaded_deinit(&f->loaded);
	free(f->glanced);
	free(f);
}

enum status rsz_cursor_allow_glances(struct rsz_cursor *c, struct err *e)
{
	const size_t room = c->bound ? MAX(c->bound / USUAL_CHUNK, 1) : c->n_slots;
	struct front *f = calloc(1, sizeof(*f));
	enum status st = f ? rsz_loaded_init(&f->loaded, e) : err_nomem(e);

	if (!st)
		st = rsz_decoder_create(&f->decoder, e);
	if (!st) {
		f->n_glanced = MIN(room, c->n_slots);
		f->glanced = calloc(f->n_glanced, sizeof(*f->glanced));
		st = f->glanced ? ST_OK : err_nomem(e);
	}
	if (st) {
		rsz__glances_destroy(f);
		return st;
	}
	for (size_t i = 0; i < f->n_glanced; i++)
		f->glanced[i].record = UINT64_MAX;
	rsz__glances_destroy(c->front);
	c->front = f;
	return ST_OK;
}

static bool is_loaded(const struct rsz_cursor *c, uint64_t record)
{
	for (size_t i = 0; i < c->n_slots; i++)
		if (c->slots[i].record == record)
			return true;
	return false;
}

/* One more, unless it had as many as there may be: that is forgotten, because now it is loaded. */
static bool allow_another(struct front *f, uint64_t record)
{
	for (size_t i = 0; i < f->n_glanced; i++) {
		struct glanced *s = &f->glanced[i];

		if (s->record != record)
			continue;
		if (s->glances < GLANCES) {
			s->glances++;
			return true;
		}
		s->record = UINT64_MAX;
		return false;
	}
	f->glanced[f->next++ % f->n_glanced] = (struct glanced){ record, 1 };
	return true;
}

bool rsz__wants_glance(const struct rsz_cursor *c, uint64_t record)
{
	struct front *f = c->front;

	if (!f || f->off || c->pages > GLANCE_PAGES || is_loaded(c, record))
		return false;
	return (f->loaded.record == record && f->call == c->call) || allow_another(f, record);
}

/* Checks all that needs no content, for pages without content too: damage fails the whole chunk. */
static enum status front_begin(struct rsz_cursor *c, uint64_t record, struct err *e)
{
	struct front *f = c->front;
	struct rsz_loaded *l = &f->loaded;
	const struct rsz_stream_info *stream;
	struct rsz__chunk fields;
	enum status st;

	l->record = UINT64_MAX;
	st = rsz__fetch_record(c->reader, c->sha, l, record, &f->prefix, &stream, e);
	if (!st)
		st = rsz__get_chunk(l->header, f->prefix.header, stream->kind, stream->paged,
				    &fields, e);
	if (!st)
		st = rsz__make_data_room(l, f->prefix.content, e);
	if (!st)
		st = rsz__begin_payload(f->decoder, &f->prefix, l->payload, &f->steps, e);
	if (st)
		return st;
	rsz__expand_header(&fields, stream->paged, &l->chunk);
	l->record = record;
	return ST_OK;
}

/* Where data page `page` begins among the data pages, and how long it is. */
static size_t packed_offset(const struct rsz_chunk *c, size_t page, size_t *ret_length)
{
	size_t offset = 0, i = 0;

	for (size_t x = 0; x < c->n_extents; x++) {
		size_t left = c->extents[x].length;

		for (; left; i++, left -= *ret_length) {
			*ret_length = MIN(left, PAGE_SIZE);
			if (i == page)
				return offset;
			if (c->pages[i].state == PAGE_DATA)
				offset += *ret_length;
		}
	}
	*ret_length = 0;
	return offset;
}

/* The bytes from an address of `p` to the end of its page. */
static enum status front_bytes(struct front *f, const struct rsz_location *p, uint64_t address,
			       const uint8_t **ret, struct err *e)
{
	static const uint8_t zeros[PAGE_SIZE];
	const struct rsz_chunk *chunk = &f->loaded.chunk;
	size_t length, offset;
	enum status st;

	*ret = zeros;
	if (chunk->pages[p->page].state != PAGE_DATA)
		return ST_OK;
	offset = packed_offset(chunk, p->page, &length);
	st = rsz__continue_payload(f->decoder, &f->prefix, f->loaded.payload, chunk->data,
				   offset + length, &f->steps, e);
	if (st)
		f->loaded.record = UINT64_MAX;
	*ret = chunk->data + offset + address % PAGE_SIZE;
	return st;
}

enum status rsz__glance(struct rsz_cursor *c, uint32_t stream, uint64_t address, uint64_t record,
			struct rsz_location *ret, const uint8_t **ret_bytes, struct err *e)
{
	struct front *f = c->front;
	enum status st = f->loaded.record == record ? ST_OK : front_begin(c, record, e);

	f->call = c->call;
	if (!st) {
		ret->chunk = &f->loaded.chunk;
		st = rsz__place_in_chunk(stream, address, ret, e);
	}
	if (!st && !ret->chunk->paged)
		st = rsz__index_lies(e, address);
	if (!st)
		st = front_bytes(f, ret, address, ret_bytes, e);
	if (st == ST_CORRUPT)
		f->off = true;
	return st ? rsz__record_failed(c, record, st, e) : ST_OK;
}
