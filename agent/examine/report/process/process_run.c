/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/examine/report/process/process_run.h"

#include <stdlib.h>

#include "agent/examine/heap/heap_checks.h"
#include "agent/examine/heap/heap_process.h"
#include "agent/shared/program/interrupt.h"
#include "tsk-extract/registry.h"

const char *region_name(enum region r)
{
	return NAME_IN(REGION_MAP, r, "?");
}

/*
 * What each range is for
 */

static enum region region_of_vad(const struct vad *v)
{
	if (v->type == VAD_IMAGE)
		return REGION_IMAGE;
	if (v->type != VAD_NONE && v->type != VAD_WRITE_WATCH)
		return REGION_OTHER;
	if (v->is_private)
		return REGION_PRIVATE;
	return v->file ? REGION_FILE : REGION_SHARED;
}

/* A heap and a stack are in private memory, and a heap has proved to be one. */
static void claim_region(struct report_process *r, uint64_t va, enum region kind, uint64_t of)
{
	const struct vad *v = vad_find(r->vads, va);
	struct report_region *at = v ? &r->regions[v - r->vads->at] : NULL;

	if (at && at->kind == REGION_PRIVATE)
		*at = (struct report_region){ kind, of };
}

static enum status claim_block(void *context, const struct heap_allocation *a, struct err *e)
{
	claim_region(context, a->address, REGION_HEAP, a->heap);
	if (a->place == PLACE_VIRTUAL)
		claim_region(context, a->container, REGION_HEAP, a->heap);
	return interrupted() ? interrupt_status(e) : ST_OK;
}

static enum status claim_heap(struct report_process *r, size_t i, struct err *e)
{
	const struct heap_visitor v = { claim_block, r };
	_cleanup_ranges_ struct range_list segments = { 0 };
	enum status st = heaps_segments(r->heaps, i, &segments, e);

	/* The process's list can name anything. */
	if (heaps_at(r->heaps, i)->kind != HEAP_OTHER)
		claim_region(r, heaps_at(r->heaps, i)->address, REGION_HEAP, i);
	for (size_t k = 0; k < segments.count; k++)
		claim_region(r, segments.at[k].first, REGION_HEAP, i);
	return st ? st : heaps_walk(r->heaps, i, &v, &r->stats[i], e);
}

/* A stack begins at its base and grows down. */
static void claim_stacks(struct report_process *r)
{
	for (size_t i = 0; i < r->threads.count; i++) {
		const struct thread *t = &r->threads.at[i];

		if (t->has_stack && t->stack_base)
			claim_region(r, t->stack_base - 1, REGION_STACK, t->tid);
		if (t->narrow_base)
			claim_region(r, t->narrow_base - 1, REGION_STACK, t->tid);
	}
}

static void add_to(struct report_sum *s, const struct pages_counts *c)
{
	s->vads++;
	pages_counts_add(&s->pages, c);
}

static void sum_up_regions(struct report_process *r)
{
	const struct pages_counts *total = &r->pages.total;

	r->outside = *total;
	for (size_t i = 0; i < r->vads->count; i++) {
		const struct pages_counts *c = &r->pages.each[i];

		add_to(&r->by_region[r->regions[i].kind], c);
		if (r->regions[i].kind == REGION_HEAP)
			add_to(&r->heap_sums[r->regions[i].of], c);
		for (size_t s = 0; s < PAGES_STATES; s++) {
			r->outside.state[s] -= c->state[s];
			for (size_t k = 0; k < TRUST_KINDS; k++)
				r->outside.judged[s][k] -= c->judged[s][k];
		}
		for (size_t k = 0; k < TRUST_KINDS; k++)
			r->outside.trust[k] -= c->trust[k];
	}
}

/*
 * Reading
 */

static enum status read_heaps(struct report_process *r, struct err *e)
{
	enum status st = heaps_of_process(r->of, &r->memory, &r->ranges, &r->heaps, e);

	if (st)
		return st;
	r->n_heaps = heaps_count(r->heaps);
	r->stats = calloc(MAX(r->n_heaps, 1), sizeof(*r->stats));
	r->heap_sums = calloc(MAX(r->n_heaps, 1), sizeof(*r->heap_sums));
	if (!r->stats || !r->heap_sums)
		return err_nomem(e);
	for (size_t i = 0; i < r->n_heaps && !st; i++)
		st = claim_heap(r, i, e);
	return st;
}

static enum status read_lists(struct report_process *r, struct err *e)
{
	enum status st = process_modules(r->of, &r->modules, e);

	r->know_mapped = vad_list_is_whole(r->vads);
	r->know_listed = modules_know_listed(&r->modules, r->facts->wow64);
	process_start_read(r->of, &r->start);
	return st ? st : process_threads(r->of, &r->threads, e);
}

static enum status classify_regions(struct report_process *r, struct err *e)
{
	r->regions = calloc(MAX(r->vads->count, 1), sizeof(*r->regions));
	if (!r->regions)
		return err_nomem(e);
	for (size_t i = 0; i < r->vads->count; i++)
		r->regions[i].kind = region_of_vad(&r->vads->at[i]);
	return ST_OK;
}

enum status report_process_load(const char *path, struct opened_process *p,
				struct report_process *ret, struct err *e)
{
	const struct virtual_info *info = virtual_info(process_memory(p));
	struct peek *peek = process_peek(p);
	enum status st;

	*ret = (struct report_process){
		.path = path,
		.of = p,
		.facts = process_facts(p),
		.vads = process_vads(p),
		.still = info->still,
		.copy = info->copy,
	};
	ret->memory = peek_view(peek);
	if (!ret->facts->create_time || !registry_time(ret->facts->create_time, &ret->created))
		ret->created = 0;
	st = classify_regions(ret, e);
	if (!st)
		st = process_count_all(p, &ret->pages, e);
	if (!st)
		st = read_lists(ret, e);
	if (!st)
		st = read_heaps(ret, e);
	if (st)
		return st;
	claim_stacks(ret);
	sum_up_regions(ret);
	return peek_failed(peek, e);
}

void report_process_deinit(struct report_process *r)
{
	process_start_deinit(&r->start);
	process_pages_deinit(&r->pages);
	modules_deinit(&r->modules);
	threads_deinit(&r->threads);
	heaps_close(r->heaps);
	range_list_deinit(&r->ranges);
	free(r->stats);
	free(r->heap_sums);
	free(r->regions);
	free(r->blocks.names);
	*r = (struct report_process){ 0 };
}

bool report_process_has_lists(const struct report_process *r)
{
	return (r->know_listed || r->facts->no_peb) &&
	       (r->threads.end == LIST_CLOSED || (r->facts->no_peb && r->threads.none));
}

bool report_process_is_whole(const struct report_process *r)
{
	for (size_t i = 0; i < r->n_heaps; i++)
		if (!heap_is_had(heaps_at(r->heaps, i), &r->stats[i]))
			return false;
	return r->know_mapped && report_process_has_lists(r) && !heaps_list_lost(r->heaps);
}

struct report_data report_data_of(const struct pages_counts *c)
{
	struct report_data d = {
		.kept = c->state[PAGES_VALID] + c->state[PAGES_TRANSITION] +
			c->state[PAGES_PAGE_FILE],
		.compressed = c->state[PAGES_COMPRESSED],
		.lost = c->state[PAGES_MISSING],
		.unknown = c->state[PAGES_UNKNOWN],
		.empty = c->state[PAGES_ZEROS] + c->state[PAGES_RESERVED],
		.on_disk = c->state[PAGES_FILE],
	};

	pages_counts_data_trust(c, d.trust);
	d.pages = d.kept + d.compressed + d.lost + d.unknown;
	return d;
}
