/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "agent/shared/kernel/swap_cache_internal.h"

/* include/linux/swap.h, mm/swap.h: SWAP_ADDRESS_SPACE_SHIFT, since 4.11. */
#define SPACE_SHIFT 14

/* include/linux/xarray.h: XA_CHUNK_SHIFT, unless the kernel is built for small machines. */
#define CHUNK_SHIFT 6
#define CHUNK_SIZE  (1u << CHUNK_SHIFT)
#define CHUNK_MASK  (CHUNK_SIZE - 1)

/* Nodes on the way to a slot: 2^36 of them are 256 TiB. */
#define DEPTH       6

/*
 * Entries of an XArray (include/linux/xarray.h)
 */

static bool is_internal(uint64_t entry)
{
	return (entry & 3) == 2;
}

static bool is_node(uint64_t entry)
{
	return is_internal(entry) && entry > 4096;
}

/* The rest of a multi-index entry: which slot of the node has it. */
static bool is_sibling(uint64_t entry)
{
	return is_internal(entry) && entry < (CHUNK_MASK << 2 | 2);
}

/*
 * A number instead of a pointer: the shadow that a page leaves behind when it goes
 * (mm/workingset.c).
 */
static bool is_value(uint64_t entry)
{
	return entry & 1;
}

/*
 * The tree
 */

/* The end of a way: an entry that is no node. */
static enum swap_cache_state classify_tree_entry(struct swap_cache *c,
						 const struct swap_lookup *want, uint64_t entry,
						 struct swap_trace *t)
{
	if (!entry || is_value(entry))
		return SWAP_CACHE_ABSENT;
	/* One that is being moved (XA_RETRY_ENTRY), or reserved. */
	if (is_internal(entry))
		return SWAP_CACHE_UNKNOWN;
	return swap_cache__page(c, want, entry, t);
}

/* Where a walk is. */
struct xarray_cursor {
	uint64_t tree;  /* the struct xarray */
	uint64_t node;  /* 0: the tree itself */
	unsigned shift; /* of the node */
	unsigned slot;  /* in it, that leads on */
};

/* Goes down to a node of which all that it says of itself must be right. */
static bool enter_xarray_node(struct swap_cache *c, uint64_t node, struct xarray_cursor *p)
{
	const struct linux_swap_layout *l = &c->layout;
	uint64_t tree, parent;
	uint8_t shift, offset;

	if (!swap_cache__byte(c, node + l->shift, &shift) ||
	    !swap_cache__byte(c, node + l->offset, &offset) ||
	    !swap_cache__word(c, node + l->array, &tree) ||
	    !swap_cache__word(c, node + l->parent, &parent) || tree != p->tree || parent != p->node)
		return false;
	/* A root's offset is whatever it was in an earlier life (xas_alloc()). */
	if (p->node ? offset != p->slot || shift + CHUNK_SHIFT != (int)p->shift
		    : shift % CHUNK_SHIFT || shift >= DEPTH * CHUNK_SHIFT)
		return false;
	p->node = node;
	p->shift = shift;
	return true;
}

/* The entry that a node has for an index, and which of its slots has it. */
static bool read_node_entry(struct swap_cache *c, struct swap_trace *t, struct xarray_cursor *p,
			    uint64_t index, uint64_t *ret)
{
	const uint64_t slots = p->node + c->layout.slots;

	p->slot = index >> p->shift & CHUNK_MASK;
	if (!swap_cache__step(c, t, slots + UINT64_C(8) * p->slot, ret))
		return false;
	if (!is_sibling(*ret))
		return true;
	if (*ret >> 2 >= p->slot)
		return false;
	p->slot = (unsigned)(*ret >> 2);
	return swap_cache__step(c, t, slots + UINT64_C(8) * p->slot, ret) && !is_internal(*ret);
}

static enum swap_cache_state walk_tree(struct swap_cache *c, const struct swap_lookup *want,
				       uint64_t space, uint64_t index, struct swap_trace *t)
{
	struct xarray_cursor p = { .tree = space + c->layout.tree };
	uint64_t entry;

	if (!swap_cache__step(c, t, space + c->layout.head, &entry))
		return SWAP_CACHE_UNKNOWN;
	/* A tree without nodes has index 0, and no other. */
	if (!is_node(entry) && index && !is_internal(entry))
		return SWAP_CACHE_ABSENT;
	for (unsigned depth = 0; is_node(entry); depth++) {
		if (depth == DEPTH || !enter_xarray_node(c, entry - 2, &p))
			return SWAP_CACHE_UNKNOWN;
		if (!depth && index >> p.shift >> CHUNK_SHIFT)
			return SWAP_CACHE_ABSENT; /* behind the last that the tree can have */
		if (!read_node_entry(c, t, &p, index, &entry) || (!p.shift && is_node(entry)))
			return SWAP_CACHE_UNKNOWN;
	}
	return classify_tree_entry(c, want, entry, t);
}

/* The struct address_space of a slot; it must be one of swapping. */
static bool find_swap_space(struct swap_cache *c, const struct swap_lookup *want,
			    struct swap_trace *t, uint64_t *ret)
{
	uint64_t spaces, ops;

	if (!swap_cache__step(c, t, c->spaces + UINT64_C(8) * want->file, &spaces) || !spaces)
		return false;
	*ret = spaces + (want->slot >> SPACE_SHIFT) * c->layout.space;
	return swap_cache__word(c, *ret + c->layout.ops, &ops) && ops == c->ops;
}

/*
 * By both indexes that kernels have used. In a tree of the one kind there is nothing at the other's
 * index: slots of one tree have the same upper bits.
 */
enum swap_cache_state swap_cache__by_tree(struct swap_cache *c, const struct swap_lookup *want,
					  struct swap_trace *t)
{
	const uint64_t low = want->slot & ((UINT64_C(1) << SPACE_SHIFT) - 1);
	enum swap_cache_state ret;
	uint64_t space;

	if (want->slot >> (DEPTH * CHUNK_SHIFT) || !find_swap_space(c, want, t, &space))
		return SWAP_CACHE_UNKNOWN;
	ret = walk_tree(c, want, space, want->slot, t);
	return ret == SWAP_CACHE_ABSENT && low != want->slot ? walk_tree(c, want, space, low, t)
							     : ret;
}

bool swap_cache__tree_is_sound(const struct linux_swap_layout *l)
{
	const uint32_t words[] = { l->ops, l->tree, l->head, l->parent, l->array, l->slots };

	for (size_t i = 0; i < ARRAY_SIZE(words); i++)
		if (words[i] % 8 || words[i] >= PAGE_SIZE)
			return false;
	return l->trees && l->space && l->space < PAGE_SIZE && l->shift < l->slots &&
	       l->offset < l->slots;
}
