/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/virtual/peek.h"

#include <stdlib.h>
#include <string.h>

/*
 * Who reads on where the last read ended gets so many pages at once: each read costs a walk from
 * the root.
 */
#define AHEAD_PAGES 32

/* Kept pages by address: neighbours never push each other out. */
struct kept {
	struct peek_page page;
	bool used;
};

struct peek {
	struct virtual_memory *v;
	size_t mask; /* slots - 1 */
	struct kept *kept;
	uint8_t *bytes; /* PAGE_SIZE for each slot */
	uint64_t next;  /* behind the last page that was read */
	enum status st; /* of the first read that failed */
	struct err why;
	uint64_t first, last; /* pages that the read under way is about */
};

enum status peek_open(struct virtual_memory *v, size_t pages, struct peek **ret, struct err *e)
{
	struct peek *p = calloc(1, sizeof(*p));
	size_t slots = 2 * AHEAD_PAGES;

	while (slots < pages && slots <= SIZE_MAX / PAGE_SIZE / 2)
		slots *= 2;
	if (p) {
		p->v = v;
		p->mask = slots - 1;
		p->next = UINT64_MAX;
		p->kept = calloc(slots, sizeof(*p->kept));
		p->bytes = malloc(slots * PAGE_SIZE);
	}
	if (!p || !p->kept || !p->bytes) {
		peek_close(p);
		return err_nomem(e);
	}
	*ret = p;
	return ST_OK;
}

void peek_close(struct peek *p)
{
	if (!p)
		return;
	free(p->kept);
	free(p->bytes);
	free(p);
}

static struct kept *slot_of(const struct peek *p, uint64_t va)
{
	return &p->kept[(va >> PAGE_SHIFT) & p->mask];
}

static enum status keep(void *context, const struct virtual_page *from, struct err *e)
{
	struct peek *p = context;
	const uint64_t end = from->va + (from->pages - 1) * PAGE_SIZE;

	for (uint64_t va = MAX(from->va, p->first); va <= MIN(end, p->last); va += PAGE_SIZE) {
		struct kept *k = slot_of(p, va);

		k->used = true;
		k->page = (struct peek_page){
			.va = va,
			.given = from->given,
			.has_verdict = from->has_verdict,
			.state = from->row.pte.state,
			.followed = from->row.followed,
			.damaged = from->damaged,
			.absent = virtual_page_is_absent(from),
		};
		if (pte_place(&from->row.pte) == PLACE_FRAME)
			k->page.frame = from->row.pte.frame + (va - from->va);
		if (from->has_verdict) {
			k->page.verdict = from->row.verdict;
			k->page.trust = verdict_trust(from->row.verdict);
			k->page.when = from->row.content;
		}
		if (from->bytes) {
			uint8_t *to = p->bytes + (size_t)(k - p->kept) * PAGE_SIZE;

			memcpy(to, from->bytes, PAGE_SIZE);
			k->page.bytes = to;
		}
		if (va == p->last) /* the last page of all addresses has none behind it */
			break;
	}
	return ST_OK;
}

/* An address that the machine does not have is no failure: pointers in memory can be anything. */
static enum status read_pages(struct peek *p, uint64_t va, struct err *e)
{
	const struct virtual_reader reader = { keep, p };
	const uint64_t to_end = (UINT64_MAX - va) / PAGE_SIZE + 1;
	const uint64_t pages = MIN(va == p->next ? AHEAD_PAGES : 1, to_end);
	struct virtual_counts counts = { 0 };
	enum status st;

	p->first = va;
	p->last = va + (pages - 1) * PAGE_SIZE;
	st = virtual_read(p->v, va, pages * PAGE_SIZE, &reader, &counts, e);
	if (st == ST_USAGE && pages > 1) {
		p->last = va;
		st = virtual_read(p->v, va, PAGE_SIZE, &reader, &counts, e);
	}
	if (st == ST_USAGE) {
		*slot_of(p, va) = (struct kept){ { .va = va, .state = PTE_UNKNOWN }, true };
		st = ST_OK;
	}
	p->next = p->last + PAGE_SIZE;
	return st;
}

const struct peek_page *peek_page(struct peek *p, uint64_t va)
{
	const struct kept *k;

	va &= ~(uint64_t)(PAGE_SIZE - 1);
	k = slot_of(p, va);
	if (p->st)
		return NULL;
	if (!k->used || k->page.va != va) {
		p->st = read_pages(p, va, &p->why);
		if (p->st)
			return NULL;
	}
	return &k->page;
}

bool peek_is_files(struct peek *p, uint64_t va)
{
	const struct peek_page *page = peek_page(p, va);

	return page && (page->followed ||
			(page->frame && virtual_is_prototypes(p->v, page->va, page->frame)));
}

enum status peek_failed(const struct peek *p, struct err *e)
{
	if (p->st && e)
		*e = p->why;
	return p->st;
}

static const uint8_t *view_page(void *context, uint64_t va)
{
	const struct peek_page *page = peek_page(context, va);

	return page ? page->bytes : NULL;
}

static bool view_page_absent(void *context, uint64_t va)
{
	const struct peek_page *page = peek_page(context, va);

	return page && page->absent;
}

struct memory_view peek_view(struct peek *p)
{
	return (struct memory_view){
		.page = view_page,
		.absent = view_page_absent,
		.context = p,
	};
}
