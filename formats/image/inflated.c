/* SPDX-License-Identifier: Apache-2.0 */
#include "formats/image/inflated.h"

#include <inttypes.h>
#include <string.h>
#include <zlib.h>

#include "formats/base/array.h"
#include "formats/base/bytes.h"

#define HEADER_SIZE 2
#define SUM_SIZE    4
#define INPUT_SIZE  ((size_t)64 << 10)
#define WINDOW_MAX  ((size_t)32 << 10)

/* The lowest that zlib unpacks with; 8 bits of window are packed as 9 (zlib.h, deflateInit2). */
#define WINDOW_BITS 9

/* Where a block begins. */
struct place {
	uint64_t plain, packed;
	uint8_t bits; /* of the byte before `packed` that belong to the block */
	uint16_t window_len;
	uint8_t *window;
};

struct piece {
	uint64_t number; /* plain offset / INFLATED_PIECE */
	uint64_t used;
	uint8_t *at;
	size_t len; /* 0: none */
};

struct inflated_state {
	struct blob *packed;
	int window_bits;
	bool open;
	z_stream z;
	uint64_t plain, offset; /* of the next byte out; behind what `input` has */
	uint8_t *input;

	struct place *places;
	size_t n_places, places_room, places_bytes, places_max;
	uint64_t spacing;

	struct piece pieces[INFLATED_PIECES];
	uint64_t uses;
};

/* RFC 1950, 2.2: deflate, no dictionary, and the sum of both bytes. */
static bool is_header(const uint8_t *h)
{
	return (h[0] & 0xf) == 8 && h[0] >> 4 <= 7 && !(h[1] & 0x20) &&
	       (h[0] << 8 | h[1]) % 31 == 0;
}

static enum status set_up_inflate(struct inflated_state *s, struct blob *packed, struct err *e)
{
	uint8_t h[HEADER_SIZE];
	size_t got = 0;
	const enum status st = packed->read_at(packed, 0, h, sizeof(h), &got, e);

	if (st)
		return st;
	if (got < sizeof(h) || !is_header(h))
		return err_set(e, ST_NOT_MINE, "not a zlib stream");
	s->packed = packed;
	s->offset = HEADER_SIZE;
	s->window_bits = MAX((h[0] >> 4) + 8, WINDOW_BITS);
	s->input = malloc(INPUT_SIZE);
	if (!s->input || inflateInit2(&s->z, -s->window_bits) != Z_OK)
		return err_nomem(e);
	s->open = true;
	return ST_OK;
}

static void tear_down(struct inflated_state *s)
{
	for (size_t n = 0; n < s->n_places; n++)
		free(s->places[n].window);
	for (size_t n = 0; n < INFLATED_PIECES; n++)
		free(s->pieces[n].at);
	if (s->open)
		inflateEnd(&s->z);
	free(s->places);
	free(s->input);
}

static uint64_t packed_at(const struct inflated_state *s)
{
	return s->offset - s->z.avail_in;
}

/*
 * Up to `len` bytes more, fewer at the end of a block if `flush` is Z_BLOCK. *ret: what inflate()
 * said; Z_BUF_ERROR where the packed bytes end.
 */
static enum status inflate_some(struct inflated_state *s, void *to, size_t len, int flush,
				size_t *got, int *ret, struct err *e)
{
	s->z.next_out = to;
	s->z.avail_out = (uInt)len;
	do {
		if (!s->z.avail_in) {
			size_t n = 0;
			const enum status st = s->packed->read_at(s->packed, s->offset, s->input,
								  INPUT_SIZE, &n, e);

			if (st)
				return st;
			s->z.next_in = s->input;
			s->z.avail_in = (uInt)n;
			s->offset += n;
		}
		*ret = inflate(&s->z, flush);
	} while (*ret == Z_OK && s->z.avail_out && !(flush == Z_BLOCK && s->z.data_type & 128));
	*got = len - s->z.avail_out;
	s->plain += *got;
	return *ret == Z_MEM_ERROR ? err_nomem(e) : ST_OK;
}

enum status inflated_probe(struct blob *packed, void *buf, size_t len, size_t *got, struct err *e)
{
	struct inflated_state s = { 0 };
	int ret = Z_OK;
	enum status st = set_up_inflate(&s, packed, e);

	*got = 0;
	if (!st)
		st = inflate_some(&s, buf, len, Z_NO_FLUSH, got, &ret, e);
	tear_down(&s);
	return st;
}

/* Every other place is forgotten; the first one never. */
static void thin_out(struct inflated_state *s)
{
	size_t kept = 0;

	s->places_bytes = 0;
	for (size_t n = 0; n < s->n_places; n++) {
		if (n % 2) {
			free(s->places[n].window);
			continue;
		}
		s->places_bytes += sizeof(*s->places) + s->places[n].window_len;
		s->places[kept++] = s->places[n];
	}
	s->n_places = kept;
	s->spacing *= 2;
}

/* Here a block ends, and another begins. `window`: room for WINDOW_MAX. */
static enum status add_place(struct inflated_state *s, uint8_t *window, struct err *e)
{
	struct place p = { s->plain, packed_at(s), s->z.data_type & 7, 0, NULL };
	uInt len = 0;

	if (inflateGetDictionary(&s->z, window, &len) != Z_OK || len > WINDOW_MAX)
		return err_set(e, ST_SYSTEM, "zlib does not return its window");
	if (!ARRAY_ROOM(s->places, s->n_places, s->places_room))
		return err_nomem(e);
	p.window = malloc(MAX(len, 1));
	if (!p.window)
		return err_nomem(e);
	if (len)
		memcpy(p.window, window, len);
	p.window_len = (uint16_t)len;
	s->places[s->n_places++] = p;
	s->places_bytes += sizeof(p) + len;
	while (s->places_bytes > s->places_max && s->n_places > 1)
		thin_out(s);
	return ST_OK;
}

/* A walk through all of it. */
struct walk {
	uint8_t *out; /* INFLATED_PIECE, and WINDOW_MAX for a window */
	uint64_t block;
	uint32_t sum;
};

static bool is_place_due(const struct inflated_state *s)
{
	return !s->n_places || s->plain - s->places[s->n_places - 1].plain >= s->spacing;
}

/* ST_END where the stream ends, or breaks off: *ret says which. */
static enum status walk_on(struct inflated_state *s, struct walk *w, int *ret, struct err *e)
{
	size_t got = 0;
	enum status st = inflate_some(s, w->out, INFLATED_PIECE, Z_BLOCK, &got, ret, e);

	if (st)
		return st;
	w->sum = (uint32_t)adler32(w->sum, w->out, (uInt)got);
	w->block += got;
	if (*ret == Z_OK && w->block > INFLATED_BLOCK_MAX)
		*ret = Z_DATA_ERROR;
	if (*ret != Z_OK)
		return ST_END;
	if (!(s->z.data_type & 128))
		return ST_OK;
	w->block = 0;
	return s->z.data_type & 64 || !is_place_due(s) ? ST_OK
						       : add_place(s, w->out + INFLATED_PIECE, e);
}

/* RFC 1950: the checksum of all, the high byte first. */
static enum status check_sum(struct inflated *i, uint32_t sum, struct err *e)
{
	struct inflated_state *s = i->state;
	uint8_t p[SUM_SIZE];
	size_t got = 0;
	const enum status st = s->packed->read_at(s->packed, i->packed_end, p, sizeof(p), &got, e);

	if (got < sizeof(p))
		i->end = INFLATED_CUT;
	else if (((uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | p[2] << 8 | p[3]) != sum)
		i->end = INFLATED_SUM;
	i->packed_end += got;
	return st;
}

static enum status walk_all(struct inflated *i, struct err *e)
{
	struct inflated_state *s = i->state;
	_cleanup_free_ uint8_t *out = malloc(INFLATED_PIECE + WINDOW_MAX);
	struct walk w = { .out = out, .sum = (uint32_t)adler32(0, NULL, 0) };
	int ret = Z_OK;
	/* The first block begins behind the header, with no window. */
	enum status st = out ? add_place(s, out, e) : err_nomem(e);

	if (!st)
		s->places[0].bits = 0;
	while (!st)
		st = walk_on(s, &w, &ret, e);
	if (st != ST_END)
		return st;
	i->blob.size = s->plain;
	i->packed_end = packed_at(s);
	if (ret == Z_STREAM_END)
		return check_sum(i, w.sum, e);
	i->end = ret == Z_BUF_ERROR && i->packed_end >= s->packed->size ? INFLATED_CUT
									: INFLATED_DAMAGED;
	return ST_OK;
}

/* The last place at `plain` or before it. */
static const struct place *find_inflate_place(const struct inflated_state *s, uint64_t plain)
{
	const size_t behind = FIRST_WHERE(i, s->n_places, s->places[i].plain > plain);

	return &s->places[behind ? behind - 1 : 0];
}

static enum status go_to_place(struct inflated_state *s, const struct place *p, struct err *e)
{
	uint8_t before = 0;
	enum status st = ST_OK;

	if (inflateReset(&s->z) != Z_OK)
		return err_set(e, ST_SYSTEM, "zlib cannot be reset");
	s->z.avail_in = 0;
	s->offset = p->packed;
	s->plain = p->plain;
	if (p->bits) {
		st = blob_read(s->packed, p->packed - 1, &before, 1, e);
		if (!st && inflatePrime(&s->z, p->bits, before >> (8 - p->bits)) != Z_OK)
			st = err_set(e, ST_SYSTEM, "zlib cannot start inside a byte");
	}
	if (!st && p->window_len && inflateSetDictionary(&s->z, p->window, p->window_len) != Z_OK)
		st = err_set(e, ST_SYSTEM, "zlib does not accept its window");
	return st;
}

/* `len` bytes at `plain` of what the walk has seen. */
static enum status unpack_at(struct inflated_state *s, uint64_t plain, uint8_t *to, size_t len,
			     struct err *e)
{
	const struct place *p = find_inflate_place(s, plain);
	enum status st = ST_OK;

	if (s->plain > plain || s->plain < p->plain)
		st = go_to_place(s, p, e);
	while (!st && s->plain < plain + len) {
		/* What is in front of it goes to the same buffer, and is written over. */
		const uint64_t left = s->plain < plain ? plain - s->plain : 0;
		uint8_t *at = left ? to : to + (s->plain - plain);
		const size_t want =
			left ? (size_t)MIN(left, len) : (size_t)(plain + len - s->plain);
		size_t got = 0;
		int ret;

		st = inflate_some(s, at, want, Z_NO_FLUSH, &got, &ret, e);
		if (!st && got < want)
			st = err_set(e, ST_CORRUPT, "the file changes while it is read");
	}
	/* It is not where it seems to be any more. */
	if (st)
		s->plain = UINT64_MAX;
	return st;
}

static struct piece *oldest_piece(struct inflated_state *s)
{
	struct piece *oldest = &s->pieces[0];

	for (size_t n = 1; n < INFLATED_PIECES; n++)
		if (s->pieces[n].used < oldest->used)
			oldest = &s->pieces[n];
	return oldest;
}

static enum status get_inflated_piece(struct inflated *i, uint64_t number, struct piece **ret,
				      struct err *e)
{
	struct inflated_state *s = i->state;
	const uint64_t plain = number * INFLATED_PIECE;
	struct piece *p = NULL;
	enum status st;

	for (size_t n = 0; n < INFLATED_PIECES && !p; n++)
		if (s->pieces[n].len && s->pieces[n].number == number)
			p = &s->pieces[n];
	if (!p) {
		p = oldest_piece(s);
		p->len = 0;
		if (!p->at)
			p->at = malloc(INFLATED_PIECE);
		if (!p->at)
			return err_nomem(e);
		p->number = number;
		st = unpack_at(s, plain, p->at, (size_t)MIN(INFLATED_PIECE, i->blob.size - plain),
			       e);
		if (st)
			return st;
		p->len = (size_t)MIN(INFLATED_PIECE, i->blob.size - plain);
	}
	p->used = ++s->uses;
	*ret = p;
	return ST_OK;
}

static enum status read_at(struct blob *b, uint64_t off, void *buf, size_t len, size_t *got,
			   struct err *e)
{
	struct inflated *i = (struct inflated *)b;

	for (*got = 0; *got < len && off < b->size;) {
		struct piece *p = i->state->pieces;
		const enum status st = get_inflated_piece(i, off / INFLATED_PIECE, &p, e);
		size_t n;

		if (st)
			return st;
		n = MIN(len - *got, p->len - (size_t)(off % INFLATED_PIECE));
		memcpy((uint8_t *)buf + *got, p->at + off % INFLATED_PIECE, n);
		*got += n;
		off += n;
	}
	return ST_OK;
}

enum status inflated_init(struct inflated *i, struct blob *packed, uint64_t spacing, size_t places,
			  struct err *e)
{
	enum status st;

	*i = (struct inflated){ .blob.read_at = read_at };
	i->state = calloc(1, sizeof(*i->state));
	if (!i->state)
		return err_nomem(e);
	i->state->spacing = spacing;
	i->state->places_max = places;
	st = set_up_inflate(i->state, packed, e);
	return st ? st : walk_all(i, e);
}

void inflated_deinit(struct inflated *i)
{
	if (i->state)
		tear_down(i->state);
	free(i->state);
	*i = (struct inflated){ 0 };
}
