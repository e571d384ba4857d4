/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Frames into a container, on one thread: each record gets its place, is judged, written and
 * counted.
 */
#include "formats/rsz/rsz_writer.h"

#include <inttypes.h>
#include <string.h>

#include "formats/base/bytes.h"
#include "formats/rsz/rsz_encode.h"
#include "formats/rsz/rsz_scan.h"
#include "formats/rsz/rsz_wire.h"

struct rsz_writer {
	struct sink *out;
	struct sha256 *sha;
	struct rsz_encoder *encoder; /* for index and text */
	struct rsz_frame frame;      /* likewise */
	struct merkle tree;
	uint8_t id[RSZ_ID_SIZE];
	uint64_t sequence; /* of the next record */
	uint64_t offset;   /* of the next record: whole records end here */
	uint64_t last_index;
	struct rsz__streams streams;
	bool dead;      /* an output error: what lies behind `offset` is unknown */
	struct err why; /* and what it was: two passes may write, and both must tell the same */
	uint8_t *entries;
	size_t n_entries;
};

/* Text goes into chunks of this size at most; an index has 96 KiB. */
#define WRITER_LENGTH_MAX ((size_t)128 << 10)
#define WRITER_LEVEL      1

static enum status writer_alloc(struct rsz_writer **ret, struct err *e)
{
	struct rsz_writer *w = calloc(1, sizeof(*w));
	enum status st = w ? ST_OK : err_nomem(e);

	if (!st)
		st = sha256_create(&w->sha, e);
	if (!st)
		st = rsz_encoder_create(WRITER_LEVEL, WRITER_LENGTH_MAX, &w->encoder, e);
	if (!st)
		st = rsz_frame_init(&w->frame, WRITER_LENGTH_MAX, 1, e);
	if (!st) {
		/* The longest header that is built in the frame is a STREAM's or a chunk's. */
		const size_t room =
			RSZ__PREFIX_SIZE + 24 + RSZ_NAME_MAX + RSZ_META_MAX + SHA256_SIZE;
		uint8_t *header = realloc(w->frame.header, room);

		if (header) {
			w->frame.header = header;
			w->frame.header_room = room;
		}
		w->entries = malloc(RSZ_INDEX_MAX * (size_t)RSZ__ENTRY_SIZE);
		st = header && w->entries ? ST_OK : err_nomem(e);
	}
	if (st) {
		rsz_writer_destroy(w);
		return st;
	}
	*ret = w;
	return ST_OK;
}

void rsz_writer_destroy(struct rsz_writer *w)
{
	if (!w)
		return;
	sha256_destroy(w->sha);
	rsz_encoder_destroy(w->encoder);
	rsz_frame_deinit(&w->frame);
	rsz__streams_deinit(&w->streams);
	free(w->entries);
	free(w);
}

static enum status check_chunk_header(const struct rsz_writer *w, const struct rsz_frame *f,
				      struct err *e)
{
	const uint32_t stream = rsz__get_chunk_stream(f->header);
	struct rsz__chunk fields;

	if (stream >= w->streams.count)
		return err_set(e, ST_CORRUPT, "CHUNK: stream %" PRIu32 " is not declared", stream);
	return rsz__get_chunk(f->header, f->header_length, w->streams.at[stream].kind,
			      w->streams.at[stream].paged, &fields, e);
}

/*
 * The reader's own parsers look at every header before it is written: one record that a reader
 * rejects would cost all that stands behind it. A STREAM is taken into the list by this.
 */
static enum status check_record(struct rsz_writer *w, enum rsz_type type, const struct rsz_frame *f,
				struct err *e)
{
	struct rsz__begin begin;
	enum status st = ST_OK;

	if (type == RSZ_BEGIN)
		st = rsz__get_begin(f->header, f->header_length, &begin, e);
	if (type == RSZ_STREAM)
		st = rsz__streams_add(&w->streams, f->header, f->header_length, e);
	if (type == RSZ_CHUNK)
		st = check_chunk_header(w, f, e);
	return st == ST_CORRUPT ? err_add(e, ST_SYSTEM, "record not written") : st;
}

/* Gives the record its place, judges it, writes it, and only then counts it. */
static enum status write_record(struct rsz_writer *w, enum rsz_type type, struct rsz_frame *f,
				struct err *e)
{
	struct rsz__prefix p = {
		.header = f->header_length,
		.type = (uint16_t)type,
		.sequence = w->sequence,
		.offset = w->offset,
		.stored = (uint32_t)f->stored,
		.content = (uint32_t)f->content,
		.crc = f->crc,
	};
	enum status st;

	if (w->dead)
		return err_set(e, ST_OUTPUT, "%s", w->why.message);
	memcpy(p.id, w->id, sizeof(p.id));
	memcpy(p.sha256, f->sha256, sizeof(p.sha256));
	rsz__finish(f->header, &p, w->sha);
	st = check_record(w, type, f, e);
	if (st)
		return st;
	st = sink_write(w->out, f->header, f->header_length, &w->why);
	if (!st && f->stored)
		st = sink_write(w->out, f->payload, f->stored, &w->why);
	if (st) {
		w->dead = true;
		if (type == RSZ_STREAM)
			rsz__streams_drop(&w->streams);
		return err_set(e, st, "%s", w->why.message);
	}
	merkle_add(&w->tree, w->sha, p.digest);
	w->offset += f->header_length + f->stored;
	w->sequence++;
	return ST_OK;
}

/* A record without a payload, whose body of `body` bytes is in the writer's frame already. */
static enum status write_bare(struct rsz_writer *w, enum rsz_type type, size_t body, struct err *e)
{
	rsz__encode_payload(w->encoder, NULL, 0, &w->frame, e);
	w->frame.header_length = RSZ__PREFIX_SIZE + body + SHA256_SIZE;
	return write_record(w, type, &w->frame, e);
}

static enum status write_index(struct rsz_writer *w, struct err *e)
{
	const struct rsz__index fields = {
		.entries = (uint32_t)w->n_entries,
		.previous = w->last_index,
	};
	const uint64_t at = w->offset;
	enum status st;

	if (!w->n_entries)
		return ST_OK;
	st = rsz__encode_payload(w->encoder, w->entries, w->n_entries * RSZ__ENTRY_SIZE, &w->frame,
				 e);
	if (st)
		return st;
	w->frame.header_length = RSZ__PREFIX_SIZE +
				 rsz__put_index(w->frame.header + RSZ__PREFIX_SIZE, &fields) +
				 SHA256_SIZE;
	st = write_record(w, RSZ_INDEX, &w->frame, e);
	if (st)
		return st;
	w->last_index = at;
	w->n_entries = 0;
	return ST_OK;
}

/* Makes sure that `n` more entries fit before the next INDEX. */
static enum status reserve_entries(struct rsz_writer *w, size_t n, struct err *e)
{
	return w->n_entries + n > RSZ_INDEX_MAX ? write_index(w, e) : ST_OK;
}

static void add_index_entry(struct rsz_writer *w, struct rsz__entry x)
{
	rsz__put_entry(w->entries + RSZ__ENTRY_SIZE * w->n_entries++, &x);
}

enum status rsz_writer_create(struct sink *out, const struct rsz_begin *begin,
			      struct rsz_writer **ret, struct err *e)
{
	const struct rsz__begin fields = {
		.wall = begin->wall,
		.mono = begin->mono,
		.text = begin->text,
		.text_length = (uint32_t)strnlen(begin->text, RSZ_TEXT_MAX),
	};
	struct rsz_writer *w = NULL;
	enum status st = writer_alloc(&w, e);

	if (st)
		return st;
	w->out = out;
	memcpy(w->id, begin->id, sizeof(w->id));
	st = write_bare(w, RSZ_BEGIN, rsz__put_begin(w->frame.header + RSZ__PREFIX_SIZE, &fields),
			e);
	if (st) {
		rsz_writer_destroy(w);
		return st;
	}
	*ret = w;
	return ST_OK;
}

enum status rsz_writer_continue(struct sink *out, struct rsz_scan *scan, struct rsz_writer **ret,
				struct err *e)
{
	struct rsz_writer *w = NULL;
	const enum status st = writer_alloc(&w, e);

	if (st)
		return st;
	w->out = out;
	memcpy(w->id, scan->identity.id, sizeof(w->id));
	w->tree = scan->tree;
	w->sequence = scan->sequence;
	w->offset = scan->offset;
	w->last_index = scan->last_index;
	w->streams = scan->streams;
	scan->streams = (struct rsz__streams){ 0 };
	memcpy(w->entries, scan->entries, scan->n_entries * RSZ__ENTRY_SIZE);
	w->n_entries = scan->n_entries;
	*ret = w;
	return ST_OK;
}

enum status rsz_writer_stream(struct rsz_writer *w, enum rsz_kind kind, const char *name,
			      const char *meta, uint32_t *ret, struct err *e)
{
	const struct rsz__stream fields = {
		.stream = (uint32_t)w->streams.count,
		.kind = kind,
		.page_size = rsz_kind_is_paged(kind) ? PAGE_SIZE : 0,
		.name = name,
		.name_length = (uint32_t)strlen(name),
		.meta = meta,
		.meta_length = meta ? (uint32_t)strlen(meta) : 0,
	};
	uint64_t at;
	enum status st;

	/* These two must fit into the frame; what else a stream must be, check_record() knows. */
	if (fields.name_length > RSZ_NAME_MAX || fields.meta_length > RSZ_META_MAX)
		return err_set(e, ST_SYSTEM, "stream \"%.40s\": too long", name);
	st = reserve_entries(w, 1, e);
	if (st)
		return st;
	at = w->offset;
	st = write_bare(w, RSZ_STREAM, rsz__put_stream(w->frame.header + RSZ__PREFIX_SIZE, &fields),
			e);
	if (st)
		return st;
	add_index_entry(w, (struct rsz__entry){ .record = at, .stream = fields.stream });
	*ret = fields.stream;
	return ST_OK;
}

bool rsz_writer_has_stream(const struct rsz_writer *w, const char *name)
{
	for (size_t i = 0; i < w->streams.count; i++)
		if (!strcmp(w->streams.at[i].name, name))
			return true;
	return false;
}

enum status rsz_writer_put(struct rsz_writer *w, struct rsz_frame *f, struct err *e)
{
	const uint8_t *const body = f->header + RSZ__PREFIX_SIZE;
	const uint32_t stream = get_le32(body);
	const uint32_t extents = get_le32(body + 4);
	uint64_t at;
	enum status st = reserve_entries(w, extents, e);

	if (st)
		return st;
	at = w->offset;
	st = write_record(w, RSZ_CHUNK, f, e);
	for (uint32_t i = 0; i < extents && !st; i++) {
		const struct rsz_extent x =
			rsz__get_extent(f->header + 128 + (size_t)RSZ__EXTENT_SIZE * i);

		add_index_entry(w, (struct rsz__entry){ .record = at,
							.address = x.address,
							.length = x.length,
							.stream = stream });
	}
	return st;
}

enum status rsz_writer_text(struct rsz_writer *w, uint32_t stream, uint64_t *address, const void *p,
			    size_t len, uint64_t now, struct err *e)
{
	const uint8_t *at = p;
	enum status st = ST_OK;

	while (len && !st) {
		struct rsz_extent x = {
			.address = *address,
			.length = (uint32_t)MIN(len, WRITER_LENGTH_MAX),
			.start = now,
			.end = now,
		};
		struct rsz_chunk c = {
			.stream = stream,
			.extents = &x,
			.n_extents = 1,
			.length = x.length,
			.start = now,
			.end = now,
		};

		/* An INDEX is built in the same frame, so it must not come in between. */
		st = reserve_entries(w, 1, e);
		if (!st)
			st = rsz__encode_payload(w->encoder, at, x.length, &w->frame, e);
		if (st)
			break;
		rsz__encode_header(&c, &w->frame);
		st = rsz_writer_put(w, &w->frame, e);
		if (!st)
			*address += x.length;
		at += x.length;
		len -= x.length;
	}
	return st;
}

uint64_t rsz_writer_whole(const struct rsz_writer *w)
{
	return w->offset;
}

void rsz_writer_resume(struct rsz_writer *w)
{
	w->dead = false;
}

enum status rsz_writer_close(struct rsz_writer *w, uint8_t ret_root[static SHA256_SIZE],
			     struct err *e)
{
	struct rsz__close fields;
	enum status st = write_index(w, e);

	if (st)
		return st;
	fields.records = w->sequence;
	fields.last_index = w->last_index;
	merkle_root(&w->tree, w->sha, fields.root);
	st = write_bare(w, RSZ_CLOSE, rsz__put_close(w->frame.header + RSZ__PREFIX_SIZE, &fields),
			e);
	if (st)
		return st;
	memcpy(ret_root, fields.root, SHA256_SIZE);
	w->dead = true; /* nothing may follow */
	err_set(&w->why, ST_OUTPUT, "the container is closed");
	return ST_OK;
}
