/* SPDX-License-Identifier: Apache-2.0 */
/* The source of an acquisition: opened, announced, judged. */
#include <stdio.h>
#include <string.h>

#include "agent/collect/acquire/acquire.h"
#include "agent/collect/acquire/driver_forecast.h"
#include "agent/collect/acquire/summary.h"
#include "agent/collect/capture/manifest.h"
#include "agent/collect/host/host.h"
#include "agent/collect/host/next_step.h"
#include "agent/shared/output/output.h"
#include "agent/shared/program/clock.h"
#include "agent/shared/program/log.h"
#include "agent/shared/program/share.h"
#include "agent/shared/program/text.h"
#include "driver-interface/file_map.h"
#include "driver-interface/source.h"

void acquire_announce_source(const struct drv_info *info)
{
	const struct range_list *ranges = &info->maps[0].ranges;
	char size[TEXT_SIZE_MAX];

	text_size(range_list_bytes(ranges), size);
	log_info_with(JSON_FIELDS(field_json("source", manifest_source(info))), "source-opened",
		      "%s (%s): %s in %zu range%s", info->source, info->path, size, ranges->count,
		      ranges->count == 1 ? "" : "s");
	if (info->silent)
		log_warning("source-silent",
			    "%s: this source cannot report unreadable pages; they look like zeros",
			    info->path);
	if (info->note)
		log_info("source-note", "%s: %s", info->source, info->note);
	if (info->odd)
		log_warning("source-odd", "%s: %s", info->source, info->odd);
	if (info->lost)
		log_warning("source-lost", "%s: %s", info->path, info->lost);
	for (size_t i = 1; i < info->n_maps; i++)
		if (!range_list_same(ranges, &info->maps[i].ranges))
			log_warning("maps-disagree",
				    "%s and %s disagree about which addresses are RAM; both are "
				    "recorded",
				    info->maps[0].origin, info->maps[i].origin);
}

static uint64_t source_clock(void *source)
{
	struct drv *d = source;

	return d->ops->now(d);
}

void acquire_close_source(struct drv *d)
{
	clock_use(NULL, NULL);
	drv_close(d);
}

struct opening {
	const char *spec;
	struct drv *source;
};

static enum status run_opening(void *arg, struct err *e)
{
	struct opening *o = arg;

	return drv_open(o->spec, &o->source, e);
}

/* The first reads, and what decides about them, may hang as well; then nothing has been opened. */
static enum status open_watched(const struct acquire_options *o, struct drv **ret, struct err *e)
{
	const struct reading reading = { .limit_s = (unsigned)o->read_timeout };
	static struct opening *opening; /* stays if it is given up */
	enum status st;

	*ret = NULL;
	opening = calloc(1, sizeof(*opening));
	if (!opening)
		return err_nomem(e);
	opening->spec = o->source;
	st = reading_run(&reading, run_opening, opening, e);
	if (st == ST_SOURCE_FAILED)
		return st;
	*ret = opening->source;
	free(opening);
	opening = NULL;
	return st;
}

/*
 * Behind why no source can be used, what to do; the reasons are cut where there is no room for
 * both. What the process itself lacks says already what it needs.
 */
static enum status say_next_step(enum status st, struct err *e)
{
	const struct err why = *e;

	if (drv__lacks())
		return st;
	return err_set(e, st, "%.270s; next: %s", why.message, host_next_step());
}

enum status acquire_open_source(const struct acquire_options *o, struct drv **ret, struct err *e)
{
	const struct drv_info *info;
	enum status st;

	*ret = NULL;
	if (o->map && strncmp(o->source, "file:", 5) != 0 && strncmp(o->source, "raw:", 4) != 0)
		return err_set(e, ST_USAGE,
			       "--map is for a raw image: --source file:PATH or raw:PATH");
	drv_map_file = o->map;
	st = open_watched(o, ret, e);

	if (!strcmp(o->source, "auto") && (st == ST_NO_SOURCE || st == ST_NO_PRIVILEGE))
		return say_next_step(st, e);
	if (st == ST_NOT_MINE || st == ST_CORRUPT)
		st = err_add(e, ST_INPUT, "%s", o->source);
	if (st)
		return st;
	if ((*ret)->ops->now)
		clock_use(source_clock, *ret);
	info = &(*ret)->info;
	if (!info->n_maps || !info->maps[0].ranges.count)
		return err_set(e, ST_NO_SOURCE, "%s: lists no memory", info->path);
	return ST_OK;
}

enum status acquire_open(const struct cli *cli, const struct acquire_options *o, size_t *spool,
			 struct acquire_base *b, struct err *e)
{
	enum status st =
		driver_forecast_here(&o->driver, o->source, &b->forecast, &b->code_integrity, e);

	/* Loading can change what this host will load from then on. */
	driver_forecast_tell(b->forecast);
	if (!st)
		st = driver_session_begin(&o->driver, o->source, &b->driver, e);
	if (!st)
		st = acquire_open_source(o, &b->source, e);
	if (st)
		return st;
	b->reading = (struct reading){ .source = b->source, .limit_s = (unsigned)o->read_timeout };
	if (b->source->info.image)
		b->inputs[0] = b->source->info.path;
	return acquire_begin_share(cli, o, &b->source->info, &b->limits, &b->threads, spool, e);
}

void acquire_close(struct acquire_base *b)
{
	free(b->output);
	json_decref(b->forecast);
	json_decref(b->code_integrity);
	memory_changes_deinit(&b->changes);
	host_limits_deinit(&b->limits);
	share_end();
	acquire_close_source(b->source);
	driver_session_end(b->driver);
}

enum status acquire_check_output(const struct acquire_options *o, const struct acquire_base *b,
				 struct summary *s, struct err *e)
{
	const enum status st = summary_check(s, b->output, e);

	return st ? st : acquire_check_state(o, b->output, e);
}

static const char *source_name_of(const char *path)
{
	const char *name = path;

	for (const char *c = path; *c; c++)
		if ((*c == '/' || *c == '\\') && c[1])
			name = c + 1;
	return name;
}

enum status acquire_output_path(const struct acquire_options *o, const struct drv_info *info,
				const char *suffix, char **ret, struct err *e)
{
	struct output_options target = { .path = o->output };
	char time[CLOCK_FILE_NAME_SIZE];
	_cleanup_free_ char *name = NULL;

	clock_file_name(clock_wall_ns(), time);
	if (!info || !info->image)
		name = host_output_path(suffix);
	else if (asprintf(&name, "%s-%s%s", source_name_of(info->path), time, suffix) < 0)
		name = NULL;
	if (!name)
		return err_nomem(e);
	if (!o->output) {
		*ret = take_ptr(name);
		return ST_OK;
	}
	target.name = name;
	return output_place(&target, ret, e);
}

enum status acquire_name_remote(const struct acquire_options *o, const struct drv_info *info,
				const char *suffix, struct network *n, struct err *e)
{
	struct acquire_options unnamed = *o;
	_cleanup_free_ char *name = NULL, *address = NULL;
	const char *base = n->remote.address;
	enum status st;

	if (base[strlen(base) - 1] != '/')
		return ST_OK;
	unnamed.output = NULL;
	st = acquire_output_path(&unnamed, info, suffix, &name, e);
	if (!st && asprintf(&address, "%s%s", base, name) < 0) {
		address = NULL;
		st = err_nomem(e);
	}
	return st ? st : network_set_address(n, address, e);
}

enum status acquire_check_source(const struct drv_info *info, struct err *e)
{
	if (info->lost)
		return err_set(e, ST_UNREADABLE, "%s: %s", info->path, info->lost);
	if (!info->silent)
		return ST_OK;
	return err_set(
		e, ST_UNREADABLE,
		"%s: unreadable pages cannot be detected; some zeros may be unreadable pages",
		info->path);
}
