/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/collect/acquire/missing.h"

#include <inttypes.h>

#include "agent/collect/order/sweep.h"
#include "agent/shared/paging/walk.h"
#include "agent/shared/program/log.h"

/* What an extent takes in its record and, at worst, in the index. */
#define EXTENT_COST 64
/* A chunk and its record's header. */
#define RECORD_COST 256

/* Which pages the container has. */
struct holdings {
	struct walk_set captured;
	uint32_t stream;
};

static enum status mark_held(void *arg, const struct rsz_record *rec, const struct rsz_chunk *c,
			     struct err *e)
{
	struct holdings *h = arg;

	for (size_t i = 0; rec->stream == h->stream && i < c->n_extents; i++)
		for (uint64_t at = 0; at < c->extents[i].length; at += PAGE_SIZE)
			walk_set_mark(&h->captured, c->extents[i].address + at);
	return ST_OK;
}

static enum status collect_holdings(struct holdings *h, const struct missing_plan *plan,
				    struct blob *written)
{
	enum status st = walk_set_init(&h->captured, plan->ranges, NULL);

	h->stream = plan->stream.stream;
	if (!st && h->stream != UINT32_MAX)
		st = written ? rsz_scan_chunks(written, mark_held, h, NULL, NULL) : ST_INPUT;
	return st;
}

struct missing_feed {
	struct stream_feed feed;
	struct sweep sweep;
	uint64_t left; /* pages that are not named yet */
	uint64_t room; /* bytes that may still be written */
};

static enum status missing_next(struct stream_feed *feed, struct stream_piece *p, struct err *e)
{
	struct missing_feed *f = (struct missing_feed *)feed;
	enum status st;

	if (f->room < RECORD_COST + STREAM_EXTENTS * EXTENT_COST)
		return ST_END;
	st = sweep_next(&f->sweep, p);
	f->room -= RECORD_COST + p->n_extents * EXTENT_COST;
	for (size_t i = 0; i < p->n_extents; i++)
		f->left -= rsz_extent_pages(&p->extents[i]);
	return st;
}

static enum status write_records(const struct missing_plan *plan, const struct holdings *h,
				 uint64_t pages, struct err *e)
{
	const uint64_t end = plan->result->end;
	struct stream_plan s = plan->stream;
	struct missing_feed feed = {
		.feed.next = missing_next,
		.sweep = { .ranges = plan->ranges, .set = &h->captured, .skip = plan->reason },
		.left = pages,
		.room = missing_room(range_list_bytes(plan->ranges)),
	};
	enum status st = ST_OK;

	s.feed = &feed.feed;
	s.label = "what is missing";
	s.total = 0;
	s.threads = 1;
	if (s.stream == UINT32_MAX)
		st = sealer_stream(s.sealer, RSZ_KIND_MEMORY, "memory", json_incref(plan->meta),
				   &s.stream, e);
	if (!st)
		st = stream_pass(&s, plan->result, e);
	if (end) /* nothing was captured by this */
		plan->result->end = end;
	if (feed.left)
		log_warning("missing-not-named",
			    "%" PRIu64 " pages that are missing are in no record", feed.left);
	return st;
}

enum status missing_settle(const struct missing_plan *plan, bool full, uint64_t *ret_pages,
			   struct err *e)
{
	struct sealer *const sealer = plan->stream.sealer;
	struct blob *written = sealer_written(sealer);
	struct holdings h = { 0 };
	const bool known = !collect_holdings(&h, plan, written);
	enum status st = written || full ? sealer_recover(sealer, e) : ST_OK;

	*ret_pages = known ? h.captured.pages - h.captured.marked : UINT64_MAX;
	if (!st && known && *ret_pages && write_records(plan, &h, *ret_pages, e) == ST_OUTPUT)
		st = sealer_recover(sealer, e);
	walk_set_deinit(&h.captured);
	return st;
}
