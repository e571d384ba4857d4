/* SPDX-License-Identifier: Apache-2.0 */
#include "formats/image/avml.h"

#include <inttypes.h>
#include <string.h>

#include "formats/base/array.h"
#include "formats/base/bytes.h"

/* A chunk's header costs a read of its own, which is worth so many bytes of the search's. */
#define CHUNK_COST  64

/* What is searched through at a time. */
#define SEARCH_STEP ((size_t)64 << 10)

/* A header and what a stream begins with. */
#define BEGIN_SIZE  (AVML_HEADER_SIZE + SNAPPY_IDENTIFIER_SIZE)

static bool has_avml_magic(const uint8_t *h)
{
	return get_le32(h) == AVML_MAGIC && get_le32(h + 4) == AVML_VERSION && !get_le64(h + 24);
}

/* A range of 2^64 bytes would have a length that is 0. */
static bool parse_avml_header(const uint8_t *h, struct range *ret)
{
	*ret = (struct range){ get_le64(h + 8), get_le64(h + 16) };
	return has_avml_magic(h) && ret->first <= ret->last && ret->last - ret->first < UINT64_MAX;
}

static enum status add_point(struct avml *a, uint64_t plain, uint64_t offset, struct err *e)
{
	if (!ARRAY_ROOM(a->points, a->n_points, a->points_room))
		return err_nomem(e);
	a->points[a->n_points++] = (struct avml_point){ plain, offset };
	return ST_OK;
}

static enum status append_avml_block(struct avml *a, struct range r, struct err *e)
{
	if (a->count == AVML_BLOCKS_MAX)
		return err_set(e, ST_CORRUPT, "more than %zu blocks", AVML_BLOCKS_MAX);
	if (!ARRAY_ROOM(a->at, a->count, a->room))
		return err_nomem(e);
	a->at[a->count++] = (struct avml_block){ .range = r, .plain = a->plain };
	return ST_OK;
}

/* A walk through one stream. */
struct walk {
	uint64_t begin, offset; /* of the stream, of the chunk that is next */
	uint64_t want, plain;   /* bytes that it is to become, and has so far */
	uint64_t cost;
	enum snappy_kind end; /* SNAPPY_DATA: as it should */
};

/* Remembers the way, if `a` is the image that is opened and not only tried. */
static enum status note_point(struct avml *a, const struct walk *w, struct err *e)
{
	struct avml_point *last = a->n_points ? &a->points[a->n_points - 1] : NULL;
	const uint64_t plain = a->plain + w->plain;

	/* Chunks without memory lead on to none: the later one is nearer to it. */
	if (last && last->plain == plain)
		last->offset = w->offset;
	else if (!last || !w->plain || plain - last->plain >= AVML_POINT_PLAIN ||
		 w->offset - last->offset >= AVML_POINT_STORED)
		return add_point(a, plain, w->offset, e);
	return ST_OK;
}

/*
 * AVML writes an identifier, and then data. One bit makes a chunk that is to be skipped out of one
 * of data, and so none but the first is skipped.
 */
static bool belongs_to_stream(const struct walk *w, const struct snappy_chunk *c)
{
	return (c->kind == SNAPPY_SKIP) == (w->offset == w->begin) &&
	       c->plain <= w->want - w->plain;
}

/* To where the trailer should be, or to what is no chunk. `points`: NULL for a trial. */
static enum status walk_stream(struct blob *b, struct walk *w, struct avml *points, struct err *e)
{
	enum status st = ST_OK;

	w->end = SNAPPY_DATA;
	while (w->plain < w->want && !st) {
		struct snappy_chunk c;

		st = snappy_chunk_at(b, w->offset, &c, e);
		if (st)
			return st;
		w->cost += CHUNK_COST;
		if (c.kind != SNAPPY_CUT && !belongs_to_stream(w, &c))
			c.kind = SNAPPY_BAD;
		if (c.kind == SNAPPY_CUT || c.kind == SNAPPY_BAD) {
			w->end = c.kind;
			return ST_OK;
		}
		if (points && c.kind == SNAPPY_DATA)
			st = note_point(points, w, e);
		w->plain += c.plain;
		w->offset = c.next;
	}
	return st;
}

/* Whether the eight bytes in front of `off` are the length of the stream that began at `begin`. */
static bool trailer_fits(struct blob *b, uint64_t begin, uint64_t off)
{
	uint8_t t[AVML_TRAILER_SIZE];

	return off >= begin && off - begin >= sizeof(t) &&
	       !blob_read(b, off - sizeof(t), t, sizeof(t), NULL) &&
	       get_le64(t) == off - sizeof(t) - begin;
}

/* Whether the search may go on: see AVML_SEARCH_FACTOR. */
static bool may_search(const struct avml *a)
{
	return a->searched / AVML_SEARCH_FACTOR <= a->blob->size;
}

/* Whether a whole block begins at `off`. */
static enum status is_block(struct avml *a, uint64_t off, struct range r, bool *ret, struct err *e)
{
	struct walk w = { .begin = off + AVML_HEADER_SIZE,
			  .offset = off + AVML_HEADER_SIZE,
			  .want = range_bytes(r) };
	const enum status st = may_search(a) ? walk_stream(a->blob, &w, NULL, e) : ST_OK;

	a->searched += w.cost;
	*ret = !st && w.offset > w.begin && w.end == SNAPPY_DATA &&
	       trailer_fits(a->blob, w.begin, w.offset + AVML_TRAILER_SIZE);
	return st;
}

/* Of `len` bytes at `off` the first that begin a block to be believed; `len` bytes if none does. */
static enum status search_in(struct avml *a, uint64_t begin, uint64_t off, const uint8_t *p,
			     size_t len, size_t *ret, struct err *e)
{
	enum status st = ST_OK;
	bool found = false;

	for (*ret = 0; *ret < len && !st; *ret += !found) {
		const uint8_t *at = memchr(p + *ret, AVML_MAGIC & 0xff, len - *ret);
		struct range r;

		*ret = at ? (size_t)(at - p) : len;
		if (!at || len - *ret < BEGIN_SIZE || !parse_avml_header(at, &r) ||
		    memcmp(at + AVML_HEADER_SIZE, SNAPPY_IDENTIFIER, SNAPPY_IDENTIFIER_SIZE))
			continue;
		found = trailer_fits(a->blob, begin, off + *ret);
		if (!found)
			st = is_block(a, off + *ret, r, &found, e);
		if (found)
			return st;
	}
	*ret = len;
	return st;
}

/*
 * The stream that began at `begin` cannot be followed beyond *off: moves *off to the next block, or
 * to the end of the blob. ST_END if there is none, and the end is not that of this stream.
 */
static enum status search_next_block(struct avml *a, uint64_t begin, uint64_t *off, struct err *e)
{
	const uint64_t from = *off;
	_cleanup_free_ uint8_t *buf = malloc(SEARCH_STEP + BEGIN_SIZE);
	enum status st = buf ? ST_OK : err_nomem(e);

	while (!st && *off < a->blob->size) {
		size_t got = 0, at = 0;

		if (!may_search(a))
			break;
		st = a->blob->read_at(a->blob, *off, buf, SEARCH_STEP + BEGIN_SIZE, &got, e);
		if (!st)
			st = search_in(a, begin, *off, buf, got, &at, e);
		if (st || !got)
			break;
		if (at < got) {
			*off += at;
			a->passed += *off - from;
			return ST_OK;
		}
		a->searched += SEARCH_STEP;
		*off += MIN(got, SEARCH_STEP);
	}
	if (st)
		return st;
	*off = a->blob->size;
	if (!trailer_fits(a->blob, begin, *off))
		return ST_END;
	a->passed += *off - from;
	return ST_OK;
}

/* What stands at *off belongs to no block: where the next one begins, or how the file ends. */
static enum status pass_damage(struct avml *a, uint64_t begin, uint64_t *off, bool cut,
			       struct err *e)
{
	const uint64_t from = *off;
	const enum status st = search_next_block(a, begin, off, e);

	if (st == ST_END) {
		a->end = cut ? AVML_CUT : AVML_DAMAGED;
		a->rest = a->blob->size - from;
	} else if (!st) {
		a->damaged++;
	}
	return st;
}

/*
 * The header of a block of zeros is followed by the next header at once. At the end of the file it
 * may also be one whose block was not written any more: it is believed if there are others.
 */
static bool is_without_stream(struct avml *a, struct range r, uint64_t off)
{
	uint8_t h[AVML_HEADER_SIZE];
	struct range next;

	if (off == a->blob->size)
		return a->zeros && range_bytes(r) <= AVML_ZEROS_MAX;
	return range_bytes(r) <= AVML_ZEROS_MAX && !blob_read(a->blob, off, h, sizeof(h), NULL) &&
	       parse_avml_header(h, &next);
}

/*
 * The walk ended early. If the stream goes on to its trailer all the same, or has come there, it is
 * the range that is wrong.
 */
static enum status is_range_wrong(struct avml *a, const struct walk *w, uint64_t *end, bool *ret,
				  struct err *e)
{
	struct walk on = { .begin = w->begin, .offset = w->offset, .want = UINT64_MAX };
	const enum status st = may_search(a) ? walk_stream(a->blob, &on, NULL, e) : ST_OK;

	a->searched += on.cost;
	*end = on.offset + AVML_TRAILER_SIZE;
	*ret = !st && trailer_fits(a->blob, w->begin, *end);
	return st;
}

/* Takes the last block back, as its range is wrong. */
static void drop_block(struct avml *a, const struct walk *w, size_t points, uint64_t end)
{
	a->plain = a->at[--a->count].plain;
	a->n_points = points;
	a->damaged++;
	a->passed += end - w->begin;
}

/* The last block is not whole, for what stands at *off. */
static enum status take_partial_block(struct avml *a, const struct walk *w, uint64_t *off,
				      struct err *e)
{
	struct avml_block *k = &a->at[a->count - 1];

	if (range_bytes(k->range) > AVML_CLAIM_MAX) {
		a->overstated++;
		k->range.last = k->range.first + MAX(k->present, 1) - 1;
	}
	return pass_damage(a, w->begin, off, w->end == SNAPPY_CUT, e);
}

static enum status take_block_stream(struct avml *a, struct avml_block *k, uint64_t *off,
				     struct err *e)
{
	struct walk w = { .begin = *off, .offset = *off, .want = range_bytes(k->range) };
	const size_t points = a->n_points;
	enum status st = walk_stream(a->blob, &w, a, e);
	bool wrong = false;
	uint64_t end;

	if (st)
		return st;
	k->present = w.plain;
	a->plain += w.plain;
	*off = w.offset;
	end = w.offset + AVML_TRAILER_SIZE;
	if (w.end == SNAPPY_DATA && !range_fits(w.offset, AVML_TRAILER_SIZE, a->blob->size)) {
		a->end = AVML_CUT_END;
		return ST_END;
	}
	if (w.end == SNAPPY_DATA && trailer_fits(a->blob, w.begin, end)) {
		*off = end;
		return ST_OK;
	}
	st = is_range_wrong(a, &w, &end, &wrong, e);
	if (st)
		return st;
	if (wrong)
		drop_block(a, &w, points, end);
	else if (w.end != SNAPPY_DATA)
		return take_partial_block(a, &w, off, e);
	if (!wrong) {
		/* Every byte is there, and has a CRC: it is the length alone that is damaged. */
		a->damaged++;
		end = w.offset + AVML_TRAILER_SIZE;
	}
	*off = end;
	return ST_OK;
}

/* Reads the block at *off and moves *off behind it; ST_END where there are no more. */
static enum status next_block(struct avml *a, uint64_t *off, struct err *e)
{
	uint8_t h[AVML_HEADER_SIZE];
	struct range r = { 0 };
	size_t got = 0;
	enum status st = a->blob->read_at(a->blob, *off, h, sizeof(h), &got, e);

	if (st)
		return st;
	if (!got)
		return ST_END;
	if (got < sizeof(h)) {
		a->end = AVML_CUT_END;
		return ST_END;
	}
	if (!parse_avml_header(h, &r)) {
		if (!*off)
			return err_set(e, ST_CORRUPT, "its first header is wrong");
		/* If this is a header all the same, its stream begins behind it. */
		*off += sizeof(h);
		return pass_damage(a, *off, off, false, e);
	}
	*off += sizeof(h);
	st = append_avml_block(a, r, e);
	if (st)
		return st;
	if (!is_without_stream(a, r, *off))
		return take_block_stream(a, &a->at[a->count - 1], off, e);
	a->at[a->count - 1].present = range_bytes(r);
	st = add_point(a, a->plain, AVML_ZEROS, e);
	a->plain += range_bytes(r);
	a->zeros += range_bytes(r);
	return st;
}

enum status avml_init(struct avml *a, struct blob *b, struct err *e)
{
	uint8_t magic[8];
	uint64_t off = 0;
	enum status st = ST_OK;

	*a = (struct avml){ .blob = b };
	if (blob_read(b, 0, magic, sizeof(magic), NULL) || get_le32(magic) != AVML_MAGIC)
		return err_set(e, ST_NOT_MINE, "not an AVML image");
	if (get_le32(magic + 4) != AVML_VERSION)
		return err_set(e, ST_INPUT, "AVML's version %" PRIu32 " is unknown",
			       get_le32(magic + 4));
	a->packed = malloc(SNAPPY_PACKED_MAX);
	a->unpacked = malloc(SNAPPY_PLAIN_MAX);
	if (!a->packed || !a->unpacked)
		return err_nomem(e);
	while (!st) {
		st = next_block(a, &off, e);
		if (st && st != ST_END)
			return err_add(e, st, "block %zu", a->count);
	}
	return ST_OK;
}

void avml_deinit(struct avml *a)
{
	free(a->at);
	free(a->points);
	free(a->packed);
	free(a->unpacked);
	*a = (struct avml){ 0 };
}

/* The last point at `plain` or before it. */
static const struct avml_point *find_point(const struct avml *a, uint64_t plain)
{
	const size_t behind = FIRST_WHERE(i, a->n_points, a->points[i].plain > plain);

	return behind ? &a->points[behind - 1] : NULL;
}

/* The chunk with the byte `plain`, from a point on; *at becomes what its first byte is called. */
static enum status find_snappy_chunk(struct avml *a, const struct avml_point *from, uint64_t plain,
				     struct snappy_chunk *c, uint64_t *at, struct err *e)
{
	uint64_t off = from->offset;

	/* What was read last is the nearest, unless it ends a block, which ends at a point. */
	*at = from->plain;
	if (a->next.plain > from->plain && a->next.plain <= plain) {
		*at = a->next.plain;
		off = a->next.offset;
	}
	for (;;) {
		const enum status st = snappy_chunk_at(a->blob, off, c, e);

		if (st)
			return st;
		if (c->kind == SNAPPY_CUT || c->kind == SNAPPY_BAD)
			return err_set(e, ST_CORRUPT, "the file changes while it is read");
		if (plain - *at < c->plain)
			return ST_OK;
		*at += c->plain;
		off = c->next;
	}
}

/* Holds the chunk with the byte `plain`. ST_CORRUPT if it is damaged. */
static enum status hold_chunk(struct avml *a, const struct avml_point *from, uint64_t plain,
			      struct err *e)
{
	struct snappy_chunk c;
	uint64_t at;
	enum status st = find_snappy_chunk(a, from, plain, &c, &at, e);

	a->held_len = 0;
	if (st)
		return st;
	a->next = (struct avml_point){ at + c.plain, c.next };
	st = snappy_unpack(a->blob, &c, a->packed, a->unpacked, e);
	if (st && st != ST_CORRUPT)
		return st;
	a->held = at;
	a->held_len = c.plain;
	a->held_bad = st == ST_CORRUPT;
	return ST_OK;
}

enum status avml_read(struct avml *a, uint64_t plain, void *buf, size_t len, size_t *got,
		      struct err *e)
{
	uint8_t *to = buf;

	for (*got = 0; *got < len && plain < a->plain;) {
		const struct avml_point *p = find_point(a, plain);
		const uint64_t end = p + 1 < a->points + a->n_points ? p[1].plain : a->plain;
		size_t n = (size_t)MIN(len - *got, end - plain);

		if (p->offset == AVML_ZEROS) {
			memset(to + *got, 0, n);
		} else {
			enum status st = ST_OK;

			if (plain < a->held || plain - a->held >= a->held_len)
				st = hold_chunk(a, p, plain, e);
			if (!st && a->held_bad)
				st = err_set(e, ST_CORRUPT, "is damaged");
			if (st)
				return st;
			n = (size_t)MIN(n, a->held_len - (plain - a->held));
			memcpy(to + *got, a->unpacked + (plain - a->held), n);
		}
		*got += n;
		plain += n;
	}
	return ST_OK;
}
