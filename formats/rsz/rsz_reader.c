/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Random access: opening, by the index or by all headers, and what was captured where.
 */
#include "formats/rsz/rsz_reader_internal.h"

#include <inttypes.h>
#include <string.h>

#include "formats/base/array.h"
#include "formats/rsz/rsz_decode.h"

/* Columns of rsz_reader.records. */
enum { FIRST_EXTENT, OFFSET, RECORD_COLUMNS };

const struct rsz_identity *rsz_reader_identity(const struct rsz_reader *r)
{
	return &r->identity;
}

size_t rsz_reader_streams(const struct rsz_reader *r)
{
	return r->streams.count;
}

const struct rsz_stream_info *rsz_reader_stream(const struct rsz_reader *r, size_t i)
{
	return i < r->streams.count ? &r->streams.at[i] : NULL;
}

const struct rsz_scan_result *rsz_reader_end(const struct rsz_reader *r)
{
	return &r->end;
}

static enum status add_reader_record(struct packed *records, uint64_t first, uint64_t offset,
				     struct err *e)
{
	const uint64_t row[RECORD_COLUMNS] = { [FIRST_EXTENT] = first, [OFFSET] = offset };

	return packed_add(records, row, e);
}

static void begin_extents(struct rsz_reader *r)
{
	rsz__extents_init(&r->extents);
	r->records = (struct packed){ .columns = RECORD_COLUMNS };
	r->count = r->lowest = 0;
}

static void end_extents(struct rsz_reader *r)
{
	rsz__extents_deinit(&r->extents);
	packed_deinit(&r->records);
}

/*
 * From front to back: an unsealed container has no index that one could trust to be complete.
 */

static enum status add_chunk(struct rsz_reader *r, const struct rsz__chunk *c, uint64_t offset,
			     struct err *e)
{
	enum status st = add_reader_record(&r->records, r->count, offset, e);

	for (uint32_t i = 0; !st && i < c->extents; i++) {
		const struct rsz_extent x =
			rsz__get_extent(c->extents_at + (size_t)RSZ__EXTENT_SIZE * i);

		st = rsz__extents_add(&r->extents,
				      &(struct rsz__piece){ .address = x.address,
							    .length = x.length,
							    .extent = r->count + i,
							    .stream = c->stream },
				      e);
	}
	r->count += st ? 0 : c->extents;
	return st;
}

/* Who is shown the chunks of a walk. */
struct chunk_watch {
	rsz_chunk_fn *fn;
	void *arg;
	struct rsz_loaded loaded;
};

static enum status take_scanned_chunk(struct rsz_reader *r, const struct rsz_scan *scan,
				      const struct rsz_record *rec, struct chunk_watch *w,
				      struct err *e)
{
	const enum status st = add_chunk(r, &scan->chunk, rec->offset, e);

	if (st || !w)
		return st;
	rsz_scan_chunk(scan, &w->loaded.chunk);
	return w->fn(w->arg, rec, &w->loaded.chunk, e);
}

/* `w`: NULL if nobody is shown anything. */
static enum status open_by_scan(struct rsz_reader *r, struct chunk_watch *w, struct err *e)
{
	struct rsz_scan *scan = NULL;
	struct rsz_record rec;
	enum status st = rsz_scan_create(r->in, &scan, e);

	while (!st) {
		st = rsz_scan_next(scan, &rec, e);
		if (!st && rec.type == RSZ_STREAM)
			st = rsz__streams_add(&r->streams, rec.header, rec.header_length, e);
		if (!st && rec.type == RSZ_CHUNK)
			st = take_scanned_chunk(r, scan, &rec, w, e);
	}
	if (st == ST_END) {
		rsz_scan_end(scan, &r->end);
		r->identity = *rsz_scan_identity(scan);
		st = ST_OK;
	}
	rsz_scan_destroy(scan);
	return st;
}

/*
 * From the end: CLOSE, the last INDEX, the one before it, …
 */

/* What an INDEX names of a stream that is declared further in front, where the walk comes later. */
enum { NAMED = 1, NAMED_WITHIN_PAGE = 2 };

/* Buffers for one INDEX at a time, and what the walk remembers. */
struct index_tail {
	struct blob *in;
	struct sha256 *sha;
	struct rsz_decoder *decoder;
	struct rsz_loaded loaded;
	uint8_t id[RSZ_ID_SIZE]; /* as BEGIN says */
	uint64_t entries;
	uint64_t streams[RSZ_STREAMS_MAX]; /* offsets of their records, the last one first */
	size_t n_streams;
	uint8_t named[RSZ_STREAMS_MAX];
	/* The CHUNK record at hand, and those behind it in the file, the last one first. */
	uint64_t record; /* 0: none yet */
	struct packed records;
};

/* A record of the wanted type that belongs here. ST_CORRUPT (no message) if it is not. */
static enum status tail_header(struct index_tail *t, uint64_t offset, enum rsz_type type,
			       struct rsz__prefix *ret)
{
	if (rsz__read_header(t->in, offset, t->sha, t->loaded.header, ret, NULL))
		return ST_CORRUPT;
	if (ret->type != type || ret->offset != offset || memcmp(ret->id, t->id, sizeof(t->id)))
		return ST_CORRUPT;
	return ST_OK;
}

static enum status tail_close(struct index_tail *t, struct rsz__close *ret, struct rsz__prefix *p)
{
	if (t->in->size < RSZ__CLOSE_SIZE)
		return ST_CORRUPT;
	if (tail_header(t, t->in->size - RSZ__CLOSE_SIZE, RSZ_CLOSE, p))
		return ST_CORRUPT;
	if (p->header != RSZ__CLOSE_SIZE || rsz__get_close(t->loaded.header, p->header, ret, NULL))
		return ST_CORRUPT;
	/* A container without an INDEX is one of BEGIN and CLOSE alone. */
	if (!ret->last_index && ret->records > 1)
		return ST_CORRUPT;
	return ret->records == p->sequence ? ST_OK : ST_CORRUPT;
}

/*
 * Extents are numbered from the end, downwards: how many there are is not known yet. The highest
 * number is that of the newest.
 */
static uint64_t last_number(const struct rsz_reader *r)
{
	return UINT64_MAX - r->count + 1;
}

/* The record at hand has come to its first extent. */
static enum status end_tail_record(struct index_tail *t, const struct rsz_reader *r)
{
	return t->record ? add_reader_record(&t->records, last_number(r), t->record, NULL) : ST_OK;
}

static enum status tail_extent(struct index_tail *t, struct rsz_reader *r,
			       const struct rsz__entry *x)
{
	if (x->stream >= RSZ_STREAMS_MAX || x->length > RSZ_CONTENT_MAX || x->address >= 1ull << 63)
		return ST_CORRUPT;
	t->named[x->stream] |= x->address % PAGE_SIZE ? NAMED | NAMED_WITHIN_PAGE : NAMED;
	if (x->record != t->record) {
		if (end_tail_record(t, r))
			return ST_CORRUPT;
		t->record = x->record;
	}
	r->count++;
	return rsz__extents_add(&r->extents,
				&(struct rsz__piece){ .address = x->address,
						      .length = x->length,
						      .extent = last_number(r),
						      .stream = x->stream },
				NULL);
}

/* Without a length it is a STREAM record. */
static enum status tail_entry(struct index_tail *t, struct rsz_reader *r,
			      const struct rsz__entry *x)
{
	if (x->length)
		return tail_extent(t, r, x);
	if (t->n_streams == RSZ_STREAMS_MAX)
		return ST_CORRUPT;
	t->streams[t->n_streams++] = x->record;
	return ST_OK;
}

/*
 * Appends the entries of one INDEX, newest first, because the walk goes backwards. `end` is where
 * it must lie before; *at moves to the previous INDEX.
 */
static enum status tail_index(struct index_tail *t, struct rsz_reader *r, uint64_t *at,
			      uint64_t end)
{
	struct rsz__index fields;
	struct rsz__prefix p;
	uint64_t newer;

	if (*at >= end || tail_header(t, *at, RSZ_INDEX, &p) ||
	    rsz__get_index(t->loaded.header, p.header, &fields, NULL))
		return ST_CORRUPT;
	t->entries += fields.entries;
	if (fields.previous >= *at || t->entries > t->in->size / RSZ__EXTENT_SIZE)
		return ST_CORRUPT;
	if (rsz__read_payload(t->in, *at, &p, &t->loaded, NULL) ||
	    rsz__make_data_room(&t->loaded, p.content, NULL) ||
	    rsz__decode_payload(t->decoder, &p, t->loaded.payload, t->loaded.chunk.data, NULL))
		return ST_CORRUPT;
	newer = *at;
	for (uint32_t i = fields.entries; i-- > 0;) {
		const struct rsz__entry x =
			rsz__get_entry(t->loaded.chunk.data + (size_t)RSZ__ENTRY_SIZE * i);

		if (x.record > newer || x.record <= fields.previous || x.record == *at ||
		    tail_entry(t, r, &x))
			return ST_CORRUPT;
		newer = x.record;
	}
	*at = fields.previous;
	return ST_OK;
}

static enum status tail_streams(struct index_tail *t, struct rsz_reader *r)
{
	struct rsz__prefix p;

	while (t->n_streams) {
		const uint64_t at = t->streams[--t->n_streams];

		if (tail_header(t, at, RSZ_STREAM, &p) ||
		    rsz__streams_add(&r->streams, t->loaded.header, p.header, NULL))
			return ST_CORRUPT;
	}
	for (size_t i = 0; i < RSZ_STREAMS_MAX; i++) {
		if (t->named[i] && i >= r->streams.count)
			return ST_CORRUPT;
		if (t->named[i] & NAMED_WITHIN_PAGE && r->streams.at[i].paged)
			return ST_CORRUPT;
	}
	return ST_OK;
}

/* What is numbered from the end counts from 0 on. */
static enum status tail_records(struct index_tail *t, struct rsz_reader *r)
{
	enum status st = end_tail_record(t, r);

	r->lowest = r->count ? last_number(r) : 0;
	if (!st)
		st = packed_finish(&t->records, NULL);
	for (size_t i = t->records.rows; i-- > 0 && !st;)
		st = add_reader_record(&r->records,
				       packed_get(&t->records, i, FIRST_EXTENT) - r->lowest,
				       packed_get(&t->records, i, OFFSET), NULL);
	return st;
}

static enum status walk_tail(struct index_tail *t, struct rsz_reader *r)
{
	struct rsz__close close;
	struct rsz__prefix p;
	uint64_t at, end;

	if (rsz__read_header(t->in, 0, t->sha, t->loaded.header, &p, NULL) || p.type != RSZ_BEGIN ||
	    rsz__identity_from(t->loaded.header, p.header, &p, &r->identity, NULL))
		return ST_CORRUPT;
	memcpy(t->id, p.id, sizeof(t->id));
	if (tail_close(t, &close, &p))
		return ST_CORRUPT;
	end = p.offset;
	for (at = close.last_index; at;) {
		const uint64_t here = at;

		if (tail_index(t, r, &at, end))
			return ST_CORRUPT;
		end = here;
	}
	if (tail_streams(t, r) || tail_records(t, r))
		return ST_CORRUPT;
	r->end = (struct rsz_scan_result){
		.end = RSZ_END_SEALED,
		.whole = t->in->size,
		.records = close.records + 1,
	};
	memcpy(r->end.root, close.root, sizeof(r->end.root));
	memcpy(r->end.id, t->id, sizeof(r->end.id));
	return ST_OK;
}

static enum status tail_init(struct index_tail *t, struct blob *in, struct err *e)
{
	enum status st;

	*t = (struct index_tail){ .in = in, .records.columns = RECORD_COLUMNS };
	st = sha256_create(&t->sha, e);
	if (!st)
		st = rsz_decoder_create(&t->decoder, e);
	if (!st)
		st = rsz_loaded_init(&t->loaded, e);
	return st;
}

static void tail_deinit(struct index_tail *t)
{
	sha256_destroy(t->sha);
	rsz_decoder_destroy(t->decoder);
	rsz_loaded_deinit(&t->loaded);
	packed_deinit(&t->records);
}

/* ST_END if the end cannot be used, for whatever reason: then the container must be walked. */
static enum status open_from_end(struct rsz_reader *r, struct err *e)
{
	struct index_tail t;
	enum status st = tail_init(&t, r->in, e);

	if (!st && walk_tail(&t, r)) {
		rsz__streams_deinit(&r->streams);
		end_extents(r);
		begin_extents(r);
		st = ST_END;
	}
	tail_deinit(&t);
	return st;
}

/*
 * Opening
 */

static struct rsz_reader *new_reader(struct blob *in)
{
	struct rsz_reader *r = calloc(1, sizeof(*r));

	if (!r)
		return NULL;
	r->starved = calloc(1, sizeof(*r->starved));
	if (!r->starved) {
		free(r);
		return NULL;
	}
	r->in = in;
	begin_extents(r);
	return r;
}

static enum status open_end(struct rsz_reader *r, enum status st, struct rsz_reader **ret,
			    struct err *e)
{
	if (!st)
		st = packed_finish(&r->records, e);
	if (!st)
		st = rsz__extents_settle(&r->extents, e);
	if (st) {
		rsz_reader_close(r);
		return st;
	}
	*ret = r;
	return ST_OK;
}

enum status rsz_reader_open(struct blob *in, enum rsz_trust trust, struct rsz_reader **ret,
			    struct err *e)
{
	struct rsz_reader *r = new_reader(in);
	enum status st;

	if (!r)
		return err_nomem(e);
	st = trust == RSZ_TRUST_INDEX ? open_from_end(r, e) : ST_END;
	if (st == ST_END)
		st = open_by_scan(r, NULL, e);
	return open_end(r, st, ret, e);
}

enum status rsz_reader_open_watched(struct blob *in, rsz_chunk_fn *fn, void *arg,
				    struct rsz_reader **ret, struct err *e)
{
	struct chunk_watch w = { .fn = fn, .arg = arg };
	struct rsz_reader *r = new_reader(in);
	enum status st = r ? rsz_loaded_init(&w.loaded, e) : err_nomem(e);

	if (!st)
		st = open_by_scan(r, &w, e);
	rsz_loaded_deinit(&w.loaded);
	return open_end(r, st, ret, e);
}

void rsz_reader_close(struct rsz_reader *r)
{
	if (!r)
		return;
	rsz__streams_deinit(&r->streams);
	end_extents(r);
	free(r->starved);
	free(r);
}

enum status rsz_reader_starved(const struct rsz_reader *r, struct err *e)
{
	return atomic_load(r->starved) ? err_nomem(e) : ST_OK;
}

/*
 * Finding
 */

uint64_t rsz_reader_record(const struct rsz_reader *r, uint64_t extent)
{
	const struct packed *p = &r->records;
	const size_t behind = FIRST_WHERE(i, p->rows, packed_get(p, i, FIRST_EXTENT) > extent);

	return packed_get(p, behind ? behind - 1 : 0, OFFSET);
}

bool rsz_reader_next(const struct rsz_reader *r, uint32_t stream, uint64_t from,
		     struct rsz_segment *ret)
{
	const size_t i = rsz__extents_find(&r->extents, stream, from);
	struct rsz__piece p;

	if (i == r->extents.pieces.rows)
		return false;
	p = rsz__extents_get(&r->extents, i);
	*ret = (struct rsz_segment){
		.address = p.address,
		.length = p.length,
		.extent = p.extent - r->lowest,
	};
	return true;
}

bool rsz_reader_is_covered(const struct rsz_reader *r, uint64_t extent)
{
	return rsz__extents_is_covered(&r->extents, extent + r->lowest);
}

enum status rsz_reader_ranges(const struct rsz_reader *r, uint32_t stream, struct range_list *ret,
			      struct err *e)
{
	const size_t count = r->extents.pieces.rows;
	uint64_t first = 0, end = 0; /* of the range at hand; there is none as long as end is 0 */
	enum status st = ST_OK;

	for (size_t i = rsz__extents_find(&r->extents, stream, 0); i < count && !st; i++) {
		const struct rsz__piece p = rsz__extents_get(&r->extents, i);

		if (p.stream != stream)
			break;
		if (end && end != p.address)
			st = range_list_add(ret, first, end - 1, e);
		if (end != p.address || !end)
			first = p.address;
		end = p.address + p.length;
	}
	return st || !end ? st : range_list_add(ret, first, end - 1, e);
}
