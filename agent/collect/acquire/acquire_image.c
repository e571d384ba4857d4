/* SPDX-License-Identifier: Apache-2.0 */
/*
 * acquire --format: memory into an image, with nothing but the summary and the list of gaps to say
 * where it came from.
 */
#include "agent/collect/acquire/acquire.h"
#include "agent/collect/acquire/summary.h"
#include "agent/collect/capture/manifest.h"
#include "agent/collect/capture/clock_watch.h"
#include "agent/collect/capture/sleep_watch.h"
#include "agent/shared/program/pipeline.h"
#include "agent/shared/program/share.h"
#include "agent/image/image_kernel.h"
#include "agent/image/image_windows.h"
#include "agent/shared/program/clock.h"
#include "agent/shared/program/log.h"

/* Pages of a source. */
struct source_pages {
	struct image_pages pages;
	struct drv *source;
};

static enum status read_source(struct image_pages *base, unsigned worker, uint64_t address,
			       uint8_t *data, size_t pages, struct page_status *status,
			       struct err *e)
{
	const struct source_pages *p = (const struct source_pages *)base;

	if (base->parallel)
		return drv_read_pages_beside(p->source, worker, address, data, pages, status, e);
	return drv_read_pages(p->source, address, data, pages, status, e);
}

static bool gave_source_up(const struct image_pages *base)
{
	return drv_is_abandoned(((const struct source_pages *)base)->source);
}

static struct source_pages source_pages_of(struct drv *source)
{
	return (struct source_pages){
		.pages = { .read = read_source,
			   .gave_up = gave_source_up,
			   .parallel = source->info.parallel != NULL },
		.source = source,
	};
}

struct image_acquisition {
	const struct cli *cli;
	const struct acquire_options *o;
	struct summary *summary;
	struct acquire_base base;
	struct linux_dump dump;       /* ELF */
	struct image_windows windows; /* crash dumps */
	struct image_out out;
};

static enum status open_image_output(struct image_acquisition *a, struct err *e)
{
	const struct drv_info *info = &a->base.source->info;
	const struct image_request r = {
		.options = &a->o->image,
		.path = a->base.output,
		.force = a->o->force,
		.inputs = a->base.inputs,
		.once = !info->image,
		.ranges = &info->maps[0].ranges,
		.kernel = &a->dump.kernel,
		.dmp = image_is_dmp(a->o->image.format) ? &a->windows.dump.kernel : NULL,
		.level = a->o->level.level,
		.threads = a->base.threads,
		.progress = cli_progress(a->cli),
		.phase = "memory",
	};

	return image_out_open(&r, &a->out, e);
}

static void summarise_image(const struct image_acquisition *a, struct summary_begun begun,
			    enum status st, const struct err *e)
{
	const struct drv_info *info = &a->base.source->info;
	char text[IMAGE_OUT_TEXT_MAX];

	image_out_text(&a->out, text);
	summary_tell(
		a->summary, st, e, begun,
		JSON_FIELDS(
			field_members(image_out_json(&a->out)),
			field_json("missing",
				   summary_missing_json(&a->out.result.tally,
							range_list_bytes(&a->base.changes.missing),
							0)),
			field_json("source", manifest_source(info)),
			field_json("maps", manifest_maps(info)),
			field_json("withheld",
				   info->image ? NULL : changes_withheld_json(&a->base.changes)),
			field_json("memory_changes", changes_json(&a->base.changes)),
			field_json("parts", manifest_parts(a->base.source)),
			field_json("driver", driver_session_json(a->base.driver)),
			field_json("driver_forecast", json_incref(a->base.forecast)),
			field_u64("threads", a->base.threads), field_json("share", share_json()),
			field_json("limits", host_limits_json(&a->base.limits)),
			image_is_dmp(a->o->image.format)
				? field_json("kernel", image_windows_json(&a->windows))
				: image_kernel_field(a->o->image.format, &a->dump)),
		text);
}

/* The ranges of an image are those that it began with: what was added is told, and not in it. */
static enum status look_for_changes(struct image_acquisition *a, struct err *e)
{
	const enum status st = changes_sample(&a->base.changes, a->base.source, e);

	return st ? st : changes_end(&a->base.changes, a->base.source, e);
}

static enum status acquire_to_image(struct image_acquisition *a, struct err *e)
{
	const struct summary_begun begun = { clock_wall_ns(), clock_mono_ns() };
	const struct drv_info *info;
	struct sleep_watch sleeps;
	struct clock_watch clock;
	struct source_pages pages;
	enum status st = acquire_open(a->cli, a->o, &(size_t){ 0 }, &a->base, e);

	if (st)
		return st;
	info = &a->base.source->info;
	pages = source_pages_of(a->base.source);
	st = acquire_output_path(a->o, info, a->o->image.format->suffix, &a->base.output, e);
	if (!st)
		st = acquire_check_output(a->o, &a->base, a->summary, e);
	if (!st && image_wants_kernel(a->o->image.format))
		st = image_kernel_of_source(a->base.source, &pages.pages, a->base.threads, &a->dump,
					    e);
	if (!st && image_is_dmp(a->o->image.format))
		st = image_windows_of_source(a->base.source, &pages.pages, a->base.threads,
					     !a->o->image.dmp.no_patch, &a->windows, e);
	if (!st)
		st = changes_begin(&a->base.changes, a->base.source, e);
	if (!st)
		st = open_image_output(a, e);
	if (st)
		return st;
	st = acquire_is_ready(a->o, a->base.output, false, image_out_where(&a->out), e);
	if (st)
		return st;
	acquire_announce_source(info);
	sleep_watch_begin(&sleeps);
	clock_watch_begin(&clock);
	pages.pages.filler = reading_filler(&a->base.reading);
	st = image_out_write(&a->out, &pages.pages,
			     json_pack("{s:o}", "source", manifest_source(info)), e);
	sleep_watch_sample(&sleeps);
	clock_watch_sample(&clock);
	if (!st)
		st = look_for_changes(a, e);
	if (!st)
		st = image_out_outcome(&a->out, info->path, e);
	if (st == ST_UNREADABLE && image_out_is_empty(&a->out))
		st = err_add(e, ST_SOURCE_FAILED, "no page of memory could be read");
	if (!st)
		st = changes_outcome(&a->base.changes, e);
	if (!st)
		st = acquire_check_source(info, e);
	acquire_tell_where(a->o, image_out_where(&a->out), false);
	summarise_image(a, begun, st, e);
	return st;
}

enum status acquire_image(const struct cli *cli, const struct acquire_options *o, struct summary *s,
			  struct err *e)
{
	struct image_acquisition a = { .cli = cli, .o = o, .summary = s };
	const enum status st = acquire_to_image(&a, e);

	image_out_close(&a.out);
	linux_dump_deinit(&a.dump);
	image_windows_deinit(&a.windows);
	acquire_close(&a.base);
	return st;
}
