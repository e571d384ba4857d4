/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/collect/capture/stream_pass.h"

#include <string.h>

#include "agent/collect/capture/governor.h"
#include "agent/collect/capture/reading.h"
#include "agent/shared/program/clock.h"
#include "agent/shared/program/pipeline.h"
#include "formats/base/left.h"

struct stream_item {
	struct rsz_chunk chunk;
	struct stream_piece piece;
	struct rsz_frame frame;
	struct rsz_extent extents[STREAM_EXTENTS];
	struct page_status pages[STREAM_SKIP / PAGE_SIZE];
	void *memory;
	uint8_t *data;  /* STREAM_CHUNK bytes in it, on a page, as unbuffered devices want them */
	uint64_t taken; /* by when a simulated link had room for what it held before; 0: at once */
};

struct stream_pass {
	const struct stream_plan *plan;
	struct stream_result *result;
	unsigned threads; /* as many as the plan wants, or as there is memory for */
	struct rsz_encoder *encoders[PIPELINE_WORKERS_MAX];
	struct stream_item *items[PIPELINE_WORKERS_MAX + 2];
	struct governor governor;
	struct progress progress;
	uint64_t done;  /* bytes drained */
	uint64_t taken; /* stream_item.taken of the last one that was drained */
};

/*
 * On a real machine whoever fills waits until an item has been drained, and whoever drains until
 * the link has room. A simulated link takes no real time, so its machine's clock catches up here:
 * at the same reads, however fast the threads are.
 */
static void catch_up(const struct stream_plan *plan, uint64_t taken)
{
	if (taken)
		plan->paced->ops->pass(plan->paced, taken);
}

/* After its last extent was read, and behind all that was drained before. */
static void note_output(struct stream_pass *p, struct stream_item *it)
{
	struct drv *d = p->plan->paced;

	if (!d)
		return;
	it->taken = d->ops->output(d, it->chunk.end, it->frame.header_length + it->frame.stored);
	p->taken = it->taken;
}

/* Of a piece that was read. */
static void make_chunk(struct stream_item *it)
{
	struct rsz_chunk *c = &it->chunk;

	*c = (struct rsz_chunk){
		.stream = it->piece.stream,
		.paged = true,
		.extents = it->extents,
		.n_extents = it->piece.n_extents,
		.pages = it->pages,
		.data = it->data,
		.start = it->extents[0].start,
	};
	for (size_t i = 0; i < c->n_extents; i++) {
		c->n_pages += rsz_extent_pages(&c->extents[i]);
		c->length += c->extents[i].length;
		c->start = MIN(c->start, c->extents[i].start);
		c->end = MAX(c->end, c->extents[i].end);
	}
}

static enum status stream_item_fill(void *arg, void *item, struct err *e)
{
	struct stream_pass *p = arg;
	struct stream_item *it = item;
	enum status st;

	catch_up(p->plan, it->taken);
	it->piece = (struct stream_piece){
		.extents = it->extents,
		.pages = it->pages,
		.data = it->data,
		.stream = p->plan->stream,
		.result = p->result,
	};
	st = p->plan->feed->next(p->plan->feed, &it->piece, e);
	if (!st && !it->piece.unread)
		make_chunk(it);
	return st;
}

static enum status encode_item(void *arg, unsigned worker, void *item, struct err *e)
{
	struct stream_pass *p = arg;
	struct stream_item *it = item;
	uint64_t begin;
	enum status st;

	if (it->piece.unread) {
		p->plan->feed->read(p->plan->feed, &it->piece, worker);
		make_chunk(it);
	}
	begin = clock__mono_ns();
	rsz_encoder_set_level(p->encoders[worker], governor_level(&p->governor));
	st = rsz_encode(p->encoders[worker], &it->chunk, &it->frame, e);
	governor_compressed(&p->governor, clock__mono_ns() - begin);
	return st;
}

static enum status seal_item(void *arg, void *item, struct err *e)
{
	struct stream_pass *p = arg;
	struct stream_item *it = item;
	struct stream_result *r = it->piece.result;
	const uint64_t begin = clock__mono_ns();
	enum status st = sealer_put(p->plan->sealer, &it->frame, e);
	const uint64_t now = clock__mono_ns();

	governor_wrote(&p->governor, now - begin, sealer_backlog(p->plan->sealer), now);
	if (st)
		return st;
	note_output(p, it);
	tally_chunk(&r->tally, &it->chunk);
	/* Of those who read side by side, who goes out first was not always the first. */
	r->start = r->start ? MIN(r->start, it->chunk.start) : it->chunk.start;
	r->end = MAX(r->end, it->chunk.end);
	r->bytes = (r->tally.pages[PAGE_DATA] + r->tally.pages[PAGE_ZERO]) << PAGE_SHIFT;
	if (r != p->result)
		return ST_OK;
	p->done += it->chunk.length;
	progress_update(&p->progress, p->done, r->tally.pages[PAGE_UNREADABLE]);
	return ST_OK;
}

static const struct pipeline_ops pass_ops = { .fill = stream_item_fill,
					      .work = encode_item,
					      .drain = seal_item };

static void stream_item_destroy(struct stream_item *it)
{
	if (!it)
		return;
	rsz_frame_deinit(&it->frame);
	free(it->memory);
	free(it);
}

static enum status stream_item_create(struct stream_item **ret, struct err *e)
{
	struct stream_item *it = calloc(1, sizeof(*it));
	enum status st =
		it ? rsz_frame_init(&it->frame, STREAM_CHUNK, STREAM_EXTENTS, e) : err_nomem(e);

	if (!st) {
		it->memory = malloc(STREAM_CHUNK + PAGE_SIZE);
		st = it->memory ? ST_OK : err_nomem(e);
	}
	if (!st)
		it->data = (uint8_t *)it->memory + PAGE_SIZE - (uintptr_t)it->memory % PAGE_SIZE;
	if (st) {
		stream_item_destroy(it);
		return st;
	}
	*ret = it;
	return ST_OK;
}

static void stream_pass_deinit(struct stream_pass *p)
{
	for (size_t i = 0; i < ARRAY_SIZE(p->items); i++)
		stream_item_destroy(p->items[i]);
	for (size_t i = 0; i < ARRAY_SIZE(p->encoders); i++)
		rsz_encoder_destroy(p->encoders[i]);
}

/* One of the items is still being read into. */
static void pass_leave(const struct stream_pass *p)
{
	for (size_t i = 0; i < ARRAY_SIZE(p->items); i++)
		left_keep(p->items[i]);
	for (size_t i = 0; i < ARRAY_SIZE(p->encoders); i++)
		rsz_encoder_destroy(p->encoders[i]);
}

static enum status pass_init(struct stream_pass *p, const struct stream_plan *plan,
			     unsigned threads, struct stream_result *result, struct err *e)
{
	enum status st = ST_OK;

	*p = (struct stream_pass){ .plan = plan, .result = result, .threads = threads };
	for (unsigned i = 0; i < threads && !st; i++)
		st = rsz_encoder_create(plan->level, STREAM_CHUNK, &p->encoders[i], e);
	for (size_t i = 0; i < pipeline_items(threads) && !st; i++)
		st = stream_item_create(&p->items[i], e);
	if (st)
		stream_pass_deinit(p);
	return st;
}

/* Slower is better than not at all. */
static enum status pass_fit(struct stream_pass *p, const struct stream_plan *plan,
			    struct stream_result *result, struct err *e)
{
	unsigned threads = plan->threads;
	enum status st = pass_init(p, plan, threads, result, e);

	while (st == ST_NOMEM && threads > 1) {
		threads /= 2;
		st = pass_init(p, plan, threads, result, e);
	}
	if (!st && e)
		e->message[0] = '\0';
	return st;
}

enum status stream_pass(const struct stream_plan *plan, struct stream_result *ret, struct err *e)
{
	const bool was_left = plan->reading && drv_is_abandoned(plan->reading->source);
	struct stream_pass p;
	enum status st = pass_fit(&p, plan, ret, e);

	if (!st) {
		governor_init(&p.governor, plan->level, !plan->level_auto, p.threads,
			      clock__mono_ns());
		progress_init(&p.progress, plan->progress, plan->label, plan->total);
		st = pipeline_run_with(&pass_ops, reading_filler(plan->reading), &p,
				       (void *const *)p.items, pipeline_items(p.threads), p.threads,
				       e);
		progress_finish(&p.progress);
		catch_up(plan, p.taken);
		ret->level = governor_level(&p.governor);
		ret->level_moves = p.governor.changes;
		if (plan->reading && !was_left && drv_is_abandoned(plan->reading->source))
			pass_leave(&p);
		else
			stream_pass_deinit(&p);
	}
	return st;
}

void stream_piece_keep(struct stream_piece *p, const struct rsz_extent *x, size_t from, size_t at)
{
	p->extents[p->n_extents++] = *x;
	if (from == at)
		return;
	memmove(p->data + at * PAGE_SIZE, p->data + from * PAGE_SIZE, x->length);
	memmove(p->pages + at, p->pages + from, rsz_extent_pages(x) * sizeof(*p->pages));
}

void stream_result_deinit(struct stream_result *r)
{
	tally_deinit(&r->tally);
}
