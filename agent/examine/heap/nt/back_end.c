/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The back end: chunks without gaps, each with its size and that of the one before it. Where pages
 * are missing the chain is taken up again behind them, by headers that confirm each other until the
 * next place that is certain: none of a chain that a readable header denies is told of.
 */
#include <string.h>

#include "agent/examine/heap/nt/nt.h"
#include "formats/base/array.h"

/*
 * Links that a chain needs to be believed: a header is right by chance in 1 of 2^8 places, a link
 * in 1 of 2^16.
 */
#define LINKS_LEAST    2

/* Its last page holds what is needed: 7's takes 25 KiB (x86: 13), 10's 3.3 KiB. */
#define LFH_SIZE_LEAST 3000

/* Uncommitted ranges of a segment; a list that is longer goes in circles. */
#define HOLES_MAX      65536

struct segment_walk {
	struct heap_walk *w;
	const struct heap_segment *s;
	bool island;
};

static uint64_t page_behind(uint64_t va)
{
	return (va & ~(uint64_t)(PAGE_SIZE - 1)) + PAGE_SIZE;
}

static enum chunk_read chunk_at(struct heap_walk *w, uint64_t at, uint64_t to, struct chunk *ret)
{
	const enum chunk_read r = heap__chunk(w->p, w->l, w->key, at, ret);

	/* What reaches past the end is no chunk. */
	return r == CHUNK_GOOD && (uint64_t)ret->size * w->l->unit > to - at ? CHUNK_WRONG : r;
}

static uint64_t back_chunk_end(const struct heap_walk *w, const struct chunk *c)
{
	return c->at + (uint64_t)c->size * w->l->unit;
}

/*
 * The links of the chain that begins with `c`; *ret_stop is where it ends. False: a header that can
 * be read denies it there.
 */
static bool follow_back_chain(struct heap_walk *w, struct chunk c, uint64_t to, size_t *ret_links,
			      uint64_t *ret_stop)
{
	struct chunk next;
	uint64_t at;

	for (*ret_links = 0;; c = next, ++*ret_links) {
		enum chunk_read r;

		*ret_stop = at = back_chunk_end(w, &c);
		if (at == to)
			return true;
		r = chunk_at(w, at, to, &next);
		if (r == CHUNK_UNREAD)
			return !w->p->cut;
		if (r == CHUNK_WRONG || next.prev != c.size)
			return false;
	}
}

static enum status note_user_blocks(struct heap_walk *w, const struct heap_allocation *a)
{
	struct user_blocks *grown;

	if (w->user_block_count == HEAP_USER_BLOCKS_MAX) {
		w->stats->cut = true;
		return ST_OK;
	}
	if (w->user_block_count == w->user_block_room) {
		grown = array_grow(w->user_blocks, &w->user_block_room, sizeof(*grown));
		if (!grown)
			return err_nomem(w->e);
		w->user_blocks = grown;
	}
	/* Nothing of it lies in the next header, as a program's block does. */
	if (a->size > w->l->header)
		w->user_blocks[w->user_block_count++] = (struct user_blocks){
			.at = a->address,
			.size = a->size - w->l->header,
		};
	return ST_OK;
}

/*
 * The heap's own, whose flags do not say so: descriptors of holes leave fewer bytes unused than any
 * program's block, because a header is 8 bytes; and the head of the LFH.
 */
static bool is_heap_internal(struct heap_walk *w, const struct chunk *c, uint64_t bytes)
{
	const uint64_t data = c->at + (w->l->wide ? 16 : 8);

	if (c->flags & CHUNK_FLAG_INTERNAL)
		return false;
	if (c->unused && c->unused < 8 && c->unused != 5)
		return true;
	if (w->info->front_end || bytes < LFH_SIZE_LEAST)
		return data == w->info->front_end;
	return heap__holds(w->p, data + w->l->lfh[0].head, w->l->wide, w->info->address) ||
	       heap__holds(w->p, data + w->l->lfh[1].head, w->l->wide, w->info->address);
}

static enum status tell_back_chunk(struct segment_walk *s, const struct chunk *c)
{
	struct heap_walk *w = s->w;
	const uint64_t bytes = (uint64_t)c->size * w->l->unit;
	struct heap_allocation a = {
		.address = c->at + (w->l->wide ? 16 : 8),
		.size = bytes - 8,
		.container = s->s->base,
		.place = PLACE_BACK_END,
		.island = s->island,
	};
	enum status st = ST_OK;

	if (!(c->flags & CHUNK_FLAG_BUSY)) {
		a.state = BLOCK_FREE;
		w->stats->free_chunks += bytes;
		w->stats->largest_free = MAX(w->stats->largest_free, bytes);
	} else if (is_heap_internal(w, c, bytes)) {
		a.state = BLOCK_INTERNAL;
	} else if (c->flags & CHUNK_FLAG_INTERNAL) {
		a.state = BLOCK_INTERNAL;
		heap__extend_own(w, c, &a);
		st = note_user_blocks(w, &a);
	} else {
		a.has_requested = heap__requested(w->p, w->l, c, &a.requested);
		heap__extend(w, c, &a);
	}
	return st ? st : heap__tell(w, &a);
}

/*
 * The next place in [at, to) where a chain begins; what is passed over is counted.
 *
 * A chunk that was merged into the one before it leaves its header behind. Where headers are
 * encoded, it is the decoded one that stays, and does not fit; plain ones stay as they were, and
 * whole chains of them in blocks that others have now. Of those none is believed.
 */
static uint64_t resync_back_chain(struct heap_walk *w, uint64_t at, uint64_t to)
{
	while (at < to && !w->p->cut) {
		struct chunk c;
		const enum chunk_read r = chunk_at(w, at, to, &c);
		uint64_t stop = MIN(page_behind(at), to);
		size_t links;

		if (r == CHUNK_UNREAD) {
			w->stats->lost += heap__lost(w->p, at, stop);
			at = stop;
			continue;
		}
		stop = at + w->l->unit;
		if (r == CHUNK_GOOD && w->key) {
			const bool whole = follow_back_chain(w, c, to, &links, &stop);

			if (whole && links >= LINKS_LEAST) {
				w->stats->resynchronised++;
				return at;
			}
			w->stats->contradictions += !whole && links >= LINKS_LEAST;
			/* A chain that is denied at its end is what was there before. */
			if (links < LINKS_LEAST)
				stop = at + w->l->unit;
		}
		w->stats->unlinked += stop - at;
		at = stop;
	}
	if (at < to)
		w->stats->lost += to - at;
	return to;
}

/* Does what follows the first chunk of a span not deny it? */
static bool is_back_chunk_confirmed(struct heap_walk *w, const struct chunk *c, uint64_t to)
{
	struct chunk next;
	const uint64_t end = back_chunk_end(w, c);
	const enum chunk_read r = end == to ? CHUNK_UNREAD : chunk_at(w, end, to, &next);

	return r == CHUNK_UNREAD || (r == CHUNK_GOOD && next.prev == c->size);
}

/* Committed memory that begins with a chunk, unless `anywhere`. */
static enum status walk_span(struct segment_walk *s, uint64_t at, uint64_t to, bool anywhere)
{
	struct heap_walk *w = s->w;
	struct chunk before = { 0 }, c;
	enum status st = ST_OK;

	s->island = anywhere;
	if (anywhere) {
		st = heap__note(w, at);
		at = resync_back_chain(w, at, to);
	}
	while (!st && at < to && !w->p->cut) {
		enum chunk_read r;

		st = heap__note(w, at);
		if (st)
			break;
		r = chunk_at(w, at, to, &c);
		if (r == CHUNK_GOOD &&
		    (before.size ? c.prev == before.size
				 : s->island || is_back_chunk_confirmed(w, &c, to))) {
			st = tell_back_chunk(s, &c);
			before = c;
			at = back_chunk_end(w, &c);
			continue;
		}
		w->stats->contradictions += r != CHUNK_UNREAD;
		at = resync_back_chain(w, at, to);
		before = (struct chunk){ 0 };
		s->island = true;
	}
	if (at < to && w->p->cut)
		w->stats->lost += to - at;
	return st;
}

/* The uncommitted ranges of the segment, tidy. */
static enum status find_holes(struct heap_walk *w, const struct heap_segment *s,
			      struct range_list *ret)
{
	const struct heap_layout *l = w->l;
	const uint64_t head = s->base + l->holes;
	uint64_t entry = 0, address, size;

	if (!heap__pointer(w->p, head, l->wide, &entry))
		return ST_OK;
	for (size_t i = 0; entry != head; i++) {
		const uint64_t d = entry - l->descriptor_segment;
		enum status st;

		if (i == HOLES_MAX || !heap__plausible(entry, l->wide, l->unit / 2) ||
		    !heap__pointer(w->p, d + l->descriptor_address, l->wide, &address) ||
		    !heap__pointer(w->p, d + l->descriptor_address + l->unit / 2, l->wide, &size) ||
		    !heap__pointer(w->p, entry, l->wide, &entry))
			break;
		if (!size) /* a segment of which all is committed has one */
			continue;
		if (address < s->first || address >= s->last || size % PAGE_SIZE ||
		    address % PAGE_SIZE || size > s->last - address) {
			w->stats->contradictions++;
			continue;
		}
		st = range_list_add(ret, address, address + size - 1, w->e);
		if (st)
			return st;
	}
	range_list_tidy(ret, NULL);
	range_list_join(ret);
	return ST_OK;
}

static enum status walk_back_segment(struct heap_walk *w, const struct heap_segment *s)
{
	struct segment_walk walk = { .w = w, .s = s };
	_cleanup_ranges_ struct range_list holes = { 0 };
	uint64_t at = s->first;
	enum status st;

	w->stats->segments++;
	if (!s->read) {
		w->stats->segments_unread++;
		return walk_span(&walk, s->base, s->end, true);
	}
	w->stats->reserved += s->last - s->base;
	w->stats->uncommitted += s->uncommitted_pages * PAGE_SIZE;
	st = find_holes(w, s, &holes);
	w->stats->holes += holes.count;
	for (size_t i = 0; i <= holes.count && !st; i++) {
		const uint64_t to = i < holes.count ? holes.at[i].first : s->last;

		if (at < to)
			st = walk_span(&walk, at, to, false);
		if (i < holes.count)
			at = holes.at[i].last + 1;
	}
	return st;
}

enum status heap__walk_back_end(struct heap_walk *w)
{
	size_t count;
	const struct heap_segment *s = heap__segments(w->h, w->info->address, &count);
	enum status st = ST_OK;

	for (size_t i = 0; i < count && !st; i++)
		st = walk_back_segment(w, &s[i]);
	return st;
}
