/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/heap/leaks.h"

#include <stdlib.h>

#include "formats/base/bytes.h"
#include "formats/base/page.h"

struct search {
	const struct leak_sources *s;
	uint64_t lowest, highest; /* addresses that lie in blocks, or between them */
	uint8_t *marks;
	uint32_t *waiting; /* blocks that were reached, and whose words were not looked at */
	size_t n_waiting;
};

static uint64_t size_of(const struct heap_allocation *a)
{
	return a->has_requested ? a->requested : a->size;
}

/* The block around `va`; a pointer behind a block's last byte is its own, as of an empty range. */
static size_t find_block(const struct search *x, uint64_t va)
{
	size_t low = 0, high = x->s->count;

	while (low < high) {
		const size_t middle = low + (high - low) / 2;

		if (x->s->blocks[middle].address <= va)
			low = middle + 1;
		else
			high = middle;
	}
	if (!low || va - x->s->blocks[low - 1].address > size_of(&x->s->blocks[low - 1]))
		return SIZE_MAX;
	return low - 1;
}

static void take_word(struct search *x, uint64_t word)
{
	size_t i;
	uint8_t *mark;

	if (word < x->lowest || word > x->highest)
		return;
	i = find_block(x, word);
	if (i == SIZE_MAX)
		return;
	mark = &x->marks[i];
	if (*mark == LEAK_UNREACHED)
		x->waiting[x->n_waiting++] = (uint32_t)i;
	if (x->s->blocks[i].address == word)
		*mark = LEAK_REACHED;
	else if (*mark == LEAK_UNREACHED)
		*mark = LEAK_INSIDE;
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
			const enum leak_page is = x->s->page(x->s->context, va, &page);

			stats->root_pages += is == LEAK_PAGE_THERE;
			stats->root_pages_lost += is == LEAK_PAGE_LOST;
			if (is == LEAK_PAGE_THERE)
				take_words(x, page, 0, PAGE_SIZE);
		}
}

static void take_block(struct search *x, const struct heap_allocation *a, struct leak_stats *stats)
{
	const uint64_t end = a->address + size_of(a);

	for (uint64_t va = a->address, next; va < end; va = next) {
		const uint64_t begin = va & ~(uint64_t)(PAGE_SIZE - 1);
		const uint8_t *page = NULL;
		const enum leak_page is = x->s->page(x->s->context, begin, &page);

		next = MIN(end, begin + PAGE_SIZE);
		stats->block_pages_lost += is == LEAK_PAGE_LOST;
		if (is == LEAK_PAGE_THERE)
			take_words(x, page, (size_t)(va - begin), (size_t)(next - begin));
	}
}

enum status leaks_find(const struct leak_sources *s, uint8_t **ret, struct leak_stats *stats,
		       struct err *e)
{
	struct search x = { .s = s };

	*ret = NULL;
	*stats = (struct leak_stats){ 0 };
	if (s->count > LEAK_BLOCKS_MAX)
		return err_set(e, ST_INPUT, "%zu blocks are too many to search for leaks",
			       s->count);
	x.marks = calloc(MAX(s->count, 1), sizeof(*x.marks));
	x.waiting = malloc(MAX(s->count, 1) * sizeof(*x.waiting));
	if (!x.marks || !x.waiting) {
		free(x.marks);
		free(x.waiting);
		return err_nomem(e);
	}
	if (s->count) {
		const struct heap_allocation *last = &s->blocks[s->count - 1];

		x.lowest = s->blocks[0].address;
		x.highest = last->address + size_of(last);
		take_roots(&x, stats);
	}
	/* Each block waits once: the first word that leads to it puts it there. */
	while (x.n_waiting)
		take_block(&x, &s->blocks[x.waiting[--x.n_waiting]], stats);
	free(x.waiting);
	*ret = x.marks;
	return ST_OK;
}
