/* SPDX-License-Identifier: Apache-2.0 */
/* The notes of a page, made and asked. */
#include "agent/examine/heap/base/page_notes.h"

#include <stdlib.h>
#include <string.h>

#include "formats/base/array.h"
#include "formats/base/bytes.h"

#define NOTES_WORDS ((size_t)16 << 20) /* of all pages, at most */

#define PIECE       NOTE_PIECE
#define PIECES      NOTE_PIECES

/* In struct heap_notes.pages: what is behind them is where a note is, in words. */
#define NOT_NOTED   0
#define IS_LOST     1
#define NOTES_FROM  2

/*
 * `spans` by offset: a word of the piece where one begins and how many it has, and these. Then, if
 * there are any `lasts`, a bit for each unit, and the last bytes of those that have one.
 */
struct page_note {
	uint16_t spans, lasts;
	uint16_t at[];
};

#define HEAD_WORDS  (sizeof(struct page_note) / 2)

/* In a span's first word, from this bit on: how many. Below it: where. */
#define SPAN_PIECES 10
#define SPAN_MOST   63

static const struct page_note lost;

static size_t bitmap_words(bool wide)
{
	return PAGE_SIZE / heap__layout(wide)->unit / 16;
}

/*
 * What is wanted of a page
 */

static void want_bytes(struct heap_notes *n, size_t at, size_t size)
{
	for (size_t i = at / PIECE; i < (at + size + PIECE - 1) / PIECE; i++)
		n->wanted[i / 64] |= UINT64_C(1) << i % 64;
}

static void want_names(struct heap_notes *n, const struct notes_part *p, const uint8_t *page)
{
	const size_t size = p->wide ? 8 : 4;

	for (size_t at = 0; at < PAGE_SIZE; at += size)
		if ((p->wide ? get_le64(page + at) : get_le32(page + at)) == p->heap)
			want_bytes(n, at, size);
}

static void want_extensions(struct heap_notes *n, const struct heap_layout *l, const uint8_t *page)
{
	for (size_t at = 0; at < PAGE_SIZE; at += l->unit) {
		const uint8_t *end = page + at + l->header;
		const size_t between = (size_t)end[6] * l->unit;

		if (end[7] != EXTENSION_END || !end[6])
			continue;
		want_bytes(n, at + l->header, 8);
		if (between <= at)
			want_bytes(n, at - between + l->unit, 8);
	}
}

/* How much of a container's first bytes is asked for, of `left` that the page has. */
static size_t head_bytes(const struct heap_lfh_layout *l, const uint8_t *at, size_t left)
{
	size_t size = l->offsets ? l->bitmap : l->first;

	if (l->offsets && left >= size)
		size += MIN(get_le32(at + l->bitmap_size), UINT16_MAX) / 8 + 1;
	return MIN(size, left);
}

static void want_containers(struct heap_notes *n, const struct heap_layout *l, const uint8_t *page)
{
	for (size_t i = 0; i < ARRAY_SIZE(l->lfh); i++) {
		const struct heap_lfh_layout *x = &l->lfh[i];

		for (size_t at = x->signature % l->unit; at < PAGE_SIZE; at += l->unit) {
			/* Its first bytes may lie in the page before: then they are read there. */
			const size_t first = at - MIN(at, x->signature);

			if (get_le32(page + at) != USER_BLOCKS_SIGNATURE)
				continue;
			want_bytes(n, at, 4);
			if (at >= x->signature)
				want_bytes(n, first,
					   head_bytes(x, page + first, PAGE_SIZE - first));
		}
	}
}

static bool begins_container(const struct heap_layout *l, const uint8_t *page, size_t at)
{
	for (size_t i = 0; i < ARRAY_SIZE(l->lfh); i++) {
		const size_t signature = at + l->lfh[i].signature;

		if (signature <= PAGE_SIZE - 4 &&
		    get_le32(page + signature) == USER_BLOCKS_SIGNATURE)
			return true;
	}
	return false;
}

/*
 * `header` is decoded. LFH subsegments lie in blocks of less than a page that are no containers;
 * with +ust, more than a header lies before what these hold (nt/extended.c).
 */
static void want_own(struct heap_notes *n, const struct heap_layout *l, uint64_t header, size_t at,
		     const uint8_t *page)
{
	const uint8_t own = CHUNK_FLAG_BUSY | CHUNK_FLAG_INTERNAL, unused = (uint8_t)(header >> 56);
	const size_t size = ((header & UINT16_MAX) - 1) * l->unit;
	const size_t between = unused & CHUNK_EXTENDED ? (unused & CHUNK_UNITS) * l->unit : 0;

	if ((header >> 16 & own) == own && size <= PAGE_SIZE &&
	    !begins_container(l, page, at + between))
		want_bytes(n, at, MIN(size, PAGE_SIZE - at));
}

static void want_chunks(struct heap_notes *n, const struct heap_layout *l,
			const struct notes_part *p, const uint8_t *page)
{
	const uint64_t key = get_le64(p->key);

	for (size_t at = 0; at < PAGE_SIZE; at += l->unit) {
		const uint64_t b = get_le64(page + at + l->header) ^ key;

		/* As in heap__chunk(). */
		if (((b ^ b >> 8 ^ b >> 16 ^ b >> 24) & 0xff) || !(b & UINT16_MAX))
			continue;
		want_bytes(n, at + l->header, HEAP_KEY_SIZE);
		want_own(n, l, b, at + l->unit, page);
	}
}

/*
 * Noting it
 */

static void append_note(struct heap_notes *n, const void *bytes, size_t size)
{
	const size_t words = (size + 1) / 2;

	if (words > NOTE_WORDS - n->n_made) {
		n->too_much = true;
		return;
	}
	memcpy(&n->made[n->n_made], bytes, size);
	n->n_made += words;
}

/* The first piece from `at` on that is wanted, or that is not. */
static size_t next_note_piece(const struct heap_notes *n, size_t at, bool wanted)
{
	for (; at < PIECES; at = (at | 63) + 1) {
		const uint64_t bits = n->wanted[at / 64];
		const uint64_t left = (wanted ? bits : ~bits) >> at % 64;

		if (left)
			return at + (size_t)__builtin_ctzll(left);
	}
	return PIECES;
}

static uint16_t note_spans(struct heap_notes *n, const uint8_t *page)
{
	uint16_t count = 0;

	for (size_t at = next_note_piece(n, 0, true), end; at < PIECES;
	     at = next_note_piece(n, end, true)) {
		/* What is looked for lies in one, because it lies in 8 bytes that do. */
		end = MIN(next_note_piece(n, at, false), (at + SPAN_MOST) & ~(size_t)1);
		const uint16_t where = (uint16_t)(at | (end - at) << SPAN_PIECES);

		append_note(n, &where, sizeof(where));
		append_note(n, page + at * PIECE, (end - at) * PIECE);
		count++;
	}
	return count;
}

static uint16_t note_lasts(struct heap_notes *n, const struct heap_layout *l, const uint8_t *page)
{
	uint16_t bits[PAGE_SIZE / 8 / 16] = { 0 };
	uint8_t bytes[PAGE_SIZE / 8];
	uint16_t count = 0;

	for (size_t unit = 0; unit < PAGE_SIZE / l->unit; unit++) {
		const uint8_t last = page[(unit + 1) * l->unit - 1];

		if (!(last & LFH_BLOCK))
			continue;
		bits[unit / 16] |= (uint16_t)(1U << unit % 16);
		bytes[count++] = last;
	}
	if (count) {
		append_note(n, bits, bitmap_words(l->wide) * sizeof(*bits));
		append_note(n, bytes, count);
	}
	return count;
}

static void make_note(struct heap_notes *n, const struct notes_part *p, const uint8_t *page)
{
	const struct heap_layout *l = heap__layout(p->wide);
	struct page_note head;

	memset(n->wanted, 0, sizeof(n->wanted));
	want_chunks(n, l, p, page);
	want_names(n, p, page);
	want_extensions(n, l, page);
	want_containers(n, l, page);
	n->too_much = false;
	n->n_made = HEAD_WORDS;
	head.spans = note_spans(n, page);
	head.lasts = note_lasts(n, l, page);
	memcpy(n->made, &head, sizeof(head));
}

/* Where it is among the words; false: there is no room. */
static bool keep_note(struct heap_notes *n, uint32_t *ret)
{
	while (n->words_room - n->n_words < n->n_made) {
		uint16_t *grown = n->words_room < NOTES_WORDS
					  ? array_grow(n->words, &n->words_room, sizeof(*grown))
					  : NULL;

		if (!grown)
			return false;
		n->words = grown;
	}
	memcpy(n->words + n->n_words, n->made, n->n_made * sizeof(*n->made));
	*ret = (uint32_t)n->n_words + NOTES_FROM;
	n->n_words += n->n_made;
	return true;
}

struct notes_part *heap__notes_part(struct heap_notes *n, uint64_t va)
{
	size_t i;

	if (n->last < n->n_parts && n->parts[n->last].first <= va && va <= n->parts[n->last].last)
		return &n->parts[n->last];
	i = FIRST_WHERE(k, n->n_parts, n->parts[k].last >= va);
	if (i == n->n_parts || n->parts[i].first > va)
		return NULL;
	n->last = i;
	return &n->parts[i];
}

enum status heap__note_pages(void *context, uint64_t va, uint64_t pages, const uint8_t *bytes,
			     struct err *e)
{
	struct heap_notes *n = context;
	const struct notes_part *noted = NULL;
	uint32_t where = IS_LOST;

	for (; pages; pages--, va += PAGE_SIZE) {
		const struct notes_part *p = heap__notes_part(n, va);

		if (!p)
			continue;
		if (bytes && p != noted) {
			make_note(n, p, bytes);
			where = NOT_NOTED;
			if (!n->too_much && !keep_note(n, &where))
				return ST_END;
			noted = p;
		}
		n->pages[p->page + (va - p->first) / PAGE_SIZE] = where;
	}
	return ST_OK;
}

/*
 * Asking
 */

void heap__see_note(struct heap_pages *p)
{
	struct heap_notes *n = p->notes;
	const struct notes_part *part = n && p->has ? heap__notes_part(n, p->va) : NULL;
	uint32_t where;

	p->note = NULL;
	if (!part)
		return;
	where = n->pages[part->page + (p->va - part->first) / PAGE_SIZE];
	p->note_part = part;
	if (where == IS_LOST)
		p->note = &lost;
	else if (where >= NOTES_FROM)
		p->note = (const struct page_note *)(n->words + (where - NOTES_FROM));
}

bool heap__note_is_lost(const struct heap_pages *p)
{
	return p->note == &lost;
}

bool heap__note_is_of(const struct heap_pages *p, bool wide, const uint8_t *key)
{
	const struct notes_part *part = p->note_part;

	return part->wide == wide && (!key || !memcmp(part->key, key, HEAP_KEY_SIZE));
}

bool heap__note_is_of_heap(const struct heap_pages *p, bool wide, uint64_t heap)
{
	return p->note_part->wide == wide && p->note_part->heap == heap;
}

static size_t span_at(const uint16_t *span)
{
	return (*span & (PIECES - 1)) * PIECE;
}

static size_t span_size(const uint16_t *span)
{
	return (size_t)(*span >> SPAN_PIECES) * PIECE;
}

static const uint16_t *next_span(const uint16_t *span)
{
	return span + 1 + span_size(span) / 2;
}

const uint8_t *heap__noted_bytes(const struct heap_pages *p, size_t at, size_t size)
{
	const uint16_t *span = p->note->at;

	for (size_t i = 0; i < p->note->spans && span_at(span) <= at; i++, span = next_span(span)) {
		const size_t within = at - span_at(span);

		if (within < span_size(span) && size <= span_size(span) - within)
			return (const uint8_t *)(span + 1) + within;
	}
	return NULL;
}

uint8_t heap__noted_last(const struct heap_pages *p, size_t unit)
{
	const size_t words = bitmap_words(p->note_part->wide);
	const uint16_t *bits = p->note->at;
	size_t before = 0;

	if (!p->note->lasts)
		return 0;
	for (size_t i = 0; i < p->note->spans; i++)
		bits = next_span(bits);
	if (!(bits[unit / 16] >> unit % 16 & 1))
		return 0;
	for (size_t i = 0; i < unit / 16; i++)
		before += (size_t)__builtin_popcount(bits[i]);
	before += (size_t)__builtin_popcount(bits[unit / 16] & ((1U << unit % 16) - 1));
	return ((const uint8_t *)(bits + words))[before];
}
