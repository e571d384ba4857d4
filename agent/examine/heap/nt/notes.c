/* SPDX-License-Identifier: Apache-2.0 */
/* Which pages are noted when: windows of a heap, as the walk comes to them. */
#include <stdlib.h>
#include <string.h>

#include "agent/examine/heap/base/page_notes.h"
#include "agent/examine/heap/nt/nt.h"
#include "formats/base/array.h"

/* Addresses of a window, in pages: what is uncommitted counts, too. */
#define WINDOW_PAGES ((size_t)1 << 18)
/* Where notes are larger than usual, windows are smaller; below this there are none. */
#define WINDOW_LEAST ((size_t)1 << 10)
#define PARTS_MAX    4096

/* The heap of the segment; NULL: it has no notes. */
static const struct heap_info *noted_heap(const struct heaps *h, const struct heap_segment *s)
{
	const size_t i = FIRST_WHERE(k, h->count, h->at[k].address >= s->heap);
	const struct heap_info *info = i < h->count ? &h->at[i] : NULL;

	return info && info->address == s->heap && info->kind == HEAP_NT &&
			       (info->key_from == KEY_READ || info->key_from == KEY_RECOVERED)
		       ? info
		       : NULL;
}

static enum status add_notes_part(struct heap_notes *n, const struct heap_segment *s,
				  const struct heap_info *info, uint64_t first, size_t pages,
				  struct err *e)
{
	struct notes_part *p;

	if (n->n_parts == n->parts_room) {
		struct notes_part *grown = array_grow(n->parts, &n->parts_room, sizeof(*grown));

		if (!grown)
			return err_nomem(e);
		n->parts = grown;
	}
	p = &n->parts[n->n_parts++];
	*p = (struct notes_part){
		.first = first,
		.last = first + (uint64_t)pages * PAGE_SIZE - 1,
		.page = n->n_pages,
		.wide = s->wide,
		.heap = s->heap,
	};
	memcpy(p->key, info->key, sizeof(p->key));
	n->n_pages += pages;
	return ST_OK;
}

static int notes_part_by_first(const void *a, const void *b)
{
	const struct notes_part *x = a, *y = b;

	return (x->first > y->first) - (x->first < y->first);
}

/* Segments of different heaps can lie over each other where somebody made them do so. */
static void drop_overlapping_parts(struct heap_notes *n)
{
	size_t kept = 0;

	array_sort(n->parts, n->n_parts, sizeof(*n->parts), notes_part_by_first);
	for (size_t i = 0; i < n->n_parts; i++)
		if (!kept || n->parts[kept - 1].last < n->parts[i].first)
			n->parts[kept++] = n->parts[i];
	n->n_parts = kept;
}

/* From `va` in the segment on, and on into those that come next. */
static enum status choose_parts(struct heaps *h, size_t segment, uint64_t va, struct err *e)
{
	struct heap_notes *n = h->notes;
	enum status st = ST_OK;

	n->n_parts = n->n_pages = n->last = 0;
	for (size_t i = segment; i < h->segment_count && n->n_pages < n->window && !st; i++) {
		const struct heap_segment *s = &h->segments[i];
		const uint64_t first = i == segment ? va : s->base;
		const struct heap_info *info = s->end > first ? noted_heap(h, s) : NULL;

		if (n->n_parts == PARTS_MAX)
			break;
		if (info)
			st = add_notes_part(
				n, s, info, first,
				(size_t)MIN((s->end - first + PAGE_SIZE - 1) / PAGE_SIZE,
					    n->window - n->n_pages),
				e);
	}
	drop_overlapping_parts(n);
	return st;
}

static enum status sweep_notes(struct heaps *h, struct err *e)
{
	const struct memory_view *m = h->sources.memory;
	struct heap_notes *n = h->notes;
	const struct view_visitor v = { heap__note_pages, n };
	_cleanup_ranges_ struct range_list ranges = { 0 };
	enum status st = ST_OK;

	n->n_words = 0;
	n->left -= MIN(n->left, n->n_pages);
	free(n->pages);
	n->pages = calloc(MAX(n->n_pages, 1), sizeof(*n->pages));
	if (!n->pages)
		return err_nomem(e);
	for (size_t i = 0; i < n->n_parts && !st; i++)
		st = range_list_add(&ranges, n->parts[i].first, n->parts[i].last, e);
	return st ? st : m->sweep(m->context, &ranges, &v, e);
}

/* A window that begins at `va`; with less and less in it, if there is no room. */
static enum status make_window(struct heaps *h, size_t segment, uint64_t va, struct err *e)
{
	struct heap_notes *n = h->notes;
	enum status st;

	do {
		st = choose_parts(h, segment, va, e);
		if (!st && n->left)
			st = sweep_notes(h, e);
		if (st != ST_END)
			break;
		n->window /= 4;
	} while (n->window >= WINDOW_LEAST);
	if (st || !n->left)
		n->n_parts = 0;
	heap__see_note(&h->pages);
	return st == ST_END ? ST_OK : st;
}

/* Which of the heap's segments has the address; false: none. */
static bool find_noted_segment(const struct heap_walk *w, uint64_t va, size_t *ret)
{
	size_t count, n;
	const struct heap_segment *s = heap__segments(w->h, w->info->address, &count);

	n = FIRST_WHERE(i, count, s[i].base > va);
	if (!n || va >= s[n - 1].end)
		return false;
	*ret = (size_t)(s - w->h->segments) + n - 1;
	return true;
}

enum status heap__note(struct heap_walk *w, uint64_t va)
{
	struct heap_notes *n = w->h->notes;
	size_t segment;

	va &= ~(uint64_t)(PAGE_SIZE - 1);
	if (!n || n->window < WINDOW_LEAST || !n->left || !w->key || heap__notes_part(n, va) ||
	    !find_noted_segment(w, va, &segment))
		return ST_OK;
	return make_window(w->h, segment, va, w->e);
}

enum status heap__open_notes(struct heaps *h, struct err *e)
{
	if (!h->sources.memory->sweep)
		return ST_OK;
	h->notes = calloc(1, sizeof(*h->notes));
	if (!h->notes)
		return err_nomem(e);
	h->notes->window = WINDOW_PAGES;
	h->notes->left = HEAP_FETCHES_MAX;
	h->pages.notes = h->notes;
	return ST_OK;
}

void heap__drop_notes(struct heaps *h)
{
	struct heap_notes *n = h->notes;

	if (!n)
		return;
	free(n->parts);
	free(n->pages);
	free(n->words);
	n->parts = NULL;
	n->pages = NULL;
	n->words = NULL;
	n->n_parts = n->parts_room = n->n_pages = n->words_room = 0;
	h->pages.note = NULL;
}
