/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/examine/smear/mapping.h"

#include <string.h>

static const struct {
	enum copy from, to;
} pairs[] = {
#define X(name, text, from_, to_) [name] = { from_, to_ },
	PAIR_MAP(X)
#undef X
};

/*
 * An entry of level 2 or 3 of Linux, where its pages of 2 MiB are, and with hugetlb of 1 GiB. They
 * can be migrating, PROT_NONE, poisoned, a device's (2 MiB only) or markers, but never in swap
 * (pmd_is_valid_softleaf(), Linux 7.3, and mm/hugetlb.c). Of what a torn table has there, most
 * names no RAM.
 */
static bool is_large_page(const struct analysis *m, unsigned level, const struct pte *p)
{
	switch (p->state) {
	case PTE_MARKER:
		return true;
	case PTE_DEVICE:
		return level == 2;
	case PTE_PROT_NONE:
	case PTE_MIGRATION:
		return level == 2 || range_list_find(&m->ram, p->frame);
	case PTE_POISONED:
	case PTE_UNKNOWN:
		return range_list_find(&m->ram, p->frame);
	default:
		return false;
	}
}

/*
 * Entries above the page table that are not present. Windows pages out page tables, and then such
 * an entry has the state of the table, not of 512 pages.
 */
static bool is_table_away(const struct analysis *m, const struct leaf *l)
{
	struct pte p;

	if (l->level == 1 || (l->raw & PTE_PRESENT))
		return false;
	if (m->entries.os != OS_LINUX || !m->entries.linux_.layout || l->level > 3)
		return true;
	p = entry_decode(&m->entries, l->level, l->raw);
	return !is_large_page(m, l->level, &p);
}

/* Those from the first on. */
static void drop_away(const struct analysis *m, struct leaves *l, size_t first,
		      struct copy_sums *sums)
{
	size_t kept = first;

	for (size_t i = first; i < l->count; i++) {
		if (is_table_away(m, &l->at[i]))
			sums->away++;
		else
			l->at[kept++] = l->at[i];
	}
	l->count = kept;
}

static void begin_space(struct analysis *m)
{
	memset(m->states, 0, sizeof(m->states));
	for (size_t c = 0; c < COPIES; c++)
		memset(&m->copy[c].windows, 0, sizeof(m->copy[c].windows));
}

/* Behind walks that are over. */
static void end_space(struct analysis *m, struct smear_space *s)
{
	for (size_t c = 0; c < COPIES; c++) {
		const struct leaves *l = &m->copy[c].leaves;
		struct copy_sums *sums = &s->copy[c];

		sums->tables = l->n_tables;
		sums->not_followed = l->not_followed;
		sums->cut = l->stop == WALK_OUT_OF_BUDGET;
		sums->no_root = l->stop == WALK_NO_ROOT;
		for (size_t k = 0; k < WINDOW_KINDS; k++) {
			windows_summary(&m->copy[c].windows[k], &sums->window[k]);
			windows_merge(&m->copy[c].all[k], &m->copy[c].windows[k]);
		}
	}
}

static void begin_slice(struct analysis *m, struct smear_space *s)
{
	for (size_t c = 0; c < COPIES; c++)
		s->copy[c].entries += m->copy[c].leaves.count;
	leaves_compare(&m->copy[COPY_BEFORE].leaves, &m->copy[COPY_AFTER].leaves, &s->tables);
	leaves_mark_known(&m->copy[COPY_IMAGE].leaves, &m->copy[COPY_BEFORE].leaves);
	leaves_mark_known(&m->copy[COPY_IMAGE].leaves, &m->copy[COPY_AFTER].leaves);
}

static uint64_t leaves_last(const struct leaves *l)
{
	const struct leaf *x = l->count ? &l->at[l->count - 1] : NULL;

	return x ? x->va + (leaf_size(x) - 1) : 0;
}

/*
 * Large pages may lead beyond the slice: it ends where none does, so that no run is cut in two.
 */
static enum status take_slice(struct analysis *m, struct smear_space *s, uint64_t last,
			      struct err *e)
{
	size_t had[COPIES] = { 0 };
	uint64_t end = last;
	enum status st;

	do {
		last = end;
		st = smear__take_slice(m, last, e);
		for (size_t c = 0; c < COPIES && !st; c++) {
			struct leaves *l = &m->copy[c].leaves;

			drop_away(m, l, had[c], &s->copy[c]);
			had[c] = l->count;
			end = MAX(end, leaves_last(l));
		}
	} while (!st && end > last);
	return st;
}

/* Compares what the copies have, and counts that. */
static void pass_run(struct mapping_walk *w)
{
	struct smear_space *s = w->space;

	for (size_t i = 0; i < PAIRS; i++) {
		const struct view *a = &w->run.view[pairs[i].from], *b = &w->run.view[pairs[i].to];

		w->run.change[i] = mapping_run_change(w->m, a, b);
		/* Where a space has no copy, nothing is compared: its fate tells. */
		if (!smear__has_copy(&s->id, pairs[i].from) ||
		    !smear__has_copy(&s->id, pairs[i].to) || (!a->leaf && !b->leaf))
			continue;
		s->pair[i].change[w->run.change[i]] += w->run.pages;
		w->m->states[i][a->pte.state][b->pte.state] += w->run.pages;
	}
	w->copy = 0;
}

/* False: there are no more among the leaves that are there. */
static bool take_mapping_run(struct mapping_walk *w)
{
	struct mapping_run *p = &w->run;

	if (w->over || !mapping_run_next(w->m, w->at, w->va, p) || p->va > w->last)
		return false;
	p->pages = MIN(p->pages, ((w->last - p->va) >> PAGE_SHIFT) + 1);
	w->va = p->va + p->pages * PAGE_SIZE;
	w->over = !w->va || w->va > w->last;
	pass_run(w);
	return true;
}

/* ST_END: the walks have no more. */
static enum status next_slice(struct mapping_walk *w, struct err *e)
{
	uint64_t last;
	enum status st;

	if (w->one_copy || !smear__next_slice(w->m, &last))
		return ST_END;
	st = take_slice(w->m, w->space, last, e);
	if (st)
		return st;
	begin_slice(w->m, w->space);
	memset(w->at, 0, sizeof(w->at));
	w->va = 0;
	w->over = false;
	return ST_OK;
}

static bool is_copy_wanted(const struct mapping_walk *w, unsigned copy)
{
	return w->run.view[copy].leaf && (!w->one_copy || copy == w->only);
}

enum status mapping_next(struct mapping_walk *w, struct mapping *ret, struct err *e)
{
	const struct view *v;

	for (;;) {
		while (w->copy < COPIES && !is_copy_wanted(w, w->copy))
			w->copy++;
		if (w->copy < COPIES)
			break;
		while (!take_mapping_run(w)) {
			const enum status st = next_slice(w, e);

			if (st)
				return st;
		}
	}
	*ret = (struct mapping){
		.m = w->m,
		.space = w->space,
		.run = w->run,
		.copy = (enum copy)w->copy++,
	};
	v = &ret->run.view[ret->copy];
	w->space->copy[ret->copy].state[v->pte.state] += ret->run.pages;
	smear__begin_judging(ret);
	return ST_OK;
}

void mapping_walk_space(struct mapping_walk *w, struct analysis *m, struct smear_space *s)
{
	*w = (struct mapping_walk){
		.m = m,
		.space = s,
		.last = UINT64_MAX,
		.copy = COPIES,
		.over = true,
	};
	begin_space(m);
	smear__begin_walks(m, &s->id, true);
}

void mapping_walk_end(struct mapping_walk *w)
{
	smear__end_walks(w->m);
	end_space(w->m, w->space);
}

static bool leaves_need_layout(const struct analysis *m)
{
	for (size_t c = 0; c < COPIES; c++)
		for (size_t i = 0; i < m->copy[c].leaves.count; i++)
			if (entry_needs_layout(m->copy[c].leaves.at[i].raw))
				return true;
	return false;
}

/* Once more where the layout came of it: earlier readings were compared without one. */
static enum status walk_range_with_layout(struct analysis *m, const struct smear_id *id,
					  uint64_t first, uint64_t last, struct err *e)
{
	const bool asked = m->asked_layout;
	enum status st = smear__walk_range(m, id, first, last, e);

	if (!st && (asked || leaves_need_layout(m)))
		st = smear__need_layout(m, e);
	return st || m->asked_layout == asked ? st : smear__walk_range(m, id, first, last, e);
}

enum status mapping_walk_range(struct mapping_walk *w, struct analysis *m, struct smear_space *s,
			       enum copy copy, uint64_t first, uint64_t last, struct err *e)
{
	const enum status st = walk_range_with_layout(m, &s->id, first, last, e);

	*w = (struct mapping_walk){
		.m = m,
		.space = s,
		.va = first,
		.last = last,
		.copy = COPIES,
		.one_copy = true,
		.only = copy,
	};
	if (st)
		return st;
	begin_space(m);
	for (size_t c = 0; c < COPIES; c++)
		drop_away(m, &m->copy[c].leaves, 0, &s->copy[c]);
	begin_slice(m, s);
	m->work = MAPPING_WORK_MAX;
	return ST_OK;
}

static enum status add_mapped_leaf(struct range_list *ret, const struct leaf *l, struct err *e)
{
	struct range *back = ret->count ? &ret->at[ret->count - 1] : NULL;

	if (back && back->last + 1 == l->va) {
		back->last += leaf_size(l);
		return ST_OK;
	}
	return range_list_add(ret, l->va, l->va + (leaf_size(l) - 1), e);
}

enum status smear__mapped(struct analysis *m, struct smear_space *s, enum copy copy,
			  struct range_list *ret, bool *ret_cut, struct err *e)
{
	const struct leaves *l = &m->copy[copy].leaves;
	enum status st = ST_OK;
	uint64_t last;

	begin_space(m);
	smear__begin_budget(m);
	smear__begin_walks(m, &s->id, true);
	while (!st && smear__next_slice(m, &last)) {
		st = take_slice(m, s, last, e);
		for (size_t i = 0; i < l->count && !st; i++)
			st = add_mapped_leaf(ret, &l->at[i], e);
	}
	*ret_cut = l->stop == WALK_OUT_OF_BUDGET;
	smear__end_walks(m);
	return st;
}
