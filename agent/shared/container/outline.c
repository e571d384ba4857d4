/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/shared/container/outline.h"

#include <inttypes.h>
#include <string.h>

#include "agent/shared/program/interrupt.h"
#include "formats/base/array.h"
#include "formats/rsz/rsz_reader.h"

/* A run of bytes that are kept. */
struct part_kept {
	uint64_t offset;
	uint8_t *bytes;
	size_t len;
};

struct outline {
	struct blob blob;
	struct part_kept *at; /* by offset; they may overlap */
	size_t count;
	size_t room;
	size_t bytes; /* of all of them */
};

/* The last one that begins at `off` or before; NULL if there is none. */
static const struct part_kept *find_kept_part(const struct outline *o, uint64_t off)
{
	const size_t behind = FIRST_WHERE(i, o->count, o->at[i].offset > off);

	return behind ? &o->at[behind - 1] : NULL;
}

static bool holds_offset(const struct part_kept *x, uint64_t off)
{
	return x && off - x->offset < x->len;
}

/*
 * Readers of a header ask for the most that one can have. What lies behind the kept bytes is zeros,
 * and no part of a header. A read that begins where nothing was kept fails.
 */
static enum status outline_read_at(struct blob *b, uint64_t off, void *p, size_t len, size_t *got,
				   struct err *e)
{
	const struct outline *o = (const struct outline *)b;
	const struct part_kept *x = find_kept_part(o, off);
	uint8_t *to = p;

	*got = off < b->size ? (size_t)MIN(len, b->size - off) : 0;
	if (!*got)
		return ST_OK;
	if (!holds_offset(x, off))
		return err_set(e, ST_INPUT, "offset %" PRIu64 " was not kept", off);
	memset(to, 0, *got);
	for (; x < o->at + o->count && x->offset < off + *got; x++) {
		const uint64_t from = MAX(off, x->offset);
		const uint64_t end = MIN(off + *got, x->offset + x->len);

		if (from < end)
			memcpy(to + (from - off), x->bytes + (from - x->offset),
			       (size_t)(end - from));
	}
	return ST_OK;
}

/* Room for `len` bytes at `off`, behind all that is kept. */
static enum status keep_outline_part(struct outline *o, uint64_t off, size_t len, uint8_t **ret,
				     struct err *e)
{

	if (len > OUTLINE_MAX - o->bytes)
		return err_set(e, ST_INPUT,
			       "is too large to be read from a pipe: save it to a file");
	if (!ARRAY_ROOM(o->at, o->count, o->room))
		return err_nomem(e);
	*ret = malloc(MAX(len, 1));
	if (!*ret)
		return err_nomem(e);
	o->at[o->count++] = (struct part_kept){ .offset = off, .bytes = *ret, .len = len };
	o->bytes += len;
	return ST_OK;
}

/* At most `len` bytes at `off`, as many as there are. */
static enum status keep_bytes(struct outline *o, struct blob *in, uint64_t off, size_t len,
			      struct err *e)
{
	uint8_t *to;
	size_t got;
	enum status st = keep_outline_part(o, off, len, &to, e);

	if (!st)
		st = in->read_at(in, off, to, len, &got, e);
	if (!st)
		o->at[o->count - 1].len = got;
	return st;
}

/* Payloads that `info` looks into. */
static bool wants_payload(const struct rsz_scan *scan, const struct rsz_record *rec)
{
	const struct rsz_stream_info *info = rsz_scan_stream(scan, rec->stream);

	return rec->type == RSZ_CHUNK && (!info->paged || info->kind == RSZ_KIND_TABLES_BEFORE ||
					  info->kind == RSZ_KIND_TABLES_AFTER);
}

static enum status keep_record(struct outline *o, struct blob *in, const struct rsz_scan *scan,
			       const struct rsz_record *rec, struct err *e)
{
	uint8_t *to;
	enum status st = keep_outline_part(o, rec->offset, rec->header_length, &to, e);

	if (st)
		return st;
	memcpy(to, rec->header, rec->header_length);
	if (!wants_payload(scan, rec))
		return ST_OK;
	return keep_bytes(o, in, rec->offset + rec->header_length, rec->stored, e);
}

static enum status keep_records(struct outline *o, struct blob *in, struct rsz_scan *scan,
				struct err *e)
{
	uint64_t end = 0;
	bool closed = false;
	struct rsz_record rec;
	enum status st = ST_OK;

	while (!st) {
		if (interrupted())
			return interrupt_status(e);
		st = rsz_scan_next(scan, &rec, e);
		if (!st) {
			closed = rec.type == RSZ_CLOSE;
			end = rec.offset + rec.header_length + rec.stored;
			st = keep_record(o, in, scan, &rec, e);
		}
	}
	if (st != ST_END)
		return st;
	/* What it ends at: a header that is cut off or bad. */
	st = closed ? ST_OK : keep_bytes(o, in, end, RSZ_HEADER_MAX, e);
	return st ? st : blob_reach(in, BLOB_ENDLESS, e);
}

/* Behind a bad BEGIN the first record is looked for, anywhere in these bytes. */
#define HEAD ((size_t)8192)

enum status outline_read(struct blob *in, struct outline **ret, struct err *e)
{
	struct outline *o = calloc(1, sizeof(*o));
	struct rsz_scan *scan = NULL;
	enum status st = o ? keep_bytes(o, in, 0, HEAD, e) : err_nomem(e);

	if (!st)
		st = rsz_scan_create(in, &scan, e);
	if (!st)
		st = keep_records(o, in, scan, e);
	rsz_scan_destroy(scan);
	if (st) {
		outline_destroy(o);
		return st;
	}
	o->blob = (struct blob){ .read_at = outline_read_at, .size = in->size };
	*ret = o;
	return ST_OK;
}

void outline_destroy(struct outline *o)
{
	if (!o)
		return;
	while (o->count)
		free(o->at[--o->count].bytes);
	free(o->at);
	free(o);
}

struct blob *outline_blob(struct outline *o)
{
	return &o->blob;
}
