/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/examine/heap/leaks.h"

#include <stdlib.h>
#include <string.h>

#include "agent/shared/program/interrupt.h"
#include "formats/base/array.h"
#include "formats/base/bytes.h"
#include "formats/base/page.h"

/* In a list of edges: the word does not lead to the block's first byte. */
#define INSIDE (UINT32_C(1) << 31)

struct search {
	const struct leak_sources *s;
	uint64_t lowest, highest; /* addresses that lie in blocks, or between them */
	uint8_t *marks;
	/*
	 * Which words lead from which block to which, as they are met: pages lie anywhere in a
	 * container, and following pointers through it would decode the same chunks again and
	 * again.
	 */
	struct edge {
		uint32_t from, to;
	} *met;
	size_t n_met, met_room;
	uint32_t source; /* the block that the words are of */
	/* Then those of each block: first[i] is where those of block i begin. */
	uint32_t *edges;
	size_t *first;
	bool *lost;        /* a part of the block */
	uint32_t *waiting; /* blocks that were reached, and whose edges were not followed */
	size_t n_waiting;
	uint64_t asked; /* pages */
	struct leak_stats *stats;
	bool from_roots;
	enum status st;
	struct err *e;
};

/* The block around `va`; a pointer behind a block's last byte is its own, as of an empty range. */
static const struct heap_allocation *block_of(const struct search *x, uint64_t va)
{
	const struct heap_allocation *a = block_list_before(x->s->blocks, va);

	return a && va - a->address <= block_bytes(a) ? a : NULL;
}

static void reach_block(struct search *x, uint32_t edge)
{
	const uint32_t i = edge & ~INSIDE;
	uint8_t *mark = &x->marks[i];

	if (*mark == LEAK_UNREACHED)
		x->waiting[x->n_waiting++] = i;
	if (!(edge & INSIDE))
		*mark = LEAK_REACHED;
	else if (*mark == LEAK_UNREACHED)
		*mark = LEAK_INSIDE;
}

/* Without room for it, what it leads to counts as reached: that hides a leak, and makes up none. */
static void note_leak_edge(struct search *x, uint32_t to)
{
	struct edge *grown;

	if (x->n_met == LEAK_EDGES_MAX) {
		reach_block(x, to);
		return;
	}
	if (x->n_met == x->met_room) {
		grown = array_grow(x->met, &x->met_room, sizeof(*grown));
		if (!grown) {
			x->st = err_nomem(x->e);
			return;
		}
		x->met = grown;
	}
	x->met[x->n_met++] = (struct edge){ x->source, to };
}

static void follow_word(struct search *x, uint64_t word)
{
	const struct heap_allocation *a;
	uint32_t edge;

	if (word < x->lowest || word > x->highest)
		return;
	a = block_of(x, word);
	if (!a)
		return;
	edge = (uint32_t)(a - x->s->blocks->at) | (a->address == word ? 0 : INSIDE);
	if (x->from_roots)
		reach_block(x, edge);
	else
		note_leak_edge(x, edge);
}

/* The aligned words of bytes [from, to) of a page. */
static void follow_words(struct search *x, const uint8_t *page, size_t from, size_t to)
{
	for (size_t at = (from + 7) & ~(size_t)7; at + 8 <= to; at += 8)
		follow_word(x, get_le64(page + at));
	if (!x->s->narrow)
		return;
	for (size_t at = (from + 3) & ~(size_t)3; at + 4 <= to; at += 4)
		follow_word(x, get_le32(page + at));
}

/*
 * Pages
 */

static uint64_t leak_page_of(uint64_t va)
{
	return va & ~(uint64_t)(PAGE_SIZE - 1);
}

/* A struct leak_visitor's. */
static enum status take_root_pages(void *context, uint64_t va, uint64_t pages, enum leak_page is,
				   const uint8_t *bytes, struct err *e)
{
	struct search *x = context;

	x->stats->root_pages += is == LEAK_PAGE_THERE ? pages : 0;
	x->stats->root_pages_lost += is == LEAK_PAGE_LOST ? pages : 0;
	if (is == LEAK_PAGE_THERE)
		follow_words(x, bytes, 0, PAGE_SIZE);
	return x->st;
}

/* The first block that ends behind `va`. */
static size_t first_block_behind(const struct search *x, uint64_t va)
{
	const struct block_list *l = x->s->blocks;
	const struct heap_allocation *a = block_list_before(l, va);
	const size_t i = a ? (size_t)(a - l->at) : 0;

	return a && a->address + block_bytes(a) <= va ? i + 1 : i;
}

/* A struct leak_visitor's: of all blocks that have a part of the pages. */
static enum status take_block_pages(void *context, uint64_t va, uint64_t pages, enum leak_page is,
				    const uint8_t *bytes, struct err *e)
{
	struct search *x = context;
	const struct block_list *l = x->s->blocks;
	const uint64_t last = va + (pages - 1) * PAGE_SIZE + (PAGE_SIZE - 1);

	if (is == LEAK_PAGE_NONE)
		return x->st;
	for (size_t i = first_block_behind(x, va); i < l->count && l->at[i].address <= last; i++) {
		const struct heap_allocation *a = &l->at[i];
		const uint64_t first = MAX(a->address, va);

		if (!block_bytes(a))
			continue;
		x->source = (uint32_t)i;
		x->lost[i] |= is == LEAK_PAGE_LOST;
		if (is == LEAK_PAGE_THERE)
			follow_words(
				x, bytes, (size_t)(first - va),
				(size_t)(MIN(a->address + (block_bytes(a) - 1), last) + 1 - va));
	}
	return x->st;
}

static enum status sweep_for_leaks(struct search *x, const struct range_list *ranges,
				   const struct leak_visitor *v)
{
	return interrupted() ? interrupt_status(x->e) : x->s->sweep(x->s->context, ranges, v, x->e);
}

/* Appends so many pages as there may still be of those from `first` on; returns how many. */
static uint64_t append_leak_pages(struct search *x, struct range_list *ret, uint64_t first,
				  uint64_t pages)
{
	struct range *back = ret->count ? &ret->at[ret->count - 1] : NULL;
	const uint64_t taken = MIN(pages, LEAK_PAGES_MAX - x->asked);

	x->asked += taken;
	if (taken && back && back->last + 1 == first)
		back->last += taken * PAGE_SIZE;
	else if (taken && !x->st)
		x->st = range_list_add(ret, first, first + (taken * PAGE_SIZE - 1), x->e);
	return taken;
}

static enum status take_roots(struct search *x)
{
	const struct leak_visitor v = { take_root_pages, x };
	const struct range_list *r = x->s->roots;
	_cleanup_ranges_ struct range_list ranges = { 0 };

	for (size_t i = 0; i < r->count; i++) {
		const uint64_t pages = range_bytes(r->at[i]) / PAGE_SIZE;

		x->stats->root_pages_lost +=
			pages - append_leak_pages(x, &ranges, r->at[i].first, pages);
	}
	x->from_roots = true;
	return x->st ? x->st : sweep_for_leaks(x, &ranges, &v);
}

/* Each page once, however many blocks have a part of it. */
static enum status take_blocks(struct search *x)
{
	const struct leak_visitor v = { take_block_pages, x };
	const struct block_list *l = x->s->blocks;
	_cleanup_ranges_ struct range_list ranges = { 0 };
	uint64_t covered = 0;

	for (size_t i = 0; i < l->count; i++) {
		const uint64_t bytes = block_bytes(&l->at[i]);
		const uint64_t first = MAX(leak_page_of(l->at[i].address), covered);
		const uint64_t end = leak_page_of(l->at[i].address + bytes + (PAGE_SIZE - 1));

		if (!bytes || end <= first)
			continue;
		covered = first + PAGE_SIZE * append_leak_pages(x, &ranges, first,
								(end - first) / PAGE_SIZE);
		x->lost[i] |= covered < end;
	}
	x->from_roots = false;
	return x->st ? x->st : sweep_for_leaks(x, &ranges, &v);
}

/* By the block that they lead from. */
static enum status sort_edges(struct search *x)
{
	const size_t count = x->s->blocks->count;
	size_t *first = x->first;

	x->edges = malloc(MAX(x->n_met, 1) * sizeof(*x->edges));
	if (!x->edges)
		return err_nomem(x->e);
	for (size_t i = 0; i < x->n_met; i++)
		first[x->met[i].from + 1]++;
	for (size_t i = 0; i < count; i++)
		first[i + 1] += first[i];
	/* Each is moved on while its own are put down, and is where the next one's begin then. */
	for (size_t i = 0; i < x->n_met; i++)
		x->edges[first[x->met[i].from]++] = x->met[i].to;
	for (size_t i = count; i > 0; i--)
		first[i] = first[i - 1];
	first[0] = 0;
	free(x->met);
	x->met = NULL;
	return ST_OK;
}

static void follow_edges(struct search *x)
{
	while (x->n_waiting) {
		const uint32_t i = x->waiting[--x->n_waiting];

		x->stats->blocks_lost += x->lost[i];
		for (size_t k = x->first[i]; k < x->first[i + 1]; k++)
			reach_block(x, x->edges[k]);
	}
}

/* What was not reached, but is referred to by another such block. */
static void mark_children(struct search *x)
{
	for (size_t i = 0; i < x->s->blocks->count; i++)
		for (size_t k = x->first[i]; leak_is(x->marks[i]) && k < x->first[i + 1]; k++) {
			const uint32_t to = x->edges[k] & ~INSIDE;

			if (to != i && x->marks[to] == LEAK_UNREACHED)
				x->marks[to] = LEAK_BY_LEAKED;
		}
}

static enum status search_leaks(struct search *x)
{
	const size_t count = x->s->blocks->count;
	const struct heap_allocation *last = &x->s->blocks->at[count - 1];
	enum status st;

	x->lowest = x->s->blocks->at[0].address;
	x->highest = last->address + block_bytes(last);
	st = take_roots(x);
	if (!st)
		st = take_blocks(x);
	if (!st)
		st = sort_edges(x);
	if (!st) {
		follow_edges(x);
		mark_children(x);
	}
	return st;
}

enum status leaks_find(const struct leak_sources *s, uint8_t **ret, struct leak_stats *stats,
		       struct err *e)
{
	const size_t count = s->blocks->count;
	struct search x = { .s = s, .stats = stats, .e = e };
	enum status st = ST_OK;

	*ret = NULL;
	*stats = (struct leak_stats){ 0 };
	if (count > LEAK_BLOCKS_MAX)
		return err_set(e, ST_INPUT, "%zu blocks are too many to search for leaks", count);
	x.marks = calloc(count + 1, sizeof(*x.marks));
	x.lost = calloc(count + 1, sizeof(*x.lost));
	x.first = calloc(count + 1, sizeof(*x.first));
	x.waiting = calloc(count + 1, sizeof(*x.waiting));
	if (!x.marks || !x.lost || !x.first || !x.waiting)
		st = err_nomem(e);
	else if (count)
		st = search_leaks(&x);
	if (!st)
		*ret = take_ptr(x.marks);
	free(x.marks);
	free(x.lost);
	free(x.first);
	free(x.waiting);
	free(x.met);
	free(x.edges);
	return st;
}
