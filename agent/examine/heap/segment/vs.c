/* SPDX-License-Identifier: Apache-2.0 */
/*
 * VS subsegments: chunks without gaps, each with its size and that of the one before it, combined
 * with its address and the process's key. What nt/back_end.c says of chains holds here, too.
 */
#include "agent/examine/heap/segment/segment_internal.h"

/* _HEAP_VS_SUBSEGMENT */
#define VS_SIZE         0x20
#define VS_MARK         0x2bed /* Signature ^ Size, of 15 bits */
#define VS_FIRST        0x30   /* the first chunk */
/* _HEAP_VS_CHUNK_HEADER */
#define VS_CHUNK        0x10
#define VS_UNIT         16
#define VS_CHUNK_UNUSED (1U << 8) /* in the 32 bits at 8, behind EncodedSegmentPageOffset */

/* Whether Size counts the head is not known, so that a chain may end before by so much. */
#define VS_TAIL         0x30
/* Links that a chain needs to be believed: see nt/back_end.c. */
#define LINKS_LEAST     2

enum chunk_read segment__vs_open(struct heap_pages *p, const struct segment_layout *l,
				 const struct page_range *r, struct vs_subsegment *ret)
{
	uint16_t units, mark;
	uint64_t size;

	*ret = (struct vs_subsegment){ r->at + VS_FIRST, r->at + r->size };
	if (!heap__u16(p, r->at + VS_SIZE, &units) || !heap__u16(p, r->at + l->vs_mark, &mark))
		return CHUNK_UNREAD;
	size = (uint64_t)units * VS_UNIT;
	if ((mark ^ units ^ VS_MARK) & 0x7fff || !units || size > r->size)
		return CHUNK_WRONG;
	/* Whether the head counts is not known: the range is what both are rounded up to. */
	ret->end = size <= r->size - VS_FIRST ? ret->first + size : r->at + size;
	return CHUNK_GOOD;
}

enum chunk_read segment__vs_chunk(struct heap_pages *p, uint64_t key, uint64_t at, uint64_t to,
				  struct vs_chunk *ret)
{
	uint64_t raw;
	uint32_t bits;

	if (!heap__u64(p, at, &raw) || !heap__u32(p, at + 8, &bits))
		return CHUNK_UNREAD;
	raw ^= at ^ key;
	*ret = (struct vs_chunk){
		.at = at,
		.size = raw >> 16 & UINT16_MAX,
		.prev = raw >> 32 & UINT16_MAX,
		.busy = raw >> 48 & 1,
		.has_unused = bits & VS_CHUNK_UNUSED,
	};
	return ret->size && !(raw >> 49) && (uint64_t)ret->size * VS_UNIT <= to - at ? CHUNK_GOOD
										     : CHUNK_WRONG;
}

static uint64_t vs_chunk_end(const struct vs_chunk *c)
{
	return c->at + (uint64_t)c->size * VS_UNIT;
}

/* As nt/back_end.c's: false where a chunk that can be read denies the chain. */
static bool follow_vs_chain(struct heap_pages *p, uint64_t key, struct vs_chunk c, uint64_t to,
			    size_t *ret_links, uint64_t *ret_stop)
{
	struct vs_chunk next;

	for (*ret_links = 0;; c = next, ++*ret_links) {
		enum chunk_read r;

		*ret_stop = vs_chunk_end(&c);
		if (to - *ret_stop < VS_CHUNK)
			return true;
		r = segment__vs_chunk(p, key, *ret_stop, to, &next);
		if (r == CHUNK_UNREAD)
			return !p->cut;
		if (r == CHUNK_WRONG || next.prev != c.size)
			return to - *ret_stop <= VS_TAIL;
		/* Free ones that touch are made one. */
		if (!next.busy && !c.busy)
			return false;
	}
}

bool segment__vs_agrees(struct heap_pages *p, uint64_t key, const struct vs_subsegment *s)
{
	struct vs_chunk c;
	size_t links;
	uint64_t stop;

	return segment__vs_chunk(p, key, s->first, s->end, &c) == CHUNK_GOOD && !c.prev &&
	       follow_vs_chain(p, key, c, s->end, &links, &stop) && links >= LINKS_LEAST;
}

enum unused_read segment__unused(struct heap_pages *p, uint64_t at, uint64_t size, uint64_t *ret)
{
	uint16_t unused;

	if (size < 2 || !heap__u16(p, at + size - 2, &unused))
		return UNUSED_UNREAD;
	/* One byte alone: the other is the program's. */
	*ret = unused & 0x8000 ? 1 : unused & 0x3fff;
	return (unused & 0x8000 || *ret > 1) && *ret <= size ? UNUSED_GOOD : UNUSED_WRONG;
}

struct vs_walk {
	struct heap_walk *w;
	uint64_t container;
	uint64_t key;
	uint64_t to;
	bool island;
};

static enum status tell_vs_chunk(const struct vs_walk *v, const struct vs_chunk *c)
{
	const uint64_t bytes = (uint64_t)c->size * VS_UNIT - VS_CHUNK;
	uint64_t unused = 0;
	struct heap_allocation a = {
		.address = c->at + VS_CHUNK,
		.size = bytes,
		.container = v->container,
		.place = PLACE_VS,
		.state = c->busy ? BLOCK_BUSY : BLOCK_FREE,
		.island = v->island,
	};

	if (c->busy) {
		const enum unused_read u =
			c->has_unused ? segment__unused(v->w->p, a.address, bytes, &unused)
				      : UNUSED_GOOD;

		a.has_requested = u == UNUSED_GOOD;
		a.requested = a.has_requested ? bytes - unused : 0;
		v->w->stats->contradictions += u == UNUSED_WRONG;
		segment__unpad(v->w, &a);
	} else {
		v->w->stats->free_chunks += bytes;
	}
	return heap__tell(v->w, &a);
}

static uint64_t resync_vs_chain(const struct vs_walk *v, uint64_t at)
{
	struct heap_walk *w = v->w;

	while (v->to - at >= VS_CHUNK && !w->p->cut) {
		struct vs_chunk c;
		const enum chunk_read r = segment__vs_chunk(w->p, v->key, at, v->to, &c);
		uint64_t stop = MIN((at & ~(uint64_t)(PAGE_SIZE - 1)) + PAGE_SIZE, v->to);
		size_t links;

		if (r == CHUNK_UNREAD) {
			w->stats->lost += heap__lost(w->p, at, stop);
			at = stop;
			continue;
		}
		stop = at + VS_UNIT;
		if (r == CHUNK_GOOD) {
			const bool whole = follow_vs_chain(w->p, v->key, c, v->to, &links, &stop);

			if (whole && links >= LINKS_LEAST) {
				w->stats->resynchronised++;
				return at;
			}
			w->stats->contradictions += !whole && links >= LINKS_LEAST;
			if (links < LINKS_LEAST)
				stop = at + VS_UNIT;
		}
		w->stats->unlinked += stop - at;
		at = stop;
	}
	return v->to;
}

static bool is_vs_chunk_confirmed(const struct vs_walk *v, const struct vs_chunk *c)
{
	struct vs_chunk next;
	const uint64_t end = vs_chunk_end(c);
	const enum chunk_read r = v->to - end <= VS_TAIL
					  ? CHUNK_UNREAD
					  : segment__vs_chunk(v->w->p, v->key, end, v->to, &next);

	return r == CHUNK_UNREAD || (r == CHUNK_GOOD && next.prev == c->size);
}

static enum status walk_chunks(struct vs_walk *v, uint64_t at, bool anywhere)
{
	struct heap_walk *w = v->w;
	struct vs_chunk before = { 0 }, c;
	bool first = !anywhere;
	enum status st = ST_OK;

	if (anywhere)
		at = resync_vs_chain(v, at);
	while (!st && v->to - at >= VS_CHUNK && !w->p->cut) {
		const enum chunk_read r = segment__vs_chunk(w->p, v->key, at, v->to, &c);

		if (r == CHUNK_GOOD && (before.size ? c.prev == before.size
					: first     ? !c.prev && is_vs_chunk_confirmed(v, &c)
						    : true)) {
			st = tell_vs_chunk(v, &c);
			before = c;
			first = false;
			at = vs_chunk_end(&c);
			continue;
		}
		if (r != CHUNK_UNREAD && before.size && v->to - at <= VS_TAIL)
			break;
		w->stats->contradictions += r != CHUNK_UNREAD;
		at = resync_vs_chain(v, at);
		before = (struct vs_chunk){ 0 };
		first = false;
		v->island = true;
	}
	if (v->to - at >= VS_CHUNK && w->p->cut)
		w->stats->lost += v->to - at;
	return st;
}

enum status segment__walk_vs(struct heap_walk *w, const struct segment_heap *heap,
			     const struct page_range *r, bool island)
{
	const struct segment_state *s = w->h->segment;
	struct vs_subsegment sub;
	const enum chunk_read head = segment__vs_open(w->p, heap->l, r, &sub);
	struct vs_walk v = {
		.w = w,
		.container = r->at,
		.key = s->key,
		.to = sub.end,
		.island = island || head == CHUNK_UNREAD,
	};

	w->stats->containers++;
	w->stats->contradictions += head == CHUNK_WRONG;
	if (!s->has_key || head == CHUNK_WRONG) {
		w->stats->containers_lost++;
		w->stats->containers_lost_bytes += r->size;
		return ST_OK;
	}
	return walk_chunks(&v, sub.first, head == CHUNK_UNREAD);
}
