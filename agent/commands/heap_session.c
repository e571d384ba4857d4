/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/commands/heap_session.h"

#include <inttypes.h>

#include "agent/heap/heap_checks.h"

json_t *heap_hex(uint64_t v)
{
	return json_sprintf("0x%" PRIx64, v);
}

enum status heap_session_open(const struct process_session *p, struct heap_session *ret,
			      struct err *e)
{
	const struct process_facts *f = process_facts(p->process);
	const struct heap_sources sources = {
		.memory = &ret->memory,
		.peb = f->peb,
		.peb32 = f->peb32,
		.ranges = &ret->ranges,
	};
	enum status st;

	*ret = (struct heap_session){ .process = p, .peek = process_peek(p->process) };
	ret->memory = peek_view(ret->peek);
	st = process_private_ranges(p->process, &ret->ranges, e);
	if (!st)
		st = heaps_open(&sources, &ret->heaps, e);
	if (!st) {
		ret->stats = calloc(MAX(heaps_count(ret->heaps), 1), sizeof(*ret->stats));
		st = ret->stats ? ST_OK : err_nomem(e);
	}
	if (st)
		heap_session_close(ret);
	return st;
}

void heap_session_close(struct heap_session *s)
{
	free(s->stats);
	heaps_close(s->heaps);
	range_list_deinit(&s->ranges);
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

enum status heap_session_outcome(const struct heap_session *s, struct err *e)
{
	const struct process_facts *f = process_facts(s->process->process);
	bool gaps =
		heaps_list_lost(s->heaps) || !vad_list_is_whole(process_vads(s->process->process));

	for (size_t i = 0; i < heaps_count(s->heaps); i++)
		gaps |= !heap_is_had(heaps_at(s->heaps, i), &s->stats[i]);
	if (gaps)
		return err_set(e, ST_UNREADABLE,
			       "%s: process %" PRIu32 " has heaps of which not all can be had",
			       s->process->path, f->pid);
	return ST_OK;
}
