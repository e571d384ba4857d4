/* SPDX-License-Identifier: Apache-2.0 */
/*
 * LFH subsegments: blocks of one size without headers, of which a bitmap says which are busy. Their
 * size and where the first lies are combined with the subsegment's address and a key.
 */
#include "agent/examine/heap/segment/segment_internal.h"

/* _HEAP_LFH_SUBSEGMENT */
#define LFH_FREE    0x20
#define LFH_COUNT   0x22
#define LFH_OFFSETS 0x28

/* Of block sizes, and of where the first begins. */
#define LFH_UNIT    16

#define BIT_BUSY    1
#define BIT_UNUSED  2

enum chunk_read segment__lfh_open(struct heap_pages *p, const struct segment_layout *l,
				  const struct page_range *r, struct lfh_subsegment *ret)
{
	uint16_t free_blocks, count;

	*ret = (struct lfh_subsegment){ .at = r->at, .size = r->size, .l = l };
	if (!heap__u16(p, r->at + LFH_FREE, &free_blocks) ||
	    !heap__u16(p, r->at + LFH_COUNT, &count) ||
	    !heap__u32(p, r->at + LFH_OFFSETS, &ret->offsets))
		return CHUNK_UNREAD;
	ret->count = count;
	return count && free_blocks <= count && count <= r->size / LFH_UNIT ? CHUNK_GOOD
									    : CHUNK_WRONG;
}

bool segment__lfh_decode(struct lfh_subsegment *s, uint32_t key, bool whole)
{
	const uint32_t page = whole ? (uint32_t)(s->at >> 12) : (uint32_t)s->at >> 12;
	const uint32_t plain = s->offsets ^ page ^ key;

	s->block = plain & UINT16_MAX;
	s->first = plain >> 16;
	return s->block && s->block % LFH_UNIT == 0 && s->first % LFH_UNIT == 0 &&
	       s->first >= s->l->lfh_bitmap + (s->count + 3) / 4 && s->first < s->size &&
	       s->count <= (s->size - s->first) / s->block;
}

bool segment__lfh_bits(struct heap_pages *p, const struct lfh_subsegment *s, uint32_t i,
		       uint8_t *ret)
{
	const uint8_t *byte = heap__at(p, s->at + s->l->lfh_bitmap + i / 4, 1);

	if (byte)
		*ret = *byte >> i % 4 * 2 & 3;
	return byte;
}

/* What is known of a block, once its page has been looked at. */
struct block {
	uint8_t bits; /* BIT_LOST: its own can't be had */
	uint8_t read; /* enum unused_read, of those with BIT_UNUSED */
	uint16_t unused;
};

#define BIT_LOST 4

static enum status tell_lfh_block(struct heap_walk *w, const struct lfh_subsegment *s, uint32_t i,
				  const struct block *b, bool island)
{
	const bool busy = b->bits & BIT_BUSY;
	struct heap_allocation a = {
		.address = s->at + s->first + (uint64_t)i * s->block,
		.size = s->block,
		.container = s->at,
		.place = PLACE_LFH,
		.state = busy ? BLOCK_BUSY : BLOCK_FREE,
		.has_requested = busy && b->read == UNUSED_GOOD,
		.island = island,
	};

	a.requested = a.has_requested ? s->block - b->unused : 0;
	if (busy)
		segment__unpad(w, &a);
	return heap__tell(w, &a);
}

/*
 * First all of the bitmap, then the blocks in their order, so that each page is asked for once.
 * False: one that says how much of it is unused says what cannot be.
 */
static bool read_lfh_bitmap(struct heap_walk *w, const struct lfh_subsegment *s, struct block *ret)
{
	for (uint32_t i = 0; i < s->count; i++)
		if (!segment__lfh_bits(w->p, s, i, &ret[i].bits))
			ret[i].bits = BIT_LOST;
	for (uint32_t i = 0; i < s->count; i++) {
		uint64_t unused = 0;

		if (ret[i].bits != (BIT_BUSY | BIT_UNUSED))
			continue;
		ret[i].read = (uint8_t)segment__unused(
			w->p, s->at + s->first + (uint64_t)i * s->block, s->block, &unused);
		ret[i].unused = (uint16_t)unused;
		if (ret[i].read == UNUSED_WRONG)
			return false;
	}
	return true;
}

/*
 * FreeCount is not asked: genuine heaps of 17763, 18362 and 22000 count as many free blocks as the
 * bitmap has, one of 19044.1766 fewer of nearly all.
 */
static enum status tell_subsegment_blocks(struct heap_walk *w, const struct lfh_subsegment *s,
					  const struct block *blocks, bool island)
{
	enum status st = ST_OK;

	for (uint32_t i = 0; i < s->count && !st; i++) {
		if (blocks[i].bits == BIT_LOST) {
			w->stats->lost += s->block;
			continue;
		}
		st = tell_lfh_block(w, s, i, &blocks[i], island);
	}
	return st;
}

enum status segment__walk_lfh(struct heap_walk *w, const struct segment_heap *heap,
			      const struct page_range *r, bool island)
{
	const struct segment_state *k = w->h->segment;
	_cleanup_free_ struct block *blocks = NULL;
	struct lfh_subsegment s;
	const enum chunk_read head = segment__lfh_open(w->p, heap->l, r, &s);

	w->stats->containers++;
	if (head == CHUNK_GOOD && k->has_lfh_key &&
	    segment__lfh_decode(&s, k->lfh_key, k->lfh_whole)) {
		blocks = calloc(s.count, sizeof(*blocks)); /* 65535 at most */
		if (!blocks)
			return err_nomem(w->e);
		if (read_lfh_bitmap(w, &s, blocks))
			return tell_subsegment_blocks(w, &s, blocks, island);
	}
	w->stats->contradictions += head != CHUNK_UNREAD && k->has_lfh_key;
	w->stats->containers_lost++;
	w->stats->containers_lost_bytes += r->size;
	return ST_OK;
}
