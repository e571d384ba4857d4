/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/container/captures.h"

#include <inttypes.h>
#include <string.h>

#include "formats/base/array.h"

static enum status append_capture(struct captures *c, struct capture x, struct err *e)
{
	struct capture *last = c->count ? &c->at[c->count - 1] : NULL;

	if (last && last->range.last + 1 == x.range.first && last->state == x.state &&
	    last->reason == x.reason && last->start == x.start && last->end == x.end) {
		last->range.last = x.range.last;
		return ST_OK;
	}
	if (c->count == c->room) {
		struct capture *at = array_grow(c->at, &c->room, sizeof(*at));

		if (!at)
			return err_nomem(e);
		c->at = at;
	}
	c->at[c->count++] = x;
	return ST_OK;
}

/* The pages of an extent that lie in `part`, one capture for each run of equal states. */
static enum status add_part(struct captures *c, const struct rsz_extent *x,
			    const struct page_status *pages, struct range part, struct err *e)
{
	const size_t first = (size_t)((part.first - x->address) >> PAGE_SHIFT);
	const size_t last = (size_t)((part.last - x->address) >> PAGE_SHIFT);
	enum status st = ST_OK;

	for (size_t i = first, n; i <= last && !st; i += n) {
		const uint64_t at = x->address + (uint64_t)i * PAGE_SIZE;

		for (n = 1; i + n <= last && pages[i + n].state == pages[i].state;)
			n++;
		st = append_capture(c,
				    (struct capture){ .range = { at, at + n * PAGE_SIZE - 1 },
						      .start = x->start,
						      .end = x->end,
						      .state = (uint16_t)pages[i].state,
						      .reason = x->reason },
				    e);
	}
	return st;
}

/* An extent of a record, and where its bytes begin in the chunk's. */
struct captured_extent {
	const struct rsz_record *record;
	const struct rsz_extent *extent;
	const struct page_status *pages;
	const bool *hidden; /* by a later extent of the same record; NULL: none of the chunk is */
	uint64_t data;
};

/* The pages in `part`, which a later record has as well. */
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
		if (c->n_older == c->older_room) {
			struct older_page *older =
				array_grow(c->older, &c->older_room, sizeof(*older));

			if (!older)
				return err_nomem(e);
			c->older = older;
		}
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

/* The pages in `part`, which no later record has: a later extent of this one may. */
static enum status add_newest(struct captures *c, const struct captured_extent *p,
			      struct range part, struct err *e)
{
	enum status st = ST_OK;

	if (!p->hidden)
		return add_part(c, p->extent, p->pages, part, e);
	for (uint64_t at = part.first; at < part.last && !st; at += PAGE_SIZE) {
		const struct range page = { at, MIN(at | (PAGE_SIZE - 1), part.last) };

		if (p->hidden[(at - p->extent->address) >> PAGE_SHIFT])
			st = add_older(c, p, page, e);
		else
			st = add_part(c, p->extent, p->pages, page, e);
	}
	return st;
}

/* Only where the reader says that this record is the newest to hold it; else it is an older one. */
static enum status add_extent(struct captures *c, const struct rsz_reader *r,
			      const struct captured_extent *p, struct err *e)
{
	const struct rsz_record *rec = p->record;
	const struct rsz_extent *x = p->extent;
	const uint64_t last = x->address + (uint64_t)rsz_extent_pages(x) * PAGE_SIZE - 1;
	uint64_t from = x->address;
	struct rsz_segment s;
	enum status st = ST_OK;

	while (!st && from <= last && rsz_reader_next(r, rec->stream, from, &s) && s.length &&
	       s.address <= last) {
		struct range part = { MAX(s.address, from), s.address + (s.length - 1) };

		/* A file's last page may be short in the index. */
		part.first &= ~(uint64_t)(PAGE_SIZE - 1);
		part.last = MIN(part.last | (PAGE_SIZE - 1), last);
		if (s.record == rec->offset)
			st = add_newest(c, p, part, e);
		else
			st = add_older(c, p, part, e);
		from = part.last + 1;
	}
	return st;
}

/* A page of a chunk: its address, and which of all its pages it is. */
struct numbered {
	uint64_t address;
	size_t number;
};

static int compare_numbered(const void *a, const void *b)
{
	const struct numbered *x = a, *y = b;

	if (x->address != y->address)
		return x->address < y->address ? -1 : 1;
	return x->number < y->number ? -1 : x->number > y->number;
}

static bool is_in_order(const struct rsz_chunk *c)
{
	for (size_t i = 1; i < c->n_extents; i++)
		if (c->extents[i].address < c->extents[i - 1].address + c->extents[i - 1].length)
			return false;
	return true;
}

/*
 * A chunk may have a page twice; the later extent counts (SPEC.md, section 7). Which of all its
 * pages are hidden so; *ret is to be freed, and stays NULL if its extents are in order.
 */
static enum status find_hidden(const struct rsz_chunk *c, bool **ret, struct err *e)
{
	_cleanup_free_ struct numbered *at = NULL;
	size_t n = 0;

	if (is_in_order(c))
		return ST_OK;
	at = calloc(c->n_pages, sizeof(*at));
	*ret = calloc(c->n_pages, sizeof(**ret));
	if (!at || !*ret)
		return err_nomem(e);
	for (size_t i = 0; i < c->n_extents; i++)
		for (size_t k = 0; k < rsz_extent_pages(&c->extents[i]); k++, n++)
			at[n] = (struct numbered){ c->extents[i].address + k * PAGE_SIZE, n };
	array_sort(at, n, sizeof(*at), compare_numbered);
	for (size_t i = 1; i < n; i++)
		(*ret)[at[i - 1].number] = at[i].address == at[i - 1].address;
	return ST_OK;
}

static enum status add_captured_chunk(struct captures *c, const struct rsz_reader *r,
				      const struct rsz_record *rec, const struct rsz_chunk *chunk,
				      struct err *e)
{
	_cleanup_free_ bool *hidden = NULL;
	struct captured_extent p = { .record = rec, .pages = chunk->pages };
	enum status st = find_hidden(chunk, &hidden, e);

	p.hidden = hidden;
	for (size_t i = 0; i < chunk->n_extents && !st; i++) {
		p.extent = &chunk->extents[i];
		st = add_extent(c, r, &p, e);
		p.pages += rsz_extent_pages(p.extent);
		p.hidden += p.hidden ? rsz_extent_pages(p.extent) : 0;
		p.data += p.extent->length;
	}
	return st;
}

static int compare_captures(const void *a, const void *b)
{
	const struct capture *x = a, *y = b;

	if (x->range.first != y->range.first)
		return x->range.first < y->range.first ? -1 : 1;
	return x->start < y->start ? -1 : x->start > y->start;
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

/* Two extents of one record that overlap come twice: nobody writes that, and any rule will do. */
static void sort_captures(struct captures *c)
{
	size_t kept = 0;

	if (c->n_older)
		array_sort(c->older, c->n_older, sizeof(*c->older), compare_older);
	if (!c->count)
		return;
	array_sort(c->at, c->count, sizeof(*c->at), compare_captures);
	for (size_t i = 1; i < c->count; i++) {
		const uint64_t behind = c->at[kept].range.last + 1;

		if (c->at[i].range.last < behind)
			continue;
		c->at[++kept] = c->at[i];
		c->at[kept].range.first = MAX(c->at[kept].range.first, behind);
	}
	c->count = kept + 1;
}

static bool is_captured_stream(const struct rsz_stream_info *s)
{
	return s && s->paged &&
	       (s->kind == RSZ_KIND_MEMORY || s->kind == RSZ_KIND_PAGEFILE ||
		s->kind == RSZ_KIND_SWAP_CACHE);
}

struct loading {
	struct stream_captures *to;
	const struct rsz_reader *reader;
};

static enum status load_chunk(void *arg, const struct rsz_record *rec, const struct rsz_chunk *c,
			      struct err *e)
{
	const struct loading *l = arg;

	if (rec->stream >= l->to->count ||
	    !is_captured_stream(rsz_reader_stream(l->reader, rec->stream)))
		return ST_OK;
	return add_captured_chunk(&l->to->streams[rec->stream], l->reader, rec, c, e);
}

enum status stream_captures_load(struct stream_captures *ret, struct blob *in,
				 const struct rsz_reader *r, struct err *e)
{
	struct loading l = { ret, r };
	enum status st;

	*ret = (struct stream_captures){ .count = rsz_reader_streams(r) };
	ret->streams = calloc(MAX(ret->count, 1), sizeof(*ret->streams));
	if (!ret->streams)
		return err_nomem(e);
	for (uint32_t i = 0; i < ret->count; i++)
		ret->streams[i].all_states = rsz_reader_stream(r, i)->kind == RSZ_KIND_SWAP_CACHE;
	st = rsz_scan_chunks(in, load_chunk, &l, NULL, e);
	for (size_t i = 0; !st && i < ret->count; i++)
		sort_captures(&ret->streams[i]);
	if (st)
		stream_captures_deinit(ret);
	return st;
}

void stream_captures_deinit(struct stream_captures *s)
{
	for (size_t i = 0; s->streams && i < s->count; i++) {
		free(s->streams[i].at);
		free(s->streams[i].older);
	}
	free(s->streams);
	*s = (struct stream_captures){ 0 };
}

const struct capture *captures_from(const struct captures *c, uint64_t address)
{
	size_t low = 0, high = c->count;

	while (low < high) {
		const size_t mid = low + (high - low) / 2;

		if (c->at[mid].range.last < address)
			low = mid + 1;
		else
			high = mid;
	}
	return low < c->count ? &c->at[low] : NULL;
}

const struct older_page *captures_older_from(const struct captures *c, uint64_t address, size_t *n)
{
	size_t low = 0, high = c->n_older;

	*n = 0;
	while (low < high) {
		const size_t mid = low + (high - low) / 2;

		if (c->older[mid].address < address)
			low = mid + 1;
		else
			high = mid;
	}
	if (low == c->n_older)
		return NULL;
	while (low + *n < c->n_older && c->older[low + *n].address == c->older[low].address)
		++*n;
	return &c->older[low];
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
	enum status st = ST_OK;

	for (size_t i = 0; i < c->count && !st; i++) {
		struct range *last = ret->count ? &ret->at[ret->count - 1] : NULL;

		if (last && last->last + 1 == c->at[i].range.first)
			last->last = c->at[i].range.last;
		else
			st = range_list_add(ret, c->at[i].range.first, c->at[i].range.last, e);
	}
	range_list_tidy(ret, NULL);
	range_list_join(ret);
	return st;
}
