/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/memory.h"

#include "agent/clock.h"
#include "agent/interrupt.h"
#include "agent/log.h"

struct memory_feed {
	struct stream_feed feed;
	struct drv *source;
	struct root_watch *watch;
	struct memory_result *result;
	const struct range_list *ranges;
	size_t range;     /* the one that is being read */
	uint64_t address; /* the next to be read in it */
	uint32_t skip;    /* enum skip_reason: why nothing is read any more; 0: it is */
};

/* The rest is named as skipped, so that the container says what it does not hold. */
static void skip_rest(struct memory_feed *f, enum status why, uint32_t reason, const struct err *e)
{
	f->skip = reason;
	f->result->stopped = why;
	f->result->why = *e;
	log_warning("acquisition-stopped", "%s; what is left is recorded as skipped", e->message);
}

static void show_pages(struct root_watch *w, const struct stream_piece *p)
{
	const struct rsz_extent *x = p->extents;

	for (size_t i = 0; i < x->length >> PAGE_SHIFT; i++)
		if (p->pages[i].state == PAGE_DATA)
			root_watch_page(w, p->data + i * PAGE_SIZE, x->address + i * PAGE_SIZE);
		else
			w->seen.unreadable++;
}

static void read_piece(struct memory_feed *f, struct stream_piece *p)
{
	struct rsz_extent *x = p->extents;
	const size_t pages = x->length >> PAGE_SHIFT;
	struct err e = ERR_INIT;
	enum status st;

	x->start = clock_mono_ns();
	st = drv_read_pages(f->source, x->address, p->data, pages, p->pages, &e);
	x->end = clock_mono_ns();
	if (st)
		skip_rest(f, st, SKIP_SOURCE_FAILED, &e);
	else if (f->watch)
		show_pages(f->watch, p);
}

static void skip_piece(struct memory_feed *f, struct stream_piece *p)
{
	struct rsz_extent *x = p->extents;

	x->start = x->end = clock_mono_ns();
	for (size_t i = 0; i < x->length >> PAGE_SHIFT; i++)
		p->pages[i] = (struct page_status){ PAGE_SKIPPED, f->skip };
}

/* Pieces end at multiples of their size, so that the same memory is cut in the same places. */
static uint32_t next_length(const struct memory_feed *f)
{
	const uint64_t left = f->ranges->at[f->range].last - f->address + 1;
	const uint64_t most = f->skip ? STREAM_SKIP : STREAM_CHUNK - f->address % STREAM_CHUNK;

	return (uint32_t)MIN(left, most);
}

static enum status next(struct stream_feed *feed, struct stream_piece *p, struct err *e)
{
	struct memory_feed *f = (struct memory_feed *)feed;

	(void)e;
	if (f->range == f->ranges->count)
		return ST_END;
	if (!f->skip && interrupted())
		skip_rest(f, ST_INTERRUPTED, SKIP_INTERRUPTED,
			  &(struct err){ "interrupted by a signal" });
	p->n_extents = 1;
	p->extents[0] = (struct rsz_extent){ .address = f->address, .length = next_length(f) };
	if (f->skip)
		skip_piece(f, p);
	else
		read_piece(f, p);
	f->address += p->extents[0].length;
	if (f->address > f->ranges->at[f->range].last && ++f->range < f->ranges->count)
		f->address = f->ranges->at[f->range].first;
	return ST_OK;
}

enum status memory_acquire(const struct memory_plan *plan, struct memory_result *ret, struct err *e)
{
	struct memory_feed feed = {
		.feed.next = next,
		.source = plan->source,
		.watch = plan->watch,
		.result = ret,
		.ranges = &plan->source->info.maps[0].ranges,
	};
	struct stream_plan stream = plan->stream;
	enum status st;

	if (feed.ranges->count)
		feed.address = feed.ranges->at[0].first;
	stream.feed = &feed.feed;
	stream.label = "memory";
	stream.total = range_list_bytes(feed.ranges);
	drv_note_parts(plan->source, true);
	st = stream_pass(&stream, &ret->stream, e);
	drv_note_parts(plan->source, false);
	if (plan->watch)
		plan->watch->seen.complete = !st && !ret->stopped;
	return st;
}

void memory_result_deinit(struct memory_result *r)
{
	stream_result_deinit(&r->stream);
}
