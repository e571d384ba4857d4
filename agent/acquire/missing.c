/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/acquire/missing.h"

#include "agent/order/sweep.h"

/* What an extent takes in its record and, at worst, in the index. */
#define EXTENT_COST 64
/* A chunk and its record's header. */
#define RECORD_COST 256

struct finding_out {
	struct missing *m;
	uint32_t stream;
};

static enum status mark(void *arg, const struct rsz_record *rec, const struct rsz_chunk *c,
			struct err *e)
{
	struct finding_out *f = arg;

	(void)e;
	for (size_t i = 0; rec->stream == f->stream && i < c->n_extents; i++)
		for (uint64_t at = 0; at < c->extents[i].length; at += PAGE_SIZE)
			f->m->pages -= !walk_set_mark(&f->m->captured, c->extents[i].address + at);
	return ST_OK;
}

enum status missing_find(struct missing *m, struct blob *written, const struct range_list *ranges,
			 uint32_t stream, struct err *e)
{
	struct finding_out f = { .m = m, .stream = stream };
	enum status st;

	*m = (struct missing){ .pages = range_list_bytes(ranges) / PAGE_SIZE };
	st = walk_set_init(&m->captured, ranges, e);
	if (!st && stream != UINT32_MAX)
		st = rsz_scan_chunks(written, mark, &f, NULL, e);
	return st;
}

void missing_deinit(struct missing *m)
{
	walk_set_deinit(&m->captured);
}

struct missing_feed {
	struct stream_feed feed;
	struct sweep sweep;
	uint64_t left; /* pages that are not named yet */
	uint64_t room; /* bytes that may still be written */
};

static enum status next(struct stream_feed *feed, struct stream_piece *p, struct err *e)
{
	struct missing_feed *f = (struct missing_feed *)feed;
	enum status st;

	(void)e;
	if (f->room < RECORD_COST + STREAM_EXTENTS * EXTENT_COST)
		return ST_END;
	st = sweep_next(&f->sweep, p);
	f->room -= RECORD_COST + p->n_extents * EXTENT_COST;
	for (size_t i = 0; i < p->n_extents; i++)
		f->left -= rsz_extent_pages(&p->extents[i]);
	return st;
}

enum status missing_record(const struct missing *m, const struct stream_plan *plan,
			   struct stream_result *result, uint64_t *ret_left, struct err *e)
{
	const uint64_t end = result->end;
	struct missing_feed feed = {
		.feed.next = next,
		.sweep = { .ranges = m->captured.ranges,
			   .set = &m->captured,
			   .skip = SKIP_INTERRUPTED },
		.left = m->pages,
		.room = missing_room(range_list_bytes(m->captured.ranges)),
	};
	struct stream_plan s = *plan;
	enum status st;

	s.feed = &feed.feed;
	s.label = "what is missing";
	s.total = 0;
	s.threads = 1;
	st = stream_pass(&s, result, e);
	/* Nothing was captured by this. */
	if (end)
		result->end = end;
	*ret_left = feed.left;
	return st;
}
