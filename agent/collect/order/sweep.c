/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/collect/order/sweep.h"

#include <pthread.h>
#include <string.h>

#include "agent/shared/kernel/candidates.h"
#include "agent/shared/program/clock.h"
#include "agent/shared/program/interrupt.h"
#include "agent/shared/program/log.h"

/* Read between two wanted pages at most, however much a request costs. */
#define GAP_PAGES 8

void sweep_restart(struct sweep *s, const struct walk_set *set, bool inside)
{
	s->set = set;
	s->inside = inside;
	s->range = 0;
	s->page = 0;
}

/* Of those who read side by side, each may find that the source is dead. */
static pthread_mutex_t stopping = PTHREAD_MUTEX_INITIALIZER;

/* The first reason counts. */
void sweep_stop(struct sweep *s, enum status why, uint32_t reason, const struct err *e)
{
	bool first;

	pthread_mutex_lock(&stopping);
	first = !s->skip;
	if (first) {
		s->skip = reason;
		s->result->stopped = why;
		s->result->why = *e;
	}
	pthread_mutex_unlock(&stopping);
	if (first)
		log_warning("acquisition-stopped", "%s; the rest is recorded as skipped",
			    e->message);
}

static bool is_stopped(const struct sweep *s)
{
	bool ret;

	pthread_mutex_lock(&stopping);
	ret = s->skip;
	pthread_mutex_unlock(&stopping);
	return ret;
}

bool sweep_stopped(struct sweep *s)
{
	struct err why = ERR_INIT;
	bool ret = is_stopped(s);

	if (!ret && interrupted()) {
		interrupt_status(&why);
		sweep_stop(s, ST_INTERRUPTED, SKIP_INTERRUPTED, &why);
		ret = true;
	}
	return ret;
}

bool sweep_reads_beside(const struct memory_plan *plan)
{
	return plan->source->info.parallel && plan->stream.threads > 1;
}

/* The extent's pages lie `at` pages into the piece's. */
static void show_extent_pages(const struct sweep *s, const struct stream_piece *p,
			      const struct rsz_extent *x, size_t at)
{
	const uint8_t *bytes = p->data + at * PAGE_SIZE;
	const struct page_status *status = p->pages + at;

	if (s->watch)
		root_watch_show(s->watch, bytes, status, rsz_extent_pages(x), x->address);
	if (s->candidates)
		candidates_show(s->candidates, bytes, status, rsz_extent_pages(x), x->address);
}

/* Of requests that several threads make at once. */
static pthread_mutex_t counting = PTHREAD_MUTEX_INITIALIZER;

static void count_request(struct sweep *s, const struct rsz_extent *x,
			  const struct page_status *status, bool failed)
{
	const size_t pages = rsz_extent_pages(x);
	bool unreadable = false;

	for (size_t i = 0; i < pages; i++)
		unreadable |= status[i].state == PAGE_UNREADABLE;
	pthread_mutex_lock(&counting);
	if (!failed)
		read_cost_add(&s->cost, pages, x->end - x->start);
	s->unreadable |= unreadable;
	pthread_mutex_unlock(&counting);
}

/* Reads an extent whose address and length are set. */
static void read_into(struct sweep *s, struct stream_piece *p, size_t at, struct rsz_extent *x,
		      unsigned reader)
{
	const size_t pages = rsz_extent_pages(x);
	uint8_t *to = p->data + at * PAGE_SIZE;
	struct err e = ERR_INIT;
	enum status st;

	x->start = clock_mono_ns();
	st = reader == DRV_BESIDE
		     ? drv_read_pages(s->source, x->address, to, pages, p->pages + at, &e)
		     : drv_read_pages_beside(s->source, reader, x->address, to, pages,
					     p->pages + at, &e);
	x->end = clock_mono_ns();
	if (st)
		sweep_stop(s, st, SKIP_SOURCE_FAILED, &e);
	count_request(s, x, p->pages + at, st);
}

/* Appends an extent and fills it. `reader`: of who reads beside others, or DRV_BESIDE. */
static void read_extent(struct sweep *s, struct stream_piece *p, size_t at, uint64_t address,
			size_t pages, unsigned reader)
{
	struct rsz_extent *x = &p->extents[p->n_extents++];

	*x = (struct rsz_extent){ .address = address, .length = (uint32_t)(pages * PAGE_SIZE) };
	read_into(s, p, at, x, reader);
}

void sweep_fill(struct sweep *s, struct stream_piece *p, size_t at, struct rsz_extent *x,
		unsigned reader)
{
	read_into(s, p, at, x, reader);
	if (!is_stopped(s))
		show_extent_pages(s, p, x, at);
}

static void skip_pages(const struct sweep *s, struct stream_piece *p, size_t at, uint64_t address,
		       size_t pages)
{
	struct rsz_extent *x = &p->extents[p->n_extents++];

	*x = (struct rsz_extent){ .address = address, .length = (uint32_t)(pages * PAGE_SIZE) };
	x->start = x->end = clock_mono_ns();
	for (size_t i = 0; i < pages; i++)
		p->pages[at + i] = (struct page_status){ PAGE_SKIPPED, s->skip };
}

static bool is_page_wanted(const struct sweep *s, uint64_t pa)
{
	return !s->set || walk_set_has(s->set, pa) == s->inside;
}

/*
 * The next run of at most `most` (not 0) wanted pages, which does not cross a multiple of `cut`
 * bytes (0: does not matter): so the same memory is cut in the same places. 0 behind the last.
 */
static size_t next_wanted_run(struct sweep *s, size_t most, uint64_t cut, uint64_t *ret)
{
	while (s->range < s->ranges->count) {
		const struct range *r = &s->ranges->at[s->range];
		const uint64_t pages = range_bytes(*r) >> PAGE_SHIFT;
		size_t n = 0;

		while (s->page < pages && !is_page_wanted(s, r->first + (s->page << PAGE_SHIFT)))
			s->page++;
		*ret = r->first + (s->page << PAGE_SHIFT);
		while (n < most && s->page < pages && is_page_wanted(s, *ret + n * PAGE_SIZE)) {
			n++;
			s->page++;
			if (cut && (*ret + n * PAGE_SIZE) % cut == 0)
				return n;
		}
		if (n)
			return n;
		s->range++;
		s->page = 0;
	}
	return 0;
}

/*
 * How many pages lie before the next wanted one of the same range; 0: more than `most`, or more
 * than a request is worth. What could not be read may be among them, and is not asked for again.
 */
static size_t gap_ahead(const struct sweep *s, size_t most)
{
	const struct range *r = &s->ranges->at[s->range];
	const uint64_t pages = range_bytes(*r) >> PAGE_SHIFT;

	pthread_mutex_lock(&counting);
	most = s->unreadable ? 0 : read_cost_gap(&s->cost, MIN(GAP_PAGES, most), 0);
	pthread_mutex_unlock(&counting);
	for (size_t n = 1; n <= most && s->page + n < pages; n++)
		if (is_page_wanted(s, r->first + ((s->page + n) << PAGE_SHIFT)))
			return n;
	return 0;
}

/*
 * The next runs of wanted pages, with what lies between them where that costs no more time than
 * another request. In all at most `most` pages.
 */
static size_t next_request(struct sweep *s, size_t most, uint64_t *ret)
{
	size_t n = next_wanted_run(s, most, 0, ret), gap;
	uint64_t at;

	while (n && n < most && (gap = gap_ahead(s, most - n - 1))) {
		s->page += gap;
		n += gap;
		n += next_wanted_run(s, most - n, 0, &at);
	}
	return n;
}

/* How many of the next pages are wanted alike. */
static size_t run_at(const struct sweep *s, uint64_t address, size_t pages, bool *ret_wanted)
{
	size_t n = 1;

	*ret_wanted = is_page_wanted(s, address);
	while (n < pages && is_page_wanted(s, address + n * PAGE_SIZE) == *ret_wanted)
		n++;
	return n;
}

/* Keeps a part of what was read, `from` pages into the piece's data, at `at`. */
static void keep_pages(const struct sweep *s, struct stream_piece *p, const struct rsz_extent *x,
		       size_t from, size_t at)
{
	stream_piece_keep(p, x, from, at);
	if (!is_stopped(s))
		show_extent_pages(s, p, x, at);
}

/* Of the extent that was read last, the wanted pages. Returns how many. */
static size_t keep_wanted(struct sweep *s, struct stream_piece *p, size_t at)
{
	const struct rsz_extent all = p->extents[--p->n_extents];
	const size_t pages = rsz_extent_pages(&all);
	size_t kept = 0;

	for (size_t i = 0, n; i < pages; i += n) {
		struct rsz_extent x = all;
		bool keep;

		x.address += i * PAGE_SIZE;
		n = run_at(s, x.address, pages - i, &keep);
		if (!keep)
			continue;
		x.length = (uint32_t)(n * PAGE_SIZE);
		keep_pages(s, p, &x, at + i, at + kept);
		kept += n;
	}
	return kept;
}

/*
 * Pieces that are read later
 *
 * What is wanted is decided when they are cut: by the time they are read, the sweep may have
 * another set. Until then, extents that one request reads have its number for their start.
 */

static void cut_request(struct sweep *s, struct stream_piece *p, uint64_t address, size_t pages)
{
	const uint64_t number = p->unread ? p->extents[p->n_extents - 1].start + 1 : 0;
	size_t n;

	p->unread = true;
	for (size_t i = 0; i < pages; i += n) {
		const uint64_t at = address + i * PAGE_SIZE;
		bool keep;

		n = run_at(s, at, pages - i, &keep);
		if (keep)
			p->extents[p->n_extents++] = (struct rsz_extent){
				.address = at,
				.length = (uint32_t)(n * PAGE_SIZE),
				.start = number,
			};
	}
}

/* The first `n` of these. Returns how many pages were kept. */
static size_t read_sweep_request(struct sweep *s, struct stream_piece *p, size_t at,
				 const struct rsz_extent *asked, size_t n, unsigned reader)
{
	const uint64_t first = asked->address;
	const uint64_t end = asked[n - 1].address + asked[n - 1].length;
	struct rsz_extent all;
	size_t kept = 0;

	read_extent(s, p, at, first, (size_t)(end - first) / PAGE_SIZE, reader);
	all = p->extents[--p->n_extents];
	for (size_t i = 0; i < n; i++) {
		struct rsz_extent x = all;

		x.address = asked[i].address;
		x.length = asked[i].length;
		keep_pages(s, p, &x, at + (size_t)(x.address - first) / PAGE_SIZE, at + kept);
		kept += rsz_extent_pages(&x);
	}
	return kept;
}

void sweep_read_later(struct sweep *s, struct stream_piece *p, unsigned reader)
{
	struct rsz_extent asked[STREAM_EXTENTS];
	const size_t count = p->n_extents;
	size_t at = 0;

	memcpy(asked, p->extents, count * sizeof(*asked));
	p->n_extents = 0;
	for (size_t i = 0, n; i < count; i += n) {
		for (n = 1; i + n < count && asked[i + n].start == asked[i].start; n++)
			;
		at += read_sweep_request(s, p, at, &asked[i], n, reader);
	}
}

/*
 * A sweep over everything makes one extent a piece; with a set, what lies here and there goes into
 * one piece until that is full.
 */
enum status sweep_next(struct sweep *s, struct stream_piece *p)
{
	const bool skip = sweep_stopped(s);
	const uint64_t cut = skip || s->set ? 0 : STREAM_CHUNK;
	const size_t most = (skip ? STREAM_SKIP : STREAM_CHUNK) / PAGE_SIZE;
	uint64_t address;
	size_t at = 0, n;

	while (at < most && p->n_extents < STREAM_EXTENTS) {
		n = skip || !s->set ? next_wanted_run(s, most - at, cut, &address)
				    : next_request(s, most - at, &address);
		if (!n)
			break;
		if (skip)
			skip_pages(s, p, at, address, n);
		else if (s->later)
			cut_request(s, p, address, n);
		else
			read_extent(s, p, at, address, n, DRV_BESIDE);
		at += skip || s->later ? n : keep_wanted(s, p, at);
		if (!s->set || (!skip && is_stopped(s)))
			break;
	}
	return p->n_extents ? ST_OK : ST_END;
}
