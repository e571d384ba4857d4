/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/examine/smear/mapping_run.h"

static struct view view_of(const struct analysis *m, const struct leaves *l,
			   const struct leaf *leaf, uint64_t va)
{
	struct view v = { .leaf = leaf };

	if (!leaf)
		return v;
	v.table = &l->tables[leaf->table];
	v.pte = entry_decode(&m->entries, leaf->level, leaf->raw);
	if (pte_place(&v.pte) == PLACE_FRAME)
		v.pte.frame += va - leaf->va;
	else if (pte_place(&v.pte) == PLACE_SLOT)
		v.pte.slot += (va - leaf->va) >> PAGE_SHIFT;
	return v;
}

/* The leaf that covers `va`, or NULL; *last is moved down to where that ends. */
static const struct leaf *leaf_at(const struct leaves *l, size_t *i, uint64_t va, uint64_t *last)
{
	const struct leaf *x;

	while (*i < l->count && l->at[*i].va + (leaf_size(&l->at[*i]) - 1) < va)
		++*i;
	if (*i == l->count)
		return NULL;
	x = &l->at[*i];
	if (x->va > va) {
		*last = MIN(*last, x->va - 1);
		return NULL;
	}
	*last = MIN(*last, x->va + (leaf_size(x) - 1));
	return x;
}

/* The next address at or behind `va` that any copy has; false if there is none. */
static bool next_va(struct analysis *m, const size_t at[COPIES], uint64_t *va)
{
	uint64_t best = UINT64_MAX;

	for (size_t c = 0; c < COPIES; c++) {
		const struct leaves *l = &m->copy[c].leaves;
		size_t i = at[c];

		while (i < l->count && l->at[i].va + (leaf_size(&l->at[i]) - 1) < *va)
			i++;
		if (i < l->count)
			best = MIN(best, MAX(l->at[i].va, *va));
	}
	*va = best;
	return best != UINT64_MAX;
}

bool mapping_run_next(struct analysis *m, size_t at[COPIES], uint64_t from, struct mapping_run *ret)
{
	const struct leaf *leaf[COPIES];
	uint64_t last = UINT64_MAX;

	*ret = (struct mapping_run){ .va = from };
	if (!next_va(m, at, &ret->va))
		return false;
	for (size_t c = 0; c < COPIES; c++)
		leaf[c] = leaf_at(&m->copy[c].leaves, &at[c], ret->va, &last);
	ret->pages = ((last - ret->va) >> PAGE_SHIFT) + 1;
	for (size_t c = 0; c < COPIES; c++)
		ret->view[c] = view_of(m, &m->copy[c].leaves, leaf[c], ret->va);
	return true;
}

enum change mapping_run_change(const struct analysis *m, const struct view *a, const struct view *b)
{
	const bool both = a->leaf && b->leaf;

	return change_of(
		&a->pte, &b->pte,
		!both ? a->leaf == b->leaf
		      : a->leaf->level == b->leaf->level &&
				entry_same_rights(&m->entries, a->leaf->raw, b->leaf->raw));
}
