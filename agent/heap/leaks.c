/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/heap/leaks.h"

#include <stdlib.h>
#include <string.h>

#include "agent/program/interrupt.h"
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
	 * What the words of each block lead to, in the order of the blocks: first[i] is where
	 * those of block i begin. All blocks are read once, by address: pages lie anywhere in a
	 * container, and following pointers through it would decode the same chunks again and
	 * again.
	 */
	uint32_t *edges;
	size_t n_edges, edges_room;
	size_t *first;
	bool *lost;        /* a part of the block */
	uint32_t *waiting; /* blocks that were reached, and whose edges were not followed */
	size_t n_waiting;
	uint64_t asked; /* pages */
	bool from_roots;
	enum status st;
	struct err *e;
};

static enum leak_page ask(struct search *x, uint64_t va, const uint8_t **ret)
{
	x->asked++;
	return x->s->page(x->s->context, va, ret);
}

/* Whether there is to be no further page. */
static bool is_over(struct search *x)
{
	if (!x->st && interrupted())
		x->st = interrupt_status(x->e);
	return x->st || x->asked >= LEAK_PAGES_MAX;
}

/* The block around `va`; a pointer behind a block's last byte is its own, as of an empty range. */
static const struct heap_allocation *block_of(const struct search *x, uint64_t va)
{
	const struct heap_allocation *a = block_list_before(x->s->blocks, va);

	return a && va - a->address <= block_bytes(a) ? a : NULL;
}

static void reach(struct search *x, uint32_t edge)
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
static void note_edge(struct search *x, uint32_t edge)
{
	uint32_t *grown;

	if (x->n_edges == LEAK_EDGES_MAX) {
		reach(x, edge);
		return;
	}
	if (x->n_edges == x->edges_room) {
		grown = array_grow(x->edges, &x->edges_room, sizeof(*grown));
		if (!grown) {
			x->st = err_nomem(x->e);
			return;
		}
		x->edges = grown;
	}
	x->edges[x->n_edges++] = edge;
}

static void take_word(struct search *x, uint64_t word)
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
		reach(x, edge);
	else
		note_edge(x, edge);
}

/* The aligned words of bytes [from, to) of a page. */
static void take_words(struct search *x, const uint8_t *page, size_t from, size_t to)
{
	for (size_t at = (from + 7) & ~(size_t)7; at + 8 <= to; at += 8)
		take_word(x, get_le64(page + at));
	if (!x->s->narrow)
		return;
	for (size_t at = (from + 3) & ~(size_t)3; at + 4 <= to; at += 4)
		take_word(x, get_le32(page + at));
}

static void take_roots(struct search *x, struct leak_stats *stats)
{
	const struct range_list *r = x->s->roots;

	for (size_t i = 0; i < r->count; i++)
		for (uint64_t va = r->at[i].first, left = range_bytes(r->at[i]) / PAGE_SIZE; left;
		     va += PAGE_SIZE, left--) {
			const uint8_t *page = NULL;
			enum leak_page is;

			if (is_over(x)) {
				stats->root_pages_lost += left;
				break;
			}
			is = ask(x, va, &page);
			stats->root_pages += is == LEAK_PAGE_THERE;
			stats->root_pages_lost += is == LEAK_PAGE_LOST;
			if (is == LEAK_PAGE_THERE)
				take_words(x, page, 0, PAGE_SIZE);
		}
}

static void take_block(struct search *x, size_t i)
{
	const struct heap_allocation *a = &x->s->blocks->at[i];
	const uint64_t end = a->address + block_bytes(a);

	x->first[i] = x->n_edges;
	for (uint64_t va = a->address, next; va < end; va = next) {
		const uint64_t begin = va & ~(uint64_t)(PAGE_SIZE - 1);
		const uint8_t *page = NULL;
		enum leak_page is;

		if (is_over(x)) {
			x->lost[i] = true;
			break;
		}
		is = ask(x, begin, &page);
		next = MIN(end, begin + PAGE_SIZE);
		x->lost[i] |= is == LEAK_PAGE_LOST;
		if (is == LEAK_PAGE_THERE)
			take_words(x, page, (size_t)(va - begin), (size_t)(next - begin));
	}
}

static void follow_edges(struct search *x, struct leak_stats *stats)
{
	while (x->n_waiting) {
		const uint32_t i = x->waiting[--x->n_waiting];

		stats->blocks_lost += x->lost[i];
		for (size_t k = x->first[i]; k < x->first[i + 1]; k++)
			reach(x, x->edges[k]);
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

static enum status search(struct search *x, struct leak_stats *stats)
{
	const size_t count = x->s->blocks->count;
	const struct heap_allocation *last = &x->s->blocks->at[count - 1];

	x->lowest = x->s->blocks->at[0].address;
	x->highest = last->address + block_bytes(last);
	x->from_roots = true;
	take_roots(x, stats);
	x->from_roots = false;
	for (size_t i = 0; i < count && !x->st; i++)
		take_block(x, i);
	x->first[count] = x->n_edges;
	if (!x->st) {
		follow_edges(x, stats);
		mark_children(x);
	}
	return x->st;
}

enum status leaks_find(const struct leak_sources *s, uint8_t **ret, struct leak_stats *stats,
		       struct err *e)
{
	const size_t count = s->blocks->count;
	struct search x = { .s = s, .e = e };
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
		st = search(&x, stats);
	if (!st)
		*ret = take_ptr(x.marks);
	free(x.marks);
	free(x.lost);
	free(x.first);
	free(x.waiting);
	free(x.edges);
	return st;
}
