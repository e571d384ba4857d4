/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/examine/process/vads.h"

#include <stdlib.h>
#include <string.h>

#include "agent/examine/process/unicode_string.h"
#include "formats/base/array.h"
#include "formats/base/bytes.h"
#include "formats/base/page.h"

/* So much of a node is read. */
#define NODE_SHORT 0x40

bool vad_list_is_whole(const struct vad_list *l)
{
	return !l->lost && !l->refused && !l->torn && !l->cut &&
	       (!l->has_expected || l->expected == l->count);
}

const struct vad *vad_find(const struct vad_list *l, uint64_t va)
{
	const size_t i = FIRST_WHERE(k, l->count, l->at[k].end >= va);

	return i < l->count && l->at[i].start <= va ? &l->at[i] : NULL;
}

void vad_list_deinit(struct vad_list *l)
{
	for (size_t i = 0; i < l->count; i++)
		free(l->at[i].file);
	free(l->at);
	*l = (struct vad_list){ 0 };
}

/*
 * Nodes
 */

static bool is_node_pointer(uint64_t va)
{
	return va >> 47 == 0x1ffff && va % 8 == 0;
}

/* The user half of four levels of tables, in pages. */
#define USER_VPNS (UINT64_C(1) << 35)

struct node {
	uint64_t va, left, right, parent;
	uint64_t first, last; /* numbers of pages */
	uint64_t low, high;   /* that it may have, by the nodes above it */
	unsigned level;
	bool went_left;
	struct vad vad;
};

static uint64_t get_sized(const uint8_t *p, uint8_t size)
{
	return size == 8 ? get_le64(p) : get_le32(p);
}

static void decode_numbers(const struct vad_layout *l, const uint8_t *p, struct node *n)
{
	if (l->high == UINT8_MAX && l->end - l->start == 8) {
		n->first = get_le64(p + l->start);
		n->last = get_le64(p + l->end);
		return;
	}
	n->first = get_le32(p + l->start);
	n->last = get_le32(p + l->end);
	if (l->high != UINT8_MAX) {
		n->first |= (uint64_t)p[l->high] << 32;
		n->last |= (uint64_t)p[l->high + 1] << 32;
	}
}

static void decode_flags(const struct vad_layout *l, const uint8_t *p, struct vad *v)
{
	const uint64_t flags = get_sized(p + l->flags, l->flags_size);
	const uint64_t commit = get_sized(p + l->commit, l->commit_size);
	const uint64_t none = (UINT64_C(1) << l->commit_bits) - 1;

	v->type = (enum vad_type)(flags >> l->type_bit & 7);
	v->protection = (uint8_t)(flags >> l->protection_bit & 31);
	v->is_private = flags >> l->private_bit & 1;
	v->mem_commit = commit >> l->commit_flag & 1;
	v->commit = (commit & none) == none ? VAD_NO_COMMIT : commit & none;
}

/*
 * What the block of pool was allocated as, which stands in the header before the node: "VadS" and
 * "VadF" are short nodes, for private memory. 0: not there to be read, or no tag of a VAD.
 */
static char pool_tag(const struct memory_view *m, uint64_t node)
{
	uint8_t tag[4];

	if (!view_read(m, node - 12, tag, sizeof(tag)) || memcmp(tag, "Vad", 3) != 0)
		return 0;
	return tag[3] == 'S' || tag[3] == 'F'                    ? 'S'
	       : tag[3] == ' ' || tag[3] == 'l' || tag[3] == 'm' ? 'L'
								 : 0;
}

struct tree {
	const struct memory_view *m;
	const struct vad_layout *l;
	struct vad_list *ret;
	size_t depth;
	struct node at[VAD_DEPTH_MAX];
};

/* A node that is out of its place is none; one whose parent is another still has to be a node. */
static bool judge_node(const struct tree *t, struct node *n, uint64_t parent)
{
	if (n->first > n->last || n->last >= USER_VPNS || n->first < n->low || n->last > n->high ||
	    (n->left && !is_node_pointer(n->left)) || (n->right && !is_node_pointer(n->right)))
		return false;
	n->vad.torn = n->parent != parent;
	return !n->vad.torn || pool_tag(t->m, n->va);
}

static bool load_node(const struct tree *t, struct node *n)
{
	const struct vad_layout *l = t->l;
	uint8_t p[NODE_SHORT];

	if (!view_read(t->m, n->va, p, sizeof(p)))
		return false;
	n->left = get_le64(p + l->left);
	n->right = get_le64(p + l->right);
	n->parent = get_le64(p + l->parent) & ~UINT64_C(7); /* below: how the node is balanced */
	decode_numbers(l, p, n);
	decode_flags(l, p, &n->vad);
	n->vad.node = n->va;
	n->vad.start = n->first << PAGE_SHIFT;
	n->vad.end = (n->last << PAGE_SHIFT) | (PAGE_SIZE - 1);
	return true;
}

/* Puts the node at `va` on top; or counts why not. */
static void descend_vad_tree(struct tree *t, uint64_t va, uint64_t parent, uint64_t low,
			     uint64_t high, unsigned level)
{
	struct node *n = &t->at[t->depth];

	if (t->depth == VAD_DEPTH_MAX || level == VAD_DEPTH_MAX || low > high ||
	    !is_node_pointer(va)) {
		t->ret->refused++;
		return;
	}
	*n = (struct node){ .va = va, .low = low, .high = high, .level = level };
	if (!load_node(t, n)) {
		t->ret->lost++;
		return;
	}
	if (!judge_node(t, n, parent)) {
		t->ret->refused++;
		return;
	}
	t->ret->torn += n->vad.torn;
	t->depth++;
}

/*
 * Names of files
 */

/*
 * _CONTROL_AREA.FilePointer and _FILE_OBJECT.FileName are where they were in 7 in all the records
 * above. FILE_OBJECT begins with IO_TYPE_FILE (wdm.h).
 */
#define CONTROL_AREA_FILE 0x40
#define FILE_OBJECT_NAME  0x58
#define FILE_OBJECT_TYPE  5

/* v->lost_part: it can't be had. */
static void read_vad_file_name(const struct memory_view *m, uint64_t object, struct vad *v,
			       size_t *names)
{
	uint16_t type;

	v->lost_part = true;
	if (*names > VAD_NAMES_MAX || !is_node_pointer(object) || !view_u16(m, object, &type) ||
	    type != FILE_OBJECT_TYPE)
		return;
	v->file = unicode_string_read(m, object + FILE_OBJECT_NAME, true);
	if (!v->file)
		return;
	*names += strlen(v->file) + 1;
	v->lost_part = false;
}

bool vad_subsection_offset(const struct memory_view *m, const struct vad_layout *l,
			   uint64_t subsection, uint64_t proto, bool image, uint64_t *ret)
{
	uint64_t base;
	uint32_t sector;

	if (!is_node_pointer(subsection) || !view_u64(m, subsection + 8, &base) ||
	    !view_u32(m, subsection + l->sector, &sector) || proto < base || (proto - base) % 8)
		return false;
	/*
	 * Of an image it counts sectors (Rekall's vadinfo.py, volatility's dumpfiles.py). Behind
	 * the first subsection of a file that is mapped as data nothing public was found to say so.
	 */
	if (sector && !image)
		return false;
	*ret = (uint64_t)sector * 512 + (proto - base) / 8 * PAGE_SIZE;
	return true;
}

/*
 * _MMSUBSECTION_FLAGS.SectorEndOffset, the bytes of a sector behind the full ones, is the upper 12
 * bits from Vista to 10 1903 (ntdiff/headers 5dcfad1, WinVista_SP1 to Win10_1903_RS6).
 */
bool vad_subsection_end(const struct memory_view *m, const struct vad_layout *l,
			uint64_t subsection, uint64_t *ret)
{
	uint32_t sector, sectors, flags;

	if (!is_node_pointer(subsection) || !view_u32(m, subsection + l->sector, &sector) ||
	    !view_u32(m, subsection + l->sectors, &sectors) ||
	    !view_u32(m, subsection + l->subsection_flags, &flags))
		return false;
	*ret = ((uint64_t)sector + sectors) * 512 + (flags >> 20);
	return true;
}

static void read_section(const struct memory_view *m, const struct vad_layout *l, struct vad *v,
			 size_t *names)
{
	uint64_t file;

	v->lost_part = true;
	if (!view_u64(m, v->node + l->subsection, &v->subsection) ||
	    !view_u64(m, v->node + l->first_prototype, &v->first_prototype) ||
	    !view_u64(m, v->node + l->last_prototype, &v->last_prototype) ||
	    !is_node_pointer(v->subsection) || !view_u64(m, v->subsection, &v->control_area) ||
	    !is_node_pointer(v->control_area) ||
	    !view_u64(m, v->control_area + CONTROL_AREA_FILE, &file))
		return;
	v->lost_part = false;
	v->has_offset = vad_subsection_offset(m, l, v->subsection, v->first_prototype,
					      v->type == VAD_IMAGE, &v->file_offset);
	file &= ~UINT64_C(15); /* a reference count */
	v->file_object = file;
	if (file)
		read_vad_file_name(m, file, v, names);
}

/*
 * A node without private memory is long. One with it may be, and has nothing there that is of use.
 */
static enum status append_node(struct tree *t, const struct node *n, bool names, struct err *e)
{
	struct vad_list *l = t->ret;
	struct vad *v;

	if (!ARRAY_ROOM(l->at, l->count, l->room))
		return err_nomem(e);
	v = &l->at[l->count];
	*v = n->vad;
	v->is_long = !v->is_private;
	if (v->is_long && names)
		read_section(t->m, t->l, v, &l->names);
	l->count++;
	return ST_OK;
}

static void read_count(const struct memory_view *m, const struct vad_layout *l, uint64_t root,
		       struct vad_list *ret)
{
	uint64_t n, also;

	if (!view_u64(m, root + l->count, &n))
		return;
	if (l->count_also != UINT8_MAX && n > VADS_MAX && view_u64(m, root + l->count_also, &also))
		n = also;
	n >>= l->count_shift;
	ret->has_expected = n <= USER_VPNS;
	ret->expected = ret->has_expected ? n : 0;
}

static enum status read_tree(struct tree *t, uint64_t root, size_t most, bool names, struct err *e)
{
	enum status st = ST_OK;
	uint64_t first;

	if (!view_u64(t->m, root + t->l->root, &first)) {
		t->ret->lost++;
		return ST_OK;
	}
	if (!first)
		return ST_OK;
	descend_vad_tree(t, first, t->l->table ? root : 0, 0, USER_VPNS - 1, 0);
	while (t->depth && !st) {
		struct node *n = &t->at[t->depth - 1];

		if (!n->went_left) {
			n->went_left = true;
			if (n->left && n->first)
				descend_vad_tree(t, n->left, n->va, n->low, n->first - 1,
						 n->level + 1);
			else
				t->ret->refused += n->left != 0;
			continue;
		}
		if (t->ret->count >= most) {
			t->ret->cut = true;
			break;
		}
		st = append_node(t, n, names, e);
		t->depth--;
		/* What takes its place on the stack must not be read any more. */
		if (n->right) {
			const struct node up = *n;

			descend_vad_tree(t, up.right, up.va, up.last + 1, up.high, up.level + 1);
		}
	}
	return st;
}

static enum status read_vad_list(const struct memory_view *m, const struct vad_layout *l,
				 uint64_t root, size_t most, bool names, struct vad_list *ret,
				 struct err *e)
{
	_cleanup_free_ struct tree *t = malloc(sizeof(*t));

	*ret = (struct vad_list){ .layout = l };
	if (!t)
		return err_nomem(e);
	t->m = m;
	t->l = l;
	t->ret = ret;
	t->depth = 0;
	read_count(m, l, root, ret);
	return read_tree(t, root, most, names, e);
}

enum status vads_read(const struct memory_view *m, const struct vad_layout *l, uint64_t root,
		      size_t most, struct vad_list *ret, struct err *e)
{
	return read_vad_list(m, l, root, most ? MIN(most, VADS_MAX) : VADS_MAX, true, ret, e);
}

/*
 * Which layout
 */

/* Subsection, control area, segment, and the control area again. */
static bool section_leads_back(const struct memory_view *m, const struct vad_layout *l,
			       const struct vad *v)
{
	uint64_t subsection, area, segment, again;

	return view_u64(m, v->node + l->subsection, &subsection) && is_node_pointer(subsection) &&
	       view_u64(m, subsection, &area) && is_node_pointer(area) &&
	       view_u64(m, area, &segment) && is_node_pointer(segment) &&
	       view_u64(m, segment, &again) && again == area;
}

enum status vads_score(const struct memory_view *m, const struct vad_layout *l, uint64_t root,
		       struct vad_score *ret, struct err *e)
{
	struct vad_list list;
	const enum status st = read_vad_list(m, l, root, SAMPLE_NODES, false, &list, e);

	for (size_t i = 0; i < list.count && !st; i++) {
		const struct vad *v = &list.at[i];
		const char tag = pool_tag(m, v->node);

		if (tag)
			*((tag == 'S') == v->is_private ? &ret->tags : &ret->bad_tags) += 1;
		if (v->is_long)
			*(section_leads_back(m, l, v) ? &ret->sections : &ret->no_section) += 1;
	}
	ret->nodes += list.count;
	ret->wrong += list.refused + list.torn;
	ret->counts += list.count && list.has_expected && list.expected == list.count;
	vad_list_deinit(&list);
	return st;
}

int64_t vad_score_points(const struct vad_score *s)
{
	return (int64_t)(2 * s->nodes + 4 * s->sections + 4 * s->tags + 8 * s->counts) -
	       (int64_t)(8 * s->wrong + 2 * s->no_section + 8 * s->bad_tags);
}

/*
 * Prototype entries
 */

void vad_walk_begin(struct vad_walk *w, const struct memory_view *m, const struct vad_layout *l,
		    const struct vad *v)
{
	uint64_t base;

	*w = (struct vad_walk){ .m = m, .l = l, .v = v, .next = v->start };
	if (!is_node_pointer(v->subsection) || !is_node_pointer(v->first_prototype) ||
	    !view_u64(m, v->subsection + 8, &base) || v->first_prototype < base ||
	    (v->first_prototype - base) % 8)
		return;
	w->subsection = v->subsection;
	w->index = (v->first_prototype - base) / 8;
}

bool vad_walk_next(struct vad_walk *w, struct vad_prototype *ret, uint64_t *pages)
{
	const struct memory_view *m = w->m;

	while (w->subsection && w->next <= w->v->end && w->steps++ < SUBSECTIONS_MAX) {
		const uint64_t at = w->subsection, index = w->index;
		uint64_t base, next;
		uint32_t ptes;

		if (!view_u64(m, at + 8, &base) || !is_node_pointer(base) ||
		    !view_u32(m, at + w->l->ptes, &ptes))
			return false;
		w->index -= MIN(index, ptes);
		w->subsection = view_u64(m, at + 0x10, &next) && is_node_pointer(next) ? next : 0;
		if (index >= ptes)
			continue;
		*ret = (struct vad_prototype){ .address = base + 8 * index, .subsection = at };
		ret->has_offset = vad_subsection_offset(m, w->l, at, ret->address,
							w->v->type == VAD_IMAGE, &ret->file_offset);
		ret->has_end =
			w->v->type == VAD_IMAGE && vad_subsection_end(m, w->l, at, &ret->file_end);
		*pages = MIN(ptes - index, ((w->v->end - w->next) >> PAGE_SHIFT) + 1);
		w->va = w->next;
		w->next += *pages << PAGE_SHIFT;
		return true;
	}
	return false;
}

bool vad_prototype_of(const struct memory_view *m, const struct vad_layout *l, const struct vad *v,
		      uint64_t va, struct vad_prototype *ret)
{
	struct vad_walk w;
	uint64_t pages;

	vad_walk_begin(&w, m, l, v);
	while (vad_walk_next(&w, ret, &pages)) {
		const uint64_t skipped = (va - w.va) >> PAGE_SHIFT;

		if (va < w.va || skipped >= pages)
			continue;
		ret->address += 8 * skipped;
		ret->file_offset += skipped << PAGE_SHIFT;
		return true;
	}
	return false;
}
