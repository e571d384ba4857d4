/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/collect/acquire/tables_search.h"

#include "agent/collect/host/host.h"
#include "agent/shared/program/clock.h"
#include "agent/shared/program/interrupt.h"
#include "driver-interface/file_map.h"
#include "driver-interface/source.h"

/*
 * What one pass may cost at most. A server with two thousand processes has some million table
 * pages; what goes on for longer than the deadline is torn or hostile.
 */
#define TABLES_PAGES_MAX ((uint64_t)8 << 20)
#define TABLES_NS_MAX    (60 * NS_PER_SECOND)

/* The file that the kernel was loaded from. False: there is none to be had. */
static bool open_kernel_file(const struct drv *source, struct file_blob *ret)
{
	_cleanup_free_ char *path = drv_info_is_live(&source->info) ? host_kernel_file() : NULL;

	return path && !file_blob_open(ret, path, NULL);
}

static enum status find_spaces_here(struct drv *source, const struct tables_search *by,
				    struct walk_budget *budget, struct discovery *ret,
				    struct err *e)
{
	/* The scan for roots reads all of memory: it is made while that is read anyway. */
	struct discover_hints hints = { .before = by->earlier,
					.skip_scan = true,
					.watch = by->watch,
					.candidates = by->candidates,
					.search_pages = by->pages };
	struct file_blob kernel;
	struct pe_file file = { .blob = &kernel.blob };
	const bool has_file = open_kernel_file(source, &kernel);
	struct physmem_cache cache;
	struct physmem_drv mem;
	enum status st;

	const uint64_t begin = clock_mono_ns();

	physmem_drv_init(&mem, source, clock_mono_ns);
	st = physmem_cache_init(&cache, &mem.mem, e);
	discover_hints_from_drv(&hints, &source->info);
	hints.ntoskrnl = has_file ? &file : NULL;
	if (!st)
		st = discover(&cache.mem, &hints, budget, ret, e);
	ret->ns = clock_mono_ns() - begin;
	physmem_cache_deinit(&cache);
	if (has_file)
		file_blob_deinit(&kernel);
	return st;
}

/* A search, as the thread that reads has it. It stays if a read is given up. */
struct tables_search_run {
	struct drv *source;
	struct tables_search by;
	struct walk_budget budget;
	struct discovery found;
};

static enum status run_search(void *arg, struct err *e)
{
	struct tables_search_run *s = arg;

	return find_spaces_here(s->source, &s->by, &s->budget, &s->found, e);
}

enum status tables_search(const struct reading *reading, struct drv *source,
			  struct tables_search by, struct walk_budget *budget,
			  struct discovery *ret, struct err *e)
{
	const struct reading none = { .source = source };
	const bool was_left = drv_is_abandoned(source);
	struct tables_search_run *s = calloc(1, sizeof(*s));
	enum status st;

	if (!s)
		return err_nomem(e);
	*s = (struct tables_search_run){ .source = source, .by = by, .budget = *budget };
	st = reading_run(reading ? reading : &none, run_search, s, e);
	if (!was_left && drv_is_abandoned(source))
		return st;
	*budget = s->budget;
	*ret = s->found;
	free(s);
	return st;
}

/* Whoever interrupts does not want to wait for the rest of a search. */
static uint64_t now_or_never(void)
{
	return interrupted() ? UINT64_MAX : clock_mono_ns();
}

struct walk_budget tables_budget(void)
{
	return (struct walk_budget){
		.pages = TABLES_PAGES_MAX,
		.deadline = clock_mono_ns() + TABLES_NS_MAX,
		.now = now_or_never,
	};
}

enum status tables_find_again(struct drv *source, const struct discovery *earlier,
			      struct discovery *ret, struct err *e)
{
	struct walk_budget budget = tables_budget();

	return tables_search(NULL, source, (struct tables_search){ .earlier = earlier }, &budget,
			     ret, e);
}

/* The beginning of a watch, on the thread that reads. It too outlives a read that is given up. */
struct watch_run {
	struct root_scan_options options;
	struct physmem_drv mem;
	struct root_watch watch;
	bool begun;
};

static enum status run_watch(void *arg, struct err *e)
{
	struct watch_run *w = arg;

	w->begun = root_watch_begin(&w->watch, &w->mem.mem, &w->options);
	return ST_OK;
}

bool tables_watch(const struct reading *reading, const struct discovery *before,
		  struct root_watch *ret)
{
	struct watch_run *w = before->os == OS_UNKNOWN ? NULL : calloc(1, sizeof(*w));
	struct err why = ERR_INIT;
	bool begun;

	if (!w)
		return false;
	w->options = (struct root_scan_options){
		.mode = before->mode,
		.kernel_dtb = before->walk_dtb,
		.self_index = before->self_index,
		.ignore = before->ignore,
	};
	physmem_drv_init(&w->mem, reading->source, clock_mono_ns);
	if (reading_run(reading, run_watch, w, &why))
		return false;
	begun = w->begun;
	*ret = w->watch;
	free(w);
	return begun;
}
