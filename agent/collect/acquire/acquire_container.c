/* SPDX-License-Identifier: Apache-2.0 */
/*
 * acquire, into a container: page tables, memory, page files, page tables again, sealed whatever
 * happens on the way.
 */
#include <pthread.h>
#include <string.h>

#include "agent/collect/acquire/acquire_internal.h"
#include "agent/collect/acquire/confirm_numbers.h"
#include "agent/collect/acquire/preflight.h"
#include "agent/collect/acquire/tables_search.h"
#include "agent/collect/capture/manifest.h"
#include "agent/collect/order/order.h"
#include "agent/shared/output/age_sink.h"
#include "agent/shared/program/clock.h"
#include "agent/shared/program/log.h"
#include "agent/shared/program/share.h"
#include "formats/base/left.h"

/* Ends first: the slots read from the source, and a read may be what hangs. */
static void end_slots(struct acquisition *a)
{
	if (a->base.source && drv_is_abandoned(a->base.source)) {
		slots_leave(a->slots);
		left_keep(a->swap_memory);
	} else {
		slots_destroy(a->slots);
		free(a->swap_memory);
	}
}

static void acquisition_deinit(struct acquisition *a)
{
	memory_result_deinit(&a->memory);
	end_slots(a);
	files_deinit(&a->files);
	tables_result_deinit(&a->before);
	tables_result_deinit(&a->after);
	tables_result_deinit(&a->image);
	tables_result_deinit(&a->image_end);
	root_watch_deinit(&a->watch);
	candidates_deinit(&a->candidates);
	disk_close(a->disk);
	sealer_destroy(a->sealer);
	output_destroy(a->out);
	network_destroy(a->network);
	output_destroy(a->statement_out);
	free(a->statement);
	output_destroy(a->timestamp_out);
	free(a->timestamp_ca);
	free(a->timestamp_problem);
	acquire_close(&a->base);
}

struct stream_plan acquire__stream_plan(const struct acquisition *a, unsigned threads,
					enum progress_mode progress)
{
	return (struct stream_plan){
		.paced = a->base.source && a->base.source->ops->output ? a->base.source : NULL,
		.sealer = a->sealer,
		.level = a->o->level.level,
		.level_auto = a->o->level.automatic,
		.threads = threads,
		.progress = progress,
	};
}

/* Of a pass that reads the source. */
static struct stream_plan watched_plan(const struct acquisition *a, enum progress_mode progress)
{
	struct stream_plan ret = acquire__stream_plan(a, a->base.threads, progress);

	ret.reading = &a->base.reading;
	return ret;
}

/*
 * By the page tables, where there are any. An image does not change while it is read, and its
 * tables are not looked for.
 */
const struct order *acquire__order(const struct acquisition *a)
{
	return a->o->order ? a->o->order : order_default(a->before.found.n_spaces);
}

json_t *acquire__memory_meta(const struct acquisition *a)
{
	return json_pack("{s:o, s:s}", "source", json_text(a->base.source->info.source),
			 "error_numbers", a->base.source->info.error_numbers);
}

static struct memory_plan memory_plan(struct acquisition *a)
{
	struct memory_plan ret = {
		.source = a->base.source,
		.slots = a->slots,
		.watch = a->watching ? &a->watch : NULL,
		.candidates = a->collecting ? &a->candidates : NULL,
		.order = acquire__order(a),
		.table_pages = a->before.pages.ranges ? &a->before.pages : NULL,
		.spaces = a->before.found.n_spaces ? &a->before.found : NULL,
		.prints = a->before.found.n_spaces ? &a->before.prints : NULL,
		.find_again = tables_find_again,
		.stream = watched_plan(a, cli_progress(a->cli)),
	};

	ret.stream.stream = a->memory_stream;
	return ret;
}

static enum status acquire_memory_stream(struct acquisition *a, struct err *e)
{
	struct memory_plan plan;
	enum status st = sealer_stream(a->sealer, RSZ_KIND_MEMORY, "memory",
				       acquire__memory_meta(a), &a->memory_stream, e);

	if (st)
		return st;
	plan = memory_plan(a);
	st = memory_acquire(&plan, &a->memory, e);
	a->memory_named = !st && !drv_is_abandoned(a->base.source);
	return st;
}

/* What was added to the machine since its memory was looked at, or since the last time. */
static enum status read_added_memory(struct acquisition *a, struct err *e)
{
	const struct memory_plan plan = memory_plan(a);
	enum status st;

	if (drv_is_abandoned(a->base.source))
		return ST_OK;
	a->memory_named = false;
	st = changes_acquire(&a->base.changes, a->base.source, a->o->source, &plan, &a->memory, e);
	a->memory_named =
		!st && !drv_is_abandoned(changes_source(&a->base.changes, a->base.source));
	return st;
}

static enum status find_files(struct acquisition *a, struct err *e)
{
	enum status st =
		acquire_plan_files(a->cli, a->o, a->base.source, &a->disk, &a->files_plan, e);

	if (st)
		return st;
	st = files_find(&a->files_plan, &a->files, e);
	if (!st || acquire_names_disk(a->o))
		return st;
	/* Nobody asked for them by name, and the memory must not wait for them. */
	log_warning("pagefiles-not-found", "page files were not examined: %s", e->message);
	a->files.lost_volumes++;
	e->message[0] = '\0';
	return ST_OK;
}

/* What goes before or beside the memory may fail, but must not keep it from being read. */
static enum status tolerate_left_out(enum status st, const char *what, struct err *e)
{
	if (!st || st == ST_OUTPUT || st == ST_INTERRUPTED)
		return st;
	log_warning("left-out", "%s: %s", what, e->message);
	e->message[0] = '\0';
	return ST_OK;
}

static enum status copy_files(struct acquisition *a, struct err *e)
{
	enum status st;

	if (!a->files.count)
		return ST_OK;
	a->files_plan.stream =
		a->o->pagefile == PAGEFILE_CONCURRENT
			? acquire__stream_plan(a, FILE_THREADS, PROGRESS_QUIET)
			: acquire__stream_plan(a, a->base.threads, cli_progress(a->cli));
	share_disk(true);
	st = files_copy(&a->files_plan, &a->files, e);
	share_disk(false);
	return tolerate_left_out(st, "page files", e);
}

struct files_thread {
	struct acquisition *a;
	pthread_t thread;
	enum status st;
	struct err err;
};

static void *files_thread(void *arg)
{
	struct files_thread *t = arg;

	t->st = copy_files(t->a, &t->err);
	return NULL;
}

static enum status read_both(struct acquisition *a, struct err *e)
{
	struct files_thread t = { .a = a };
	enum status st;
	int error;

	if (!a->files.count)
		return acquire_memory_stream(a, e);
	error = pthread_create(&t.thread, NULL, files_thread, &t);
	st = acquire_memory_stream(a, e);
	if (error && !st)
		return copy_files(a, e);
	if (!error)
		pthread_join(t.thread, NULL);
	if (!st && t.st)
		*e = t.err;
	return st ? st : t.st;
}

/*
 * An image that does not change while it is read has its tables in itself: they are found, and
 * not stored a second time, unless that was asked for.
 */
static bool reads_image_tables(const struct acquisition *a)
{
	return a->still && !cli_given(a->cli, "pagetables");
}

static bool wants_tables(const struct acquisition *a, enum pagetables pass)
{
	const enum pagetables asked = (enum pagetables)a->o->pagetables;

	return !reads_image_tables(a) && (asked == TABLES_BOTH || asked == pass);
}

/* What page tables may say of page files. */
static struct pte_facts slot_facts(const struct acquisition *a)
{
	struct pte_facts ret = { .ranges = &a->base.source->info.maps[0].ranges };

	for (size_t i = 0; i < a->files.count; i++) {
		const struct pagefile *p = a->files.at[i].pagefile;

		if (!p || p->origin == NUMBER_NONE || p->number >= PTE_FILES_MAX)
			continue;
		ret.files = MAX(ret.files, (size_t)p->number + 1);
		if (!ret.file_pages[p->number])
			ret.file_pages[p->number] = p->size / PAGE_SIZE;
	}
	return ret;
}

/* Is it any use to read slots by the tables? */
static bool wants_slots(const struct acquisition *a)
{
	return a->o->pagefile == PAGEFILE_GUIDED && a->files.list.count &&
	       (!a->o->order || a->o->order->takes_slots);
}

static enum status read_tables(struct acquisition *a, enum pagetables pass, struct err *e)
{
	const struct pte_facts facts = slot_facts(a);
	const struct tables_plan plan = {
		.source = changes_source(&a->base.changes, a->base.source),
		.facts = pass == TABLES_BEFORE && wants_slots(a) ? &facts : NULL,
		.keep_pages = a->o->order && a->o->order->wants_tables,
		.keep_prints = pass == TABLES_BEFORE && (!a->o->order || a->o->order->wants_spaces),
		.earlier = pass == TABLES_AFTER && a->before.start ? &a->before.found : NULL,
		.watch = pass == TABLES_AFTER && a->watching ? &a->watch : NULL,
		.kind = pass == TABLES_BEFORE ? RSZ_KIND_TABLES_BEFORE : RSZ_KIND_TABLES_AFTER,
		.stream = watched_plan(a, PROGRESS_QUIET),
	};

	if (!wants_tables(a, pass) || a->base.source->dead || a->memory.stopped)
		return ST_OK;
	return tolerate_left_out(
		tables_acquire(&plan, pass == TABLES_BEFORE ? &a->before : &a->after, e),
		"page tables", e);
}

/* Linux: what of the slots is still in memory. */
static enum status begin_lookups(struct acquisition *a, struct err *e)
{
	const struct discovery *d = &a->before.found;
	struct swap_cache *cache;
	enum status st;

	if (d->os != OS_LINUX)
		return ST_OK;
	a->swap_memory = malloc(sizeof(*a->swap_memory));
	if (!a->swap_memory)
		return err_nomem(e);
	physmem_drv_init(a->swap_memory, a->base.source, clock_mono_ns);
	st = swap_cache_create(&a->swap_memory->mem, d, &cache, &a->no_swap_cache, e);
	a->files_plan.swap_zeros = !st && cache && swap_cache_tells_zeros(cache);
	if (!st && cache)
		st = slots_use_cache(a->slots, cache, e);
	if (!st && !cache)
		log_info("no-swap-cache", "the swap cache is not examined: %s", a->no_swap_cache);
	a->files_plan.swap_cache = !st && cache;
	return tolerate_left_out(st, "the swap cache", e);
}

/*
 * Without tables to go by, or where nobody knows how their entries name slots, page files come
 * after the memory.
 */
static enum status begin_slots(struct acquisition *a, struct err *e)
{
	struct files_plan *plan = &a->files_plan;
	enum status st;

	if (!wants_slots(a) || !acquire__order(a)->takes_slots)
		return ST_OK;
	if (!a->before.layout.found) {
		log_info("slots-not-told", "how page tables refer to page files is not known: page "
					   "files are read after the memory");
		return ST_OK;
	}
	st = slots_create(&a->before.entries, a->base.source->info.simulated, &a->slots, e);
	if (st)
		return tolerate_left_out(st, "page files by the tables", e);
	st = begin_lookups(a, e);
	if (st)
		return st;
	plan->slots = a->slots;
	plan->stream = acquire__stream_plan(a, a->base.threads, PROGRESS_QUIET);
	return files_begin(plan, &a->files, e);
}

/* Memory and page files, in the order that --pagefile asks for. */
static enum status acquire_content(struct acquisition *a, struct err *e)
{
	enum status st = ST_OK;

	switch ((enum pagefile_time)a->o->pagefile) {
	case PAGEFILE_CONCURRENT:
		return read_both(a, e);
	case PAGEFILE_BEFORE:
		st = copy_files(a, e);
		return st ? st : acquire_memory_stream(a, e);
	case PAGEFILE_GUIDED:
		st = begin_slots(a, e);
		break;
	case PAGEFILE_AFTER:
		break;
	}
	if (!st)
		st = acquire_memory_stream(a, e);
	return st ? st : copy_files(a, e);
}

/*
 * What is in an image: before its memory is read, because with a kernel that is known it is looked
 * through for roots then; and again behind it, for the list of processes beside these. If there is
 * no kernel at first, pages that may be one or roots are collected, and it is found among them: no
 * image is read a second time for that.
 */
static enum status read_image_tables(struct acquisition *a, bool again, struct err *e)
{
	const struct tables_plan plan = {
		.source = a->base.source,
		.earlier = again ? &a->image.found : NULL,
		.watch = again && a->watching ? &a->watch : NULL,
		.candidates = again && a->collecting ? &a->candidates : NULL,
		.search_pages = again ? 0 : DISCOVER_FEW,
		.stream = watched_plan(a, PROGRESS_QUIET),
	};
	struct tables_result *r = again ? &a->image_end : &a->image;
	enum status st;

	if (again && (a->base.source->dead || a->memory.stopped))
		return tables_tell(&plan, &a->image, e);
	candidates_sort(&a->candidates);
	st = tables_find(&plan, r, e);
	if (!st && again)
		st = tables_tell(&plan, r, e);
	return tolerate_left_out(st, "page tables", e);
}

static enum status begin_tables(struct acquisition *a, struct err *e)
{
	const bool image = reads_image_tables(a);
	enum status st = image ? read_image_tables(a, false, e) : read_tables(a, TABLES_BEFORE, e);

	if (!st && (image || wants_tables(a, TABLES_AFTER)))
		a->watching = tables_watch(&a->base.reading,
					   image ? &a->image.found : &a->before.found, &a->watch);
	a->collecting = !st && image && a->image.found.os == OS_UNKNOWN;
	return st;
}

static enum status acquire_evidence(struct acquisition *a, struct err *e)
{
	enum status st = begin_tables(a, e);

	if (!a->base.source->info.image)
		confirm_numbers(&a->files.list, &a->before.found.windows.paging_files);
	if (!st)
		st = acquire_content(a, e);
	if (!st)
		st = read_added_memory(a, e); /* which the tables may name by now */
	if (!st)
		st = reads_image_tables(a) ? read_image_tables(a, true, e)
					   : read_tables(a, TABLES_AFTER, e);
	if (!st)
		st = read_added_memory(a, e);
	return st ? st : changes_end(&a->base.changes, a->base.source, e);
}

static enum status name_output(struct acquisition *a, struct err *e)
{
	const char *suffix = a->encrypted ? ".rsz.age" : ".rsz";
	enum status st;

	if (!a->network)
		return acquire_output_path(a->o, &a->base.source->info, suffix, &a->base.output, e);
	a->network->remote.encrypted = a->encrypted;
	st = acquire_name_remote(a->o, &a->base.source->info, suffix, a->network, e);
	if (st)
		return st;
	a->base.output = strdup(a->network->shown);
	return a->base.output ? ST_OK : err_nomem(e);
}

static enum status acquire_to_container(struct acquisition *a, struct err *e)
{
	enum status st = network_create(&a->o->network, a->o->output, &a->network, e);

	if (!st)
		st = acquire_open(a->cli, a->o,
				  a->network ? &a->network->uploader.spool : &(size_t){ 0 },
				  &a->base, e);
	if (st)
		return st;
	if (a->base.inputs[0])
		a->still = file_mark_take(a->base.inputs[0], &a->mark);
	st = name_output(a, e);
	if (!st)
		st = acquire_check_output(a->o, &a->base, a->summary, e);
	if (!st)
		st = find_files(a, e);
	if (!st)
		st = changes_begin(&a->base.changes, a->base.source, e);
	if (!st)
		st = acquire__begin_statement(a, e);
	if (!st)
		st = acquire__begin_timestamp(a, e);
	if (!st)
		st = acquire__begin(a, e);
	if (st)
		return st;
	if (!a->network && a->encrypted && age_sink_lacks_suffix(a->base.output))
		log_info("name-without-age", AGE_SUFFIX_NOTE, a->base.output);
	if (!a->network && drv_info_is_live(&a->base.source->info) &&
	    preflight_in_memory(a->base.output))
		log_warning("output-in-memory",
			    "%s: is in this machine's memory (%s), so writing there overwrites "
			    "evidence",
			    a->base.output, preflight_in_memory(a->base.output));
	st = acquire_is_ready(a->o, a->base.output, a->network != NULL, output_where(a->out), e);
	if (st)
		return st;
	acquire_announce_source(&a->base.source->info);
	st = acquire__outcome(a, acquire_evidence(a, e), e);
	st = acquire__end(a, st, e);
	st = acquire__end_statement(a, st, e);
	acquire__end_timestamp(a);
	acquire__summarise(a, st, e);
	return st;
}

enum status acquire_container(const struct cli *cli, const struct acquire_options *o,
			      struct summary *s, struct err *e)
{
	struct acquisition a = { .cli = cli,
				 .o = o,
				 .summary = s,
				 .encrypted = o->to && o->to->count,
				 .memory_stream = UINT32_MAX };
	const enum status st = acquire_to_container(&a, e);

	acquisition_deinit(&a);
	return st;
}
