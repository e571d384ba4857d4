/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/examine/report/host/run.h"

#include <string.h>

#include "agent/examine/smear/input.h"
#include "agent/shared/container/manifest_read.h"
#include "agent/shared/container/verify.h"
#include "agent/shared/program/interrupt.h"
#include "agent/shared/program/json.h"

/*
 * Chunks
 */

static enum status measure_chunk(void *arg, const struct stream_sums *s, const struct rsz_chunk *c,
				 struct err *e)
{
	struct report_run *r = arg;

	if (c->paged)
		timeline_scale(&r->timeline, s->kind, c);
	return ST_OK;
}

static bool run_has_content(const struct page_status *p)
{
	return p->state != PAGE_UNREADABLE && p->state != PAGE_SKIPPED;
}

static void mark_strip(struct strip *s, const struct rsz_chunk *c)
{
	const struct page_status *pages = c->pages;

	for (size_t i = 0; i < c->n_extents; i++) {
		const struct rsz_extent *x = &c->extents[i];
		const size_t n = rsz_extent_pages(x);

		for (size_t at = 0, end; at < n; at = end) {
			const bool has = run_has_content(&pages[at]);

			for (end = at + 1; end < n && run_has_content(&pages[end]) == has;)
				end++;
			strip_mark(s,
				   !has      ? STRIP_MISSING
				   : x->pass ? STRIP_AGAIN
					     : STRIP_CAPTURED,
				   x->address + at * PAGE_SIZE, x->address + end * PAGE_SIZE - 1);
		}
		pages += n;
	}
}

static enum status mark_chunk(void *arg, const struct rsz_record *rec, const struct rsz_chunk *c,
			      struct err *e)
{
	struct report_run *r = arg;

	if (interrupted())
		return interrupt_status(e);
	if (rec->stream < r->sums.count && c->paged) {
		timeline_mark(&r->timeline, r->sums.streams[rec->stream].kind, c);
		if (r->sums.streams[rec->stream].kind == RSZ_KIND_MEMORY)
			mark_strip(&r->strip, c);
	}
	return ST_OK;
}

static enum status load_streams(struct report_run *r, struct container *c, struct err *e)
{
	const enum status st = container_sums(c, measure_chunk, r, &r->sums, e);

	timeline_fix(&r->timeline);
	return st ? st : rsz_scan_chunks(c->blob, mark_chunk, r, NULL, e);
}

/*
 * Smear
 */

/* What is missing or damaged is said in the report; what is wrong with this machine ends it. */
static enum status load_smear(struct report_run *r, struct smear_input *in, struct err *e)
{
	struct err why = ERR_INIT;
	const struct smear_plan plan = smear_input_plan(in);
	const enum status st = smear_analyse(&plan, &r->smear, &why);

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
static void load_outcome(struct report_run *r, const struct container *c)
{
	_cleanup_ranges_ struct range_list missing = { 0 }, ram = { 0 };
	struct err why = ERR_INIT;

	if (container_outcome(c, &why))
		snprintf(r->partial, sizeof(r->partial), "%s", why.message);
	if (!container_missing(c, &missing, NULL))
		r->missing = range_list_bytes(&missing) / PAGE_SIZE;
	if (!manifest_get_map(r->begin, &ram, NULL)) {
		range_list_tidy(&ram, NULL);
		strip_set_ram(&r->strip, &ram);
	}
	for (size_t i = 0; i < missing.count; i++)
		strip_mark(&r->strip, STRIP_MISSING, missing.at[i].first, missing.at[i].last);
}

static enum status load_run(struct report_run *r, struct smear_input *in, struct err *e)
{
	struct container *const c = &in->container;
	enum status st;

	r->identity = *rsz_reader_identity(c->reader);
	r->begin = json_incref(container_event(c, "begin"));
	r->finish = json_incref(container_event(c, "end"));
	r->sealed_later = json_incref(container_event(c, "sealed_later"));
	r->end = *rsz_reader_end(c->reader);
	r->bytes = c->blob->size;
	load_outcome(r, c);
	r->lines = json_incref(in->lines);
	origin_of_lines(&r->origin, r->lines);
	st = load_streams(r, c, e);
	return st ? st : load_smear(r, in, e);
}

static enum status verify_container_of_run(struct report_run *r, const struct run_plan *plan,
					   struct container *c, struct err *e)
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

enum status run_load(const struct run_plan *plan, struct report_run *ret, struct err *e)
{
	struct smear_input in;
	enum status st;

	*ret = (struct report_run){ .path = plan->path, .label = plan->label };
	st = smear_input_open(plan->path, plan->identities, &in, e);
	if (st)
		return st;
	st = load_run(ret, &in, e);
	if (!st && plan->check)
		st = verify_container_of_run(ret, plan, &in.container, e);
	st = container_answer(&in.container, st, e);
	smear_input_close(&in);
	return st ? err_add(e, st, "%s", plan->path) : ST_OK;
}

void run_deinit(struct report_run *r)
{
	container_sums_deinit(&r->sums);
	strip_deinit(&r->strip);
	smear_deinit(&r->smear);
	json_decref(r->begin);
	json_decref(r->finish);
	json_decref(r->sealed_later);
	json_decref(r->lines);
	*r = (struct report_run){ 0 };
}

/*
 * Questions
 */

bool run_is_whole(const struct report_run *r)
{
	return r->end.end == RSZ_END_SEALED;
}

bool run_is_complete(const struct report_run *r)
{
	const json_t *code = json_object_get(r->finish, "exit_code");

	return json_is_integer(code) &&
	       (json_integer_value(code) == EXIT_COMPLETE || json_integer_value(code) == EXIT_GAPS);
}

const char *run_outcome(const struct report_run *r)
{
	const char *outcome = json_string_value(json_object_get(r->finish, "outcome"));

	return outcome ? outcome : "it did not finish";
}

const struct stream_sums *run_stream(const struct report_run *r, enum rsz_kind kind)
{
	for (size_t i = 0; i < r->sums.count; i++)
		if (r->sums.streams[i].kind == (uint32_t)kind)
			return &r->sums.streams[i];
	return NULL;
}

bool run_is_silent(const struct report_run *r)
{
	return json_is_true(json_object_get(json_object_get(r->begin, "source"), "silent"));
}

uint64_t run_stream_read(const struct stream_sums *s)
{
	const uint64_t *pages = s->tally.pages;
	const uint64_t without = PAGE_SIZE * (pages[PAGE_UNREADABLE] + pages[PAGE_SKIPPED]);

	return s->captured > without ? s->captured - without : 0;
}

uint64_t run_pages(const struct report_run *r, enum page_state state)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < r->sums.count; i++)
		sum += r->sums.streams[i].tally.pages[state];
	return sum;
}

uint64_t run_again(const struct report_run *r)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < r->sums.count; i++)
		for (size_t k = 0; k < SUMS_REASONS; k++)
			sum += r->sums.streams[i].again[k];
	return sum;
}

uint64_t run_wall(const struct report_run *r)
{
	const int64_t begin = run_integer(r->begin, "clocks", "mono_ns");
	const int64_t end = run_integer(r->finish, "clocks", "mono_ns");

	return begin >= 0 && end > begin ? (uint64_t)(end - begin) : 0;
}

uint64_t run_map_bytes(const struct report_run *r)
{
	const json_t *map = json_array_get(json_object_get(r->begin, "maps"), 0);
	const json_int_t bytes = json_integer_value(json_object_get(map, "bytes"));

	return bytes > 0 ? (uint64_t)bytes : 0;
}

const char *run_order(const struct report_run *r)
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
