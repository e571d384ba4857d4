/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/order/sweep.h"

#include "agent/program/clock.h"
#include "agent/program/interrupt.h"
#include "agent/program/log.h"

void sweep_restart(struct sweep *s, const struct walk_set *set, bool inside)
{
	s->set = set;
	s->inside = inside;
	s->range = 0;
	s->page = 0;
}

void sweep_stop(struct sweep *s, enum status why, uint32_t reason, const struct err *e)
{
	s->skip = reason;
	s->result->stopped = why;
	s->result->why = *e;
	log_warning("acquisition-stopped", "%s; what is left is recorded as skipped", e->message);
}

bool sweep_stopped(struct sweep *s)
{
	struct err why = ERR_INIT;

	if (!s->skip && interrupted()) {
		interrupt_status(&why);
		sweep_stop(s, ST_INTERRUPTED, SKIP_INTERRUPTED, &why);
	}
	return s->skip != 0;
}

static void show_pages(struct root_watch *w, const struct stream_piece *p, size_t at,
		       uint64_t address, size_t pages)
{
	for (size_t i = 0; i < pages; i++)
		if (p->pages[at + i].state == PAGE_DATA)
			root_watch_page(w, p->data + (at + i) * PAGE_SIZE, address + i * PAGE_SIZE);
		else
			w->seen.unreadable++;
}

void sweep_read(struct sweep *s, struct stream_piece *p, size_t at, uint64_t address, size_t pages)
{
	struct rsz_extent *x = &p->extents[p->n_extents++];
	struct err e = ERR_INIT;
	enum status st;

	*x = (struct rsz_extent){ .address = address, .length = (uint32_t)(pages * PAGE_SIZE) };
	x->start = clock_mono_ns();
	st = drv_read_pages(s->source, address, p->data + at * PAGE_SIZE, pages, p->pages + at, &e);
	x->end = clock_mono_ns();
	if (st)
		sweep_stop(s, st, SKIP_SOURCE_FAILED, &e);
	else if (s->watch)
		show_pages(s->watch, p, at, address, pages);
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

static bool wanted(const struct sweep *s, uint64_t pa)
{
	return !s->set || walk_set_has(s->set, pa) == s->inside;
}

/*
 * The next run of at most `most` (not 0) wanted pages, which does not cross a multiple of `cut`
 * bytes (0: does not matter): so the same memory is cut in the same places. 0 behind the last.
 */
static size_t next_run(struct sweep *s, size_t most, uint64_t cut, uint64_t *ret)
{
	while (s->range < s->ranges->count) {
		const struct range *r = &s->ranges->at[s->range];
		const uint64_t pages = range_bytes(*r) >> PAGE_SHIFT;
		size_t n = 0;

		while (s->page < pages && !wanted(s, r->first + (s->page << PAGE_SHIFT)))
			s->page++;
		*ret = r->first + (s->page << PAGE_SHIFT);
		while (n < most && s->page < pages && wanted(s, *ret + n * PAGE_SIZE)) {
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

	while (at < most && p->n_extents < STREAM_EXTENTS &&
	       (n = next_run(s, most - at, cut, &address))) {
		if (skip)
			skip_pages(s, p, at, address, n);
		else
			sweep_read(s, p, at, address, n);
		at += n;
		if (!s->set || (s->skip && !skip))
			break;
	}
	return p->n_extents ? ST_OK : ST_END;
}
