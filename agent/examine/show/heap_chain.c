/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/examine/show/heap_chain.h"

#include <inttypes.h>
#include <stdlib.h>

#include "agent/examine/process/threads.h"
#include "agent/examine/show/heap_find.h"
#include "agent/examine/show/heap_roots.h"
#include "agent/shared/program/interrupt.h"
#include "agent/shared/program/lines.h"
#include "agent/shared/program/log.h"
#include "formats/base/array.h"
#include "formats/base/bytes.h"

/* A way that is longer tells nobody anything. Each step searches the whole process. */
#define STEPS_MAX   64
/* Blocks of one step, and of all: what is referred to from everywhere is reached sooner. */
#define STEP_BLOCKS 4096
#define LINKS_MAX   ((size_t)1 << 20)

#define KERNEL_HALF (UINT64_C(1) << 63)
#define NO_LINK     SIZE_MAX

/* A word that refers to the block of another link, or to the address that was asked for. */
struct chain_link {
	uint64_t at;
	size_t block; /* of the list: where the word is; NO_LINK: in none */
	size_t to;    /* the link that it refers to; NO_LINK: the address */
	unsigned step;
};

/* What is searched for: a word that lies in [first, end). */
struct chain_target {
	uint64_t first, end;
	size_t link; /* as chain_link.to */
};

#define CHAIN_END_MAP(X)                                                                           \
	X(CHAIN_NOTHING, "nothing")                                                                \
	X(CHAIN_CYCLE, "cycle")                                                                    \
	X(CHAIN_LIMIT, "limit")                                                                    \
	X(CHAIN_MEMORY, "memory")                                                                  \
	X(CHAIN_STACK, "stack")                                                                    \
	X(CHAIN_MODULE, "module") /* the later, the better */

enum chain_end {
#define X(name, text) name,
	CHAIN_END_MAP(X)
#undef X
};

static const char *const chain_end_names[] = {
#define X(name, text) [name] = text,
	CHAIN_END_MAP(X)
#undef X
};

struct chain {
	const struct heap_session *session;
	const struct block_list *list;
	struct heap_roots everything, roots; /* what is searched; and what is no heap's */
	struct threads threads;
	bool *seen;   /* of the list: has a link, or is where the way begins */
	size_t begin; /* the block of the list; NO_LINK: the address is in none */
	struct chain_link *links;
	size_t count, room;
	struct chain_target *targets; /* by .first; none overlaps another */
	size_t n_targets;
	size_t word;
	unsigned step;
	uint64_t pages, on_disk, lost;
	enum chain_end end; /* of: */
	size_t best;        /* a link; NO_LINK: none */
	/* A word of a block of the way, by which it comes back to a block before; 0: none. */
	uint64_t cycle;
	size_t cycle_to; /* the link of that block */
	bool cut;        /* there was more than is followed */
};

/*
 * Where a word is
 */

static const struct thread *stack_owner(const struct chain *c, uint64_t va)
{
	for (size_t i = 0; i < c->threads.count; i++) {
		const struct thread *t = &c->threads.at[i];

		if ((t->has_stack && va >= t->stack_limit && va < t->stack_base) ||
		    (t->narrow_base && va >= t->narrow_limit && va < t->narrow_base) ||
		    (t->kernel_stack && va >= t->kernel_stack && va < t->kernel_base))
			return t;
	}
	return NULL;
}

static enum chain_end end_of_place(const struct chain *c, uint64_t va)
{
	if (modules_at(&c->session->modules, va))
		return CHAIN_MODULE;
	return stack_owner(c, va) ? CHAIN_STACK : CHAIN_MEMORY;
}

/* A pointer from a block of the way itself to one that comes before it. */
static bool is_of_way(const struct chain *c, size_t block, size_t link)
{
	for (; link != NO_LINK; link = c->links[link].to)
		if (c->links[link].block == block)
			return true;
	return block == c->begin;
}

static enum status add_chain_link(struct chain *c, uint64_t at, size_t block, size_t to,
				  struct err *e)
{
	if (c->count == LINKS_MAX) {
		c->cut = true;
		return ST_OK;
	}
	if (!ARRAY_ROOM(c->links, c->count, c->room))
		return err_nomem(e);
	c->links[c->count++] = (struct chain_link){ at, block, to, c->step };
	return ST_OK;
}

static enum status take_outside(struct chain *c, uint64_t at, size_t to, struct err *e)
{
	const enum chain_end end = end_of_place(c, at);
	enum status st;

	/* What is a heap's own: lists of free blocks, and heads. */
	if (!range_list_find(&c->roots.ranges, at) || end <= c->end)
		return ST_OK;
	st = add_chain_link(c, at, NO_LINK, to, e);
	if (!st && c->count && c->links[c->count - 1].at == at) {
		c->end = end;
		c->best = c->count - 1;
	}
	return st;
}

static enum status take_reference(struct chain *c, uint64_t at, size_t to, struct err *e)
{
	const struct heap_allocation *a = block_list_find(c->list, at);
	const size_t block = a ? (size_t)(a - c->list->at) : NO_LINK;

	if (!a)
		return take_outside(c, at, to, e);
	if (a->state != BLOCK_BUSY || block == (to == NO_LINK ? c->begin : c->links[to].block))
		return ST_OK;
	if (!c->cycle && is_of_way(c, block, to)) {
		c->cycle = at;
		c->cycle_to = to;
	}
	if (c->seen[block])
		return ST_OK;
	c->seen[block] = true;
	return add_chain_link(c, at, block, to, e);
}

/*
 * A step
 */

static const struct chain_target *target_of(const struct chain *c, uint64_t word)
{
	size_t behind;

	if (word < c->targets[0].first || word >= c->targets[c->n_targets - 1].end)
		return NULL;
	behind = FIRST_WHERE(i, c->n_targets, c->targets[i].first > word);
	return word < c->targets[behind - 1].end ? &c->targets[behind - 1] : NULL;
}

/* A copy: what a reference is in is looked up in memory, and the page is gone then. */
static enum status search_chain_page(struct chain *c, uint64_t va, const uint8_t *page,
				     struct err *e)
{
	uint8_t bytes[PAGE_SIZE];
	enum status st = ST_OK;

	memcpy(bytes, page, PAGE_SIZE);
	for (size_t i = 0; i < PAGE_SIZE && !st; i += c->word) {
		const uint64_t word = c->word == 8 ? get_le64(bytes + i) : get_le32(bytes + i);
		const struct chain_target *t = target_of(c, word);

		if (t)
			st = take_reference(c, va + i, t->link, e);
	}
	return st;
}

static enum status search_chain_range(struct chain *c, const struct range *r, struct err *e)
{
	enum status st = ST_OK;

	for (uint64_t va = r->first; va < r->last && !st; va += PAGE_SIZE) {
		const struct peek_page *page = peek_page(c->session->peek, va);

		if (interrupted())
			return interrupt_status(e);
		if (page && page->bytes)
			st = search_chain_page(c, va, page->bytes, e);
		else if (c->step == 0)
			heap_count_missing(page, &c->on_disk, &c->lost);
		c->pages += c->step == 0 && page && page->bytes;
	}
	return st;
}

/* The user's half, and the kernel's stacks of its threads. */
static enum status search_chain_step(struct chain *c, struct err *e)
{
	const struct range_list *user = &c->everything.ranges, *all = &c->roots.ranges;
	enum status st = ST_OK;

	for (size_t i = 0; i < user->count && !st; i++)
		st = search_chain_range(c, &user->at[i], e);
	for (size_t i = 0; i < all->count && !st; i++)
		if (all->at[i].first >= KERNEL_HALF)
			st = search_chain_range(c, &all->at[i], e);
	return st ? st : peek_failed(c->session->peek, e);
}

static int by_first(const void *a, const void *b)
{
	const struct chain_target *x = a, *y = b;

	return (x->first > y->first) - (x->first < y->first);
}

/* The blocks of the last step. */
static void aim_at_blocks(struct chain *c, size_t from)
{
	c->n_targets = 0;
	for (size_t i = from; i < c->count; i++) {
		const struct heap_allocation *a;

		if (c->links[i].block == NO_LINK)
			continue;
		if (c->n_targets == STEP_BLOCKS) {
			c->cut = true;
			break;
		}
		a = &c->list->at[c->links[i].block];
		c->targets[c->n_targets++] =
			(struct chain_target){ a->address, a->address + MAX(block_bytes(a), 1), i };
	}
	array_sort(c->targets, c->n_targets, sizeof(*c->targets), by_first);
}

static void aim_at_address(struct chain *c, uint64_t va)
{
	const struct heap_allocation *a = block_list_find(c->list, va);

	c->begin = a ? (size_t)(a - c->list->at) : NO_LINK;
	c->targets[0] = (struct chain_target){ va, va + 1, NO_LINK };
	c->n_targets = 1;
	if (!a)
		return;
	c->seen[c->begin] = true;
	c->targets[0].first = a->address;
	c->targets[0].end = a->address + MAX(block_bytes(a), 1);
}

static enum status search_chain(struct chain *c, struct err *e)
{
	enum status st = ST_OK;
	size_t from = 0;

	for (c->step = 0; c->n_targets && c->step < STEPS_MAX && !st; c->step++) {
		st = search_chain_step(c, e);
		if (!st && c->end >= CHAIN_STACK)
			return ST_OK;
		aim_at_blocks(c, from);
		from = c->count;
	}
	if (st || c->end == CHAIN_MEMORY)
		return st;
	c->best = c->count ? c->count - 1 : NO_LINK;
	if (c->n_targets || c->cut) {
		c->end = CHAIN_LIMIT;
	} else if (c->cycle) {
		c->end = CHAIN_CYCLE;
		c->best = c->cycle_to;
	}
	return ST_OK;
}

/*
 * What was found
 */

static void chain_end_text(const struct chain *c, char *ret, size_t size)
{
	const uint64_t at = c->best == NO_LINK ? 0 : c->links[c->best].at;
	const struct thread *t = stack_owner(c, at);

	switch (c->end) {
	case CHAIN_MODULE:
		snprintf(ret, size, "data of a module");
		break;
	case CHAIN_STACK:
		snprintf(ret, size, "stack of thread %" PRIu64, t ? t->tid : 0);
		break;
	case CHAIN_MEMORY:
		snprintf(ret, size, "memory of no heap, module or stack");
		break;
	case CHAIN_CYCLE:
		snprintf(ret, size, "a cycle: 0x%" PRIx64 ", in a block above, refers to it again",
			 c->cycle);
		break;
	case CHAIN_LIMIT:
		snprintf(ret, size, "not followed further: too many steps or blocks");
		break;
	case CHAIN_NOTHING:
		snprintf(ret, size, "nothing%s that could be read refers to it",
			 c->best == NO_LINK ? "" : " else");
		break;
	}
}

/* From the address on. */
static enum status tell_links(struct block_printer *p, const struct chain *c, struct err *e)
{
	size_t way[STEPS_MAX + 1], n = 0;
	enum status st = ST_OK;

	for (size_t i = c->best; i != NO_LINK && n < ARRAY_SIZE(way); i = c->links[i].to)
		way[n++] = i;
	for (size_t k = 0; k < n && !st; k++)
		st = heap_tell_place(
			p, c->list, c->links[way[n - 1 - k]].at,
			JSON_FIELDS(
				field_u64("step", k + 1),
				field_text("ends", k + 1 == n ? chain_end_names[c->end] : NULL)),
			e);
	return st;
}

static enum status tell_chain(struct block_printer *p, const struct chain *c, struct err *e)
{
	enum status st = tell_links(p, c, e);
	char text[160];

	if (st)
		return st;
	chain_end_text(c, text, sizeof(text));
	if (!p->json)
		lines_print(stdout, 4, "%s", text);
	log_result_with(
		JSON_FIELDS(field_text("ends", chain_end_names[c->end]),
			    field_u64("pages_searched", c->pages), field_u64("pages_lost", c->lost),
			    field_u64("pages_on_disk_only", c->on_disk)),
		"summary",
		"the way ends in: %s; %" PRIu64 " pages searched, %" PRIu64 " could not be read%s",
		text, c->pages, c->lost,
		c->on_disk ? ", and those that only a mapped file has were not searched" : "");
	return heap_search_outcome(c->session, c->lost, e);
}

enum status heap_chain(struct block_printer *p, const struct heap_session *s,
		       const struct block_list *l, uint64_t va, struct err *e)
{
	struct chain c = {
		.session = s,
		.list = l,
		.best = NO_LINK,
		.word = heap_is_narrow(s, l, va) ? 4 : 8,
		.seen = calloc(MAX(l->count, 1), sizeof(bool)),
		.targets = calloc(STEP_BLOCKS, sizeof(struct chain_target)),
	};
	enum status st =
		c.seen && c.targets ? heap_writable_find(s, &c.everything, e) : err_nomem(e);

	if (!st)
		st = heap_roots_find(s, l, &c.roots, e);
	if (!st)
		st = process_threads(s->process->process, &c.threads, e);
	if (!st) {
		aim_at_address(&c, va);
		st = search_chain(&c, e);
	}
	if (!st)
		st = tell_chain(p, &c, e);
	threads_deinit(&c.threads);
	heap_roots_deinit(&c.everything);
	heap_roots_deinit(&c.roots);
	free(c.seen);
	free(c.targets);
	free(c.links);
	return st;
}
