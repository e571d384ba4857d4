/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/image/gather.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "agent/shared/program/interrupt.h"
#include "agent/shared/program/pipeline.h"
#include "formats/base/array.h"

/*
 * Runs of so many pages are read where they are: to decode a chunk of 1 MiB, the usual size, for a
 * quarter of it costs four times as much as need be at worst.
 */
#define RUN_PAGES 64

/* A run of pages that one chunk holds, and that is shorter. */
struct run {
	uint64_t address;
	uint64_t record;
	size_t page; /* of its first, in the window */
	size_t pages;
	uint64_t start, end; /* when it was captured, monotonic ns */
	bool has;
};

struct place {
	uint64_t record;
	size_t run;
};

/* [first, end) of the addresses; runs of it by address. */
struct window {
	uint64_t first, end;
	struct run *runs;
	struct place *order; /* of the runs, by record */
	size_t count, room;
	size_t page_count;
	uint8_t *data;
	struct page_status *status;
	size_t next;     /* in order[]: nobody has begun with it */
	size_t begun;    /* records that are being decoded */
	unsigned inside; /* workers that read from it */
	enum status st;  /* why it could not be filled */
	struct err why;
};

struct gather {
	const struct rsz_reader *reader;
	uint32_t stream;
	size_t pages_max;
	unsigned workers;
	struct rsz_cursor *cursors[PIPELINE_WORKERS_MAX];

	pthread_mutex_t lock; /* guards the window but for its pages and runs, which are disjoint */
	pthread_cond_t changed;
	struct window w;
};

enum status gather_create(const struct rsz_reader *r, uint32_t stream, unsigned workers,
			  size_t bytes, struct gather **ret, struct err *e)
{
	struct gather *g = calloc(1, sizeof(*g));
	enum status st = ST_OK;

	if (!g)
		return err_nomem(e);
	*g = (struct gather){ .reader = r,
			      .stream = stream,
			      .pages_max = MAX(bytes >> PAGE_SHIFT, RUN_PAGES),
			      .workers = workers };
	pthread_mutex_init(&g->lock, NULL);
	pthread_cond_init(&g->changed, NULL);
	for (unsigned i = 0; i < workers && !st; i++)
		st = rsz_cursor_create(r, 1, &g->cursors[i], e);
	if (st)
		gather_destroy(g);
	else
		*ret = g;
	return st;
}

static void empty_window(struct window *w)
{
	free(w->runs);
	free(w->order);
	free(w->data);
	free(w->status);
	*w = (struct window){ .first = w->end, .end = w->end };
}

void gather_destroy(struct gather *g)
{
	if (!g)
		return;
	empty_window(&g->w);
	for (unsigned i = 0; i < g->workers; i++)
		rsz_cursor_destroy(g->cursors[i]);
	pthread_cond_destroy(&g->changed);
	pthread_mutex_destroy(&g->lock);
	free(g);
}

/*
 * The plan of a window
 */

/* Pages that are two captures' have bytes of both, and are left to the cursor. */
static bool is_short(const struct rsz_segment *s)
{
	return !((s->address | s->length) & (PAGE_SIZE - 1)) &&
	       s->length < (uint64_t)RUN_PAGES * PAGE_SIZE;
}

static enum status add_run(struct gather *g, const struct rsz_segment *s, struct err *e)
{
	struct window *w = &g->w;

	if (!ARRAY_ROOM(w->runs, w->count, w->room))
		return err_nomem(e);
	w->runs[w->count++] = (struct run){
		.address = s->address,
		.record = rsz_reader_record(g->reader, s->extent),
		.page = w->page_count,
		.pages = (size_t)(s->length >> PAGE_SHIFT),
	};
	w->page_count += w->runs[w->count - 1].pages;
	return ST_OK;
}

static int place_by_record(const void *a, const void *b)
{
	const struct place *x = a, *y = b;

	if (x->record != y->record)
		return x->record < y->record ? -1 : 1;
	return (x->run > y->run) - (x->run < y->run);
}

static enum status order_runs(struct window *w, struct err *e)
{
	w->order = calloc(MAX(w->count, 1), sizeof(*w->order));
	if (!w->order)
		return err_nomem(e);
	for (size_t i = 0; i < w->count; i++)
		w->order[i] = (struct place){ w->runs[i].record, i };
	array_sort(w->order, w->count, sizeof(*w->order), place_by_record);
	return ST_OK;
}

/* From where the one before ended, as far as its pages have room. */
static enum status plan_window(struct gather *g, struct err *e)
{
	struct window *w = &g->w;
	struct rsz_segment s;
	enum status st = ST_OK;

	empty_window(w);
	w->end = UINT64_MAX;
	for (uint64_t at = w->first; !st && rsz_reader_next(g->reader, g->stream, at, &s);
	     at = s.address + s.length) {
		if (!is_short(&s))
			continue;
		if (w->page_count + (s.length >> PAGE_SHIFT) > g->pages_max) {
			w->end = s.address;
			break;
		}
		st = add_run(g, &s, e);
	}
	if (!st)
		st = order_runs(w, e);
	if (!st && w->page_count) {
		w->data = malloc(w->page_count * PAGE_SIZE);
		w->status = calloc(w->page_count, sizeof(*w->status));
		st = w->data && w->status ? ST_OK : err_nomem(e);
	}
	return st;
}

/*
 * Filling it: everybody who waits for it helps
 */

static enum status fill_run(struct gather *g, unsigned worker, struct run *r, struct err *e)
{
	struct window *w = &g->w;
	struct rsz_times times = { 0 };

	for (size_t i = 0; i < r->pages; i++) {
		const size_t to = r->page + i;
		struct rsz_page p;
		const enum status st = rsz_cursor_page(g->cursors[worker], g->stream,
						       r->address + (uint64_t)i * PAGE_SIZE, &p, e);

		if (st)
			return st;
		if (!p.captured || p.length < PAGE_SIZE)
			return ST_CORRUPT;
		memcpy(w->data + to * PAGE_SIZE, p.data, PAGE_SIZE);
		w->status[to] = p.status;
		rsz_times_widen(&times, p.start, p.end);
	}
	r->start = times.start;
	r->end = times.end;
	r->has = true;
	return ST_OK;
}

/* All runs of one record: order[first, end). Damage is left to who reads them, to be told of. */
static enum status fill_runs(struct gather *g, unsigned worker, size_t first, size_t end,
			     struct err *e)
{
	for (size_t i = first; i < end; i++) {
		const enum status st = fill_run(g, worker, &g->w.runs[g->w.order[i].run], e);

		if (st)
			return st == ST_CORRUPT ? ST_OK : st;
	}
	return ST_OK;
}

/*
 * Locked. Until nothing is left to be done for the window, by anybody. Whoever was told to stop
 * reads the few pages that are still to come where they are.
 */
static void fill_window(struct gather *g, unsigned worker)
{
	struct window *w = &g->w;

	while (w->next < w->count && !w->st && !interrupted()) {
		const size_t first = w->next;
		const uint64_t record = w->order[first].record;
		struct err why = ERR_INIT;
		enum status st;
		size_t end;

		while (w->next < w->count && w->order[w->next].record == record)
			w->next++;
		end = w->next;
		w->begun++;
		pthread_mutex_unlock(&g->lock);
		st = fill_runs(g, worker, first, end, &why);
		pthread_mutex_lock(&g->lock);
		w->begun--;
		if (st && !w->st) {
			w->st = st;
			w->why = why;
		}
	}
	pthread_cond_broadcast(&g->changed);
	while (w->begun)
		pthread_cond_wait(&g->changed, &g->lock);
}

/*
 * True, and the window cannot go away until leave_window(): it has what it brings together of
 * `address`. False: the address lies behind those that were asked for, or *ret_st says what failed.
 */
static bool enter_window(struct gather *g, unsigned worker, uint64_t address, enum status *ret_st,
			 struct err *e)
{
	struct window *w = &g->w;
	bool in = false;

	*ret_st = ST_OK;
	pthread_mutex_lock(&g->lock);
	while (address >= w->end && !w->st) {
		if (w->inside) {
			pthread_cond_wait(&g->changed, &g->lock);
			continue;
		}
		w->st = plan_window(g, &w->why);
	}
	if (!w->st && address >= w->first) {
		w->inside++;
		in = true;
		fill_window(g, worker);
	}
	if (w->st) {
		*ret_st = w->st;
		if (e)
			*e = w->why;
	}
	pthread_mutex_unlock(&g->lock);
	return in;
}

static void leave_window(struct gather *g)
{
	pthread_mutex_lock(&g->lock);
	g->w.inside--;
	pthread_cond_broadcast(&g->changed);
	pthread_mutex_unlock(&g->lock);
}

/*
 * Reading
 */

/* The first run that does not end before the address. */
static size_t window_run_at(const struct window *w, uint64_t address)
{
	return FIRST_WHERE(i, w->count,
			   w->runs[i].address + (uint64_t)w->runs[i].pages * PAGE_SIZE > address);
}

static enum status read_window(struct gather *g, unsigned worker, uint64_t address, uint8_t *data,
			       size_t pages, struct page_status *status, struct rsz_times *times,
			       struct err *e)
{
	const struct window *w = &g->w;
	const uint64_t end = address + (uint64_t)pages * PAGE_SIZE;

	for (size_t i = window_run_at(w, address), n; address < end;
	     address += (uint64_t)n * PAGE_SIZE, data += n * PAGE_SIZE, status += n) {
		const struct run *r;
		enum status st;

		while (i < w->count && !w->runs[i].has)
			i++;
		r = i < w->count ? &w->runs[i] : NULL;
		if (r && r->address <= address) {
			const size_t skip = (size_t)((address - r->address) >> PAGE_SHIFT);

			n = MIN(r->pages - skip, (size_t)((end - address) >> PAGE_SHIFT));
			memcpy(data, w->data + (r->page + skip) * PAGE_SIZE, n * PAGE_SIZE);
			memcpy(status, w->status + r->page + skip, n * sizeof(*status));
			rsz_times_widen(times, r->start, r->end);
			i++;
			continue;
		}
		n = (size_t)((MIN(end, r ? r->address : end) - address) >> PAGE_SHIFT);
		st = rsz_cursor_read(g->cursors[worker], g->stream, address, data, n, status, times,
				     e);
		if (st)
			return st;
	}
	return ST_OK;
}

enum status gather_read(struct gather *g, unsigned worker, uint64_t address, uint8_t *data,
			size_t pages, struct page_status *status, struct rsz_times *times,
			struct err *e)
{
	while (pages) {
		enum status st;
		const bool in = enter_window(g, worker, address, &st, e);
		size_t n = pages;

		if (!st && in && g->w.end != UINT64_MAX)
			n = MIN(n, (size_t)((g->w.end - address) >> PAGE_SHIFT));
		if (!st && in)
			st = read_window(g, worker, address, data, n, status, times, e);
		else if (!st)
			st = rsz_cursor_read(g->cursors[worker], g->stream, address, data, n,
					     status, times, e);
		if (in)
			leave_window(g);
		if (st)
			return st;
		address += (uint64_t)n * PAGE_SIZE;
		data += n * PAGE_SIZE;
		status += n;
		pages -= n;
	}
	return ST_OK;
}

uint64_t gather_decoded(const struct gather *g)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < g->workers; i++)
		sum += rsz_cursor_decoded(g->cursors[i]);
	return sum;
}
