/* SPDX-License-Identifier: Apache-2.0 */
/* Measuring: space by space, run by run, and what that adds up to. */
#include <string.h>

#include "agent/examine/smear/mapping.h"

/* Steps of judging in all: torn entries that map 1 GiB each must not take for ever. */
#define WORK_QUICK (UINT64_C(1) << 24) /* with `tables_only`, which is to be quick */

/*
 * One space
 */

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

static void count_moment(const struct mapping *x, const struct verdict_span *span, enum trust trust)
{
	const struct rsz_times *all = &x->m->ret->memory;
	const uint64_t at = span->content.when.start;
	double part;

	if (x->copy != COPY_IMAGE || x->slot || !span->captured || trust >= TRUSTS ||
	    x->space->id.fate != FATE_LIVED || at < all->start || all->end <= all->start)
		return;
	part = (double)(at - all->start) / (double)(all->end - all->start);
	x->m->ret->moments[MIN((size_t)(part * SMEAR_MOMENTS), SMEAR_MOMENTS - 1)].trust[trust] +=
		span->pages;
}

/* What the swap cache held is in no flat copy of the area. */
static void count_span(const struct mapping *x, const struct verdict_span *span)
{
	const struct leaf_table *t = x->run.view[x->copy].table;
	struct copy_sums *sums = &x->space->copy[x->copy];
	const enum trust trust = verdict_trust(span->verdict);

	if (span->content.older || span->verdict == VERDICT_CACHE_FRAME)
		sums->older += span->pages;
	if (x->copy == COPY_IMAGE && !t->known && !t->held && trust < TRUSTS)
		x->space->torn[trust] += span->pages;
	(x->slot ? sums->slots : sums->frames)[span->verdict] += span->pages;
	count_moment(x, span, trust);
	if (span->has_window)
		windows_add(&x->m->copy[x->copy].windows[x->slot ? WINDOW_SLOTS : WINDOW_FRAMES],
			    span->window, span->pages);
}

/*
 * Rows of mappings have them: Linux' entries for what is in no frame and no slot, and whatever
 * nobody can read. Windows has entries without a place for nearly every address; states count them.
 */
static bool is_told_without_place(const struct pte *p)
{
	switch (p->state) {
	case PTE_POISONED:
	case PTE_DEVICE:
	case PTE_MARKER:
	case PTE_SWAP_ERROR:
	case PTE_UNKNOWN:
		return true;
	default:
		return false;
	}
}

static bool is_row_of(const struct analysis *m, const struct smear_id *id)
{
	return id->listed && id->pid == m->row_pid;
}

static enum status count_mapping(struct mapping *x, struct err *e)
{
	const struct smear_plan *plan = x->m->plan;
	const struct pte *p = &x->run.view[x->copy].pte;
	const bool placed = pte_place(p) != PLACE_NONE;
	const bool told = plan->row && (plan->all_rows || is_row_of(x->m, &x->space->id)) &&
			  (placed || is_told_without_place(p));
	struct verdict_span span;
	enum status st = ST_OK;

	while (!st && mapping_judge(x, &span)) {
		struct smear_row row;

		if (placed)
			count_span(x, &span);
		if (!told)
			continue;
		row = mapping_row(x, &span);
		st = plan->row(plan->context, &row, e);
	}
	return st;
}

static enum status count_mappings(struct mapping_walk *w, struct err *e)
{
	struct mapping x;
	enum status st = ST_OK;

	while (!st) {
		st = mapping_next(w, &x, e);
		if (st)
			return st == ST_END ? ST_OK : st;
		st = count_mapping(&x, e);
	}
	return st;
}

static enum status analyse_space(struct analysis *m, struct smear_space *s, struct err *e)
{
	struct mapping_walk w;
	enum status st;

	mapping_walk_space(&w, m, s);
	st = count_mappings(&w, e);
	mapping_walk_end(&w);
	for (size_t i = 0; i < PAIRS && !st; i++)
		st = keep_states(&s->pair[i], m->states[i], e);
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

	m->work = m->plan->tables_only ? WORK_QUICK : MAPPING_WORK_MAX;
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

/* `clock_steps` of the manifest's last line. */
static void find_clock_steps(const json_t *manifest, struct smear *ret)
{
	const json_t *line, *o;
	size_t i, k;

	json_array_foreach(manifest, i, line)
	{
		json_array_foreach(json_object_get(line, "clock_steps"), k, o)
		{
			const json_int_t n = json_integer_value(json_object_get(o, "count"));
			const json_int_t ns = json_integer_value(json_object_get(o, "back_ns"));

			ret->clock_steps += n > 0 ? (uint64_t)n : 0;
			ret->clock_back_ns += ns > 0 ? (uint64_t)ns : 0;
		}
	}
}

static enum status sum_up_smear(struct analysis *m, struct err *e)
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
	find_clock_steps(plan->manifest, ret);
	st = smear__set_up(m, e);
	m->row_pid = plan->row_pid;
	if (!st && plan->row_name)
		st = smear_spaces_pid(&ret->spaces, plan->row_name, &m->row_pid, e);
	if (!st)
		st = smear__need_layout(m, e);
	if (!st)
		st = analyse_all(m, e);
	if (!st)
		st = sum_up_smear(m, e);
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
