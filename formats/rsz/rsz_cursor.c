/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a stream holds at an address: a thread's way through a reader, with the chunks it loaded
 * last.
 */
#include "formats/rsz/rsz_cursor_internal.h"

#include <inttypes.h>
#include <string.h>

#include "formats/rsz/rsz_room.h"

/*
 * Records whose content had its SHA-256: pages of a process lie all over memory, so that a chunk is
 * decoded again and again, and the digest takes as long as the decompression. Each has a place by
 * its offset, and whoever comes later takes it: 128 KiB at most. Many a cursor reads a few chunks
 * of a small container and goes, and new pages are dear, so they begin with less.
 */
#define SEEN_BITS_MIN 5
#define SEEN_BITS_MAX 14

enum status rsz_cursor_create(const struct rsz_reader *r, size_t cached, struct rsz_cursor **ret,
			      struct err *e)
{
	struct rsz_cursor *c = calloc(1, sizeof(*c));
	enum status st = c ? sha256_create(&c->sha, e) : err_nomem(e);

	if (!st)
		st = rsz_decoder_create(&c->decoder, e);
	if (!st) {
		c->reader = r;
		c->slots = calloc(MAX(cached, 1), sizeof(*c->slots));
		c->used = calloc(MAX(cached, 1), sizeof(*c->used));
		st = c->slots && c->used ? ST_OK : err_nomem(e);
	}
	while (!st && c->n_slots < MAX(cached, 1))
		st = rsz_loaded_init(&c->slots[c->n_slots++], e);
	if (st) {
		rsz_cursor_destroy(c);
		return st;
	}
	*ret = c;
	return ST_OK;
}

void rsz_cursor_destroy(struct rsz_cursor *c)
{
	if (!c)
		return;
	rsz__glances_destroy(c->front);
	for (size_t i = 0; i < c->n_slots; i++)
		rsz_loaded_deinit(&c->slots[i]);
	rsz__room_destroy(c->room);
	rsz_decoder_destroy(c->decoder);
	sha256_destroy(c->sha);
	free(c->payload);
	free(c->seen);
	free(c->slots);
	free(c->used);
	free(c);
}

void rsz_cursor_bound(struct rsz_cursor *c, size_t bytes)
{
	c->bound = bytes;
	c->held = 0;
	for (size_t i = 0; i < c->n_slots; i++)
		c->held += c->slots[i].data_room;
	if (c->held || c->room)
		return;
	c->room = rsz__room_create(bytes);
	for (size_t i = 0; i < c->n_slots; i++)
		c->slots[i].room = c->room;
}

static void release_loaded(struct rsz_cursor *c, struct rsz_loaded *l)
{
	c->held -= l->data_room;
	rsz__room_give(l->room, l->chunk.data);
	l->chunk.data = NULL;
	l->data_room = 0;
	l->record = UINT64_MAX;
}

void rsz_cursor_forget(struct rsz_cursor *c)
{
	for (size_t i = 0; i < c->n_slots; i++) {
		release_loaded(c, &c->slots[i]);
		free(c->slots[i].payload);
		c->slots[i].payload = NULL;
		c->slots[i].payload_room = 0;
	}
	c->held = 0;
}

/* The slot with content that was not used for longest, but for slot `kept`; n_slots: none. */
static size_t oldest_full(const struct rsz_cursor *c, size_t kept)
{
	size_t oldest = c->n_slots;

	for (size_t i = 0; i < c->n_slots; i++)
		if (i != kept && c->slots[i].data_room &&
		    (oldest == c->n_slots || c->used[i] < c->used[oldest]))
			oldest = i;
	return oldest;
}

/* Down to the bound, but for slot `kept`. */
static void keep_bound(struct rsz_cursor *c, size_t kept)
{
	size_t oldest;

	while (c->held > c->bound && (oldest = oldest_full(c, kept)) < c->n_slots)
		release_loaded(c, &c->slots[oldest]);
}

/* What was compressed is needed only until it is decoded: there one buffer does for all slots. */
static void swap_payload(struct rsz_cursor *c, struct rsz_loaded *l)
{
	uint8_t *const payload = l->payload;
	const size_t room = l->payload_room;

	l->payload = c->payload;
	l->payload_room = c->payload_room;
	c->payload = payload;
	c->payload_room = room;
}

/* The slot that holds the record, or else the one that was not used for longest. */
static size_t choose_slot(const struct rsz_cursor *c, uint64_t record)
{
	size_t oldest = 0;

	for (size_t i = 0; i < c->n_slots; i++) {
		if (c->slots[i].record == record)
			return i;
		if (c->used[i] < c->used[oldest])
			oldest = i;
	}
	/* As much as there may be: a buffer that is there already is taken again. */
	if (c->bound && c->held >= c->bound)
		return oldest_full(c, c->n_slots);
	return oldest;
}

/* Fibonacci hashing (Knuth, TAOCP 3, 6.4). */
static size_t seen_place(uint64_t record, unsigned bits)
{
	return (size_t)(record * UINT64_C(0x9e3779b97f4a7c15) >> (64 - bits));
}

/* There are eight times as many places as soon as half of them are taken. */
static void make_room_for_notes(struct rsz_cursor *c)
{
	const unsigned bits = c->seen ? c->seen_bits + 3 : SEEN_BITS_MIN;
	uint64_t *more;

	if (c->seen && (bits > SEEN_BITS_MAX || c->n_seen < (size_t)1 << (c->seen_bits - 1)))
		return;
	more = calloc((size_t)1 << bits, sizeof(*more));
	if (!more)
		return;
	for (size_t i = 0; c->seen && i < (size_t)1 << c->seen_bits; i++)
		if (c->seen[i])
			more[seen_place(c->seen[i] - 1, bits)] = c->seen[i];
	free(c->seen);
	c->seen = more;
	c->seen_bits = bits;
}

/* Where it is noted that a record's content was checked. NULL: there is no memory for that. */
static uint64_t *seen_at(struct rsz_cursor *c, uint64_t record)
{
	make_room_for_notes(c);
	return c->seen ? &c->seen[seen_place(record, c->seen_bits)] : NULL;
}

enum status rsz__fetch_record(const struct rsz_reader *r, struct sha256 *sha, struct rsz_loaded *l,
			      uint64_t record, struct rsz__prefix *ret,
			      const struct rsz_stream_info **ret_stream, struct err *e)
{
	uint32_t stream;
	enum status st = rsz__read_header(r->in, record, sha, l->header, ret, e);

	if (st == ST_END)
		st = ST_CORRUPT;
	if (st)
		return st;
	stream = rsz__get_chunk_stream(l->header);
	if (ret->type != RSZ_CHUNK || ret->offset != record || stream >= r->streams.count ||
	    memcmp(ret->id, r->identity.id, sizeof(ret->id)))
		return err_set(e, ST_CORRUPT, "not a chunk of this container");
	*ret_stream = &r->streams.at[stream];
	return rsz__read_payload(r->in, record, ret, l, e);
}

static enum status load_chunk_record(struct rsz_cursor *c, struct rsz_loaded *l, uint64_t record,
				     struct err *e)
{
	const struct rsz_stream_info *stream;
	struct rsz__prefix p;
	uint64_t *seen = seen_at(c, record);
	enum status st = rsz__fetch_record(c->reader, c->sha, l, record, &p, &stream, e);

	if (!st)
		st = rsz__decode_chunk(c->decoder, stream, &p, seen && *seen == record + 1, l, e);
	if (seen && !st) {
		c->n_seen += !*seen;
		*seen = record + 1;
	}
	return st;
}

enum status rsz__record_failed(const struct rsz_cursor *c, uint64_t record, enum status st,
			       struct err *e)
{
	if (st == ST_NOMEM)
		atomic_store(c->reader->starved, true);
	return err_add(e, st, "record at offset %" PRIu64, record);
}

static enum status load_bounded(struct rsz_cursor *c, size_t slot, uint64_t record, struct err *e)
{
	struct rsz_loaded *l = &c->slots[slot];
	enum status st;

	c->held -= l->data_room;
	swap_payload(c, l);
	st = load_chunk_record(c, l, record, e);
	swap_payload(c, l);
	c->held += l->data_room;
	keep_bound(c, slot);
	return st;
}

enum status rsz_cursor_load(struct rsz_cursor *c, uint64_t record, const struct rsz_chunk **ret,
			    struct err *e)
{
	const size_t i = choose_slot(c, record);
	struct rsz_loaded *l = &c->slots[i];

	c->used[i] = ++c->now;
	if (l->record != record) {
		enum status st;

		l->record = UINT64_MAX;
		st = c->bound ? load_bounded(c, i, record, e) : load_chunk_record(c, l, record, e);
		if (st == ST_CORRUPT && c->front)
			c->front->off = true;
		if (st)
			return rsz__record_failed(c, record, st, e);
		l->record = record;
		c->decoded++;
	}
	*ret = &l->chunk;
	return ST_OK;
}

uint64_t rsz_cursor_decoded(const struct rsz_cursor *c)
{
	return c->decoded;
}

/*
 * Where a chunk holds `address`: the extent (the last that covers it), the offset in c->data and
 * the index of the page. False if it does not: the index has lied.
 */
static bool locate_in_chunk(const struct rsz_chunk *c, uint64_t address,
			    const struct rsz_extent **ret, size_t *ret_data, size_t *ret_page)
{
	size_t data = 0, page = 0;

	*ret = NULL;
	for (size_t i = 0; i < c->n_extents; i++) {
		const struct rsz_extent *x = &c->extents[i];

		if (address >= x->address && address - x->address < x->length) {
			*ret = x;
			*ret_data = data + (size_t)(address - x->address);
			*ret_page = page + (size_t)((address - x->address) >> PAGE_SHIFT);
		}
		data += x->length;
		page += rsz_extent_pages(x);
	}
	return *ret != NULL;
}

enum status rsz__index_lies(struct err *e, uint64_t address)
{
	return err_set(e, ST_CORRUPT,
		       "the index names a chunk for 0x%" PRIx64 " that does not hold it", address);
}

enum status rsz__place_in_chunk(uint32_t stream, uint64_t address, struct rsz_location *ret,
				struct err *e)
{
	if (ret->chunk->stream != stream ||
	    !locate_in_chunk(ret->chunk, address, &ret->extent, &ret->data, &ret->page))
		return rsz__index_lies(e, address);
	ret->left = (size_t)(ret->extent->length - (address - ret->extent->address));
	return ST_OK;
}

/* The record that has the newest of an address. ST_END if nothing was captured there. */
static enum status find_newest_record(const struct rsz_cursor *c, uint32_t stream, uint64_t address,
				      struct rsz_segment *ret, uint64_t *ret_record)
{
	if (!rsz_reader_next(c->reader, stream, address, ret) || ret->address > address)
		return ST_END;
	*ret_record = rsz_reader_record(c->reader, ret->extent);
	return ST_OK;
}

/* ST_END if nothing was captured there. */
static enum status load_place(struct rsz_cursor *c, uint32_t stream, uint64_t address,
			      struct rsz_location *ret, struct err *e)
{
	uint64_t record;
	enum status st = find_newest_record(c, stream, address, &ret->segment, &record);

	if (!st)
		st = rsz_cursor_load(c, record, &ret->chunk, e);
	return st ? st : rsz__place_in_chunk(stream, address, ret, e);
}

/* A page's bytes from `address` on, by a glance or from the whole chunk; ret->segment is there. */
static enum status find_bytes(struct rsz_cursor *c, uint32_t stream, uint64_t address,
			      struct rsz_location *ret, const uint8_t **ret_bytes, struct err *e)
{
	uint64_t record;
	enum status st = find_newest_record(c, stream, address, &ret->segment, &record);

	if (st)
		return st;
	if (rsz__wants_glance(c, record))
		return rsz__glance(c, stream, address, record, ret, ret_bytes, e);
	st = rsz_cursor_load(c, record, &ret->chunk, e);
	if (!st)
		st = rsz__place_in_chunk(stream, address, ret, e);
	if (!st && !ret->chunk->paged)
		st = rsz__index_lies(e, address);
	if (!st)
		*ret_bytes = ret->chunk->data + ret->data;
	return st;
}

enum status rsz_cursor_page(struct rsz_cursor *c, uint32_t stream, uint64_t address,
			    struct rsz_page *ret, struct err *e)
{
	struct rsz_location p;
	enum status st;

	*ret = (struct rsz_page){ 0 };
	address &= ~(uint64_t)(PAGE_SIZE - 1);
	st = load_place(c, stream, address, &p, e);
	if (st)
		return st == ST_END ? ST_OK : st;
	if (!p.chunk->paged)
		return rsz__index_lies(e, address);
	*ret = (struct rsz_page){
		.captured = true,
		.status = p.chunk->pages[p.page],
		.start = p.extent->start,
		.end = p.extent->end,
		.pass = p.extent->pass,
		.reason = p.extent->reason,
		.data = p.chunk->data + p.data,
		.length = MIN(PAGE_SIZE, p.left),
	};
	return ST_OK;
}

/*
 * A page's state says what became of its bytes. Where two captures share a page, one without bytes
 * decides (what is unreadable stays so), then one with data.
 */
static struct page_status join_states(struct page_status a, struct page_status b)
{
	if (page_is_gap(a) || page_is_gap(b))
		return page_is_gap(a) ? a : b;
	return b.state == PAGE_DATA ? b : a;
}

/* Where a newer capture ends inside the page, the rest is an older one's (SPEC.md, section 7). */
static enum status read_cursor_page(struct rsz_cursor *c, uint32_t stream, uint64_t address,
				    uint8_t *to, struct page_status *status,
				    struct rsz_times *times, struct err *e)
{
	*status = (struct page_status){ PAGE_SKIPPED, SKIP_NOT_CAPTURED };
	for (size_t at = 0, n; at < PAGE_SIZE; at += n) {
		const uint8_t *bytes = NULL;
		struct rsz_location p;
		const enum status st = find_bytes(c, stream, address + at, &p, &bytes, e);

		if (st == ST_END) {
			memset(to + at, 0, PAGE_SIZE - at);
			return ST_OK;
		}
		if (st)
			return st;
		n = (size_t)MIN(PAGE_SIZE - at,
				p.segment.address + p.segment.length - (address + at));
		n = MIN(n, p.left);
		memcpy(to + at, bytes, n);
		*status =
			at ? join_states(*status, p.chunk->pages[p.page]) : p.chunk->pages[p.page];
		if (times)
			rsz_times_widen(times, p.extent->start, p.extent->end);
	}
	return ST_OK;
}

enum status rsz_cursor_read(struct rsz_cursor *c, uint32_t stream, uint64_t address, void *buf,
			    size_t pages, struct page_status *status, struct rsz_times *times,
			    struct err *e)
{
	uint8_t *to = buf;

	c->call++;
	c->pages = pages;
	for (size_t i = 0; i < pages; i++, to += PAGE_SIZE) {
		const enum status st = read_cursor_page(
			c, stream, address + (uint64_t)i * PAGE_SIZE, to, &status[i], times, e);

		if (st)
			return st;
	}
	return ST_OK;
}

enum status rsz_cursor_next_text(struct rsz_cursor *c, uint32_t stream, uint64_t *at,
				 const uint8_t **ret, size_t *ret_len, struct err *e)
{
	struct rsz_segment seg;
	struct rsz_location p;
	uint64_t from;
	enum status st;

	*ret_len = 0;
	if (!rsz_reader_next(c->reader, stream, *at, &seg))
		return ST_END;
	from = MAX(*at, seg.address);
	*at = seg.address + seg.length;
	*ret_len = (size_t)(*at - from);
	st = load_place(c, stream, from, &p, e);
	if (st)
		return st;
	if (*ret_len > p.left)
		return rsz__index_lies(e, from);
	*ret = p.chunk->data + p.data;
	return ST_OK;
}

enum status rsz_cursor_byte(struct rsz_cursor *c, uint32_t stream, uint64_t address, uint8_t *ret,
			    struct err *e)
{
	const uint8_t *text = NULL;
	uint64_t at = address;
	size_t len = 0;
	enum status st = rsz_cursor_next_text(c, stream, &at, &text, &len, e);

	if (st == ST_END || (!st && at - len != address))
		return err_set(e, ST_CORRUPT, "nothing was captured at 0x%" PRIx64, address);
	if (!st)
		*ret = *text;
	return st;
}
