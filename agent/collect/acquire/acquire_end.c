/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>

#include "agent/collect/acquire/acquire_internal.h"
#include "agent/collect/capture/manifest.h"
#include "agent/collect/acquire/missing.h"
#include "agent/collect/acquire/tables_json.h"
#include "agent/collect/host/running.h"
#include "agent/shared/program/self.h"
#include "agent/shared/program/share.h"
#include "agent/collect/order/order.h"
#include "agent/shared/program/clock.h"
#include "agent/shared/program/log.h"
#include "agent/shared/program/text.h"

/* Was the image written to since it was opened? */
static bool is_still_the_same(const struct acquisition *a)
{
	struct file_mark now;

	if (!a->still)
		return false;
	if (file_mark_take(a->base.source->info.path, &now) && now.size == a->mark.size &&
	    now.written == a->mark.written)
		return true;
	log_warning("image-changed", "%s: was written to, or opened for writing, while it was read",
		    a->base.source->info.path);
	return false;
}

/* The pass over an image's tables that shows that there must be more of it; or NULL. */
static const struct outside *names_outside(const struct acquisition *a)
{
	const struct tables_result *const passes[] = { &a->image_end, &a->image, &a->before,
						       &a->after };

	for (size_t i = 0; i < ARRAY_SIZE(passes); i++)
		if (outside_is_wrong(&passes[i]->outside, &a->base.source->info))
			return &passes[i]->outside;
	return NULL;
}

/* The same that shows that what there is is not in its place. */
static const struct displaced *shows_displaced(const struct acquisition *a)
{
	const struct tables_result *const passes[] = { &a->image_end, &a->image, &a->before,
						       &a->after };

	for (size_t i = 0; i < ARRAY_SIZE(passes); i++)
		if (displaced_is_sure(&passes[i]->displaced))
			return &passes[i]->displaced;
	return NULL;
}

enum status acquire__outcome(const struct acquisition *a, enum status output, struct err *e)
{
	const struct tally *t = &a->memory.stream.tally;

	if (output)
		return output;
	if (a->memory.stopped) {
		*e = a->memory.why;
		return err_add(e, a->memory.stopped, "sealed, but incomplete");
	}
	/* Nobody is served by a container of nothing that is called complete. */
	if (!t->pages[PAGE_DATA] && !t->pages[PAGE_ZERO] &&
	    t->pages[PAGE_UNREADABLE] + t->pages[PAGE_SKIPPED])
		return err_set(e, ST_SOURCE_FAILED,
			       "no page of memory could be read: %" PRIu64
			       " were unreadable and %" PRIu64 " not offered by the source",
			       t->pages[PAGE_UNREADABLE], t->pages[PAGE_SKIPPED]);
	if (files_have_gaps(&a->files))
		return err_set(e, ST_UNREADABLE,
			       "files were not copied, or not completely; the manifest says which");
	if (tally_has_gaps(t))
		return err_set(e, ST_UNREADABLE,
			       "%" PRIu64 " pages were unreadable and %" PRIu64
			       " not offered by the source; they are recorded",
			       t->pages[PAGE_UNREADABLE], t->pages[PAGE_SKIPPED]);
	if (changes_outcome(&a->base.changes, e))
		return ST_UNREADABLE;
	if (names_outside(a)) {
		outside_text(names_outside(a), e);
		return err_add(e, ST_UNREADABLE, "%s", a->base.source->info.path);
	}
	if (shows_displaced(a)) {
		displaced_text(shows_displaced(a), e);
		return err_add(e, ST_UNREADABLE, "%s", a->base.source->info.path);
	}
	return acquire_check_source(&a->base.source->info, e);
}

static json_t *swap_cache_json(const struct slots_counts *c)
{
	return json_pack("{s:I, s:I, s:I, s:I, s:I, s:I}", "absent", (json_int_t)c->absent, "held",
			 (json_int_t)c->held, "busy", (json_int_t)c->busy, "zeros",
			 (json_int_t)c->zeros, "untold", (json_int_t)c->untold, "look_ns",
			 (json_int_t)c->lookup_ns);
}

static json_t *slots_json(const struct acquisition *a)
{
	const struct slots_counts c = slots_counts(a->slots);
	json_t *o = json_pack("{s:I, s:I, s:I, s:I}", "read", (json_int_t)c.read, "again",
			      (json_int_t)c.again, "dropped", (json_int_t)c.dropped, "waited_ns",
			      (json_int_t)c.waited_ns);

	if (o && a->files_plan.swap_cache)
		json_object_set_new(o, "swap_cache", swap_cache_json(&c));
	else if (o && a->no_swap_cache)
		json_object_set_new(o, "swap_cache_problem", json_string(a->no_swap_cache));
	return o;
}

static json_t *order_json(const struct acquisition *a)
{
	const struct memory_result *m = &a->memory;
	json_t *o = json_fields(JSON_FIELDS(field_text("name", acquire__order(a)->name),
					    field_u64("guided_pages", m->guided_pages),
					    field_u64("retaken_pages", m->retaken_pages),
					    field_u64("not_retaken", m->not_retaken),
					    field_u64("tables_changed", m->tables_changed),
					    field_u64("tables_unsettled", m->tables_unsettled)));

	if (o && a->slots)
		json_object_set_new(o, "slots", slots_json(a));
	return o;
}

static enum status write_end(struct acquisition *a, enum status st, const struct err *why,
			     struct err *e)
{
	json_t *changes = changes_json(&a->base.changes);
	json_t *doc = json_fields(JSON_FIELDS(
		field_text("event", "end"), field_i64("exit_code", status_exit_code(st)),
		field_text("outcome", exit_code_text(status_exit_code(st))),
		field_text("message", st ? why->message : ""),
		field_made("memory", manifest_stream(&a->memory.stream)),
		field_made("order", order_json(a)),
		field_made("parts", changes_parts_json(&a->base.changes, a->base.source)),
		field_made("clocks", manifest_clocks())));

	if (doc && !a->base.source->info.simulated) {
		json_object_set_new(doc, "usage", self_usage_json());
		json_object_set_new(doc, "footprint", self_footprint_json());
		json_object_set_new(doc, "sleeps", sealer_sleeps_json(a->sealer));
		json_object_set_new(doc, "clock_steps", sealer_clock_json(a->sealer));
		if (a->network)
			json_object_set_new(doc, "upload", output_json(a->out));
	}

	if (doc && a->base.source->info.image)
		json_object_set_new(doc, "still", json_boolean(is_still_the_same(a)));
	if (doc && a->base.changes.now.count)
		json_object_set_new(doc, "maps_at_end", manifest_maps_again(&a->base.changes.now));
	if (changes)
		json_object_set_new(doc, "memory_changes", changes);
	return sealer_manifest(a->sealer, doc, e);
}

/* How much of the memory the container lacks, behind why. */
static void tell_missing(uint64_t pages, uint64_t all, enum status st, struct err *e)
{
	const struct err why = *e;

	if (pages && pages != UINT64_MAX)
		err_set(e, st,
			"%.400s; sealed, but without %" PRIu64 " of %" PRIu64 " pages of memory",
			why.message, pages, all);
	else if (!pages)
		err_set(e, st, "%.400s; the container is sealed, with all of the memory",
			why.message);
}

/* Reading ended before its time: on a full disk, without memory, by a signal. */
static enum status settle_outcome(struct acquisition *a, enum status st, struct err *e,
				  struct err *late)
{
	json_t *meta = acquire__memory_meta(a);
	_cleanup_ranges_ struct range_list ranges = { 0 };
	struct missing_plan plan = {
		.ranges = &ranges,
		.meta = meta,
		.stream = acquire__stream_plan(a, 1, PROGRESS_QUIET),
		.result = &a->memory.stream,
		.reason = drv_is_abandoned(a->base.source) ? SKIP_SOURCE_FAILED : SKIP_INTERRUPTED,
	};
	uint64_t pages = range_list_bytes(&a->base.changes.missing) / PAGE_SIZE;
	enum status ret = changes_ranges(&a->base.changes, a->base.source, &ranges, late);

	plan.stream.stream = a->memory_stream;
	if (!ret && !a->memory_named)
		ret = missing_settle(&plan, st == ST_OUTPUT, &pages, late);
	else if (!ret && st == ST_OUTPUT)
		ret = sealer_recover(a->sealer, late);
	json_decref(meta);
	if (!ret)
		tell_missing(pages, range_list_bytes(&ranges) / PAGE_SIZE, st, e);
	return ret;
}

enum status acquire__end(struct acquisition *a, enum status st, struct err *e)
{
	struct err late = ERR_INIT;
	const struct err why = *e;
	enum status closing = ST_OK;

	running_tell(a->o->running, "phase", "sealing");
	if (st == ST_OUTPUT || (st && !a->memory_named))
		closing = settle_outcome(a, st, e, &late);
	else /* an output that keeps no room has none to give back */
		(void)sealer_recover(a->sealer, NULL);
	a->files_plan.stream = acquire__stream_plan(a, FILE_THREADS, PROGRESS_QUIET);
	if (!closing)
		closing = files_tell_rest(&a->files_plan, &a->files, st ? &why : NULL, &late);
	if (!closing)
		closing = write_end(a, st, e, &late);
	if (!closing)
		closing = sealer_close(a->sealer, a->root, &late);
	if (!closing)
		closing = output_commit(a->out, &late);
	if (!closing)
		return st ? st : output_kept(a->out, e);
	a->root[0] = '\0';
	*e = st == ST_OUTPUT ? why : late;
	if (st == ST_OUTPUT && !output_holds(a->out))
		return err_add(e, st, "not sealed");
	if (st == ST_OUTPUT)
		return err_add(e, st, "not sealed; %s has all complete records",
			       output_where(a->out));
	return closing;
}

static size_t files_missing(const struct files *f)
{
	size_t n = f->lost_volumes + f->lost_files;

	for (size_t i = 0; i < f->count; i++)
		n += f->at[i].st || f->at[i].result.tally.pages[PAGE_UNREADABLE];
	return n;
}

static json_t *missing_json(const struct acquisition *a)
{
	return summary_missing_json(&a->memory.stream.tally,
				    range_list_bytes(&a->base.changes.missing),
				    files_missing(&a->files));
}

/*
 * Of the container there is no hash of its file: it is not written from front to back, and nothing
 * is read again on a machine whose memory is the evidence. Its root stands for it.
 */
static json_t *container_outputs_json(const struct acquisition *a)
{
	const struct output *stamp = a->timestamp_sha256[0] ? a->timestamp_out : NULL;
	json_t *list = json_array();

	json_array_append_new(list, output_file_json("container", output_where(a->out),
						     output_bytes(a->out), NULL,
						     a->root[0] ? a->root : NULL));
	if (a->statement_kept)
		json_array_append_new(list, acquire__statement_json(a));
	if (stamp)
		json_array_append_new(list, output_file_json("timestamp", output_where(stamp),
							     output_bytes(stamp),
							     a->timestamp_sha256, NULL));
	return list;
}

static json_t *found_tables_json(const struct tables_result *t)
{
	return t->start ? tables_json(t) : json_null();
}

void acquire__summarise(const struct acquisition *a, enum status st, const struct err *e)
{
	char read[TEXT_SIZE_MAX], written[TEXT_SIZE_MAX], text[ERR_MESSAGE_MAX], to[48] = "";
	const bool sealed = a->root[0] != '\0';
	const struct json_field fields[] = {
		field_text("output", output_where(a->out)),
		field_bool("sealed", sealed),
		field_text("root", sealed ? a->root : NULL),
		field_u64("bytes_written", output_bytes(a->out)),
		field_text("format", "rsz"),
		field_bool("encrypted", a->encrypted),
		field_json("outputs", container_outputs_json(a)),
		field_json("missing", missing_json(a)),
		field_json("source", manifest_source(&a->base.source->info)),
		field_json("upload", output_json(a->out)),
		field_json("memory", manifest_stream(&a->memory.stream)),
		field_json("order", order_json(a)),
		field_json("parts", changes_parts_json(&a->base.changes, a->base.source)),
		field_json("driver", driver_session_json(a->base.driver)),
		field_json("driver_forecast", json_incref(a->base.forecast)),
		field_bool("silent", a->base.source->info.silent),
		field_json("files", files_json(&a->files)),
		field_json("tables_before", found_tables_json(&a->before)),
		field_json("tables_after", found_tables_json(&a->after)),
		field_json("tables_image", found_tables_json(&a->image_end)),
		field_u64("threads", a->base.threads),
		field_json("share", share_json()),
		field_json("limits", host_limits_json(&a->base.limits)),
		field_text("statement", a->statement),
		field_json("timestamp", acquire__timestamp_json(a)),
		{ .key = NULL },
	};

	acquire_tell_where(a->o, output_where(a->out), a->network != NULL);
	running_tell(a->o->running, "root", a->root[0] ? a->root : NULL);
	text_size(a->memory.stream.bytes, read);
	text_size(output_bytes(a->out), written);
	if (a->encrypted)
		snprintf(to, sizeof(to), "encrypted for %zu recipient%s, ", a->o->to->count,
			 a->o->to->count == 1 ? "" : "s");
	snprintf(text, sizeof(text), "%.300s: %s of memory in %s, %s%s%s", output_where(a->out),
		 read, written, to, sealed ? "root " : "not sealed", a->root);
	summary_tell(a->summary, st, e,
		     (struct summary_begun){ sealer_begin_wall(a->sealer),
					     sealer_begin_mono(a->sealer) },
		     fields, text);
}
