/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/examine/virtual/peek.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "formats/base/array.h"

/*
 * Who reads on where the last read ended gets so many pages at once: each read costs a walk from
 * the root.
 */
#define AHEAD_PAGES      32

/*
 * Of so many pages it is kept what their content is worth: of 16 GiB, a byte each. Beyond that, all
 * of it is let go, and begun anew.
 */
#define WORTHS_MAX       ((uint64_t)1 << 22)
#define WORTHS_LIST      4096 /* and of so many ranges, which are sorted with each sweep */

/* A struct peek_worth in a byte: two bits of trust, three of what was given. */
#define WORTH_KNOWN      1
#define WORTH_VERDICT    2
#define WORTH_TRANSITION 4
#define WORTH_TRUST      3 /* from this bit on */
#define WORTH_GIVEN      5

static_assert(TRUST_KINDS <= 4 && GIVENS <= 8, "");

/* Of the pages of a range that was swept. */
struct worths {
	struct range range;
	uint8_t *of;
};

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
	uint64_t first, last;  /* pages that the read under way is about */
	struct worths *worths; /* by address */
	size_t n_worths, worths_room;
	uint64_t worths_pages; /* of all of them */
	size_t last_worths;    /* where the last question was answered */
};

/* Of a sweep. */
struct worth_sweep {
	struct peek *p;
	const struct peek_visitor *v;
	struct worths *worths; /* of what is told of just now; or NULL */
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

static void forget_worths(struct peek *p)
{
	for (size_t i = 0; i < p->n_worths; i++)
		free(p->worths[i].of);
	p->n_worths = p->last_worths = 0;
	p->worths_pages = 0;
}

void peek_close(struct peek *p)
{
	if (!p)
		return;
	forget_worths(p);
	free(p->worths);
	free(p->kept);
	free(p->bytes);
	free(p);
}

static struct peek_page peek_page_of(const struct virtual_page *from, uint64_t va)
{
	struct peek_page page = {
		.va = va,
		.given = from->given,
		.has_verdict = from->has_verdict,
		.state = from->row.pte.state,
		.followed = from->row.followed,
		.damaged = from->damaged,
		.absent = virtual_page_is_absent(from),
	};

	if (pte_place(&from->row.pte) == PLACE_FRAME)
		page.frame = from->row.pte.frame + (va - from->va);
	if (from->has_verdict) {
		page.verdict = from->row.verdict;
		page.trust = verdict_trust(from->row.verdict);
		page.when = from->row.content;
	}
	return page;
}

static struct kept *slot_of(const struct peek *p, uint64_t va)
{
	return &p->kept[(va >> PAGE_SHIFT) & p->mask];
}

static enum status keep_peeked(void *context, const struct virtual_page *from, struct err *e)
{
	struct peek *p = context;
	const uint64_t end = from->va + (from->pages - 1) * PAGE_SIZE;

	for (uint64_t va = MAX(from->va, p->first); va <= MIN(end, p->last); va += PAGE_SIZE) {
		struct kept *k = slot_of(p, va);

		k->used = true;
		k->page = peek_page_of(from, va);
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
static enum status read_peek_pages(struct peek *p, uint64_t va, struct err *e)
{
	const struct virtual_reader reader = { keep_peeked, p };
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
		p->st = read_peek_pages(p, va, &p->why);
		if (p->st)
			return NULL;
	}
	return &k->page;
}

bool peek_is_files(struct peek *p, uint64_t va)
{
	const struct peek_page *page = peek_page(p, va);
	bool ret = page && page->followed;

	if (page && !ret && page->frame)
		p->st = virtual_is_prototypes(p->v, page->va, page->frame, &ret, &p->why);
	return ret;
}

enum status peek_failed(const struct peek *p, struct err *e)
{
	if (p->st && e)
		*e = p->why;
	return p->st;
}

/*
 * Sweeps
 */

static uint64_t pages_in(struct range r)
{
	return (r.last - r.first) / PAGE_SIZE + 1;
}

/* The first of `count` ranges that has a byte in [first, last]; NULL: none. */
static struct worths *find_first(const struct peek *p, size_t count, uint64_t first, uint64_t last)
{
	const size_t i = FIRST_WHERE(k, count, p->worths[k].range.last >= first);

	return i < count && p->worths[i].range.first <= last ? &p->worths[i] : NULL;
}

static struct worths *find_worths(const struct peek *p, uint64_t va)
{
	return find_first(p, p->n_worths, va, va);
}

static int by_range(const void *a, const void *b)
{
	const struct worths *x = a, *y = b;

	return (x->range.first > y->range.first) - (x->range.first < y->range.first);
}

static bool add_worths(struct peek *p, struct range r)
{
	struct worths *grown = p->worths;

	if (p->n_worths == p->worths_room)
		grown = array_grow(p->worths, &p->worths_room, sizeof(*grown));
	if (!grown)
		return false;
	p->worths = grown;
	grown[p->n_worths] = (struct worths){ r, calloc(1, (size_t)pages_in(r)) };
	if (!grown[p->n_worths].of)
		return false;
	p->n_worths++;
	p->worths_pages += pages_in(r);
	return true;
}

/*
 * Makes room for what a sweep will tell; where there is none, nothing is kept of it. A range of
 * which a part is known stays as it is: who asks for the rest reads.
 */
static void expect_worths(struct peek *p, const struct range_list *ranges)
{
	uint64_t pages = 0;
	size_t known;

	for (size_t i = 0; i < ranges->count; i++)
		pages += MIN(pages_in(ranges->at[i]), WORTHS_MAX);
	if (pages > WORTHS_MAX || ranges->count > WORTHS_LIST)
		return;
	if (p->worths_pages + pages > WORTHS_MAX || p->n_worths + ranges->count > WORTHS_LIST)
		forget_worths(p);
	known = p->n_worths;
	for (size_t i = 0; i < ranges->count; i++) {
		const struct range r = ranges->at[i];

		if (!find_first(p, known, r.first, r.last) && !add_worths(p, r))
			break;
	}
	array_sort(p->worths, p->n_worths, sizeof(*p->worths), by_range);
}

static struct peek_worth worth_of(const struct peek_page *page)
{
	return (struct peek_worth){
		.given = page->given,
		.transition = page->state == PTE_TRANSITION,
		.has_verdict = page->has_verdict,
		.trust = page->trust,
	};
}

static uint8_t pack_worth(const struct peek_page *page)
{
	const struct peek_worth w = worth_of(page);

	return (uint8_t)(WORTH_KNOWN | (w.has_verdict ? WORTH_VERDICT : 0) |
			 (w.transition ? WORTH_TRANSITION : 0) | w.trust << WORTH_TRUST |
			 w.given << WORTH_GIVEN);
}

static void note_worth(struct worth_sweep *x, const struct peek_page *page, uint64_t pages)
{
	const uint64_t end = page->va + (pages - 1) * PAGE_SIZE;
	struct worths *w = x->worths;

	if (!w || page->va < w->range.first || end > w->range.last)
		w = find_first(x->p, x->p->n_worths, page->va, end);
	x->worths = w;
	while (w) {
		const uint64_t first = MAX(page->va, w->range.first);
		const uint64_t last = MIN(end, w->range.last);

		memset(w->of + (first - w->range.first) / PAGE_SIZE, pack_worth(page),
		       (size_t)((last - first) / PAGE_SIZE + 1));
		w = last < end ? find_first(x->p, x->p->n_worths, w->range.last + 1, end) : NULL;
	}
}

/* A struct virtual_reader's. */
static enum status take_swept(void *context, const struct virtual_page *from, struct err *e)
{
	struct worth_sweep *x = context;
	struct peek_page page = peek_page_of(from, from->va);

	page.bytes = from->bytes;
	note_worth(x, &page, from->pages);
	return x->v->pages(x->v->context, &page, from->pages, e);
}

enum status peek_sweep(struct peek *p, const struct range_list *ranges,
		       const struct peek_visitor *v, struct err *e)
{
	struct worth_sweep x = { .p = p, .v = v };
	const struct virtual_reader reader = { .page = take_swept, .context = &x };

	expect_worths(p, ranges);
	return virtual_sweep(p->v, ranges, &reader, e);
}

bool peek_knows_worth(struct peek *p, uint64_t va)
{
	const struct worths *w = p->last_worths < p->n_worths ? &p->worths[p->last_worths] : NULL;

	if (!w || va < w->range.first || va > w->range.last)
		w = find_worths(p, va);
	if (!w)
		return false;
	p->last_worths = (size_t)(w - p->worths);
	return w->of[(va - w->range.first) / PAGE_SIZE] & WORTH_KNOWN;
}

bool peek_worth(struct peek *p, uint64_t va, struct peek_worth *ret)
{
	const struct peek_page *page;

	if (peek_knows_worth(p, va)) {
		const struct worths *w = &p->worths[p->last_worths];
		const uint8_t worth = w->of[(va - w->range.first) / PAGE_SIZE];

		*ret = (struct peek_worth){
			.given = (enum given)(worth >> WORTH_GIVEN),
			.transition = worth & WORTH_TRANSITION,
			.has_verdict = worth & WORTH_VERDICT,
			.trust = (enum trust)(worth >> WORTH_TRUST & 3),
		};
		return true;
	}
	page = peek_page(p, va);
	if (page)
		*ret = worth_of(page);
	return page != NULL;
}

static enum status tell_view(void *context, const struct peek_page *page, uint64_t pages,
			     struct err *e)
{
	const struct view_visitor *v = context;

	return v->pages(v->context, page->va, pages, page->bytes, e);
}

static enum status sweep_view(void *context, const struct range_list *ranges,
			      const struct view_visitor *v, struct err *e)
{
	const struct peek_visitor tell = { tell_view, (void *)(uintptr_t)v };

	return peek_sweep(context, ranges, &tell, e);
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
		.sweep = sweep_view,
		.context = p,
	};
}
