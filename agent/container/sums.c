/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/container/sums.h"

#include <string.h>

#include "agent/program/interrupt.h"

struct summing {
	struct container_sums *sums;
	sums_chunk_fn *fn;
	void *arg;
};

static void add_again(struct stream_sums *s, const struct rsz_chunk *c)
{
	for (size_t i = 0; i < c->n_extents; i++)
		if (c->extents[i].pass)
			s->again[MIN(c->extents[i].reason, SUMS_REASONS - 1)] +=
				c->extents[i].length;
}

static enum status add_chunk_sums(void *arg, const struct rsz_record *rec,
				  const struct rsz_chunk *c, struct err *e)
{
	const struct summing *x = arg;
	struct stream_sums *s;

	if (interrupted())
		return interrupt_status(e);
	if (rec->stream >= x->sums->count)
		return ST_OK;
	s = &x->sums->streams[rec->stream];
	s->chunks++;
	/* What was added by sealing later has no time. */
	if (c->end && (!s->start || c->start < s->start))
		s->start = c->start;
	s->end = MAX(s->end, c->end);
	s->captured += c->length;
	s->stored += rec->stored;
	add_again(s, c);
	if (c->paged)
		tally_chunk(&s->tally, c);
	return x->fn ? x->fn(x->arg, s, c, e) : ST_OK;
}

static enum status name_streams(struct container_sums *s, const struct rsz_reader *r, struct err *e)
{
	s->count = rsz_reader_streams(r);
	s->streams = calloc(MAX(s->count, 1), sizeof(*s->streams));
	if (!s->streams)
		return err_nomem(e);
	for (size_t i = 0; i < s->count; i++) {
		const struct rsz_stream_info *info = rsz_reader_stream(r, i);

		s->streams[i].name = strdup(info->name);
		s->streams[i].kind = info->kind;
		s->streams[i].paged = info->paged;
		if (!s->streams[i].name)
			return err_nomem(e);
	}
	return ST_OK;
}

enum status container_sums(const struct container *c, sums_chunk_fn *fn, void *arg,
			   struct container_sums *ret, struct err *e)
{
	struct summing x = { .sums = ret, .fn = fn, .arg = arg };
	enum status st;

	*ret = (struct container_sums){ 0 };
	st = name_streams(ret, c->reader, e);
	return st ? st : rsz_scan_chunks(c->blob, add_chunk_sums, &x, &ret->end, e);
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
