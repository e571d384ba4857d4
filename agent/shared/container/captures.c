/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/shared/container/captures.h"

#include <inttypes.h>
#include <string.h>

#include "formats/base/array.h"

#define PAGE_MASK ((uint64_t)PAGE_SIZE - 1)

/*
 * The table of extents
 */

enum column { START, DURATION, REASON, STATE, COLUMNS };

/* Of the column STATE: a state that all pages have, or which of the mixed extents it is. */
#define MIXED 16

static uint32_t mixed_state(const struct captured_extents *x, size_t page)
{
	return x->mixed_states[page / 2] >> page % 2 * 4 & 15;
}

static enum status add_mixed_state(struct captured_extents *x, uint32_t state, struct err *e)
{
	if (!ARRAY_ROOM(x->mixed_states, x->n_states / 2, x->states_room))
		return err_nomem(e);
	if (x->n_states % 2)
		x->mixed_states[x->n_states / 2] |= (uint8_t)(state << 4);
	else
		x->mixed_states[x->n_states / 2] = (uint8_t)state;
	x->n_states++;
	return ST_OK;
}

static enum status add_mixed(struct captured_extents *to, const struct rsz_extent *x,
			     const struct page_status *pages, struct err *e)
{
	enum status st = ST_OK;

	if (!ARRAY_ROOM(to->mixed, to->n_mixed, to->mixed_room))
		return err_nomem(e);
	to->mixed[to->n_mixed++] = (struct mixed_extent){ x->address, to->n_states };
	for (size_t i = 0; i < rsz_extent_pages(x) && !st; i++)
		st = add_mixed_state(to, pages[i].state, e);
	return st;
}

static bool has_one_state(const struct page_status *pages, size_t n)
{
	for (size_t i = 1; i < n; i++)
		if (pages[i].state != pages[0].state)
			return false;
	return true;
}

/* `pages`: NULL of a stream that is not wanted, whose extents are numbered all the same. */
static enum status add_extent(struct captured_extents *to, const struct rsz_extent *x,
			      const struct page_status *pages, struct err *e)
{
	uint64_t row[COLUMNS] = {
		[START] = x->start,
		[DURATION] = x->end - x->start, /* modulo 2^64: any two times come back */
		[REASON] = x->reason,
	};
	enum status st = ST_OK;

	if (pages && has_one_state(pages, rsz_extent_pages(x))) {
		row[STATE] = pages[0].state;
	} else if (pages) {
		row[STATE] = MIXED + to->n_mixed;
		st = add_mixed(to, x, pages, e);
	}
	return st ? st : packed_add(&to->table, row, e);
}

static void destroy_extents(struct captured_extents *x)
{
	if (!x)
		return;
	packed_deinit(&x->table);
	free(x->mixed);
	free(x->mixed_states);
	free(x);
}

/*
 * Older captures
 */

/* An extent of a record, and where its bytes begin in the chunk's. */
struct captured_extent {
	const struct rsz_record *record;
	const struct rsz_extent *extent;
	const struct page_status *pages;
	uint64_t data;
};

/* The pages in `part`, which a later extent has as well. */
static enum status add_older(struct captures *c, const struct captured_extent *p, struct range part,
			     struct err *e)
{
	const struct rsz_extent *x = p->extent;

	for (uint64_t at = part.first; at < part.last; at += PAGE_SIZE) {
		const uint32_t state = p->pages[(at - x->address) >> PAGE_SHIFT].state;

		if (state != PAGE_DATA && state != PAGE_ZERO && !c->all_states)
			continue;
		if (c->n_older == CAPTURES_OLDER_MAX) {
			c->older_untold++;
			continue;
		}
		if (!ARRAY_ROOM(c->older, c->n_older, c->older_room))
			return err_nomem(e);
		c->older[c->n_older++] = (struct older_page){
			.address = at,
			.start = x->start,
			.end = x->end,
			.record = p->record->offset,
			.data = (uint32_t)(p->data + (at - x->address)),
			.length = (uint16_t)MIN(x->length - (at - x->address), PAGE_SIZE),
			.reason = (uint8_t)x->reason,
			.state = (uint8_t)state,
		};
	}
	return ST_OK;
}

/*
 * The pages that the reader has in a later extent, which may be one of the same record (SPEC.md,
 * section 7). A page belongs to whatever has its first byte.
 */
static enum status add_covered(struct captures *c, const struct captured_extent *p, uint64_t number,
			       struct err *e)
{
	const struct rsz_extent *x = p->extent;
	const uint64_t last = x->address + (uint64_t)rsz_extent_pages(x) * PAGE_SIZE - 1;
	uint64_t from = x->address;
	struct rsz_segment s;
	enum status st = ST_OK;

	while (!st && from <= last && rsz_reader_next(c->reader, c->stream, from, &s) &&
	       s.address <= last) {
		struct range part = { MAX(s.address, from), s.address + (s.length - 1) };

		/* A file's last page may be short in the index. */
		part.first &= ~PAGE_MASK;
		part.last = MIN(part.last | PAGE_MASK, last);
		if (s.extent == number)
			rsz_times_widen(&c->times, x->start, x->end);
		else
			st = add_older(c, p, part, e);
		from = part.last + 1;
	}
	return st;
}

static enum status add_captured_extent(struct captures *c, const struct captured_extent *p,
				       uint64_t number, struct err *e)
{
	if (rsz_reader_is_covered(c->reader, number))
		return add_covered(c, p, number, e);
	rsz_times_widen(&c->times, p->extent->start, p->extent->end);
	return ST_OK;
}

static int compare_older(const void *a, const void *b)
{
	const struct older_page *x = a, *y = b;

	if (x->address != y->address)
		return x->address < y->address ? -1 : 1;
	if (x->record != y->record)
		return x->record < y->record ? -1 : 1;
	return x->data < y->data ? -1 : x->data > y->data;
}

/*
 * Loading
 */

static bool is_captured_stream(const struct rsz_stream_info *s)
{
	return s && s->paged &&
	       (s->kind == RSZ_KIND_MEMORY || s->kind == RSZ_KIND_PAGEFILE ||
		s->kind == RSZ_KIND_SWAP_CACHE);
}

static enum status load_chunk(void *arg, const struct rsz_record *rec, const struct rsz_chunk *c,
			      struct err *e)
{
	struct stream_captures *to = arg;
	struct captures *its = rec->stream < to->count ? &to->streams[rec->stream] : NULL;
	const bool wanted = its && its->reader;
	struct captured_extent p = { .record = rec, .pages = c->pages };
	enum status st = ST_OK;

	for (size_t i = 0; i < c->n_extents && !st; i++) {
		const uint64_t number = to->extents->table.rows;

		p.extent = &c->extents[i];
		st = add_extent(to->extents, p.extent, wanted ? p.pages : NULL, e);
		if (!st && wanted)
			st = add_captured_extent(its, &p, number, e);
		p.pages += wanted ? rsz_extent_pages(p.extent) : 0;
		p.data += p.extent->length;
	}
	return st;
}

static enum status begin_captures(struct stream_captures *s, const struct rsz_reader *r,
				  struct err *e)
{
	*s = (struct stream_captures){ .count = rsz_reader_streams(r) };
	s->streams = calloc(MAX(s->count, 1), sizeof(*s->streams));
	s->extents = calloc(1, sizeof(*s->extents));
	if (!s->streams || !s->extents)
		return err_nomem(e);
	s->extents->table.columns = COLUMNS;
	for (uint32_t i = 0; i < s->count; i++) {
		const struct rsz_stream_info *info = rsz_reader_stream(r, i);

		if (is_captured_stream(info))
			s->streams[i] = (struct captures){
				.reader = r,
				.extents = s->extents,
				.stream = i,
				.all_states = info->kind == RSZ_KIND_SWAP_CACHE,
			};
	}
	return ST_OK;
}

enum status stream_captures_load(struct stream_captures *ret, struct blob *in,
				 const struct rsz_reader *r, struct err *e)
{
	enum status st = begin_captures(ret, r, e);

	if (!st)
		st = rsz_scan_chunks(in, load_chunk, ret, NULL, e);
	if (!st)
		st = packed_finish(&ret->extents->table, e);
	for (size_t i = 0; !st && i < ret->count; i++)
		if (ret->streams[i].n_older)
			array_sort(ret->streams[i].older, ret->streams[i].n_older,
				   sizeof(*ret->streams[i].older), compare_older);
	if (st)
		stream_captures_deinit(ret);
	return st;
}

void stream_captures_deinit(struct stream_captures *s)
{
	for (size_t i = 0; s->streams && i < s->count; i++)
		free(s->streams[i].older);
	free(s->streams);
	destroy_extents(s->extents);
	*s = (struct stream_captures){ 0 };
}

/*
 * Asking
 */

/* The state of the page at `address`, and in *last the end of the pages that have it, too. */
static uint16_t state_from(const struct captured_extents *x, uint64_t extent, uint64_t address,
			   uint64_t *last)
{
	const uint64_t state = packed_get(&x->table, extent, STATE);
	const struct mixed_extent *m;
	uint64_t end = address | PAGE_MASK;
	size_t page;

	if (state < MIXED)
		return (uint16_t)state;
	m = &x->mixed[state - MIXED];
	page = m->first + (size_t)((address - m->address) >> PAGE_SHIFT);
	for (size_t n = 1; end < *last && mixed_state(x, page + n) == mixed_state(x, page); n++)
		end += PAGE_SIZE;
	*last = end;
	return (uint16_t)mixed_state(x, page);
}

/* As captures_from(), but of one extent alone. */
static bool find_extent_capture(const struct captures *c, uint64_t address, uint64_t last,
				struct capture *ret)
{
	const struct packed *table;
	struct rsz_segment s;

	if (!c->reader || !rsz_reader_next(c->reader, c->stream, address & ~PAGE_MASK, &s) ||
	    s.extent >= c->extents->table.rows)
		return false;
	table = &c->extents->table;
	/* A file's last page may be short in the index. */
	ret->range.first = MAX(address, s.address) & ~PAGE_MASK;
	ret->range.last = MIN(last, (s.address + s.length - 1) | PAGE_MASK);
	if (ret->range.first > last)
		return false;
	ret->state = state_from(c->extents, s.extent, ret->range.first, &ret->range.last);
	ret->start = packed_get(table, s.extent, START);
	ret->end = ret->start + packed_get(table, s.extent, DURATION);
	ret->reason = (uint16_t)packed_get(table, s.extent, REASON);
	return true;
}

bool captures_from(const struct captures *c, uint64_t address, uint64_t last, struct capture *ret)
{
	struct capture next;

	if (!find_extent_capture(c, address, last, ret))
		return false;
	while (ret->range.last < last && find_extent_capture(c, ret->range.last + 1, last, &next) &&
	       next.range.first == ret->range.last + 1 && next.state == ret->state &&
	       next.reason == ret->reason && next.start == ret->start && next.end == ret->end)
		ret->range.last = next.range.last;
	return true;
}

const struct older_page *captures_older_from(const struct captures *c, uint64_t address, size_t *n)
{
	const size_t first = FIRST_WHERE(i, c->n_older, c->older[i].address >= address);

	*n = 0;
	if (first == c->n_older)
		return NULL;
	while (first + *n < c->n_older && c->older[first + *n].address == c->older[first].address)
		++*n;
	return &c->older[first];
}

const struct older_page *captures_older(const struct captures *c, uint64_t address, size_t *n)
{
	const struct older_page *o = captures_older_from(c, address, n);

	if (o && o->address == address)
		return o;
	*n = 0;
	return NULL;
}

enum status captures_read_older(struct rsz_cursor *c, const struct older_page *o, uint8_t *ret,
				struct err *e)
{
	const struct rsz_chunk *chunk;
	const enum status st = rsz_cursor_load(c, o->record, &chunk, e);

	if (st)
		return st;
	if ((uint64_t)o->data + o->length > chunk->length)
		return err_set(e, ST_CORRUPT, "a capture of 0x%" PRIx64 " is not where it was",
			       o->address);
	memcpy(ret, chunk->data + o->data, o->length);
	memset(ret + o->length, 0, PAGE_SIZE - o->length);
	return ST_OK;
}

bool capture_is_readable(const struct capture *c)
{
	return c->state == PAGE_DATA || c->state == PAGE_ZERO || c->state == PAGE_HOLE;
}

enum status captures_ranges(const struct captures *c, struct range_list *ret, struct err *e)
{
	const enum status st = c->reader ? rsz_reader_ranges(c->reader, c->stream, ret, e) : ST_OK;

	for (size_t i = 0; i < ret->count; i++) {
		ret->at[i].first &= ~PAGE_MASK;
		ret->at[i].last |= PAGE_MASK;
	}
	range_list_tidy(ret, NULL);
	range_list_join(ret);
	return st;
}
