/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/examine/heap/trace_pool.h"

#include <stdlib.h>
#include <string.h>

#include "agent/shared/program/interrupt.h"
#include "formats/base/array.h"

/* A place where a trace lies; the database has each trace once, 7's inline ones are one each. */
struct place {
	uint64_t at;
	uint32_t number;
	uint16_t frames;
	bool wide;
};

struct kept {
	const uint64_t *at;
	uint32_t count;
	size_t place;
};

struct trace_pool {
	struct place *places; /* by .at and .frames */
	size_t n_places;
	uint64_t *words; /* of all traces */
	size_t n_words, words_room;
	struct kept *kept; /* by number - 1; each once */
	size_t n_kept;
};

static int trace_by_place(const void *a, const void *b)
{
	const struct place *x = a, *y = b;

	if (x->at != y->at)
		return x->at < y->at ? -1 : 1;
	return x->frames - y->frames;
}

static int by_content(const void *a, const void *b)
{
	const struct kept *x = a, *y = b;

	for (uint32_t i = 0; i < x->count && i < y->count; i++)
		if (x->at[i] != y->at[i])
			return x->at[i] < y->at[i] ? -1 : 1;
	return (x->count > y->count) - (x->count < y->count);
}

static enum status take_places(struct trace_pool *p, const struct trace_pool_plan *plan)
{
	size_t n = 0, kept = 0;

	for (size_t i = 0; i < plan->blocks->count; i++)
		n += plan->blocks->at[i].trace != 0;
	p->places = calloc(n + 1, sizeof(*p->places));
	if (!p->places)
		return ST_NOMEM;
	n = 0;
	for (size_t i = 0; i < plan->blocks->count; i++) {
		const struct heap_allocation *a = &plan->blocks->at[i];

		if (a->trace)
			p->places[n++] = (struct place){
				.at = a->trace,
				.frames = a->frames,
				.wide = heaps_at(plan->heaps, a->heap)->wide,
			};
	}
	array_sort(p->places, n, sizeof(*p->places), trace_by_place);
	for (size_t i = 0; i < n; i++)
		if (!kept || trace_by_place(&p->places[kept - 1], &p->places[i]))
			p->places[kept++] = p->places[i];
	p->n_places = kept;
	return ST_OK;
}

static enum status add_words(struct trace_pool *p, const struct stack_trace *t)
{
	for (uint32_t i = 0; i < t->count; i++) {
		if (p->n_words == p->words_room) {
			uint64_t *grown = array_grow(p->words, &p->words_room, sizeof(*grown));

			if (!grown)
				return ST_NOMEM;
			p->words = grown;
		}
		p->words[p->n_words++] = t->at[i];
	}
	return ST_OK;
}

static enum status read_all_traces(struct trace_pool *p, const struct trace_pool_plan *plan)
{
	const uint64_t *at;

	p->kept = calloc(p->n_places + 1, sizeof(*p->kept));
	if (!p->kept)
		return ST_NOMEM;
	for (size_t i = 0; i < p->n_places; i++) {
		const struct place *of = &p->places[i];
		struct stack_trace t;

		if (interrupted())
			return ST_INTERRUPTED;
		if (!stack_trace_read(plan->memory, plan->code, of->wide, of->at, of->frames, &t))
			continue;
		if (add_words(p, &t))
			return ST_NOMEM;
		p->kept[p->n_kept++] = (struct kept){ .count = t.count, .place = i };
	}
	/* The array does not move any more. */
	at = p->words;
	for (size_t i = 0; i < p->n_kept; i++) {
		p->kept[i].at = at;
		at += p->kept[i].count;
	}
	return ST_OK;
}

static void number_all(struct trace_pool *p)
{
	size_t n = 0;

	array_sort(p->kept, p->n_kept, sizeof(*p->kept), by_content);
	for (size_t i = 0; i < p->n_kept; i++) {
		const struct kept k = p->kept[i];

		if (!n || by_content(&p->kept[n - 1], &k))
			p->kept[n++] = k;
		p->places[k.place].number = (uint32_t)n;
	}
	p->n_kept = n;
}

enum status trace_pool_open(const struct trace_pool_plan *plan, struct trace_pool **ret,
			    struct err *e)
{
	struct trace_pool *p = calloc(1, sizeof(*p));
	enum status st = p ? take_places(p, plan) : ST_NOMEM;

	if (!st && p->n_places > UINT32_MAX)
		st = ST_NOMEM;
	if (!st)
		st = read_all_traces(p, plan);
	if (st) {
		trace_pool_close(p);
		return st == ST_INTERRUPTED ? interrupt_status(e) : err_nomem(e);
	}
	number_all(p);
	*ret = p;
	return ST_OK;
}

void trace_pool_close(struct trace_pool *p)
{
	if (!p)
		return;
	free(p->places);
	free(p->words);
	free(p->kept);
	free(p);
}

size_t trace_pool_count(const struct trace_pool *p)
{
	return p->n_kept;
}

uint32_t trace_pool_of(const struct trace_pool *p, const struct heap_allocation *a)
{
	const struct place key = { .at = a->trace, .frames = a->frames };
	const struct place *found = NULL;

	if (a->trace)
		found = bsearch(&key, p->places, p->n_places, sizeof(key), trace_by_place);
	return found ? found->number : 0;
}

void trace_pool_get(const struct trace_pool *p, uint32_t number, struct stack_trace *ret)
{
	const struct kept *k = &p->kept[number - 1];

	ret->count = k->count;
	memcpy(ret->at, k->at, k->count * sizeof(*ret->at));
}
