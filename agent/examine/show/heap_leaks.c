/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/examine/show/heap_leaks.h"

#include <inttypes.h>

#include "agent/examine/heap/block_groups.h"
#include "agent/examine/heap/leaks.h"
#include "agent/examine/show/heap_roots.h"
#include "agent/shared/program/interrupt.h"
#include "agent/shared/program/lines.h"
#include "agent/shared/program/table.h"
#include "formats/base/array.h"

/* What was searched. */
struct searched {
	uint64_t pages, trust[TRUST_KINDS];
	bool has_times;
	struct rsz_times when; /* of all pages whose time is known */
};

struct leak_search {
	const struct heap_session *session;
	const struct block_list *list;
	struct heap_roots roots;
	struct trace_pool *traces;
	uint8_t *marks;
	struct leak_stats stats;
	struct searched searched;
	uint64_t lost;
	size_t heaps_lost;
	uint64_t page_heap_lost; /* pages in which blocks of full page heap may be */
	bool whole;              /* all could be read that can refer to a block */
};

/*
 * What the process has of its own is what its entries or VADs lead to. Pages that were never
 * touched, were given back, or are as in their file hold no pointers to blocks.
 */
static enum leak_page leak_page_kind(const struct peek_page *p)
{
	if (!p)
		return LEAK_PAGE_LOST;
	if (p->bytes)
		return p->given == GIVEN_ZEROS ? LEAK_PAGE_NONE : LEAK_PAGE_THERE;
	switch (p->state) {
	case PTE_EMPTY:
	case PTE_DECOMMITTED:
	case PTE_SUBSECTION:
	case PTE_FILE_BACKED:
	case PTE_DEMAND_ZERO:
		return LEAK_PAGE_NONE;
	default:
		return LEAK_PAGE_LOST;
	}
}

static void note_searched_page(struct searched *s, const struct peek_page *p)
{
	s->pages++;
	if (p->has_verdict)
		s->trust[p->trust]++;
	if (!p->when.start)
		return;
	if (!s->has_times)
		s->when = p->when;
	s->has_times = true;
	s->when.start = MIN(s->when.start, p->when.start);
	s->when.end = MAX(s->when.end, p->when.end);
}

struct searching {
	struct leak_search *x;
	const struct leak_visitor *v;
};

static enum status give_pages(void *context, const struct peek_page *page, uint64_t pages,
			      struct err *e)
{
	const struct searching *s = context;
	const enum leak_page is = leak_page_kind(page);

	if (is == LEAK_PAGE_THERE)
		note_searched_page(&s->x->searched, page);
	return s->v->pages(s->v->context, page->va, pages, is, page->bytes, e);
}

static enum status give_all(void *context, const struct range_list *ranges,
			    const struct leak_visitor *v, struct err *e)
{
	struct searching s = { context, v };
	const struct peek_visitor give = { give_pages, &s };

	return peek_sweep(s.x->session->peek, ranges, &give, e);
}

/* A block of full page heap in a missing page is not known, and may refer to any other. */
static enum status look_for_lost(struct leak_search *x, struct err *e)
{
	const struct range_list *l = &x->roots.page_heap;
	uint64_t asked = 0;

	for (size_t i = 0; i < l->count; i++)
		for (uint64_t va = l->at[i].first; va < l->at[i].last; va += PAGE_SIZE) {
			if (interrupted())
				return interrupt_status(e);
			if (asked++ == LEAK_PAGES_MAX) {
				x->whole = false;
				return ST_OK;
			}
			x->page_heap_lost +=
				leak_page_kind(peek_page(x->session->peek, va)) == LEAK_PAGE_LOST;
		}
	return ST_OK;
}

static enum status search_for_leaks(struct leak_search *x, struct err *e)
{
	const struct heap_session *s = x->session;
	const struct leak_sources sources = {
		.sweep = give_all,
		.context = x,
		.blocks = x->list,
		.roots = &x->roots.ranges,
		.narrow = process_facts(s->process->process)->wow64,
	};
	enum status st = heap_roots_find(s, x->list, &x->roots, e);

	if (!st)
		st = leaks_find(&sources, &x->marks, &x->stats, e);
	x->whole = x->roots.whole && vad_list_is_whole(process_vads(s->process->process)) &&
		   !heaps_list_lost(s->heaps) && !x->lost && !x->heaps_lost &&
		   !x->stats.root_pages_lost && !x->stats.blocks_lost;
	if (!st)
		st = look_for_lost(x, e);
	x->whole &= !x->page_heap_lost;
	if (!st)
		st = heap_session_traces(s, x->list, &x->traces, e);
	return st ? st : peek_failed(s->peek, e);
}

/*
 * Groups
 */

static bool is_leaked(const void *context, size_t i)
{
	const struct leak_search *x = context;

	return leak_is(x->marks[i]);
}

static bool is_inside(const void *context, size_t i)
{
	const struct leak_search *x = context;

	return x->marks[i] == LEAK_INSIDE;
}

struct found {
	struct block_groups groups;
	uint64_t blocks, bytes;
	uint64_t by_leaked, by_leaked_bytes; /* that others of them refer to */
};

/* What holds most comes first. */
static int by_bytes(const void *a, const void *b)
{
	const struct block_group *x = a, *y = b;
	const uint64_t bx = block_group_bytes(x), by = block_group_bytes(y);
	const uint64_t ax = x->members->block->address, ay = y->members->block->address;

	return bx != by ? (bx < by) - (bx > by) : (ax > ay) - (ax < ay);
}

static uint64_t count_by_leaked(const struct leak_search *x, const struct block_group *g)
{
	uint64_t n = 0;

	for (size_t i = 0; i < g->count; i++)
		n += x->marks[g->members[i].block - x->list->at] == LEAK_BY_LEAKED;
	return n;
}

static enum status collect_leaks(const struct leak_search *x, bool (*wanted)(const void *, size_t),
				 struct found *ret, struct err *e)
{
	const struct block_groups_plan plan = {
		.memory = &x->session->memory,
		.heaps = x->session->heaps,
		.modules = &x->session->modules,
		.blocks = x->list,
		.traces = x->traces,
		.wanted = wanted,
		.context = x,
	};
	const enum status st = block_groups_make(&plan, &ret->groups, e);

	if (!st)
		array_sort(ret->groups.at, ret->groups.count, sizeof(*ret->groups.at), by_bytes);
	for (size_t i = 0; i < ret->groups.count && !st; i++) {
		const struct block_group *g = &ret->groups.at[i];
		const uint64_t children = count_by_leaked(x, g);

		ret->blocks += g->count;
		ret->bytes += block_group_bytes(g);
		ret->by_leaked += children;
		ret->by_leaked_bytes += children * block_bytes(g->members->block);
	}
	return st;
}

static json_t *addresses_json(const struct block_group *g)
{
	json_t *list = json_array();

	for (size_t i = 0; list && i < g->count; i++)
		if (json_array_append_new(list, heap_hex(g->members[i].block->address)))
			return json_decref(list), NULL;
	return list;
}

static json_t *group_json(const struct leak_search *x, const struct block_group *g)
{
	const struct block_member *m = g->members;

	return json_fields(JSON_FIELDS(
		field_made("heap", heap_hex(heaps_at(x->session->heaps, m->block->heap)->address)),
		field_u64("size", block_bytes(m->block)), field_u64("blocks", g->count),
		field_u64("by_leaked", count_by_leaked(x, g)),
		field_made("first", m->first ? heap_place_json(x->session, m->first) : json_null()),
		field_made("trace", heap_trace_of_json(x->session, x->traces, m->trace)),
		field_made("addresses", addresses_json(g))));
}

static json_t *groups_json(const struct leak_search *x, const struct found *f)
{
	json_t *list = json_array();

	for (size_t i = 0; list && i < f->groups.count; i++)
		if (json_array_append_new(list, group_json(x, &f->groups.at[i])))
			return json_decref(list), NULL;
	return list;
}

/* So many of a group in text; in JSON there are all. */
#define ADDRESSES_SHOWN 4

static void add_addresses(struct lines_piece *to, const struct block_group *g)
{
	for (size_t i = 0; i < g->count && i < ADDRESSES_SHOWN; i++)
		lines_add(to, "%s0x%" PRIx64, i ? " " : "", g->members[i].block->address);
	if (g->count > ADDRESSES_SHOWN)
		lines_add(to, " and %zu more", g->count - ADDRESSES_SHOWN);
}

static const struct table_column leak_columns[] = {
	{ "heap", -14, 0 }, { "size", 11, 0 },      { "blocks", 9, 0 },
	{ "bytes", 13, 0 }, { " addresses", 0, 0 },
};

static void put_leak_group(struct table *t, const struct leak_search *x,
			   const struct block_group *g)
{
	const struct block_member *m = g->members;
	struct lines_piece addresses = { 0 };

	add_addresses(&addresses, g);
	table_cell(t, "0x%012" PRIx64, heaps_at(x->session->heaps, m->block->heap)->address);
	table_cell(t, "%" PRIu64, block_bytes(m->block));
	table_cell(t, "%zu", g->count);
	table_cell(t, "%" PRIu64, block_group_bytes(g));
	table_cell(t, " %s", addresses.text ? addresses.text : "");
	free(addresses.text);
}

static void put_leak_groups(const struct leak_search *x, const struct found *f)
{
	struct table t;

	table_begin(&t, stdout, leak_columns, ARRAY_SIZE(leak_columns));
	for (size_t i = 0; i < f->groups.count; i++) {
		const struct block_group *g = &f->groups.at[i];
		const struct block_member *m = g->members;
		char place[HEAP_PLACE_TEXT];

		put_leak_group(&t, x, g);
		if (m->first) {
			heap_place_text(x->session, m->first, place);
			lines_print(stdout, 6, "    points to %s", place);
		}
		heap_put_trace(x->session, x->traces, m->trace);
		if (!m->trace && trace_pool_count(x->traces))
			printf("    no stack trace\n");
	}
	table_end(&t);
}

static json_t *searched_json(const struct leak_search *x)
{
	const struct searched *s = &x->searched;

	return json_fields(
		JSON_FIELDS(field_u64("pages", s->pages), field_u64("safe", s->trust[TRUST_SAFE]),
			    field_u64("at_risk", s->trust[TRUST_AT_RISK]),
			    field_json("start_ns", s->has_times ? json_u64(s->when.start) : NULL),
			    field_json("end_ns", s->has_times ? json_u64(s->when.end) : NULL)));
}

static void put_searched(const struct leak_search *x)
{
	const struct searched *s = &x->searched;
	struct lines_piece line = { .out = stdout, .indent = 2 };

	lines_add(&line, "searched: %" PRIu64 " pages", s->pages);
	if (s->has_times)
		lines_add(&line, ", captured over %.6f s",
			  (double)(s->when.end - s->when.start) / 1e9);
	if (virtual_info(process_memory(x->session->process->process))->still)
		lines_add(&line, "; for an image it is not known which are safe");
	else
		lines_add(&line, "; %" PRIu64 " safe, %" PRIu64 " at risk, %" PRIu64 " not judged",
			  s->trust[TRUST_SAFE], s->trust[TRUST_AT_RISK],
			  s->pages - s->trust[TRUST_SAFE] - s->trust[TRUST_AT_RISK]);
	lines_end(&line);
}

static enum status print_leaks_json(const struct leak_search *x, const struct found *leaked,
				    const struct found *inside, struct err *e)
{
	const struct process_facts *f = process_facts(x->session->process->process);

	return json_print(
		json_fields(JSON_FIELDS(
			FIELD_SCHEMA("heap-leaks"), field_text("file", x->session->process->path),
			field_u64("pid", f->pid), field_text("name", f->name),
			field_u64("busy_blocks", x->list->count),
			field_u64("unreferenced_blocks", leaked->blocks),
			field_u64("unreferenced_bytes", leaked->bytes),
			field_u64("by_leaked_blocks", leaked->by_leaked),
			field_u64("by_leaked_bytes", leaked->by_leaked_bytes),
			field_u64("inside_blocks", inside->blocks),
			field_u64("inside_bytes", inside->bytes), field_bool("all_read", x->whole),
			field_u64("heap_bytes_lost", x->lost),
			field_u64("heaps_lost", x->heaps_lost),
			field_u64("page_heap_pages_lost", x->page_heap_lost),
			field_u64("root_pages", x->stats.root_pages),
			field_u64("root_pages_lost", x->stats.root_pages_lost),
			field_made("searched", searched_json(x)),
			field_u64("images_whole", x->roots.images_whole),
			field_u64("blocks_lost", x->stats.blocks_lost),
			field_made("groups", groups_json(x, leaked)),
			field_made("inside_groups", groups_json(x, inside)))),
		JSON_INDENT(2), e);
}

static void print_leaks(const struct leak_search *x, const struct found *leaked,
			const struct found *inside)
{
	lines_print(stdout, 2,
		    "%" PRIu64 " of %zu busy blocks (%" PRIu64
		    " bytes) are referenced by nothing%s",
		    leaked->blocks, x->list->count, leaked->bytes,
		    x->whole ? "" : " that could be read");
	if (!x->whole) {
		lines_print(stdout, 2,
			    "at most these are leaked; perhaps none, because not everything could "
			    "be read. Missing:");
		lines_print(stdout, 2,
			    "%" PRIu64 " of %" PRIu64 " root pages, parts of %" PRIu64
			    " referenced blocks, and %" PRIu64 " bytes of heaps",
			    x->stats.root_pages_lost,
			    x->stats.root_pages + x->stats.root_pages_lost, x->stats.blocks_lost,
			    x->lost);
	}
	put_searched(x);
	if (x->heaps_lost)
		lines_print(
			stdout, 2,
			"%zu of %zu heaps have blocks that are not known, nor what they refer to",
			x->heaps_lost, heaps_count(x->session->heaps));
	if (x->page_heap_lost)
		lines_print(stdout, 2, "%" PRIu64 " pages are missing where page heap has blocks",
			    x->page_heap_lost);
	if (x->roots.images_whole)
		lines_print(stdout, 2,
			    "%" PRIu64
			    " modules have no readable headers: whatever looks like a pointer "
			    "there counts as a reference, unless it is known to be as in the file",
			    x->roots.images_whole);
	if (leaked->by_leaked)
		lines_print(stdout, 2,
			    "%" PRIu64 " of them (%" PRIu64
			    " bytes) are referenced only by others of them",
			    leaked->by_leaked, leaked->by_leaked_bytes);
	if (leaked->blocks && !x->whole)
		lines_print(stdout, 2, "candidates, none of them certain:");
	if (leaked->blocks)
		put_leak_groups(x, leaked);
	if (!inside->blocks)
		return;
	lines_print(stdout, 2,
		    "%" PRIu64 " further blocks (%" PRIu64
		    " bytes) are referenced, but never at their first byte",
		    inside->blocks, inside->bytes);
	put_leak_groups(x, inside);
}

static enum status tell_leaks(const struct leak_search *x, bool json, struct err *e)
{
	struct found leaked = { 0 }, inside = { 0 };
	enum status st = collect_leaks(x, is_leaked, &leaked, e);

	if (!st)
		st = collect_leaks(x, is_inside, &inside, e);
	if (!st && json)
		st = print_leaks_json(x, &leaked, &inside, e);
	else if (!st)
		print_leaks(x, &leaked, &inside);
	block_groups_deinit(&leaked.groups);
	block_groups_deinit(&inside.groups);
	return st;
}

enum status heap_leaks(const struct heap_session *s, const struct block_list *l, bool json,
		       struct err *e)
{
	struct leak_search x = {
		.session = s,
		.list = l,
		.lost = heap_session_lost(s),
		.heaps_lost = heap_session_heaps_lost(s),
	};
	enum status st = search_for_leaks(&x, e);

	if (!st)
		st = tell_leaks(&x, json, e);
	free(x.marks);
	trace_pool_close(x.traces);
	heap_roots_deinit(&x.roots);
	if (!st && !x.whole)
		return err_set(e, ST_UNREADABLE,
			       "%s: some of what can refer to a block could not be read",
			       s->process->path);
	return st;
}

/*
 * For a report
 */

static void take_leak(const struct leak_search *x, const struct block_group *g,
		      struct report_leak *ret)
{
	const struct block_member *m = g->members;
	struct stack_trace t;
	char place[HEAP_PLACE_TEXT] = "";

	*ret = (struct report_leak){ .heap = heaps_at(x->session->heaps, m->block->heap)->address,
				     .size = block_bytes(m->block),
				     .blocks = g->count,
				     .first = m->block->address };
	if (m->first)
		heap_place_text(x->session, m->first, place);
	else if (heap_session_trace(x->session, m->block, &t) && t.count)
		heap_place_text(x->session, t.at[0], place);
	snprintf(ret->place, sizeof(ret->place), "%.199s", place);
}

static enum status take_leaks(const struct leak_search *x, struct report_leaks *ret, struct err *e)
{
	struct found leaked = { 0 };
	const enum status st = collect_leaks(x, is_leaked, &leaked, e);

	*ret = (struct report_leaks){ .searched = !st,
				      .whole = x->whole,
				      .blocks = leaked.blocks,
				      .bytes = leaked.bytes,
				      .busy = x->list->count,
				      .all = leaked.groups.count };
	for (; !st && ret->count < MIN(ret->all, (size_t)REPORT_LEAKS); ret->count++)
		take_leak(x, &leaked.groups.at[ret->count], &ret->at[ret->count]);
	block_groups_deinit(&leaked.groups);
	return st;
}

enum status heap_leaks_report(const struct process_session *p, struct report_leaks *ret,
			      struct err *e)
{
	struct block_list l = { 0 };
	struct heap_session s;
	struct leak_search x = { .session = &s, .list = &l };
	enum status st = heap_session_open(p, &s, e);

	if (st)
		return st;
	st = heap_session_list(&s, &l, e);
	x.lost = heap_session_lost(&s);
	x.heaps_lost = heap_session_heaps_lost(&s);
	if (!st)
		st = search_for_leaks(&x, e);
	if (!st)
		st = take_leaks(&x, ret, e);
	free(x.marks);
	trace_pool_close(x.traces);
	heap_roots_deinit(&x.roots);
	block_list_deinit(&l);
	heap_session_close(&s);
	return st;
}
