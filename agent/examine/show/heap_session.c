/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/examine/show/heap_session.h"

#include <inttypes.h>

#include "agent/examine/heap/heap_checks.h"
#include "agent/examine/heap/heap_process.h"
#include "agent/shared/program/text.h"

json_t *heap_hex(uint64_t v)
{
	return json_sprintf("0x%" PRIx64, v);
}

/*
 * Where return addresses can point: programs and libraries, and what is compiled at run time. Where
 * the tree of VADs is lost, the loader still knows its modules.
 */
static enum status executable_ranges(const struct vad_list *l, const struct modules *m,
				     struct range_list *ret, struct err *e)
{
	enum status st = ST_OK;

	for (size_t i = 0; i < l->count && !st; i++)
		if (l->at[i].protection & 2)
			st = range_list_add(ret, l->at[i].start, l->at[i].end, e);
	for (size_t i = 0; i < m->count && !st; i++) {
		const uint64_t base = m->at[i].base, size = m->at[i].size;

		if (m->at[i].listed && size && base % PAGE_SIZE == 0 && base < UINT64_MAX - size)
			st = range_list_add(ret, base, (base + size - 1) | (PAGE_SIZE - 1), e);
	}
	range_list_tidy(ret, NULL);
	return st;
}

enum status heap_session_open(const struct process_session *p, struct heap_session *ret,
			      struct err *e)
{
	enum status st;

	*ret = (struct heap_session){ .process = p, .peek = process_peek(p->process) };
	ret->memory = peek_view(ret->peek);
	st = heaps_of_process(p->process, &ret->memory, &ret->ranges, &ret->heaps, e);
	if (!st) {
		ret->stats = calloc(MAX(heaps_count(ret->heaps), 1), sizeof(*ret->stats));
		st = ret->stats ? ST_OK : err_nomem(e);
	}
	if (!st)
		st = process_modules(p->process, &ret->modules, e);
	if (!st)
		st = executable_ranges(process_vads(p->process), &ret->modules, &ret->code, e);
	if (st)
		heap_session_close(ret);
	return st;
}

void heap_session_close(struct heap_session *s)
{
	free(s->stats);
	heaps_close(s->heaps);
	range_list_deinit(&s->ranges);
	range_list_deinit(&s->code);
	modules_deinit(&s->modules);
	*s = (struct heap_session){ 0 };
}

enum status heap_session_walk(struct heap_session *s, const struct heap_visitor *v, struct err *e)
{
	enum status st = ST_OK;

	for (size_t i = 0; i < heaps_count(s->heaps) && !st && !peek_failed(s->peek, NULL); i++)
		st = heaps_walk(s->heaps, i, v, &s->stats[i], e);
	return st ? st : peek_failed(s->peek, e);
}

enum status heap_session_list(struct heap_session *s, struct block_list *ret, struct err *e)
{
	const struct heap_visitor collect = { block_list_take, ret };
	enum status st = heap_session_walk(s, &collect, e);

	block_list_sort(ret);
	return st;
}

uint64_t heap_session_lost(const struct heap_session *s)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < heaps_count(s->heaps); i++)
		sum += heap_stats_lost(&s->stats[i]);
	return sum;
}

size_t heap_session_heaps_lost(const struct heap_session *s)
{
	size_t n = 0;

	for (size_t i = 0; i < heaps_count(s->heaps); i++)
		n += !heap_is_had(heaps_at(s->heaps, i), &s->stats[i]);
	return n;
}

enum status heap_session_outcome(const struct heap_session *s, struct err *e)
{
	const struct process_facts *f = process_facts(s->process->process);

	if (heaps_list_lost(s->heaps) || heap_session_heaps_lost(s) ||
	    !vad_list_is_whole(process_vads(s->process->process)))
		return err_set(e, ST_UNREADABLE,
			       "%s: process %" PRIu32 " has heaps that could not be read in full",
			       s->process->path, f->pid);
	return ST_OK;
}

bool heap_session_trace(const struct heap_session *s, const struct heap_allocation *a,
			struct stack_trace *ret)
{
	ret->count = 0;
	return a->trace && stack_trace_read(&s->memory, &s->code, heaps_at(s->heaps, a->heap)->wide,
					    a->trace, a->frames, ret);
}

/* False: nothing is known of it. */
static bool name_place(const struct heap_session *s, uint64_t va, char ret[static HEAP_PLACE_TEXT])
{
	char place[SYMBOL_TEXT_MAX];

	process_address_text(s->process->process, &s->modules, va, place);
	text_printable(place, ret, HEAP_PLACE_TEXT);
	return *place != '\0';
}

void heap_place_text(const struct heap_session *s, uint64_t va, char ret[static HEAP_PLACE_TEXT])
{
	if (!name_place(s, va, ret))
		snprintf(ret, HEAP_PLACE_TEXT, "0x%" PRIx64, va);
}

json_t *heap_place_json(const struct heap_session *s, uint64_t va)
{
	const struct module *m = modules_at(&s->modules, va);
	char place[HEAP_PLACE_TEXT];

	return json_fields(
		JSON_FIELDS(field_made("address", heap_hex(va)),
			    field_text("module", m ? module_name(m) : NULL),
			    field_json("offset", m ? json_u64(va - m->base) : NULL),
			    field_text("place", name_place(s, va, place) ? place : NULL)));
}

json_t *heap_trace_json(const struct heap_session *s, const struct stack_trace *t)
{
	json_t *list = json_array();

	for (uint32_t i = 0; list && i < t->count; i++)
		if (json_array_append_new(list, heap_place_json(s, t->at[i])))
			return json_decref(list), NULL;
	return list;
}

enum status heap_session_traces(const struct heap_session *s, const struct block_list *l,
				struct trace_pool **ret, struct err *e)
{
	const struct trace_pool_plan plan = {
		.memory = &s->memory,
		.code = &s->code,
		.heaps = s->heaps,
		.blocks = l,
	};

	return trace_pool_open(&plan, ret, e);
}

json_t *heap_trace_of_json(const struct heap_session *s, const struct trace_pool *p,
			   uint32_t number)
{
	struct stack_trace t;

	if (!number)
		return json_null();
	trace_pool_get(p, number, &t);
	return heap_trace_json(s, &t);
}

void heap_put_calls(const struct heap_session *s, const struct stack_trace *t)
{
	for (uint32_t i = 0; i < t->count; i++) {
		const uint64_t va = t->at[i];
		char place[HEAP_PLACE_TEXT];
		const bool known = name_place(s, va, place);

		printf("    0x%0*" PRIx64 "%s%s\n", va >> 32 ? 12 : 8, va, known ? "  " : "",
		       known ? place : "");
	}
}

void heap_put_trace(const struct heap_session *s, const struct trace_pool *p, uint32_t number)
{
	struct stack_trace t;

	if (!number)
		return;
	trace_pool_get(p, number, &t);
	heap_put_calls(s, &t);
}
