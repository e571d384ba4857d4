/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/shared/container/sums.h"

#include <string.h>

#include "agent/shared/container/container.h"
#include "agent/shared/program/interrupt.h"
#include "formats/base/array.h"

static void add_recaptured(struct stream_sums *s, const struct rsz_chunk *c)
{
	for (size_t i = 0; i < c->n_extents; i++)
		if (c->extents[i].pass)
			s->again[MIN(c->extents[i].reason, SUMS_REASONS - 1)] +=
				c->extents[i].length;
}

static void add_chunk_sums(struct stream_sums *s, const struct rsz_record *rec,
			   const struct rsz_chunk *c)
{
	s->chunks++;
	/* What was added by sealing later has no time. */
	if (c->end && (!s->start || c->start < s->start))
		s->start = c->start;
	s->end = MAX(s->end, c->end);
	s->captured += c->length;
	s->stored += rec->stored;
	add_recaptured(s, c);
	if (c->paged)
		tally_chunk(&s->tally, c);
}

/* At least as many as `count`, the new ones all zero. */
static enum status make_stream_sums(struct container_sums *s, size_t count, struct err *e)
{
	while (s->room < count) {
		struct stream_sums *more = array_grow(s->streams, &s->room, sizeof(*more));

		if (!more)
			return err_nomem(e);
		s->streams = more;
	}
	for (; s->count < count; s->count++)
		s->streams[s->count] = (struct stream_sums){ 0 };
	return ST_OK;
}

static enum status name_streams(struct container_sums *s, const struct rsz_reader *r, struct err *e)
{
	const enum status st = make_stream_sums(s, rsz_reader_streams(r), e);

	for (size_t i = 0; i < s->count && !st; i++) {
		const struct rsz_stream_info *info = rsz_reader_stream(r, i);

		s->streams[i].name = strdup(info->name);
		s->streams[i].kind = info->kind;
		s->streams[i].paged = info->paged;
		if (!s->streams[i].name)
			return err_nomem(e);
	}
	return st;
}

struct summing {
	struct container_sums *sums;
	sums_chunk_fn *fn;
	void *arg;
};

/* Of streams that the reader has, too. */
static enum status sum_known_chunk(void *arg, const struct rsz_record *rec,
				   const struct rsz_chunk *c, struct err *e)
{
	const struct summing *x = arg;

	if (interrupted())
		return interrupt_status(e);
	if (rec->stream >= x->sums->count)
		return ST_OK;
	add_chunk_sums(&x->sums->streams[rec->stream], rec, c);
	return x->fn(x->arg, &x->sums->streams[rec->stream], c, e);
}

enum status container_sums(const struct container *c, sums_chunk_fn *fn, void *arg,
			   struct container_sums *ret, struct err *e)
{
	struct summing x = { .sums = ret, .fn = fn, .arg = arg };
	enum status st;

	*ret = (struct container_sums){ 0 };
	st = name_streams(ret, c->reader, e);
	return st ? st : rsz_scan_chunks(c->blob, sum_known_chunk, &x, &ret->end, e);
}

static enum status sum_chunk(void *arg, const struct rsz_record *rec, const struct rsz_chunk *c,
			     struct err *e)
{
	struct container_sums *s = arg;
	enum status st = interrupted() ? interrupt_status(e) : ST_OK;

	if (!st)
		st = make_stream_sums(s, rec->stream + 1, e);
	if (!st)
		add_chunk_sums(&s->streams[rec->stream], rec, c);
	return st;
}

enum status container_sums_open(struct blob *in, struct rsz_reader **ret,
				struct container_sums *sums, struct err *e)
{
	const enum status st = rsz_reader_open_watched(in, sum_chunk, sums, ret, e);

	if (st)
		return st;
	sums->end = *rsz_reader_end(*ret);
	return name_streams(sums, *ret, e);
}

void container_sums_deinit(struct container_sums *s)
{
	for (size_t i = 0; s->streams && i < s->count; i++) {
		free(s->streams[i].name);
		tally_deinit(&s->streams[i].tally);
	}
	free(s->streams);
	*s = (struct container_sums){ 0 };
}
