/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Blocks too large for segments: each has a VirtualAlloc of its own, and a node in a tree that is
 * ordered by address. A node counts if its parent is the one that led to it and if it lies between
 * those above it, so that no node comes twice.
 */
#include "agent/examine/heap/segment/segment_internal.h"
#include "formats/base/array.h"

/* _HEAP_LARGE_ALLOC_DATA, which begins with an _RTL_BALANCED_NODE */
#define NODE_RIGHT   8
#define NODE_PARENT  0x10
#define NODE_ADDRESS 0x18 /* its low 16 bits: how many bytes are unused */
#define NODE_PAGES   0x20 /* from bit 12 on */

/* Of a red-black tree of 2^31 blocks, which fill the address space: twice as much as balanced. */
#define DEPTH_MAX    64

struct large_walk {
	struct heap_walk *w;
	uint64_t pages;
	bool lost; /* a node can't be had, nor what is below it */
};

struct node {
	uint64_t left, right;
	uint64_t at, size;
	uint64_t unused;
};

static enum chunk_read read_node(struct heap_walk *w, uint64_t at, uint64_t parent,
				 struct node *ret)
{
	const struct heap_sources *s = &w->h->sources;
	const struct range *r;
	uint64_t back, address, pages;

	if (!heap__u64(w->p, at, &ret->left) || !heap__u64(w->p, at + NODE_RIGHT, &ret->right) ||
	    !heap__u64(w->p, at + NODE_PARENT, &back) ||
	    !heap__u64(w->p, at + NODE_ADDRESS, &address) ||
	    !heap__u64(w->p, at + NODE_PAGES, &pages))
		return CHUNK_UNREAD;
	pages >>= 12;
	ret->unused = address % ALLOCATION_GRANULARITY;
	ret->at = address - ret->unused;
	if ((back & ~UINT64_C(3)) != parent || !pages || pages > USER_LIMIT_WIDE / PAGE_SIZE ||
	    !heap__plausible(ret->at, true, ALLOCATION_GRANULARITY))
		return CHUNK_WRONG;
	ret->size = pages * PAGE_SIZE;
	r = s->ranges && !s->not_vads ? range_list_find(s->ranges, ret->at) : NULL;
	if (ret->unused >= ret->size || ret->size > USER_LIMIT_WIDE - ret->at ||
	    (s->ranges && !s->not_vads && (!r || ret->size - 1 > r->last - ret->at)))
		return CHUNK_WRONG;
	return CHUNK_GOOD;
}

static bool in_segment(const struct segment_state *s, const struct node *n)
{
	const size_t i = FIRST_WHERE(k, s->segment_count, s->segments[k].end > n->at);

	return i < s->segment_count && s->segments[i].at < n->at + n->size;
}

static enum status tell_node(struct large_walk *l, const struct node *n)
{
	struct heap_allocation a = {
		.address = n->at,
		.size = n->size,
		.requested = n->size - n->unused,
		.has_requested = true,
		.container = n->at,
		.place = PLACE_LARGE,
	};

	l->pages += n->size / PAGE_SIZE;
	segment__unpad(l->w, &a);
	return heap__tell(l->w, &a);
}

/* What lies in [low, high). */
static enum status walk_node(struct large_walk *l, uint64_t at, uint64_t parent, uint64_t low,
			     uint64_t high, unsigned depth)
{
	struct heap_walk *w = l->w;
	struct node n;
	enum chunk_read r;
	enum status st;

	if (!at)
		return ST_OK;
	r = depth < DEPTH_MAX && heap__plausible(at, true, 8) ? read_node(w, at, parent, &n)
							      : CHUNK_WRONG;
	if (r == CHUNK_GOOD &&
	    (n.at < low || n.at >= high || n.size > high - n.at || in_segment(w->h->segment, &n)))
		r = CHUNK_WRONG;
	w->stats->contradictions += r == CHUNK_WRONG;
	l->lost |= r != CHUNK_GOOD;
	if (r != CHUNK_GOOD)
		return ST_OK;
	st = walk_node(l, n.left, at, low, n.at, depth + 1);
	if (!st)
		st = tell_node(l, &n);
	return st ? st : walk_node(l, n.right, at, n.at + n.size, high, depth + 1);
}

enum status segment__walk_large(struct heap_walk *w)
{
	const struct segment_heap *heap = segment__heap_at(w->h, w->info->address);
	struct large_walk l = { .w = w };
	uint64_t root, committed;
	enum status st;

	if (!heap || !heap__u64(w->p, heap->address + heap->l->large, &root))
		return ST_OK;
	st = walk_node(&l, root, 0, 0, USER_LIMIT_WIDE, 0);
	if (st || !l.lost)
		return st;
	/* The counter may be of another moment than the tree: one block is lost at least. */
	if (!heap__u64(w->p, heap->address + heap->l->large_committed, &committed) ||
	    committed <= l.pages || committed >= USER_LIMIT_WIDE / PAGE_SIZE)
		committed = l.pages + 1;
	w->stats->lost += (committed - l.pages) * PAGE_SIZE;
	return ST_OK;
}
