/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The low-fragmentation heap: chunks of the back end that hold blocks of one size. Its own key, a
 * random number of ntdll's combined with the address of the heap's LFH, is one for all containers
 * of the heap, so that those of which all is there tell it.
 *
 * 8 and later: a bitmap says which blocks are busy; 7: each block's header does.
 */
#include <string.h>

#include "agent/examine/heap/nt/nt.h"
#include "formats/base/array.h"
#include "formats/base/bytes.h"

/* A container is a chunk of the back end, so that more bits than it has units are a lie. */
#define BLOCKS_MAX 65536

struct container {
	uint64_t at, size;
	const struct heap_lfh_layout *l;
	uint64_t sub;
	bool has_sub;
	uint64_t stride; /* bytes; 0: not known */
	uint64_t count;
	uint64_t depth;   /* free blocks, by the subsegment */
	uint32_t offsets; /* encoded: of the first block, and the stride */
	uint64_t first;
	uint8_t bits[BLOCKS_MAX / 8];
};

static bool is_block_busy(const struct container *c, uint64_t i)
{
	return c->bits[i / 8] >> i % 8 & 1;
}

static bool read_bitmap(struct heap_walk *w, struct container *c)
{
	uint64_t pointer;
	uint32_t size;

	if (!heap__u32(w->p, c->at + c->l->bitmap_size, &size) ||
	    !heap__pointer(w->p, c->at + c->l->bitmap_pointer, w->l->wide, &pointer) ||
	    !heap__u32(w->p, c->at + c->l->offsets, &c->offsets))
		return false;
	if (!size || size > BLOCKS_MAX || size > c->size / w->l->unit ||
	    pointer != c->at + c->l->bitmap)
		return false;
	c->count = size;
	for (uint32_t i = 0; i < (size + 7) / 8; i++) {
		const uint8_t *byte = heap__at(w->p, pointer + i, 1);

		if (!byte)
			return false;
		c->bits[i] = *byte;
	}
	return true;
}

/* Of the subsegment, if it can be had and refers back. */
static void read_subsegment(struct heap_walk *w, struct container *c)
{
	const struct heap_lfh_layout *l = c->l;
	uint64_t back;
	uint16_t size, count, depth;

	c->has_sub = false;
	c->stride = 0;
	if (!heap__pointer(w->p, c->at, w->l->wide, &c->sub) ||
	    !heap__plausible(c->sub, w->l->wide, w->l->unit / 2) ||
	    !heap__pointer(w->p, c->sub + l->sub_user_blocks, w->l->wide, &back) ||
	    !heap__u16(w->p, c->sub + l->sub_depth, &depth) ||
	    !heap__u16(w->p, c->sub + l->sub_block_size, &size) ||
	    !heap__u16(w->p, c->sub + l->sub_block_count, &count))
		return;
	if (back != c->at || !size || !count || (c->count && count != c->count)) {
		w->stats->contradictions++;
		return;
	}
	c->has_sub = true;
	c->stride = (uint64_t)size * w->l->unit;
	c->count = count;
	c->depth = depth;
}

/* False: no container of blocks, but a zone or another thing that the heap keeps for itself. */
static bool open_container(struct heap_walk *w, const struct user_blocks *u, struct container *c,
			   bool *ret_whole)
{
	*ret_whole = false;
	c->at = u->at;
	c->size = u->size;
	c->count = 0;
	for (size_t i = ARRAY_SIZE(w->l->lfh); i-- > 0;) {
		c->l = &w->l->lfh[i];
		if (!heap__is_container(w->p, w->l, i, c->at))
			continue;
		/* x86 has it in the same place in both. */
		if (c->l->offsets && !read_bitmap(w, c)) {
			if (!w->l->wide && (w->info->old || !w->info->head))
				continue;
			return true;
		}
		read_subsegment(w, c);
		c->first = c->l->first;
		*ret_whole = c->l->offsets || c->has_sub;
		return true;
	}
	return false;
}

/* Where the first block would be if there were nothing between it and the bitmap. */
static uint64_t first_behind_bitmap(const struct heap_walk *w, const struct container *c)
{
	const uint64_t word = w->l->wide ? 64 : 32;
	const uint64_t end = c->l->bitmap + (c->count + word - 1) / word * (word / 8);

	return (end + w->l->unit - 1) / w->l->unit * w->l->unit;
}

static bool blocks_fit_container(const struct container *c)
{
	return c->stride && c->first < c->size && c->stride <= c->size &&
	       c->count <= (c->size - c->first) / c->stride;
}

/*
 * Do the headers that can be read say the same as the bitmap? At least one must. Of 7, that has
 * none, they must be headers of blocks.
 */
static bool headers_agree(struct heap_walk *w, const struct container *c)
{
	uint64_t agreeing = 0;

	for (uint64_t i = 0; i < c->count; i++) {
		const int last = heap__lfh_byte(w->p, w->l, c->at + c->first + i * c->stride);

		if (last < 0)
			continue;
		if (!(last & LFH_BLOCK) ||
		    (c->l->offsets && is_block_busy(c, i) != (last != LFH_BLOCK)))
			return false;
		agreeing++;
	}
	return agreeing;
}

static uint32_t encoded_by(const struct container *c, uint64_t first, uint64_t stride)
{
	return c->offsets ^ (uint32_t)c->at ^ (uint32_t)(first | stride << 16);
}

/* How containers have their offsets: 8's are plain, as MemProcFS reads them (ufrisk/MemProcFS). */
struct lfh_key {
	bool known;
	bool plain;
	uint32_t key;
};

/*
 * From 8 on the LFH's head has memory of its own, which the heap's counters count. What lies in a
 * segment is counted there.
 */
static void count_front_end_block(struct heap_walk *w)
{
	const struct heap_sources *s = &w->h->sources;
	const uint64_t at = w->info->front_end;
	const struct range *own;
	size_t count;
	const struct heap_segment *in = heap__segments(w->h, w->info->address, &count);

	for (size_t i = 0; i < count; i++)
		if (at >= in[i].base && at < in[i].end)
			return;
	own = at && s->ranges && !s->not_vads ? range_list_find(s->ranges, at) : NULL;
	w->stats->reserve_unknown = at && !own;
	if (!own)
		return;
	w->stats->reserved += range_bytes(*own);
	for (uint64_t va = own->first; va < own->last; va += PAGE_SIZE)
		if (!heap__is_there(w->p, va) && view_absent(w->p->m, va))
			w->stats->uncommitted += PAGE_SIZE;
}

/* What the key says of the container. */
static void decode_offsets(struct container *c, const struct lfh_key *key)
{
	const uint32_t plain = key->plain ? c->offsets : c->offsets ^ (uint32_t)c->at ^ key->key;

	c->first = plain & UINT16_MAX;
	c->stride = plain >> 16;
}

static bool key_decodes(const struct heap_walk *w, struct container *c, const struct lfh_key *key)
{
	const uint64_t stride = c->stride;

	decode_offsets(c, key);
	return (!c->has_sub || stride == c->stride) && c->stride % w->l->unit == 0 &&
	       c->first >= c->l->bitmap && blocks_fit_container(c);
}

static int key_by_value(const void *a, const void *b)
{
	const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return (x > y) - (x < y);
}

/* The key that most containers give. */
static enum status vote_for_key(struct heap_walk *w, struct container *c, struct lfh_key *ret)
{
	_cleanup_free_ uint32_t *keys = NULL;
	size_t count = 0, room = 0, best = 0, plain = 0;

	for (size_t i = 0; i < w->user_block_count; i++) {
		const enum status st = heap__note(w, w->user_blocks[i].at);
		bool whole;

		if (st)
			return st;
		if (!open_container(w, &w->user_blocks[i], c, &whole) || !whole || !c->l->offsets ||
		    !c->has_sub)
			continue;
		c->first = first_behind_bitmap(w, c);
		if (!blocks_fit_container(c))
			continue;
		if (count == room) {
			uint32_t *grown = array_grow(keys, &room, sizeof(*grown));

			if (!grown)
				return err_nomem(w->e);
			keys = grown;
		}
		plain += c->offsets == (c->first | c->stride << 16);
		keys[count++] = encoded_by(c, c->first, c->stride);
	}
	array_sort(keys, count, sizeof(*keys), key_by_value);
	for (size_t i = 0, end; i < count; i = end) {
		for (end = i; end < count && keys[end] == keys[i]; end++)
			continue;
		if (end - i > best) {
			best = end - i;
			ret->key = keys[i];
		}
	}
	ret->known = best;
	ret->plain = plain > best;
	return ST_OK;
}

/*
 * Whether a block whose header is missing can have its data somewhere else than behind it. With
 * +ust some blocks do and some don't, and only their headers tell which.
 */
static bool can_be_extended(struct heap_walk *w, const struct container *c)
{
	uint64_t seen = 0;
	uint32_t flag;

	if (heaps_global_flag(w->h, w->l->wide, &flag))
		return flag & GLOBAL_FLAG_STACK_TRACES;
	for (uint64_t i = 0; i < c->count; i++) {
		const int last = heap__lfh_byte(w->p, w->l, c->at + c->first + i * c->stride);

		if (last < 0 || !is_block_busy(c, i))
			continue;
		if (last & CHUNK_EXTENDED)
			return true;
		seen++;
	}
	return !seen;
}

static enum status tell_lfh_blocks(struct heap_walk *w, const struct container *c)
{
	const bool extended = c->l->offsets && can_be_extended(w, c);
	const uint64_t head = w->l->wide ? 16 : 8;
	uint64_t free_blocks = 0;
	enum status st = ST_OK;

	for (uint64_t i = 0; i < c->count && !st; i++) {
		const uint64_t at = c->at + c->first + i * c->stride;
		const int last = heap__lfh_byte(w->p, w->l, at);
		struct chunk header = { .at = at, .size = (uint32_t)(c->stride / w->l->unit) };
		struct heap_allocation a = {
			.address = at + head,
			.size = c->stride - 8,
			.container = c->at,
			.place = PLACE_LFH,
			.state = BLOCK_FREE,
		};

		if (last < 0 && (!c->l->offsets || (extended && is_block_busy(c, i)))) {
			w->stats->lost += c->stride; /* nothing says what it is, or where */
			continue;
		}
		if (c->l->offsets ? is_block_busy(c, i) : last != LFH_BLOCK) {
			a.state = BLOCK_BUSY;
			header.unused = last < 0 ? 0 : (uint8_t)last;
			a.has_requested =
				last >= 0 && heap__requested(w->p, w->l, &header, &a.requested);
			heap__extend(w, &header, &a);
		}
		free_blocks += a.state == BLOCK_FREE;
		st = heap__tell(w, &a);
	}
	w->stats->contradictions += c->has_sub && c->l->offsets && c->depth != free_blocks;
	return st;
}

static void lose_container(struct heap_walk *w, const struct user_blocks *u)
{
	w->stats->containers_lost++;
	w->stats->containers_lost_bytes += u->size;
}

static enum status walk_container(struct heap_walk *w, const struct user_blocks *u,
				  struct container *c, const struct lfh_key *key)
{
	enum status st = heap__note(w, u->at);
	bool whole;

	if (st)
		return st;
	if (!heap__is_there(w->p, u->at)) { /* a container or a zone: who knows */
		lose_container(w, u);
		return ST_OK;
	}
	if (!open_container(w, u, c, &whole))
		return ST_OK;
	w->stats->containers++;
	if (!whole || (c->l->offsets && !key->known)) {
		lose_container(w, u);
		return ST_OK;
	}
	if (c->l->offsets ? !key_decodes(w, c, key) : !blocks_fit_container(c)) {
		w->stats->contradictions++;
		lose_container(w, u);
		return ST_OK;
	}
	if (!headers_agree(w, c)) {
		w->stats->contradictions++;
		lose_container(w, u);
		return ST_OK;
	}
	return tell_lfh_blocks(w, c);
}

static int user_blocks_by_address(const void *a, const void *b)
{
	const struct user_blocks *x = a, *y = b;

	return (x->at > y->at) - (x->at < y->at);
}

enum status heap__walk_lfh(struct heap_walk *w)
{
	_cleanup_free_ struct container *c = malloc(sizeof(*c));
	enum status st = ST_OK;
	struct lfh_key key = { 0 };

	if (!c)
		return err_nomem(w->e);
	array_sort(w->user_blocks, w->user_block_count, sizeof(*w->user_blocks),
		   user_blocks_by_address);
	count_front_end_block(w);
	st = vote_for_key(w, c, &key);
	for (size_t i = 0; i < w->user_block_count && !st; i++)
		st = walk_container(w, &w->user_blocks[i], c, &key);
	return st;
}
