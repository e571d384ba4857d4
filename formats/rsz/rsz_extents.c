/* SPDX-License-Identifier: Apache-2.0 */
#include "formats/rsz/rsz_extents.h"

#include <stdlib.h>

#include "formats/base/array.h"

enum column { ADDRESS, LENGTH, EXTENT, STREAM, COLUMNS };

static enum status put_extent_piece(struct packed *to, const struct rsz__piece *p, struct err *e)
{
	const uint64_t row[COLUMNS] = {
		[ADDRESS] = p->address,
		[LENGTH] = p->length,
		[EXTENT] = p->extent,
		[STREAM] = p->stream,
	};

	return packed_add(to, row, e);
}

static struct rsz__piece get_extent_piece(const struct packed *from, size_t i)
{
	return (struct rsz__piece){
		.address = packed_get(from, i, ADDRESS),
		.length = packed_get(from, i, LENGTH),
		.extent = packed_get(from, i, EXTENT),
		.stream = (uint32_t)packed_get(from, i, STREAM),
	};
}

void rsz__extents_init(struct rsz__extents *x)
{
	*x = (struct rsz__extents){
		.pieces.columns = COLUMNS,
		.sorting.runs.columns = COLUMNS,
		.least = UINT64_MAX,
	};
}

static void end_sorting(struct rsz__sorting *s)
{
	free(s->at);
	packed_deinit(&s->runs);
	*s = (struct rsz__sorting){ 0 };
}

void rsz__extents_deinit(struct rsz__extents *x)
{
	end_sorting(&x->sorting);
	packed_deinit(&x->pieces);
	free(x->firsts);
	free(x->covered);
	x->firsts = NULL;
	x->covered = NULL;
}

/*
 * A run is sorted by stream and address, byte by byte from the lowest (LSD radix sort), of which
 * only few differ. Pieces at one address stay as they came.
 */

/* The bytes of two numbers, one behind the other, from the lowest on. */
static uint8_t key_byte(uint64_t address, uint32_t stream, unsigned i)
{
	return (uint8_t)(i < 8 ? address >> 8 * i : stream >> 8 * (i - 8));
}

static void sort_by_byte(const struct rsz__piece *from, struct rsz__piece *to, size_t count,
			 unsigned byte)
{
	size_t at[256] = { 0 }, sum = 0;

	for (size_t i = 0; i < count; i++)
		at[key_byte(from[i].address, from[i].stream, byte)]++;
	for (size_t i = 0; i < ARRAY_SIZE(at); i++) {
		const size_t n = at[i];

		at[i] = sum;
		sum += n;
	}
	for (size_t i = 0; i < count; i++)
		to[at[key_byte(from[i].address, from[i].stream, byte)]++] = from[i];
}

static enum status sort_pieces(struct rsz__sorting *s, struct err *e)
{
	struct rsz__piece *spare, *from = s->at;
	uint64_t address = 0;
	uint32_t stream = 0;

	for (size_t i = 1; i < s->count; i++) {
		address |= s->at[i].address ^ s->at[0].address;
		stream |= s->at[i].stream ^ s->at[0].stream;
	}
	if (!address && !stream)
		return ST_OK;
	spare = malloc(s->room * sizeof(*spare));
	if (!spare)
		return err_nomem(e);
	for (unsigned i = 0; i < 12; i++) {
		if (!key_byte(address, stream, i))
			continue;
		sort_by_byte(from, spare, s->count, i);
		s->at = spare;
		spare = from;
		from = s->at;
	}
	free(spare);
	return ST_OK;
}

/* Of what was added since the last one. */
static enum status make_run(struct rsz__sorting *s, struct err *e)
{
	enum status st = sort_pieces(s, e);

	for (size_t i = 0; i < s->count && !st; i++)
		st = put_extent_piece(&s->runs, &s->at[i], e);
	s->count = 0;
	return st;
}

enum status rsz__extents_add(struct rsz__extents *x, const struct rsz__piece *piece, struct err *e)
{
	struct rsz__sorting *s = &x->sorting;

	if (!ARRAY_ROOM(s->at, s->count, s->room))
		return err_nomem(e);
	s->at[s->count++] = *piece;
	x->least = MIN(x->least, piece->extent);
	x->most = MAX(x->most, piece->extent);
	return s->count == RSZ__RUN ? make_run(s, e) : ST_OK;
}

/*
 * Merging: a heap of runs, the one with the lowest piece on top.
 */

struct run {
	struct rsz__piece next;
	size_t at;
	size_t end;
};

struct merge {
	const struct packed *from;
	struct run *heap;
	size_t count;
};

static bool comes_first(const struct run *a, const struct run *b)
{
	if (a->next.stream != b->next.stream)
		return a->next.stream < b->next.stream;
	return a->next.address < b->next.address;
}

/* Lets the run on top sink to where it belongs. */
static void sink_run(struct merge *m)
{
	const struct run top = m->heap[0];
	size_t i = 0;

	for (size_t child; (child = 2 * i + 1) < m->count; i = child) {
		if (child + 1 < m->count && comes_first(&m->heap[child + 1], &m->heap[child]))
			child++;
		if (!comes_first(&m->heap[child], &top))
			break;
		m->heap[i] = m->heap[child];
	}
	m->heap[i] = top;
}

static void raise_run(struct merge *m, struct run run)
{
	size_t i = m->count++;

	for (; i && comes_first(&run, &m->heap[(i - 1) / 2]); i = (i - 1) / 2)
		m->heap[i] = m->heap[(i - 1) / 2];
	m->heap[i] = run;
}

static enum status merge_begin(struct merge *m, const struct packed *runs, struct err *e)
{
	*m = (struct merge){ .from = runs };
	m->heap = calloc(runs->rows / RSZ__RUN + 1, sizeof(*m->heap));
	if (!m->heap)
		return err_nomem(e);
	for (size_t at = 0; at < runs->rows; at += RSZ__RUN)
		raise_run(m, (struct run){ get_extent_piece(runs, at), at,
					   MIN(at + RSZ__RUN, runs->rows) });
	return ST_OK;
}

static const struct rsz__piece *merge_peek(const struct merge *m)
{
	return m->count ? &m->heap[0].next : NULL;
}

static void merge_next(struct merge *m)
{
	struct run *top = &m->heap[0];

	if (++top->at < top->end)
		top->next = get_extent_piece(m->from, top->at);
	else
		*top = m->heap[--m->count];
	if (m->count)
		sink_run(m);
}

/*
 * The newest capture of every address. Extents may overlap in any way; the result does not.
 */

/* One that covers the address at hand, or did. */
struct covering {
	struct rsz__piece piece;
	uint64_t shown; /* bytes of it in the result */
};

struct sweep {
	struct rsz__extents *x;
	struct merge from;
	struct covering *heap; /* the newest on top */
	size_t count;
	size_t room;
	struct rsz__piece last; /* of the result, not yet put; length 0: none */
};

static enum status cover_with_piece(struct sweep *s, const struct rsz__piece *p, struct err *e)
{
	size_t i = s->count;

	if (!ARRAY_ROOM(s->heap, s->count, s->room))
		return err_nomem(e);
	s->count++;
	for (; i && s->heap[(i - 1) / 2].piece.extent < p->extent; i = (i - 1) / 2)
		s->heap[i] = s->heap[(i - 1) / 2];
	s->heap[i] = (struct covering){ .piece = *p };
	return ST_OK;
}

static enum status mark_covered(struct rsz__extents *x, uint64_t extent, struct err *e)
{
	const size_t bit = (size_t)(extent - x->least);

	if (!x->covered)
		x->covered = calloc((size_t)(x->most - x->least) / 8 + 1, 1);
	if (!x->covered)
		return err_nomem(e);
	x->covered[bit / 8] |= (uint8_t)(1u << bit % 8);
	return ST_OK;
}

/* Takes the newest away, which has ended. */
static enum status uncover_top(struct sweep *s, struct err *e)
{
	const struct covering top = s->heap[0], last = s->heap[--s->count];
	size_t i = 0;

	for (size_t child; (child = 2 * i + 1) < s->count; i = child) {
		if (child + 1 < s->count &&
		    s->heap[child + 1].piece.extent > s->heap[child].piece.extent)
			child++;
		if (s->heap[child].piece.extent < last.piece.extent)
			break;
		s->heap[i] = s->heap[child];
	}
	s->heap[i] = last;
	return top.shown == top.piece.length ? ST_OK : mark_covered(s->x, top.piece.extent, e);
}

/* Puts [from, to) of the newest, joined to what came before where it is the same capture. */
static enum status show_newest(struct sweep *s, uint64_t from, uint64_t to, struct err *e)
{
	struct covering *top = &s->heap[0];
	struct rsz__piece *last = &s->last;
	enum status st = ST_OK;

	top->shown += to - from;
	if (last->length && last->extent == top->piece.extent &&
	    last->address + last->length == from) {
		last->length += to - from;
		return ST_OK;
	}
	if (last->length)
		st = put_extent_piece(&s->x->pieces, last, e);
	*last = top->piece;
	last->address = from;
	last->length = to - from;
	return st;
}

/*
 * One address after the other: the newest of what covers it counts, until that ends or the next
 * extent begins. Each step ends or begins an extent, so that the result has at most twice as many.
 */
static enum status sweep_extents(struct sweep *s, struct err *e)
{
	const struct rsz__piece *next;
	uint64_t at = 0, to;
	uint32_t stream = 0;
	enum status st = ST_OK;

	while (!st && ((next = merge_peek(&s->from)) || s->count)) {
		if (!s->count) {
			at = next->address;
			stream = next->stream;
		}
		for (; !st && next && next->stream == stream && next->address <= at;
		     next = merge_peek(&s->from)) {
			st = cover_with_piece(s, next, e);
			merge_next(&s->from);
		}
		if (st)
			break;
		to = s->heap[0].piece.address + s->heap[0].piece.length;
		if (to <= at) {
			st = uncover_top(s, e);
			continue;
		}
		if (next && next->stream == stream)
			to = MIN(to, next->address);
		st = show_newest(s, at, to, e);
		at = to;
	}
	return st || !s->last.length ? st : put_extent_piece(&s->x->pieces, &s->last, e);
}

static enum status list_firsts(struct rsz__extents *x, struct err *e)
{
	const struct packed *p = &x->pieces;

	x->firsts = calloc(MAX(p->n_blocks, 1), sizeof(*x->firsts));
	if (!x->firsts)
		return err_nomem(e);
	for (size_t i = 0; i < p->n_blocks; i++)
		x->firsts[i] = (struct rsz__first){
			.address = packed_get(p, i * PACKED_ROWS, ADDRESS),
			.stream = (uint32_t)packed_get(p, i * PACKED_ROWS, STREAM),
		};
	return ST_OK;
}

enum status rsz__extents_settle(struct rsz__extents *x, struct err *e)
{
	struct sweep s = { .x = x };
	enum status st = make_run(&x->sorting, e);

	free(x->sorting.at);
	x->sorting.at = NULL;
	if (!st)
		st = packed_finish(&x->sorting.runs, e);
	if (!st)
		st = merge_begin(&s.from, &x->sorting.runs, e);
	if (!st)
		st = sweep_extents(&s, e);
	if (!st)
		st = packed_finish(&x->pieces, e);
	if (!st)
		st = list_firsts(x, e);
	free(s.heap);
	free(s.from.heap);
	end_sorting(&x->sorting);
	return st;
}

bool rsz__extents_is_covered(const struct rsz__extents *x, uint64_t extent)
{
	const uint64_t bit = extent - x->least;

	return x->covered && extent >= x->least && extent <= x->most &&
	       x->covered[bit / 8] >> bit % 8 & 1;
}

static bool comes_later(uint64_t its_stream, uint64_t its_address, uint32_t stream,
			uint64_t address)
{
	return its_stream != stream ? its_stream > stream : its_address > address;
}

/* The last block that begins at the address or before it; 0 if none does. */
static size_t find_block(const struct rsz__extents *x, uint32_t stream, uint64_t address)
{
	const size_t behind = FIRST_WHERE(
		i, x->pieces.n_blocks,
		comes_later(x->firsts[i].stream, x->firsts[i].address, stream, address));

	return behind ? behind - 1 : 0;
}

/* The first piece that begins behind the address, in its stream or a later one. */
static size_t find_behind(const struct rsz__extents *x, uint32_t stream, uint64_t address)
{
	const struct packed *p = &x->pieces;
	const size_t first = find_block(x, stream, address) * PACKED_ROWS;

	return first + FIRST_WHERE(i, MIN(PACKED_ROWS, p->rows - first),
				   comes_later(packed_get(p, first + i, STREAM),
					       packed_get(p, first + i, ADDRESS), stream, address));
}

size_t rsz__extents_find(const struct rsz__extents *x, uint32_t stream, uint64_t from)
{
	const size_t behind = find_behind(x, stream, from);
	struct rsz__piece p;

	if (behind) {
		p = get_extent_piece(&x->pieces, behind - 1);
		if (p.stream == stream && p.address + p.length > from)
			return behind - 1;
	}
	if (behind < x->pieces.rows && packed_get(&x->pieces, behind, STREAM) == stream)
		return behind;
	return x->pieces.rows;
}

struct rsz__piece rsz__extents_get(const struct rsz__extents *x, size_t i)
{
	return get_extent_piece(&x->pieces, i);
}
