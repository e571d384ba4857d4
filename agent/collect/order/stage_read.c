/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/collect/order/stage_read.h"

#include <assert.h>

#include "agent/shared/program/clock.h"
#include "agent/shared/program/crew.h"
#include "agent/shared/program/pipeline.h"

/* What one reads at a time: large enough to be worth it, and small enough to be shared out. */
#define SLICE_PAGES       32

/* Fewer are read before anybody has woken up. */
#define WORTH_A_CREW      (2 * SLICE_PAGES)

/*
 * One of these for so many threads that compress: a guess, because compressing is some times slower
 * than copying. Not measured on a machine that has so many processors.
 */
#define THREADS_TO_READER 4

/* The numbers of workers are below these: the last of them may still read, of another pass. */
static_assert(PIPELINE_WORKERS_MAX + CREW_MAX <= DRV_BESIDE, "");

/* Part of an extent. */
struct stage_slice {
	struct rsz_extent part;
	size_t extent;
	size_t at; /* its first page on the stage */
};

struct stage_readers {
	struct crew *crew;
	struct sweep *sweep;
	struct stage *stage;
	struct stage_slice slices[STAGE_PAGES]; /* each has a page, at least */
};

struct stage_readers *stage_readers_create(const struct memory_plan *plan)
{
	const unsigned threads = plan->stream.threads;
	struct stage_readers *r;

	if (!sweep_reads_beside(plan) || threads < THREADS_TO_READER)
		return NULL;
	r = calloc(1, sizeof(*r));
	if (r)
		r->crew = crew_create(1 + threads / THREADS_TO_READER);
	if (r && r->crew)
		return r;
	free(r);
	return NULL;
}

void stage_readers_destroy(struct stage_readers *r)
{
	if (r)
		crew_destroy(r->crew);
	free(r);
}

/* Of what is captured for the first time. */
static size_t cut_slices(struct stage_readers *r, size_t extent, size_t page)
{
	const struct stream_piece *p = &r->stage->piece;
	size_t n = 0;

	for (; extent < p->n_extents; extent++) {
		const struct rsz_extent *x = &p->extents[extent];
		const size_t pages = rsz_extent_pages(x);

		for (size_t i = 0; !x->pass && i < pages; i += SLICE_PAGES) {
			struct stage_slice *to = &r->slices[n++];

			*to = (struct stage_slice){ .extent = extent, .at = page + i };
			to->part.address = x->address + i * PAGE_SIZE;
			to->part.length = (uint32_t)(MIN(SLICE_PAGES, pages - i) * PAGE_SIZE);
		}
		page += pages;
	}
	return n;
}

static void read_slice(void *arg, unsigned member, size_t i)
{
	struct stage_readers *r = arg;
	struct stage_slice *slice = &r->slices[i];

	sweep_fill(r->sweep, &r->stage->piece, slice->at, &slice->part,
		   PIPELINE_WORKERS_MAX + member);
}

/*
 * The caller's own read is the whole: whoever watches gives up that one if one of the crew's never
 * returns, and this thread then stops for ever, as it would in a read of its own.
 */
static void read_slices(struct stage_readers *r, size_t n)
{
	struct drv_watch *watch = r->sweep->source->watch;

	watch_begin(watch, r->slices[0].part.address, r->slices[0].part.length);
	crew_run(r->crew, read_slice, r, n);
	watch_end(watch);
}

static void join_times(struct stage_readers *r, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		const struct rsz_extent *part = &r->slices[i].part;
		struct rsz_extent *x = &r->stage->piece.extents[r->slices[i].extent];

		x->start = x->start ? MIN(x->start, part->start) : part->start;
		x->end = MAX(x->end, part->end);
	}
}

/*
 * One after the other: all, or what is captured again. That may have been captured for the first
 * time just now, and captures go out in the order in which they were made.
 */
static void read_alone(struct sweep *s, struct stage *stage, size_t extent, size_t page, bool all)
{
	struct stream_piece *p = &stage->piece;

	for (; extent < p->n_extents; extent++) {
		if (all || p->extents[extent].pass)
			sweep_fill(s, p, page, &p->extents[extent], DRV_BESIDE);
		page += rsz_extent_pages(&p->extents[extent]);
	}
}

void stage_read(struct stage_readers *r, struct sweep *s, struct stage *stage, size_t extent,
		size_t page)
{
	const bool shared = r && stage->pages - page >= WORTH_A_CREW;
	size_t n;

	if (shared) {
		r->sweep = s;
		r->stage = stage;
		n = cut_slices(r, extent, page);
		if (n)
			read_slices(r, n);
		join_times(r, n);
	}
	read_alone(s, stage, extent, page, !shared);
}
