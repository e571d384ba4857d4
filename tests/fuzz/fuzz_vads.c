/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A VAD tree of some version, of which the input overwrites words: nodes, links, subsections,
 * names. Whatever comes of it is in order, does not overlap and lies in the user half.
 */
#include "agent/examine/process/sections.h"
#include "tests/fuzz/changes.h"
#include "tests/fuzz/fuzz.h"

#define ROOT  UINT64_C(0xffffe00000000448)
#define NODES 24

static struct vm trees[GEN_VADS];

static void make_tree(enum gen_vads v)
{
	struct vm *m = &trees[v];
	struct gen_subsection image[] = { { .ptes = 1 },
					  { .ptes = 5, .sector = 2 },
					  { .ptes = 2 } },
			      data[] = { { .ptes = 64 } };
	struct gen_vad x[NODES];

	gen_section(m, v, "\\a.dll", image, 3);
	gen_section(m, v, NULL, data, 1);
	for (size_t i = 0; i < NODES; i++) {
		x[i] = (struct gen_vad){ .first = 0x20 * (i + 1),
					 .last = 0x20 * (i + 1) + i,
					 .type = i % 3 == 1 ? 2 : 0,
					 .is_private = i % 3 == 0,
					 .protection = (unsigned)i };
		if (i % 3) {
			x[i].subsection = (i % 3 == 1 ? image : data)[0].va;
			x[i].first_prototype = (i % 3 == 1 ? image : data)[0].prototypes;
		}
	}
	gen_tree(m, v, x, NODES, ROOT);
}

static void check_parts(const struct vad_list *l, const struct section_parts *s)
{
	for (size_t i = 0; i < s->count; i++) {
		const struct section_part *x = &s->at[i];

		MUST(x->start <= x->end && x->vad < l->count);
		MUST(x->start >= l->at[x->vad].start && x->end <= l->at[x->vad].end);
		MUST(!i || x->start > s->at[i - 1].end);
		MUST(section_part_find(s, x->end) == x);
	}
}

static void check_list(const struct vad_list *l)
{
	MUST(l->count <= VADS_MAX);
	for (size_t i = 0; i < l->count; i++) {
		const struct vad *v = &l->at[i];

		MUST(v->start <= v->end && !(v->end >> 47));
		MUST(v->start % PAGE_SIZE == 0 && v->end % PAGE_SIZE == PAGE_SIZE - 1);
		MUST(!i || v->start > l->at[i - 1].end);
		MUST(vad_find(l, v->start) == v && vad_find(l, v->end) == v);
		MUST((unsigned)v->type < VAD_TYPES && v->protection < 32);
	}
}

static void read_tree(struct vm *m, const struct vad_layout *l)
{
	const struct memory_view view = { vm_view, m };
	struct section_parts parts;
	struct vad_list list;
	struct vad_score score = { 0 };

	MUST(!vads_read(&view, l, ROOT, 0, &list, NULL));
	check_list(&list);
	MUST(!section_parts_read(&view, &list, &parts, NULL));
	check_parts(&list, &parts);
	section_parts_deinit(&parts);
	MUST(!vads_score(&view, l, ROOT, &score, NULL));
	MUST(score.nodes <= SAMPLE_NODES && score.nodes <= list.count);
	vad_list_deinit(&list);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct cursor c = cursor_over(data, size);
	const uint8_t which = cur_u8(&c), missing = cur_u8(&c);
	struct vm *m = &trees[which % GEN_VADS];
	struct changes changes;

	if (!trees[0].count)
		for (int v = 0; v < GEN_VADS; v++)
			make_tree((enum gen_vads)v);
	changes_make(&changes, m, missing, &c);
	/* Mostly by its own layout; else by any. */
	read_tree(m, &vad_layouts[which < 128 ? which % GEN_VADS : which / 8 % vad_layout_count]);
	changes_undo(&changes);
	return 0;
}
