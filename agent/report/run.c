/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/report/run.h"

#include <string.h>

#include "agent/container/verify.h"
#include "agent/container.h"
#include "agent/program/interrupt.h"
#include "agent/program/json.h"

/*
 * Chunks
 */

static void add_again(struct run_stream *s, const struct rsz_chunk *c)
{
	for (size_t i = 0; i < c->n_extents; i++)
		if (c->extents[i].pass)
			s->again[MIN(c->extents[i].reason, RUN_REASONS - 1)] +=
				c->extents[i].length;
}

static enum status add_chunk(void *arg, const struct rsz_record *rec, const struct rsz_chunk *c,
			     struct err *e)
{
	struct run *r = arg;
	struct run_stream *s;

	if (interrupted())
		return interrupt_status(e);
	if (rec->stream >= r->n_streams)
		return ST_OK;
	s = &r->streams[rec->stream];
	s->chunks++;
	/* What was added by sealing later has no time. */
	if (c->end && (!s->start || c->start < s->start))
		s->start = c->start;
	s->end = MAX(s->end, c->end);
	s->captured += c->length;
	s->stored += rec->stored;
	add_again(s, c);
	if (!c->paged)
		return ST_OK;
	timeline_measure(&r->timeline, s->kind, c);
	return tally_chunk(&s->tally, c, e);
}

static enum status mark_chunk(void *arg, const struct rsz_record *rec, const struct rsz_chunk *c,
			      struct err *e)
{
	struct run *r = arg;

	if (interrupted())
		return interrupt_status(e);
	if (rec->stream < r->n_streams && c->paged)
		timeline_mark(&r->timeline, r->streams[rec->stream].kind, c);
	return ST_OK;
}

static enum status load_streams(struct run *r, struct container *c, struct err *e)
{
	enum status st;

	r->n_streams = rsz_reader_streams(c->reader);
	r->streams = calloc(MAX(r->n_streams, 1), sizeof(*r->streams));
	if (!r->streams)
		return err_nomem(e);
	for (size_t i = 0; i < r->n_streams; i++) {
		const struct rsz_stream_info *info = rsz_reader_stream(c->reader, i);

		r->streams[i].name = strdup(info->name);
		r->streams[i].kind = info->kind;
		r->streams[i].paged = info->paged;
		if (!r->streams[i].name)
			return err_nomem(e);
	}
	st = rsz_scan_chunks(c->blob, add_chunk, r, NULL, e);
	timeline_fix(&r->timeline);
	return st ? st : rsz_scan_chunks(c->blob, mark_chunk, r, NULL, e);
}

/*
 * Smear
 */

/* What is missing or damaged is said in the report; what is wrong with this machine ends it. */
static enum status load_smear(struct run *r, struct container *c, struct err *e)
{
	struct err why = ERR_INIT;
	const struct smear_plan plan = {
		.in = c->blob,
		.reader = c->reader,
		.manifest = r->lines,
	};
	const enum status st = smear_measure(&plan, &r->smear, &why);

	r->has_smear = !st && !r->smear.still;
	r->has_counts = !st && r->smear.still;
	snprintf(r->no_smear, sizeof(r->no_smear), "%s",
		 r->origin.still ? ORIGIN_STILL_WHY : why.message);
	if (!st || st == ST_INPUT || st == ST_CORRUPT)
		return ST_OK;
	*e = why;
	return st;
}

/*
 * All of it
 */

/* By what `verify` and `info` say of it. */
static void load_outcome(struct run *r, const struct container *c)
{
	_cleanup_ranges_ struct range_list missing = { 0 };
	struct err why = ERR_INIT;

	if (container_judge(c, &why))
		snprintf(r->partial, sizeof(r->partial), "%s", why.message);
	if (!container_missing(c, &missing, NULL))
		r->missing = range_list_bytes(&missing) / PAGE_SIZE;
}

static enum status load(struct run *r, struct container *c, struct err *e)
{
	static const char *const events[] = { "begin", "tables", "file", "end", NULL };
	enum status st;

	r->identity = *rsz_reader_identity(c->reader);
	r->begin = json_incref(container_event(c, "begin"));
	r->finish = json_incref(container_event(c, "end"));
	r->sealed_later = json_incref(container_event(c, "sealed_later"));
	r->end = *rsz_reader_end(c->reader);
	r->bytes = c->blob->size;
	load_outcome(r, c);
	st = container_lines(c, events, &r->lines, e);
	if (!st)
		origin_of_lines(&r->origin, r->lines);
	if (!st)
		st = load_streams(r, c, e);
	return st ? st : load_smear(r, c, e);
}

static enum status check(struct run *r, const struct run_plan *plan, struct container *c,
			 struct err *e)
{
	struct rsz_scan_result found = { 0 };
	const enum status st =
		container_verify(c->blob, plan->threads, plan->progress, &found, NULL, e);

	if (st && st != ST_CORRUPT)
		return st;
	r->checked = true;
	r->end = found;
	return ST_OK;
}

enum status run_load(const struct run_plan *plan, struct run *ret, struct err *e)
{
	struct container c;
	enum status st;

	*ret = (struct run){ .path = plan->path, .label = plan->label };
	st = container_open(plan->path, &c, e);
	if (st)
		return st;
	st = load(ret, &c, e);
	if (!st && plan->check)
		st = check(ret, plan, &c, e);
	container_close(&c);
	return st ? err_add(e, st, "%s", plan->path) : ST_OK;
}

void run_deinit(struct run *r)
{
	for (size_t i = 0; r->streams && i < r->n_streams; i++) {
		free(r->streams[i].name);
		tally_deinit(&r->streams[i].tally);
	}
	free(r->streams);
	smear_deinit(&r->smear);
	json_decref(r->begin);
	json_decref(r->finish);
	json_decref(r->sealed_later);
	json_decref(r->lines);
	*r = (struct run){ 0 };
}

/*
 * Questions
 */

bool run_is_whole(const struct run *r)
{
	return r->end.end == RSZ_END_SEALED;
}

bool run_is_complete(const struct run *r)
{
	const json_t *code = json_object_get(r->finish, "exit_code");

	return json_is_integer(code) &&
	       (json_integer_value(code) == EXIT_COMPLETE || json_integer_value(code) == EXIT_GAPS);
}

const char *run_outcome(const struct run *r)
{
	const char *outcome = json_string_value(json_object_get(r->finish, "outcome"));

	return outcome ? outcome : "it did not come to its end";
}

const struct run_stream *run_stream(const struct run *r, enum rsz_kind kind)
{
	for (size_t i = 0; i < r->n_streams; i++)
		if (r->streams[i].kind == (uint32_t)kind)
			return &r->streams[i];
	return NULL;
}

uint64_t run_stream_read(const struct run_stream *s)
{
	const uint64_t *pages = s->tally.pages;
	const uint64_t without = PAGE_SIZE * (pages[PAGE_UNREADABLE] + pages[PAGE_SKIPPED]);

	return s->captured > without ? s->captured - without : 0;
}

uint64_t run_pages(const struct run *r, enum page_state state)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < r->n_streams; i++)
		sum += r->streams[i].tally.pages[state];
	return sum;
}

uint64_t run_again(const struct run *r)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < r->n_streams; i++)
		for (size_t k = 0; k < RUN_REASONS; k++)
			sum += r->streams[i].again[k];
	return sum;
}

uint64_t run_wall(const struct run *r)
{
	const int64_t begin = run_integer(r->begin, "clocks", "mono_ns");
	const int64_t end = run_integer(r->finish, "clocks", "mono_ns");

	return begin >= 0 && end > begin ? (uint64_t)(end - begin) : 0;
}

uint64_t run_map_bytes(const struct run *r)
{
	const json_t *map = json_array_get(json_object_get(r->begin, "maps"), 0);
	const json_int_t bytes = json_integer_value(json_object_get(map, "bytes"));

	return bytes > 0 ? (uint64_t)bytes : 0;
}

const char *run_order(const struct run *r)
{
	return run_text(r->finish, "order", "name");
}

const char *run_text(const json_t *line, const char *object, const char *key)
{
	return json_string_value(json_object_get(json_object_get(line, object), key));
}

int64_t run_integer(const json_t *line, const char *object, const char *key)
{
	const json_t *value = json_object_get(json_object_get(line, object), key);

	return json_is_integer(value) ? json_integer_value(value) : -1;
}
