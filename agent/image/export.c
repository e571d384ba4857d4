/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/image/export.h"

#include <inttypes.h>
#include <string.h>

#include "agent/image/image_kernel.h"
#include "agent/image/image_windows.h"
#include "agent/shared/container/manifest_read.h"
#include "agent/shared/program/log.h"
#include "agent/shared/program/pipeline.h"
#include "agent/shared/program/self.h"

/* Everything that an export needs until its end. */
struct export_run {
	const struct export_plan *plan;
	const char *path;      /* of the container */
	const char *inputs[2]; /* that, and NULL */
	unsigned threads;
	uint32_t stream;
	struct range_list ranges;
	struct container_pages pages;
	struct linux_dump dump;       /* ELF */
	struct image_windows windows; /* crash dumps */
	struct image_captures captures;
	struct image_out out;
};

static void export_run_deinit(struct export_run *x)
{
	image_out_close(&x->out);
	container_pages_deinit(&x->pages);
	linux_dump_deinit(&x->dump);
	image_windows_deinit(&x->windows);
	image_captures_deinit(&x->captures);
	range_list_deinit(&x->ranges);
}

static const struct rsz_stream_info *stream_of(const struct export_run *x)
{
	return rsz_reader_stream(x->plan->in->reader, x->stream);
}

static bool is_file(const struct rsz_stream_info *s)
{
	return s->kind == RSZ_KIND_PAGEFILE || s->kind == RSZ_KIND_FILE;
}

/* A file has offsets, and only padded images can say so. */
static enum status check_export_stream(const struct export_run *x, struct err *e)
{
	const struct rsz_stream_info *s = stream_of(x);

	if (!s->paged)
		return err_set(e, ST_INPUT, "stream \"%.200s\" is not memory: use ramseal extract",
			       s->name);
	if (!x->plan->image->format->padded && is_file(s))
		return err_set(e, ST_INPUT, "stream \"%.200s\" is a file: export it as raw or e01",
			       s->name);
	return ST_OK;
}

/* Memory that the acquisition set out to read, and of which it did not say anything. */
static enum status add_unsaid_memory(struct range_list *ranges, const json_t *begin, struct err *e)
{
	_cleanup_ranges_ struct range_list map = { 0 };
	enum status st = manifest_get_map(begin, &map, e);

	for (size_t i = 0; i < map.count && !st; i++)
		st = range_list_add(ranges, map.at[i].first, map.at[i].last, e);
	if (st)
		return st;
	range_list_tidy(ranges, NULL);
	range_list_join(ranges);
	return ST_OK;
}

enum status export_ranges(const struct container *c, uint32_t stream, struct range_list *ret,
			  struct err *e)
{
	const enum status st = rsz_reader_ranges(c->reader, stream, ret, e);

	if (st || rsz_reader_stream(c->reader, stream)->kind != RSZ_KIND_MEMORY)
		return st;
	return add_unsaid_memory(ret, container_event(c, "begin"), e);
}

static enum status choose_export_stream(struct export_run *x, struct err *e)
{
	const char *name = x->plan->stream;
	enum status st;

	if (name)
		st = container_find_name(x->plan->in, name, &x->stream, e);
	else
		st = container_find_kind(x->plan->in, RSZ_KIND_MEMORY, &x->stream, e);
	if (!st)
		st = check_export_stream(x, e);
	return st ? st : export_ranges(x->plan->in, x->stream, &x->ranges, e);
}

static enum status open_export_input(struct export_run *x, struct err *e)
{
	enum status st = choose_export_stream(x, e);

	if (!st)
		st = container_pages_init(&x->pages, x->plan->in->reader, x->stream, x->threads, e);
	if (!st)
		st = image_captures_load(x->plan->in, x->stream, &x->captures, e);
	return st ? err_add(e, st, "%s", x->path) : ST_OK;
}

json_t *export_stream_json(const struct rsz_stream_info *s)
{
	json_t *meta =
		s->meta && *s->meta ? json_loads(s->meta, JSON_REJECT_DUPLICATES, NULL) : NULL;

	return json_pack("{s:o, s:s, s:o}", "name", json_text(s->name), "kind",
			 rsz_kind_name(s->kind), "metadata", meta ? meta : json_null());
}

uint64_t export_file_size(const struct rsz_stream_info *s, const struct range_list *l)
{
	const uint64_t end = l->count ? l->at[l->count - 1].last + 1 : 0;
	json_t *stream = export_stream_json(s);
	const json_int_t size =
		json_integer_value(json_object_get(json_object_get(stream, "metadata"), "size"));

	json_decref(stream);
	return size > 0 ? MAX((uint64_t)size, end) : end;
}

static enum status open_export_output(struct export_run *x, struct err *e)
{
	const struct export_plan *p = x->plan;
	_cleanup_free_ char *made = output_name_of(x->path, p->image->format->suffix);
	const struct image_request r = {
		.options = p->image,
		.path = p->output,
		.name = p->whole_file ? stream_of(x)->name : made,
		.force = p->force,
		.inputs = x->inputs,
		.partial = !container_is_complete(p->in),
		.ranges = &x->ranges,
		.end = p->whole_file ? export_file_size(stream_of(x), &x->ranges) : 0,
		.kernel = &x->dump.kernel,
		.dmp = image_is_dmp(p->image->format) ? &x->windows.dump.kernel : NULL,
		.level = p->level,
		.threads = x->threads,
		.captures = &x->captures,
		.progress = cli_progress(p->cli),
		.phase = p->whole_file ? "extract" : "export",
	};

	return made ? image_out_open(&r, &x->out, e) : err_nomem(e);
}

json_t *export_origin_json(const struct container *c, const char *path,
			   const struct rsz_stream_info *s)
{
	json_t *origin = container_end_json(c);

	if (!origin || json_object_set_new(origin, "container", json_text(path)) ||
	    json_object_set_new(origin, "stream", json_text(s->name))) {
		json_decref(origin);
		return NULL;
	}
	return origin;
}

enum status export_check_end(const struct container *c, const char *path, struct err *e)
{
	const struct rsz_scan_result *end = rsz_reader_end(c->reader);

	if (end->end == RSZ_END_SEALED)
		return ST_OK;
	return err_set(e, ST_CORRUPT, "%s: %s: %.300s; what is whole was exported", path,
		       rsz_end_name(end->end), end->reason);
}

/* An image is written as far as it goes, and then it is said what it lacks. */
static enum status export_outcome(const struct export_run *x, struct err *e)
{
	const struct image_result *r = &x->out.result;
	enum status st;

	if (r->damaged)
		return err_set(e, ST_CORRUPT, "%s: %" PRIu64 " pages are damaged: %.300s", x->path,
			       r->damaged, r->why.message);
	st = export_check_end(x->plan->in, x->path, e);
	return st ? st : image_out_outcome(&x->out, x->path, e);
}

/* When the stream's pages were read, from the first to the last. */
static struct rsz_times read_times(const struct export_run *x)
{
	struct rsz_times t = { 0 };

	for (unsigned i = 0; i < x->threads; i++)
		rsz_times_widen(&t, x->pages.times[i].start, x->pages.times[i].end);
	return t;
}

static enum status run_export(struct export_run *x, struct err *e)
{
	const struct image_format *format = x->plan->image->format;
	enum status st = open_export_input(x, e);
	char text[IMAGE_OUT_TEXT_MAX];
	struct rsz_times t;

	if (!st && image_wants_kernel(format))
		st = image_kernel_of_container(x->plan->in, x->stream, x->threads, &x->dump, e);
	if (!st && image_is_dmp(format))
		st = image_windows_of_container(x->plan->in, x->stream, &x->ranges, x->threads,
						!x->plan->image->dmp.no_patch, &x->windows, e);
	if (!st)
		st = open_export_output(x, e);
	if (st)
		return st;
	st = image_out_write(&x->out, &x->pages.pages,
			     export_origin_json(x->plan->in, x->path, stream_of(x)), e);
	if (!st)
		st = export_outcome(x, e);
	t = read_times(x);
	image_out_text(&x->out, text);
	log_result_with(JSON_FIELDS(field_members(image_out_json(&x->out)),
				    field_i64("exit_code", status_exit_code(st)),
				    field_text("outcome", exit_code_text(status_exit_code(st))),
				    field_text("error", st ? e->message : NULL),
				    field_json("usage", self_usage_json()),
				    field_json("stream", export_stream_json(stream_of(x))),
				    field_u64("start_ns", t.start), field_u64("end_ns", t.end),
				    image_is_dmp(format)
					    ? field_json("kernel", image_windows_json(&x->windows))
					    : image_kernel_field(format, &x->dump)),
			"summary", "%s", text);
	return st;
}

enum status export_stream(const struct export_plan *plan, struct err *e)
{
	struct export_run x = {
		.plan = plan,
		.path = plan->cli->operands[0],
		.inputs = { plan->cli->operands[0] },
		.threads = pipeline_threads(plan->threads),
	};
	const enum status st = run_export(&x, e);

	export_run_deinit(&x);
	return st;
}
