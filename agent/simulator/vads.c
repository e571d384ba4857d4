/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/simulator/vads.h"

#include <string.h>

#include "formats/base/array.h"
#include "formats/base/bytes.h"

#define VAD_IMAGE 2 /* VadType */

bool sim__vads_add(struct sim_vads *v, const struct sim_vad *vad)
{
	if (!ARRAY_ROOM(v->at, v->count, v->room))
		return false;
	v->at[v->count++] = *vad;
	return true;
}

bool sim__vads_overlap(const struct sim_vads *v, uint64_t first, uint64_t last)
{
	for (size_t i = 0; i < v->count; i++)
		if (v->at[i].first <= last && first <= v->at[i].last)
			return true;
	return false;
}

void sim__vads_deinit(struct sim_vads *v)
{
	free(v->at);
	*v = (struct sim_vads){ 0 };
}

/*
 * A node but for its links. The numbers of pages have 64 bits in 7; later 32, and 8 more elsewhere.
 */
static void put_vad_range(const struct sim_layout *l, const struct sim_vad *v)
{
	const bool image = v->section && v->section->image;
	const uint64_t flags = (uint64_t)(image ? VAD_IMAGE : 0) << l->vad_type |
			       (uint64_t)v->protection << l->vad_protection |
			       (uint64_t)!v->section << l->vad_private;

	if (l->seven) {
		put_le64(v->bytes + 0x18, v->first);
		put_le64(v->bytes + 0x20, v->last);
		put_le64(v->bytes + 0x28, flags | v->charge | (uint64_t)v->commit << 55);
		return;
	}
	put_le32(v->bytes + 0x18, (uint32_t)v->first);
	put_le32(v->bytes + 0x1c, (uint32_t)v->last);
	v->bytes[0x20] = (uint8_t)(v->first >> 32);
	v->bytes[0x21] = (uint8_t)(v->last >> 32);
	put_le32(v->bytes + (l->moved ? 0x34 : 0x30), (uint32_t)flags);
	put_le32(v->bytes + (l->moved ? 0x30 : 0x34), v->charge | (uint32_t)v->commit << 31);
}

static void put_vad_section(const struct sim_layout *l, const struct sim_vad *v, uint64_t eprocess)
{
	const struct sim_section *s = v->section;
	uint32_t part, last;

	put_le64(v->bytes + 0x50, sim__section_prototype(s, v->from, &part));
	put_le64(v->bytes + 0x48, s->subsection[part]);
	/* As far as one array goes. */
	put_le64(v->bytes + 0x58,
		 s->image ? sim__section_prototype(s, s->pages - 1, &last)
			  : s->prototypes[part] + (uint64_t)8 * (s->part[part].pages - 1));
	put_le64(v->bytes + 0x70, eprocess);
	if (!l->seven)
		put_le64(v->bytes + 0x80, s->file);
}

static bool take_node(struct sim_vad *v, struct sim_pools *pools, const struct sim_layout *l)
{
	const size_t size = !v->section ? 0x40 : l->seven ? 0x78 : 0x88;
	const char *tag = !v->section ? "VadS" : v->section->image ? "Vad " : "Vadl";

	v->bytes = sim__pool_take(pools, POOL_PAGED, size, tag, &v->node);
	return v->bytes != NULL;
}

static int vad_by_first(const void *a, const void *b)
{
	const struct sim_vad *x = a, *y = b;

	return x->first < y->first ? -1 : x->first > y->first;
}

struct tree {
	const struct sim_layout *layout;
	const struct sim_vad *at;
};

/* Balance: 1 where the right side is higher, 3 (-1 in two bits) where the left one is. */
static void put_links(const struct tree *t, const struct sim_vad *v, const uint64_t link[static 3],
		      unsigned left, unsigned right)
{
	const uint64_t parent = link[2] | (right > left ? 1 : left > right ? 3 : 0);

	put_le64(v->bytes + (t->layout->seven ? 8 : 0), link[0]);
	put_le64(v->bytes + (t->layout->seven ? 0x10 : 8), link[1]);
	put_le64(v->bytes + (t->layout->seven ? 0 : 0x10), parent);
}

static size_t middle_of(size_t first, size_t end)
{
	return first + (end - first) / 2;
}

/* The nodes from `first` to before `end`; how many levels they have. */
static unsigned put_subtree(const struct tree *t, size_t first, size_t end, uint64_t parent)
{
	const size_t middle = middle_of(first, end);
	const struct sim_vad *v = &t->at[middle];
	unsigned left, right;

	if (first == end)
		return 0;
	left = put_subtree(t, first, middle, v->node);
	right = put_subtree(t, middle + 1, end, v->node);
	put_links(t, v,
		  (const uint64_t[]){ left ? t->at[middle_of(first, middle)].node : 0,
				      right ? t->at[middle_of(middle + 1, end)].node : 0, parent },
		  left, right);
	return 1 + MAX(left, right);
}

/*
 * 7: a table whose head is itself a node, and the tree its right child. Later a pointer, a hint and
 * a count.
 */
bool sim__vads_put(struct sim_vads *v, struct sim_pools *pools, uint64_t eprocess, uint8_t *bytes)
{
	const struct sim_layout *l = sim__layout(&pools->m->spec);
	const struct tree t = { l, v->at };
	const uint64_t head = eprocess + l->vad_root;
	uint8_t *root = bytes + l->vad_root;
	unsigned levels;
	uint64_t first;

	if (!v->count)
		return true;
	for (size_t i = 0; i < v->count; i++)
		if (!take_node(&v->at[i], pools, l))
			return false;
	array_sort(v->at, v->count, sizeof(*v->at), vad_by_first);
	for (size_t i = 0; i < v->count; i++) {
		put_vad_range(l, &v->at[i]);
		if (v->at[i].section)
			put_vad_section(l, &v->at[i], eprocess);
	}
	levels = put_subtree(&t, 0, v->count, l->seven ? head : 0);
	first = v->at[middle_of(0, v->count)].node;
	if (l->seven) {
		put_le64(root, head);
		put_le64(root + 0x10, first);
		put_le64(root + 0x28, levels | (uint64_t)v->count << 8);
		put_le64(root + 0x30, first);
	} else {
		put_le64(root, first);
		put_le64(root + 8, first);
		put_le64(root + 0x10, v->count);
	}
	return true;
}
