/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Blocks too large for segments: each has a VirtualAlloc of its own and hangs on the heap's list.
 * The list is read from both ends, as far as it can be read; and the starts of private ranges show
 * those that neither end reaches. From 8 on a block begins up to 15 pages behind the start of its
 * range, and what is before it is not committed (seen in genuine heaps of 9600 to 22000).
 */
#include <stdlib.h>
#include <string.h>

#include "agent/examine/heap/nt/nt.h"
#include "formats/base/array.h"

/* Each of them takes 64 KiB of the process's address space at least. */
#define VIRTUAL_BLOCKS_MAX (1U << 20)

/* From a block to its heap. One that is further away than that counts as another heap's. */
#define STEPS_MAX          4096

/* Of a range's pages, where a block can begin. */
#define LEAD_PAGES         16

struct block {
	uint64_t at;
	uint64_t next, before;
	uint64_t commit;
	struct chunk chunk;
};

struct found {
	uint64_t *at;
	size_t count, room;
};

/* Within the addresses of the process and, where they are known, the range that it lies in. */
static bool fits_own_range(const struct heap_walk *w, uint64_t at, uint64_t bytes)
{
	const struct heap_sources *s = &w->h->sources;
	const struct range *own = s->ranges && !s->not_vads ? range_list_find(s->ranges, at) : NULL;

	return at + bytes <= (w->l->wide ? USER_LIMIT_WIDE : USER_LIMIT_NARROW) &&
	       (!own || bytes - 1 <= own->last - at);
}

static enum chunk_read read_virtual_block(struct heap_walk *w, uint64_t at, struct block *ret)
{
	const struct heap_layout *l = w->l;
	const uint64_t word = l->wide ? 8 : 4;
	enum chunk_read r;
	uint64_t reserve;

	ret->at = at;
	if (!heap__pointer(w->p, at, l->wide, &ret->next) ||
	    !heap__pointer(w->p, at + word, l->wide, &ret->before) ||
	    !heap__pointer(w->p, at + l->virtual_commit, l->wide, &ret->commit) ||
	    !heap__pointer(w->p, at + l->virtual_reserve, l->wide, &reserve))
		return CHUNK_UNREAD;
	r = heap__chunk(w->p, l, w->key, at + l->virtual_chunk, &ret->chunk);
	if (r != CHUNK_GOOD)
		return r;
	/* Its size is what is unused; the whole is the program's, rounded up to pages. */
	if (!ret->commit || ret->commit % PAGE_SIZE || reserve < ret->commit ||
	    reserve >= USER_LIMIT_WIDE || !(ret->chunk.flags & CHUNK_FLAG_BUSY) ||
	    ret->chunk.size > ret->commit || !heap__plausible(ret->next, l->wide, word) ||
	    !heap__plausible(ret->before, l->wide, word))
		return CHUNK_WRONG;
	return fits_own_range(w, at, ret->commit) ? CHUNK_GOOD : CHUNK_WRONG;
}

static enum status note_virtual_block(struct heap_walk *w, struct found *f, uint64_t at)
{
	uint64_t *grown;

	if (f->count == f->room) {
		grown = array_grow(f->at, &f->room, sizeof(*grown));
		if (!grown)
			return err_nomem(w->e);
		f->at = grown;
	}
	f->at[f->count++] = at;
	return ST_OK;
}

/* Both neighbours that can be read must know of it. */
static bool neighbours_agree(struct heap_walk *w, const struct block *b)
{
	const uint64_t word = w->l->wide ? 8 : 4;
	uint64_t other;

	return (!heap__pointer(w->p, b->next + word, w->l->wide, &other) || other == b->at) &&
	       (!heap__pointer(w->p, b->before, w->l->wide, &other) || other == b->at);
}

/* *ret_stop: the block that the list leads to and that can't be had; 0: none. */
static enum status follow_virtual_list(struct heap_walk *w, uint64_t head, bool backward,
				       struct found *f, uint64_t *ret_stop)
{
	const uint64_t word = w->l->wide ? 8 : 4;
	uint64_t at, before = head;
	enum status st = ST_OK;

	*ret_stop = 0;
	if (!heap__pointer(w->p, head + (backward ? word : 0), w->l->wide, &at))
		return ST_OK;
	for (size_t i = 0; at != head && !st; i++) {
		struct block b;
		enum chunk_read r;

		if (i == VIRTUAL_BLOCKS_MAX || !heap__plausible(at, w->l->wide, word)) {
			w->stats->contradictions++;
			break;
		}
		*ret_stop = at;
		r = read_virtual_block(w, at, &b);
		if (r == CHUNK_UNREAD)
			break;
		/* Each points back to the one before: so none comes twice. */
		if (r == CHUNK_WRONG || (backward ? b.next : b.before) != before ||
		    !neighbours_agree(w, &b)) {
			w->stats->contradictions++;
			break;
		}
		*ret_stop = 0;
		st = note_virtual_block(w, f, at);
		before = at;
		at = backward ? b.before : b.next;
	}
	return st;
}

static uint64_t list_head(const struct heap_info *info)
{
	return info->address + heap__layout(info->wide)->family[!info->old].virtual_blocks;
}

static bool is_head_of_another(const struct heap_walk *w, uint64_t at)
{
	for (size_t i = 0; i < w->h->count; i++)
		if (i != w->index && w->h->at[i].kind == HEAP_NT && list_head(&w->h->at[i]) == at)
			return true;
	return false;
}

static bool is_read_by_another(struct heap_walk *w, const struct block *b)
{
	for (size_t i = 0; i < w->h->count; i++) {
		const struct heap_info *other = &w->h->at[i];
		struct chunk c;

		if (i != w->index && other->kind == HEAP_NT && other->wide == w->info->wide &&
		    other->key_from != KEY_NONE &&
		    heap__chunk(w->p, w->l, other->key_from == KEY_PLAIN ? NULL : other->key,
				b->at + w->l->virtual_chunk, &c) == CHUNK_GOOD)
			return true;
	}
	return false;
}

/*
 * Where one heap's key makes sense of one header of another heap, it mostly does of all: their
 * check is a sum, in which the block itself cancels out. So the list has to say whose a block is;
 * one that several keys fit, and whose list is lost, is no heap's.
 */
static bool may_be_anothers(struct heap_walk *w, const struct block *b)
{
	const uint64_t word = w->l->wide ? 8 : 4, head = list_head(w->info);

	for (int backward = 0; backward < 2; backward++) {
		uint64_t at = backward ? b->before : b->next;
		size_t steps = 0;

		do {
			if (at == head || at == b->at)
				return false;
			if (is_head_of_another(w, at) || ++steps == STEPS_MAX)
				return true;
		} while (heap__pointer(w->p, at + (backward ? word : 0), w->l->wide, &at));
	}
	if (!is_read_by_another(w, b))
		return false;
	w->stats->contradictions++;
	return true;
}

static int address_by_value(const void *a, const void *b)
{
	const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

/* A list ended at this one: no more of it is known than where it is, and the range around it. */
static void lose_virtual_block(struct heap_walk *w, const struct found *f, uint64_t at)
{
	const struct heap_sources *s = &w->h->sources;
	const struct range *own = s->ranges && !s->not_vads ? range_list_find(s->ranges, at) : NULL;

	if (at && !(f->count && bsearch(&at, f->at, f->count, sizeof(at), address_by_value)))
		w->stats->lost += own ? own->last - at + 1 : PAGE_SIZE;
}

/* The first page of the range that can be had, of those that a block can begin with. */
static uint64_t find_block_page(struct heap_walk *w, const struct range *r)
{
	uint64_t at = r->first;

	while (at < r->first + (LEAD_PAGES - 1) * PAGE_SIZE && at + PAGE_SIZE <= r->last &&
	       !heap__is_there(w->p, at) && !w->p->cut)
		at += PAGE_SIZE;
	return at;
}

/* Those whose neighbours can't be had: they have a range of their own, and fit in it. */
static enum status find_unlisted_blocks(struct heap_walk *w, struct found *f)
{
	const struct range_list *l = w->h->sources.ranges;
	const size_t listed = f->count;
	enum status st = ST_OK;

	array_sort(f->at, listed, sizeof(*f->at), address_by_value);
	for (size_t i = 0; l && i < l->count && !st && !w->h->sources.not_vads; i++) {
		const uint64_t at = find_block_page(w, &l->at[i]);
		struct block b;

		if (listed && bsearch(&at, f->at, listed, sizeof(at), address_by_value))
			continue;
		if (read_virtual_block(w, at, &b) == CHUNK_GOOD && neighbours_agree(w, &b) &&
		    (range_list_find(l, b.next) && range_list_find(l, b.before)) &&
		    !may_be_anothers(w, &b))
			st = note_virtual_block(w, f, at);
	}
	return st;
}

static enum status tell_virtual_block(struct heap_walk *w, uint64_t at)
{
	struct heap_allocation a = {
		.address = at + w->l->virtual_data,
		.container = at,
		.place = PLACE_VIRTUAL,
		.has_requested = true,
	};
	struct block b;

	if (read_virtual_block(w, at, &b) != CHUNK_GOOD || b.commit < w->l->virtual_data)
		return ST_OK;
	a.size = b.commit - w->l->virtual_data;
	a.requested = MIN(b.commit - b.chunk.size, a.size);
	heap__extend(w, &b.chunk, &a);
	return heap__tell(w, &a);
}

enum status heap__walk_virtual(struct heap_walk *w)
{
	const uint64_t head = list_head(w->info);
	struct found f = { 0 };
	uint64_t stop = 0, other = 0;
	enum status st = ST_OK;

	if (w->info->head) {
		st = follow_virtual_list(w, head, false, &f, &stop);
		if (!st)
			st = follow_virtual_list(w, head, true, &f, &other);
	}
	if (!st)
		st = find_unlisted_blocks(w, &f);
	array_sort(f.at, f.count, sizeof(*f.at), address_by_value);
	lose_virtual_block(w, &f, stop);
	if (other != stop)
		lose_virtual_block(w, &f, other); /* and there may be more between the two */
	for (size_t i = 0; i < f.count && !st; i++)
		if (!i || f.at[i] != f.at[i - 1])
			st = tell_virtual_block(w, f.at[i]);
	free(f.at);
	return st;
}
