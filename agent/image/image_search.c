/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/image/image_search.h"

#include "agent/shared/program/pipeline.h"
#include "agent/shared/program/clock.h"
#include "agent/shared/program/interrupt.h"

/* For walks: as many pages as any kernel has tables for its own half. */
#define WALK_PAGES  (UINT64_C(1) << 20)
/* A live machine does not wait for longer than for its page tables (collect/acquire/tables.c). */
#define LIVE_NS_MAX (60 * NS_PER_SECOND)

enum status image_streams_init(struct image_streams *s, struct container *in, uint32_t memory,
			       struct err *e)
{
	uint32_t streams[2];
	size_t n = 0;
	enum status st;

	*s = (struct image_streams){ 0 };
	st = rsz_cursor_create(in->reader, 1, &s->cursor, e);
	if (st)
		return st;
	if (!container_find_kind(in, RSZ_KIND_TABLES_BEFORE, &streams[n], NULL))
		n++;
	streams[n++] = memory;
	return physmem_rsz_init(&s->mem, in->reader, s->cursor, streams, n, e);
}

void image_streams_deinit(struct image_streams *s)
{
	physmem_rsz_deinit(&s->mem);
	rsz_cursor_destroy(s->cursor);
	*s = (struct image_streams){ 0 };
}

/* A search has no other way to learn that it shall end. */
static uint64_t search_now(void)
{
	return interrupted() ? UINT64_MAX : clock_mono_ns();
}

struct walk_budget image_search_budget(const struct range_list *ranges, unsigned passes, bool live)
{
	return (struct walk_budget){
		.pages = passes * (range_list_bytes(ranges) >> PAGE_SHIFT) + WALK_PAGES,
		/* Not UINT64_MAX: then nobody would ask search_now(). */
		.deadline = live ? clock_mono_ns() + LIVE_NS_MAX : UINT64_MAX - 1,
		.now = search_now,
	};
}

/*
 * Collecting
 */

#define COLLECT_PAGES ((size_t)256)

struct collect_item {
	uint64_t address;
	size_t pages;
	struct page_status status[COLLECT_PAGES];
	uint8_t data[COLLECT_PAGES * PAGE_SIZE];
};

struct collecting {
	struct image_pages *from;
	const struct range_list *ranges;
	struct candidates *ret;
	size_t range;
	uint64_t done; /* pages of that range */
};

/* A page that could not be read, and one that is damaged, tell nothing. */
static enum status read_item(struct collecting *c, unsigned worker, struct collect_item *it,
			     struct err *e)
{
	enum status st = ST_OK;

	if (it->pages)
		st = c->from->read(c->from, worker, it->address, it->data, it->pages, it->status,
				   e);

	if (st == ST_CORRUPT)
		for (size_t i = 0; i < it->pages; i++)
			it->status[i] = (struct page_status){ .state = PAGE_UNREADABLE };
	return st == ST_CORRUPT || st == ST_SOURCE_FAILED ? ST_OK : st;
}

/* A map of RAM may end within a page. */
static uint64_t whole_pages_of(struct range r)
{
	return range_bytes(r) >> PAGE_SHIFT;
}

static enum status collect_fill(void *arg, void *item, struct err *e)
{
	struct collecting *c = arg;
	struct collect_item *it = item;
	const struct range *r = c->ranges->at + c->range;
	uint64_t left;

	if (c->range == c->ranges->count)
		return ST_END;
	if (interrupted())
		return interrupt_status(e);
	left = whole_pages_of(*r) - c->done;
	it->address = r->first + (c->done << PAGE_SHIFT);
	it->pages = (size_t)MIN(left, COLLECT_PAGES);
	c->done += it->pages;
	if (it->pages == left) {
		c->range++;
		c->done = 0;
	}
	return c->from->parallel ? ST_OK : read_item(c, 0, it, e);
}

static enum status collect_work(void *arg, unsigned worker, void *item, struct err *e)
{
	struct collecting *c = arg;
	struct collect_item *it = item;
	const enum status st = c->from->parallel ? read_item(c, worker, it, e) : ST_OK;

	if (!st)
		candidates_show(c->ret, it->data, it->status, it->pages, it->address);
	return st;
}

static enum status collect_drain(void *arg, void *item, struct err *e)
{
	(void)arg;
	(void)item;
	(void)e;
	return ST_OK;
}

enum status image_search_collect(struct image_search_all all, const struct range_list *ranges,
				 struct candidates *ret, struct err *e)
{
	static const struct pipeline_ops ops = { collect_fill, collect_work, collect_drain };
	struct collecting c = { .from = all.pages, .ranges = ranges, .ret = ret };
	void *items[PIPELINE_WORKERS_MAX + 2] = { NULL };
	const size_t n = pipeline_items(all.threads);
	enum status st = ST_OK;

	for (size_t i = 0; i < n && !st; i++) {
		items[i] = malloc(sizeof(struct collect_item));
		st = items[i] ? ST_OK : err_nomem(e);
	}
	if (!st)
		st = pipeline_run_with(&ops, all.pages->filler, &c, items, n, all.threads, e);
	ret->complete = !st;
	for (size_t i = 0; i < n; i++)
		free(items[i]);
	candidates_sort(ret);
	return st == ST_INTERRUPTED ? ST_OK : st;
}
