/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Random access: an index of all extents, cut so that each address belongs to its newest capture.
 */
#include "formats/rsz_reader_internal.h"

#include <inttypes.h>
#include <string.h>

#include "formats/base/array.h"
#include "formats/rsz_decode.h"

/* An extent as the index lists it. `order` counts them in file order: the higher, the newer. */
struct indexed_extent {
	uint64_t address;
	uint64_t record;
	uint32_t length;
	uint32_t stream;
	uint32_t order;
};

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

static enum status add_piece(struct rsz_reader *r, struct indexed_extent x, struct err *e)
{
	if (r->count == r->room) {
		struct indexed_extent *pieces = array_grow(r->pieces, &r->room, sizeof(*pieces));

		if (!pieces)
			return err_nomem(e);
		r->pieces = pieces;
	}
	r->pieces[r->count++] = x;
	return ST_OK;
}

static enum status make_room_for_records(struct rsz_reader *r, size_t count, struct err *e)
{
	struct indexed_extent *pieces;

	if (count <= r->room)
		return ST_OK;
	pieces = realloc(r->pieces, count * sizeof(*pieces));
	if (!pieces)
		return err_nomem(e);
	r->pieces = pieces;
	r->room = count;
	return ST_OK;
}

/*
 * From front to back: an unsealed container has no index that one could trust to be complete.
 */

static enum status add_record(struct rsz_reader *r, const struct rsz_record *rec, struct err *e)
{
	struct rsz__chunk fields;
	enum status st;

	/* The scan has judged this header already, as paged as it is. */
	st = rsz__get_chunk(rec->header, rec->header_length, r->streams.at[rec->stream].kind,
			    r->streams.at[rec->stream].paged, &fields, e);
	for (uint32_t i = 0; !st && i < fields.extents; i++) {
		const struct rsz_extent x =
			rsz__get_extent(fields.extents_at + (size_t)RSZ__EXTENT_SIZE * i);

		st = add_piece(r,
			       (struct indexed_extent){ .address = x.address,
							.record = rec->offset,
							.length = x.length,
							.stream = rec->stream,
							.order = (uint32_t)r->count },
			       e);
	}
	return st;
}

/* `plain`: the streams that are not paged, and no others. */
static enum status open_by_scan(struct rsz_reader *r, bool plain, struct err *e)
{
	struct rsz_scan *scan = NULL;
	struct rsz_record rec;
	enum status st = rsz_scan_create(r->in, &scan, e);

	while (!st) {
		st = rsz_scan_next(scan, &rec, e);
		if (!st && rec.type == RSZ_STREAM)
			st = rsz__streams_add(&r->streams, rec.header, rec.header_length, e);
		if (!st && rec.type == RSZ_CHUNK && !(plain && r->streams.at[rec.stream].paged))
			st = add_record(r, &rec, e);
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

/* Buffers for one INDEX at a time. */
struct index_tail {
	struct blob *in;
	struct sha256 *sha;
	struct rsz_decoder *decoder;
	struct rsz_loaded loaded;
	uint8_t id[RSZ_ID_SIZE]; /* as BEGIN says */
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
	if (fields.previous >= *at || r->count + fields.entries > t->in->size / RSZ__EXTENT_SIZE ||
	    r->count + fields.entries > UINT32_MAX)
		return ST_CORRUPT;
	if (rsz__read_payload(t->in, *at, &p, &t->loaded, NULL) ||
	    rsz__make_data_room(&t->loaded, p.content, NULL) ||
	    rsz__decode_payload(t->decoder, &p, t->loaded.payload, t->loaded.chunk.data, NULL))
		return ST_CORRUPT;
	newer = *at;
	for (uint32_t i = fields.entries; i-- > 0;) {
		const struct rsz__entry x =
			rsz__get_entry(t->loaded.chunk.data + (size_t)RSZ__ENTRY_SIZE * i);
		const struct indexed_extent piece = {
			.address = x.address,
			.record = x.record,
			.length = x.length,
			.stream = x.stream,
		};

		if (x.record > newer || x.record <= fields.previous || x.record == *at ||
		    add_piece(r, piece, NULL))
			return ST_CORRUPT;
		newer = x.record;
	}
	*at = fields.previous;
	return ST_OK;
}

/* Takes the STREAM records out of the pieces and numbers the rest from old to new. */
static enum status tail_settle(struct index_tail *t, struct rsz_reader *r)
{
	size_t kept = 0;

	for (size_t i = 0, j = r->count; i + 1 < j; i++) {
		const struct indexed_extent swap = r->pieces[i];

		r->pieces[i] = r->pieces[--j];
		r->pieces[j] = swap;
	}
	for (size_t i = 0; i < r->count; i++) {
		struct indexed_extent x = r->pieces[i];
		struct rsz__prefix p;

		if (!x.length) {
			if (tail_header(t, x.record, RSZ_STREAM, &p) ||
			    rsz__streams_add(&r->streams, t->loaded.header, p.header, NULL))
				return ST_CORRUPT;
			continue;
		}
		if (x.stream >= r->streams.count || x.length > RSZ_CONTENT_MAX ||
		    x.address >= 1ull << 63)
			return ST_CORRUPT;
		if (r->streams.at[x.stream].paged && x.address % PAGE_SIZE)
			return ST_CORRUPT;
		x.order = (uint32_t)kept;
		r->pieces[kept++] = x;
	}
	r->count = kept;
	return ST_OK;
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
	if (tail_settle(t, r))
		return ST_CORRUPT;
	r->end = (struct rsz_scan_result){
		.end = RSZ_END_SEALED,
		.whole = t->in->size,
		.records = close.records + 1,
	};
	memcpy(r->end.root, close.root, sizeof(r->end.root));
	return ST_OK;
}

static enum status tail_init(struct index_tail *t, struct blob *in, struct err *e)
{
	enum status st;

	*t = (struct index_tail){ .in = in };
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
}

/* ST_END if the end cannot be used, for whatever reason: then the container must be walked. */
static enum status open_from_end(struct rsz_reader *r, struct err *e)
{
	struct index_tail t;
	enum status st = tail_init(&t, r->in, e);

	if (!st && walk_tail(&t, r)) {
		rsz__streams_deinit(&r->streams);
		r->count = 0;
		st = ST_END;
	}
	tail_deinit(&t);
	return st;
}

/*
 * The newest capture of every address. Pieces may overlap in any way; the result does not.
 */

static int by_stream_address(const void *a, const void *b)
{
	const struct indexed_extent *x = a, *y = b;

	if (x->stream != y->stream)
		return x->stream < y->stream ? -1 : 1;
	if (x->address != y->address)
		return x->address < y->address ? -1 : 1;
	return x->order < y->order ? -1 : x->order > y->order;
}

/* A heap of pieces, the newest on top. */
struct heap {
	const struct indexed_extent **at;
	size_t count;
};

static void heap_push(struct heap *h, const struct indexed_extent *x)
{
	size_t i = h->count++;

	for (; i && h->at[(i - 1) / 2]->order < x->order; i = (i - 1) / 2)
		h->at[i] = h->at[(i - 1) / 2];
	h->at[i] = x;
}

static void heap_pop(struct heap *h)
{
	const struct indexed_extent *last = h->at[--h->count];
	size_t i = 0;

	for (size_t child; (child = 2 * i + 1) < h->count; i = child) {
		if (child + 1 < h->count && h->at[child + 1]->order > h->at[child]->order)
			child++;
		if (h->at[child]->order < last->order)
			break;
		h->at[i] = h->at[child];
	}
	h->at[i] = last;
}

/* Appends [from, to) of `x`, joined to the piece before it where it is the same capture. */
static void emit(struct indexed_extent *out, size_t *n, const struct indexed_extent *x,
		 uint64_t from, uint64_t to)
{
	struct indexed_extent *before = *n ? &out[*n - 1] : NULL;

	if (before && before->order == x->order && before->stream == x->stream &&
	    before->address + before->length == from) {
		before->length += (uint32_t)(to - from);
		return;
	}
	out[*n] = *x;
	out[*n].address = from;
	out[*n].length = (uint32_t)(to - from);
	(*n)++;
}

/*
 * A sweep over the addresses of one stream. At every position the newest of the pieces that cover
 * it counts, until it ends or the next one begins. Each step ends or begins a piece, so that the
 * result has at most twice as many.
 */
static size_t sweep(const struct indexed_extent *in, size_t count, struct heap *h,
		    struct indexed_extent *out)
{
	uint64_t at = 0;
	size_t i = 0, n = 0;

	h->count = 0;
	while (i < count || h->count) {
		if (!h->count)
			at = in[i].address;
		while (i < count && in[i].address <= at)
			heap_push(h, &in[i++]);

		const struct indexed_extent *top = h->at[0];
		uint64_t to = top->address + top->length;

		if (to <= at) {
			heap_pop(h);
			continue;
		}
		if (i < count)
			to = MIN(to, in[i].address);
		emit(out, &n, top, at, to);
		at = to;
	}
	return n;
}

/* From `i` on: how many pieces overlap, each with one before it. 1: this one with none. */
static size_t run_of_overlaps(const struct rsz_reader *r, size_t i)
{
	uint64_t end = r->pieces[i].address + r->pieces[i].length;
	size_t n = 1;

	for (; i + n < r->count; n++) {
		const struct indexed_extent *x = &r->pieces[i + n];

		if (x->stream != r->pieces[i].stream || x->address >= end)
			break;
		end = MAX(end, x->address + x->length);
	}
	return n;
}

/* What runs of overlapping pieces become. Such runs are few: most is captured once. */
struct resolved {
	struct indexed_extent *at;
	const struct indexed_extent **heap;
	size_t count;
};

/* The stream of what stands for a run; its `order` is how many pieces that comes to. */
#define A_RUN UINT32_MAX

/* Puts one such piece in the place of each run. */
static void resolve_runs(struct rsz_reader *r, struct resolved *x)
{
	size_t kept = 0;

	for (size_t i = 0, n; i < r->count; i += n) {
		struct heap heap = { .at = x->heap };
		size_t made;

		n = run_of_overlaps(r, i);
		if (n == 1) {
			r->pieces[kept++] = r->pieces[i];
			continue;
		}
		made = sweep(&r->pieces[i], n, &heap, x->at + x->count);
		x->count += made;
		r->pieces[kept++] =
			(struct indexed_extent){ .stream = A_RUN, .order = (uint32_t)made };
	}
	r->count = kept;
}

/* Puts what runs came to in their places, from the back, where the room is. */
static void spread_runs(struct rsz_reader *r, const struct resolved *x, size_t count)
{
	size_t from = x->count, to = count;

	for (size_t i = r->count; i-- > 0;) {
		const struct indexed_extent p = r->pieces[i];

		if (p.stream != A_RUN) {
			r->pieces[--to] = p;
			continue;
		}
		from -= p.order;
		to -= p.order;
		memcpy(&r->pieces[to], &x->at[from], p.order * sizeof(p));
	}
	r->count = count;
}

static enum status resolve_overlaps(struct rsz_reader *r, size_t overlapping, struct err *e)
{
	struct resolved x = { 0 };
	enum status st = ST_OK;
	size_t count = 0;

	/* sweep() makes twice as many at most. */
	x.heap = malloc(overlapping * sizeof(*x.heap));
	x.at = malloc(2 * overlapping * sizeof(*x.at));
	if (!x.heap || !x.at) {
		st = err_nomem(e);
	} else {
		resolve_runs(r, &x);
		for (size_t i = 0; i < r->count; i++)
			count += r->pieces[i].stream == A_RUN ? r->pieces[i].order : 1;
		st = make_room_for_records(r, count, e);
	}
	if (!st)
		spread_runs(r, &x, count);
	free(x.heap);
	free(x.at);
	return st;
}

static enum status settle_pieces(struct rsz_reader *r, struct err *e)
{
	size_t overlapping = 0;

	if (r->count)
		array_sort(r->pieces, r->count, sizeof(*r->pieces), by_stream_address);
	for (size_t i = 0, n; i < r->count; i += n) {
		n = run_of_overlaps(r, i);
		overlapping += n > 1 ? n : 0;
	}
	return overlapping ? resolve_overlaps(r, overlapping, e) : ST_OK;
}

static enum status open_end(struct rsz_reader *r, enum status st, struct rsz_reader **ret,
			    struct err *e)
{
	if (!st)
		st = settle_pieces(r, e);
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
	struct rsz_reader *r = calloc(1, sizeof(*r));
	enum status st;

	if (!r)
		return err_nomem(e);
	r->in = in;
	st = trust == RSZ_TRUST_INDEX ? open_from_end(r, e) : ST_END;
	if (st == ST_END)
		st = open_by_scan(r, false, e);
	return open_end(r, st, ret, e);
}

enum status rsz_reader_open_plain(struct blob *in, struct rsz_reader **ret, struct err *e)
{
	struct rsz_reader *r = calloc(1, sizeof(*r));

	if (!r)
		return err_nomem(e);
	r->in = in;
	return open_end(r, open_by_scan(r, true, e), ret, e);
}

void rsz_reader_close(struct rsz_reader *r)
{
	if (!r)
		return;
	rsz__streams_deinit(&r->streams);
	free(r->pieces);
	free(r);
}

/* The first piece of the stream that ends behind `from`, or r->count. */
static size_t find_piece(const struct rsz_reader *r, uint32_t stream, uint64_t from)
{
	size_t low = 0, high = r->count;

	while (low < high) {
		const size_t mid = low + (high - low) / 2;
		const struct indexed_extent *x = &r->pieces[mid];

		if (x->stream < stream || (x->stream == stream && x->address + x->length <= from))
			low = mid + 1;
		else
			high = mid;
	}
	return low < r->count && r->pieces[low].stream == stream ? low : r->count;
}

bool rsz_reader_next(const struct rsz_reader *r, uint32_t stream, uint64_t from,
		     struct rsz_segment *ret)
{
	const size_t i = find_piece(r, stream, from);

	if (i == r->count)
		return false;
	*ret = (struct rsz_segment){
		.address = r->pieces[i].address,
		.length = r->pieces[i].length,
		.record = r->pieces[i].record,
	};
	return true;
}

enum status rsz_reader_ranges(const struct rsz_reader *r, uint32_t stream, struct range_list *ret,
			      struct err *e)
{
	enum status st = ST_OK;

	for (size_t i = find_piece(r, stream, 0), j; !st && i < r->count; i = j) {
		uint64_t end = r->pieces[i].address;

		if (r->pieces[i].stream != stream)
			break;
		for (j = i; j < r->count && r->pieces[j].stream == stream; j++) {
			if (r->pieces[j].address != end)
				break;
			end += r->pieces[j].length;
		}
		st = range_list_add(ret, r->pieces[i].address, end - 1, e);
	}
	return st;
}
