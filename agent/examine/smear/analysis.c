/* SPDX-License-Identifier: Apache-2.0 */
/* Measuring: space by space, run by run, and what that adds up to. */
#include <string.h>

#include "agent/examine/smear/mapping_run.h"

/* Steps of judging in all: torn entries that map 1 GiB each must not take for ever. */
#define WORK_QUICK (UINT64_C(1) << 24) /* with `tables_only`, which is to be quick */
#define WORK_MAX   (UINT64_C(1) << 32)

static const struct {
	enum copy from, to;
} pairs[] = {
#define X(name, text, from_, to_) [name] = { from_, to_ },
	PAIR_MAP(X)
#undef X
};

/*
 * One space
 */

static enum status take_mapping_run(struct analysis *m, struct smear_space *s,
				    struct mapping_run *p, struct err *e)
{
	enum status st = ST_OK;

	for (size_t i = 0; i < PAIRS; i++) {
		const struct view *a = &p->view[pairs[i].from], *b = &p->view[pairs[i].to];

		p->change[i] = mapping_run_change(m, a, b);
		/* Where a space has no copy, nothing is compared: its fate tells. */
		if (!smear__has_copy(&s->id, pairs[i].from) ||
		    !smear__has_copy(&s->id, pairs[i].to) || (!a->leaf && !b->leaf))
			continue;
		s->pair[i].change[p->change[i]] += p->pages;
		m->states[i][a->pte.state][b->pte.state] += p->pages;
	}
	for (size_t c = 0; c < COPIES && !st; c++)
		st = smear__classify(m, s, p, (enum copy)c, e);
	return st;
}

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
static bool is_away(const struct analysis *m, const struct leaf *l)
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
		if (is_away(m, &l->at[i]))
			sums->away++;
		else
			l->at[kept++] = l->at[i];
	}
	l->count = kept;
}

static enum status keep_states(struct transitions *t, const uint64_t states[PTE_STATES][PTE_STATES],
			       struct err *e)
{
	size_t n = 0;

	for (size_t i = 0; i < (size_t)PTE_STATES * PTE_STATES; i++)
		n += states[i / PTE_STATES][i % PTE_STATES] != 0;
	t->states = calloc(n + 1, sizeof(*t->states));
	if (!t->states)
		return err_nomem(e);
	for (size_t i = 0; i < (size_t)PTE_STATES * PTE_STATES; i++) {
		const uint8_t from = (uint8_t)(i / PTE_STATES), to = (uint8_t)(i % PTE_STATES);

		if (states[from][to])
			t->states[t->n_states++] =
				(struct state_pair){ from, to, states[from][to] };
	}
	return ST_OK;
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

static enum status analyse_slice(struct analysis *m, struct smear_space *s, uint64_t last,
				 struct err *e)
{
	size_t at[COPIES] = { 0 };
	struct mapping_run p;
	enum status st = take_slice(m, s, last, e);

	if (st)
		return st;
	begin_slice(m, s);
	for (uint64_t va = 0; !st && mapping_run_next(m, at, va, &p);
	     va = p.va + p.pages * PAGE_SIZE)
		st = take_mapping_run(m, s, &p, e);
	return st;
}

static enum status analyse_space(struct analysis *m, struct smear_space *s, struct err *e)
{
	uint64_t last;
	enum status st = ST_OK;

	begin_space(m);
	smear__begin_walks(m, &s->id, true);
	while (!st && smear__next_slice(m, &last))
		st = analyse_slice(m, s, last, e);
	smear__end_walks(m);
	end_space(m, s);
	for (size_t i = 0; i < PAIRS && !st; i++)
		st = keep_states(&s->pair[i], m->states[i], e);
	return st;
}

enum status smear__visit(struct analysis *m, struct smear_space *s, uint64_t first, uint64_t last,
			 struct err *e)
{
	size_t at[COPIES] = { 0 };
	uint64_t va = first;
	struct mapping_run p;
	enum status st = smear__walk_range(m, &s->id, first, last, e);

	if (st)
		return st;
	begin_space(m);
	for (size_t c = 0; c < COPIES; c++)
		drop_away(m, &m->copy[c].leaves, 0, &s->copy[c]);
	begin_slice(m, s);
	m->work = WORK_MAX;
	while (!st && mapping_run_next(m, at, va, &p) && p.va <= last) {
		p.pages = MIN(p.pages, ((last - p.va) >> PAGE_SHIFT) + 1);
		st = take_mapping_run(m, s, &p, e);
		va = p.va + p.pages * PAGE_SIZE;
		if (!va || va > last)
			break;
	}
	return st;
}

static enum status add_leaf(struct range_list *ret, const struct leaf *l, struct err *e)
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
			st = add_leaf(ret, &l->at[i], e);
	}
	*ret_cut = l->stop == WALK_OUT_OF_BUDGET;
	smear__end_walks(m);
	return st;
}

/*
 * All of them
 */

static void add_copy(struct copy_sums *to, const struct copy_sums *c)
{
	to->tables += c->tables;
	to->entries += c->entries;
	to->not_followed += c->not_followed;
	to->cut |= c->cut;
	to->away += c->away;
	to->older += c->older;
	for (size_t i = 0; i < PTE_STATES; i++)
		to->state[i] += c->state[i];
	for (size_t i = 0; i < VERDICTS; i++) {
		to->frames[i] += c->frames[i];
		to->slots[i] += c->slots[i];
	}
}

static void add_to_totals(struct smear *r, const struct smear_space *s,
			  uint64_t states[PAIRS][PTE_STATES][PTE_STATES])
{
	struct smear_space *to = &r->total;

	r->fates[s->id.fate]++;
	to->tables.kept += s->tables.kept;
	to->tables.freed += s->tables.freed;
	to->tables.created += s->tables.created;
	for (size_t c = 0; c < COPIES; c++)
		add_copy(&to->copy[c], &s->copy[c]);
	for (size_t i = 0; i < PAIRS; i++) {
		for (size_t k = 0; k < CHANGES; k++)
			to->pair[i].change[k] += s->pair[i].change[k];
		for (size_t k = 0; k < s->pair[i].n_states; k++) {
			const struct state_pair *x = &s->pair[i].states[k];

			states[i][x->from][x->to] += x->pages;
		}
	}
}

static enum status analyse_all(struct analysis *m, struct err *e)
{
	struct smear *r = m->ret;
	enum status st = ST_OK;

	m->work = m->plan->tables_only ? WORK_QUICK : WORK_MAX;
	r->at = calloc(MAX(r->spaces.count, 1), sizeof(*r->at));
	if (!r->at)
		return err_nomem(e);
	r->count = r->spaces.count;
	smear__begin_budget(m);
	for (size_t i = 0; i < r->count && !st; i++) {
		const size_t k = m->order[i].index;
		struct smear_space *s = &r->at[k];

		s->id = r->spaces.at[k];
		s->id.image &= !m->plan->tables_only;
		st = analyse_space(m, s, e);
	}
	return st;
}

static bool is_guided(const json_t *manifest)
{
	const json_t *line;
	size_t i;

	json_array_foreach(manifest, i, line)
	{
		const json_t *name = json_object_get(json_object_get(line, "order"), "name");

		if (name)
			return json_is_string(name) && !strcmp(json_string_value(name), "guided");
	}
	return false;
}

static enum status sum_up(struct analysis *m, struct err *e)
{
	struct smear *r = m->ret;
	enum status st = ST_OK;

	memset(m->states, 0, sizeof(m->states));
	for (size_t i = 0; i < r->count; i++)
		add_to_totals(r, &r->at[i], m->states);
	smear__divide(r);
	r->guided = is_guided(m->plan->manifest);
	for (size_t c = 0; c < COPIES; c++)
		for (size_t k = 0; k < WINDOW_KINDS; k++)
			windows_summary(&m->copy[c].all[k], &r->total.copy[c].window[k]);
	for (size_t i = 0; i < PAIRS && !st; i++)
		st = keep_states(&r->total.pair[i], m->states[i], e);
	r->frames = (struct naming){ m->named.marked, m->several.marked };
	for (size_t i = 0; i < PTE_FILES_MAX; i++) {
		r->slots.named += m->files[i].named.marked;
		r->slots.several += m->files[i].several.marked;
	}
	return st;
}

enum status smear_analyse(const struct smear_plan *plan, struct smear *ret, struct err *e)
{
	struct analysis *m = calloc(1, sizeof(*m));
	enum status st;

	*ret = (struct smear){ 0 };
	if (!m)
		return err_nomem(e);
	m->plan = plan;
	m->ret = ret;
	st = smear__set_up(m, e);
	if (!st)
		st = analyse_all(m, e);
	if (!st)
		st = sum_up(m, e);
	if (!st) /* the walks went on without the pages that they could not read */
		st = rsz_reader_starved(plan->reader, e);
	smear__tear_down(m);
	free(m);
	return st;
}

static void space_deinit(struct smear_space *s)
{
	for (size_t i = 0; i < PAIRS; i++)
		free(s->pair[i].states);
}

void smear_deinit(struct smear *s)
{
	for (size_t i = 0; i < s->count; i++)
		space_deinit(&s->at[i]);
	space_deinit(&s->total);
	free(s->slots_doubt);
	for (size_t i = 0; i < s->n_file_doubts; i++) {
		free(s->file_doubts[i].file);
		free(s->file_doubts[i].why);
	}
	for (size_t i = 0; i < s->n_numbers; i++) {
		free(s->numbers[i].file);
		free(s->numbers[i].other);
	}
	free(s->at);
	smear_spaces_deinit(&s->spaces);
}
