/* SPDX-License-Identifier: Apache-2.0 */
/*
 * acquire, into a container: page tables, memory, page files, page tables again, sealed whatever
 * happens on the way.
 */
#include <inttypes.h>
#include <pthread.h>
#include <string.h>

#include "agent/acquire/acquire.h"
#include "agent/acquire/changes.h"
#include "agent/acquire/confirm_numbers.h"
#include "agent/acquire/files.h"
#include "agent/acquire/manifest.h"
#include "agent/acquire/memory.h"
#include "agent/acquire/missing.h"
#include "agent/acquire/reading.h"
#include "agent/acquire/room.h"
#include "agent/acquire/sealer.h"
#include "agent/acquire/tables.h"
#include "agent/acquire/volume_remarks.h"
#include "agent/commands/commands.h"
#include "agent/host/context.h"
#include "agent/host/file_mark.h"
#include "agent/host/host.h"
#include "agent/order/order.h"
#include "agent/order/slots.h"
#include "agent/output/output.h"
#include "agent/program/clock.h"
#include "agent/program/log.h"
#include "agent/program/stay_awake.h"
#include "agent/program/text.h"

/* Everything that lives from the first line of the manifest to the last. */
struct acquisition {
	const struct cli *cli;
	const struct acquire_options *o;
	unsigned threads;
	struct driver_session *driver;
	struct drv *source;
	struct reading reading; /* the watchdog over it */
	struct memory_changes changes;
	struct output *out;
	struct sealer *sealer;
	struct memory_result memory;
	uint32_t memory_stream; /* UINT32_MAX: not declared yet */
	bool memory_named;      /* every page of it is in the container, if only as skipped */
	const char *inputs[2];  /* the file that is the source, if it is one */
	char *image_output;     /* where to, if that is so and nobody said */
	struct disk *disk;      /* of --image or --volume */
	struct files_plan files_plan;
	struct files files;
	struct slots *slots; /* read while memory is; NULL: page files have their own time */
	struct tables_result before, after;
	struct file_mark mark;          /* of a source that is an image, when it was opened */
	bool still;                     /* it is, and it cannot change while it is read */
	struct tables_result image;     /* its tables then, as they were found before it was read */
	struct tables_result image_end; /* and behind that */
	struct root_watch watch;
	bool watching;
	char root[SHA256_HEX_SIZE];
};

static void acquisition_deinit(struct acquisition *a)
{
	memory_result_deinit(&a->memory);
	slots_destroy(a->slots); /* before what it reads */
	files_deinit(&a->files);
	tables_result_deinit(&a->before);
	tables_result_deinit(&a->after);
	tables_result_deinit(&a->image);
	tables_result_deinit(&a->image_end);
	free(a->image_output);
	root_watch_deinit(&a->watch);
	disk_close(a->disk);
	sealer_destroy(a->sealer);
	output_destroy(a->out);
	memory_changes_deinit(&a->changes);
	acquire_close_source(a->source);
	driver_session_end(a->driver);
}

/*
 * Of a simulated machine the container holds nothing that is not simulated: no host, no arguments,
 * no number of threads. The same machine, read in the same way, is the same container anywhere.
 */
static enum status describe_simulated(json_t **ret, struct err *e)
{
	json_t *clocks = manifest_clocks();

	if (clocks)
		json_object_set_new(clocks, "wall_minus_mono_ns",
				    json_integer((json_int_t)(clock_wall_ns() - clock_mono_ns())));
	*ret = json_pack("{s:b, s:o, s:{s:s, s:s}}", "simulated", true, "clocks", clocks, "tool",
			 "name", "ramseal", "version", RAMSEAL_VERSION);
	return *ret ? ST_OK : err_nomem(e);
}

/*
 * What the registry says of the machine whose memory this is: the live one, or that of the disk
 * image beside a memory image. The registry of a live disk is left alone: reading it would take
 * time, and memory, from what is to be acquired.
 */
static void put_context(const struct acquisition *a, json_t *doc)
{
	const bool dead = a->source->info.image;
	json_t *context = NULL;
	struct err e = ERR_INIT;
	enum status st = ST_NO_SOURCE;

	if (!dead)
		st = context_of_host(&context, &e);
	else if (a->disk)
		st = context_of_disk(a->disk, &context, &e);
	if (!st)
		json_object_set_new(doc, "context", context);
	else if (st != ST_NO_SOURCE && st != ST_INPUT)
		log_warning("context-left-out", "the registry: %s", e.message);
}

/*
 * A live source's memory is of the machine that the line describes. An image's is of another one,
 * of which nothing is known here.
 */
static enum status describe_machine(struct acquisition *a, json_t **ret, struct err *e)
{
	const struct drv_info *info = &a->source->info;
	enum status st;

	if (info->simulated)
		return describe_simulated(ret, e);
	st = host_describe(a->cli->argc, a->cli->argv, ret, e);
	if (!st && info->image)
		st = manifest_move_machine(*ret, e);
	return st;
}

static enum status write_begin(struct acquisition *a, struct err *e)
{
	const struct drv_info *info = &a->source->info;
	json_t *doc = NULL, *source = manifest_source(info);
	enum status st = describe_machine(a, &doc, e);

	if (st) {
		json_decref(source);
		json_decref(doc);
		return st;
	}
	if (info->image)
		json_object_set_new(source, "still", json_boolean(a->still));
	json_object_set_new(doc, "event", json_string("begin"));
	json_object_set_new(doc, "manifest", json_integer(MANIFEST_VERSION));
	json_object_set_new(doc, "container", json_string(sealer_id(a->sealer)));
	json_object_set_new(doc, "source", source);
	json_object_set_new(doc, "maps", manifest_maps(info));
	if (!info->image && !info->simulated)
		json_object_set_new(doc, "withheld", changes_withheld_json(&a->changes));
	if (a->driver)
		json_object_set_new(doc, "driver", driver_session_json(a->driver));
	if (a->files.list.n_remarks)
		json_object_set_new(doc, "volumes", volume_remarks_json(&a->files.list));
	json_object_set_new(doc, "level", json_integer(a->o->level.level));
	json_object_set_new(doc, "level_auto", json_boolean(a->o->level.automatic));
	if (!info->simulated) {
		json_object_set_new(doc, "threads", json_integer(a->threads));
		json_object_set_new(doc, "stays_awake", json_boolean(stay_awake_is_on()));
		put_context(a, doc);
	}
	st = manifest_set_notes(doc, info->notes, info->notes_size, e);
	if (st) {
		json_decref(doc);
		return st;
	}
	return sealer_manifest(a->sealer, doc, e);
}

/* New files take free clusters, and those are what a later look at deleted data would want. */
static enum status check_target(const struct acquisition *a, struct err *e)
{
	const char *to = a->o->output;

	if (!a->disk || (to && !strcmp(to, "-")))
		return ST_OK;
	switch (reader_target_risk(disk_reader(a->disk), to ? to : ".")) {
	case TARGET_IS_SOURCE:
		return err_set(e, ST_OUTPUT, "%s: is what is being read", to);
	case TARGET_ON_SOURCE:
		log_warning("target-on-source", "the output lies on the volume that is read");
		return ST_OK;
	case TARGET_SAFE:
		break;
	}
	return ST_OK;
}

static enum status begin_container(struct acquisition *a, struct err *e)
{
	const uint64_t memory = range_list_bytes(&a->source->info.maps[0].ranges);
	const struct output_options target = {
		.path = a->image_output ? a->image_output : a->o->output,
		.force = a->o->force,
		.inputs = a->inputs,
		.need = room_need(memory, files_bytes(&a->files_plan, &a->files)),
		.reserve = room_reserve(memory),
	};
	enum status st = check_target(a, e);

	if (!st)
		st = output_open(&target, &a->out, e);
	if (!st)
		st = sealer_create(a->out, a->source->info.simulated ? a->source->info.path : NULL,
				   &a->sealer, e);
	if (!st)
		st = write_begin(a, e);
	return st;
}

static struct stream_plan stream_plan(const struct acquisition *a, unsigned threads,
				      enum progress_mode progress)
{
	return (struct stream_plan){
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
	struct stream_plan ret = stream_plan(a, a->threads, progress);

	ret.reading = &a->reading;
	return ret;
}

/*
 * By the page tables, where there are any. An image does not change while it is read, and its
 * tables are not looked for.
 */
static const struct order *choose_order(const struct acquisition *a)
{
	if (a->o->order)
		return a->o->order;
	return a->before.found.n_spaces ? &guided_order : &linear_order;
}

static json_t *memory_meta(const struct acquisition *a)
{
	return json_pack("{s:o, s:s}", "source", json_text(a->source->info.source), "error_numbers",
			 a->source->info.error_numbers);
}

static struct memory_plan memory_plan(struct acquisition *a)
{
	struct memory_plan ret = {
		.source = a->source,
		.slots = a->slots,
		.watch = a->watching ? &a->watch : NULL,
		.order = choose_order(a),
		.table_pages = a->before.pages.ranges ? &a->before.pages : NULL,
		.spaces = a->before.found.n_spaces ? &a->before.found : NULL,
		.prints = a->before.found.n_spaces ? &a->before.prints : NULL,
		.stream = watched_plan(a, command_progress(a->cli)),
	};

	ret.stream.stream = a->memory_stream;
	return ret;
}

static enum status read_memory(struct acquisition *a, struct err *e)
{
	struct memory_plan plan;
	enum status st = sealer_stream(a->sealer, RSZ_KIND_MEMORY, "memory", memory_meta(a),
				       &a->memory_stream, e);

	if (st)
		return st;
	plan = memory_plan(a);
	st = memory_acquire(&plan, &a->memory, e);
	a->memory_named = !st && !drv_is_abandoned(a->source);
	return st;
}

/* What was added to the machine since its memory was looked at, or since the last time. */
static enum status read_added_memory(struct acquisition *a, struct err *e)
{
	const struct memory_plan plan = memory_plan(a);
	enum status st;

	if (drv_is_abandoned(a->source))
		return ST_OK;
	a->memory_named = false;
	st = changes_acquire(&a->changes, a->source, a->o->source, &plan, &a->memory, e);
	a->memory_named = !st && !drv_is_abandoned(changes_source(&a->changes, a->source));
	table_prints_deinit(&a->before.prints);
	return st;
}

static enum status find_files(struct acquisition *a, struct err *e)
{
	enum status st = acquire_plan_files(a->cli, a->o, a->source, &a->disk, &a->files_plan, e);

	if (st)
		return st;
	st = files_find(&a->files_plan, &a->files, e);
	if (!st || acquire_names_disk(a->o))
		return st;
	/* Nobody asked for them by name, and the memory must not wait for them. */
	log_warning("pagefiles-not-found", "page files were not looked at: %s", e->message);
	a->files.lost_volumes++;
	e->message[0] = '\0';
	return ST_OK;
}

/* What goes before or beside the memory may fail, but must not keep it from being read. */
static enum status tolerate(enum status st, const char *what, struct err *e)
{
	if (!st || st == ST_OUTPUT || st == ST_INTERRUPTED)
		return st;
	log_warning("left-out", "%s: %s", what, e->message);
	e->message[0] = '\0';
	return ST_OK;
}

/* Beside the memory one thread is enough: the disk is slower than it. */
#define FILE_THREADS 1

static enum status copy_files(struct acquisition *a, struct err *e)
{
	if (!a->files.count)
		return ST_OK;
	a->files_plan.stream = a->o->pagefile == PAGEFILE_CONCURRENT
				       ? stream_plan(a, FILE_THREADS, PROGRESS_QUIET)
				       : stream_plan(a, a->threads, command_progress(a->cli));
	return tolerate(files_copy(&a->files_plan, &a->files, e), "page files", e);
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
		return read_memory(a, e);
	error = pthread_create(&t.thread, NULL, files_thread, &t);
	st = read_memory(a, e);
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
static bool looks_into_image(const struct acquisition *a)
{
	return a->still && !cli_given(a->cli, "pagetables");
}

static bool wants_tables(const struct acquisition *a, enum pagetables pass)
{
	const enum pagetables asked = (enum pagetables)a->o->pagetables;

	return !looks_into_image(a) && (asked == TABLES_BOTH || asked == pass);
}

/* What page tables may say of page files. */
static struct pte_facts slot_facts(const struct acquisition *a)
{
	struct pte_facts ret = { .ranges = &a->source->info.maps[0].ranges };

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
	       (!a->o->order || a->o->order == &guided_order);
}

static enum status read_tables(struct acquisition *a, enum pagetables pass, struct err *e)
{
	const struct pte_facts facts = slot_facts(a);
	const struct tables_plan plan = {
		.source = changes_source(&a->changes, a->source),
		.facts = pass == TABLES_BEFORE && wants_slots(a) ? &facts : NULL,
		.keep_pages = a->o->order && a->o->order->wants_tables,
		.keep_prints = pass == TABLES_BEFORE && (!a->o->order || a->o->order->wants_spaces),
		.earlier = pass == TABLES_AFTER && a->before.start ? &a->before.found : NULL,
		.watch = pass == TABLES_AFTER && a->watching ? &a->watch : NULL,
		.kind = pass == TABLES_BEFORE ? RSZ_KIND_TABLES_BEFORE : RSZ_KIND_TABLES_AFTER,
		.stream = watched_plan(a, PROGRESS_QUIET),
	};

	if (!wants_tables(a, pass) || a->source->dead || a->memory.stopped)
		return ST_OK;
	return tolerate(tables_acquire(&plan, pass == TABLES_BEFORE ? &a->before : &a->after, e),
			"page tables", e);
}

/*
 * Without tables to go by, or where nobody knows how their entries name slots, page files come
 * after the memory.
 */
static enum status begin_slots(struct acquisition *a, struct err *e)
{
	struct files_plan *plan = &a->files_plan;
	enum status st;

	if (!wants_slots(a) || choose_order(a) != &guided_order)
		return ST_OK;
	if (!a->before.layout.found) {
		log_info("slots-not-told", "how page tables name page files is not known: they "
					   "come after the memory");
		return ST_OK;
	}
	st = slots_create(&a->before.entries, a->source->info.simulated, &a->slots, e);
	if (st)
		return tolerate(st, "page files by the tables", e);
	plan->slots = a->slots;
	plan->stream = stream_plan(a, a->threads, PROGRESS_QUIET);
	return files_begin(plan, &a->files, e);
}

/* Memory and page files, in the order that --pagefile asks for. */
static enum status read_content(struct acquisition *a, struct err *e)
{
	enum status st = ST_OK;

	switch ((enum pagefile_time)a->o->pagefile) {
	case PAGEFILE_CONCURRENT:
		return read_both(a, e);
	case PAGEFILE_BEFORE:
		st = copy_files(a, e);
		return st ? st : read_memory(a, e);
	case PAGEFILE_GUIDED:
		st = begin_slots(a, e);
		break;
	case PAGEFILE_AFTER:
		break;
	}
	if (!st)
		st = read_memory(a, e);
	return st ? st : copy_files(a, e);
}

/*
 * What is in an image: before its memory is read, because the kernel must be known while that is
 * looked through for roots; and then the list of processes beside these.
 */
static enum status look_into_image(struct acquisition *a, bool again, struct err *e)
{
	const struct tables_plan plan = {
		.source = a->source,
		.earlier = again ? &a->image.found : NULL,
		.watch = again && a->watching ? &a->watch : NULL,
		.stream = watched_plan(a, PROGRESS_QUIET),
	};
	struct tables_result *r = again ? &a->image_end : &a->image;
	enum status st;

	if (again && (a->source->dead || a->memory.stopped))
		return tables_tell(&plan, &a->image, e);
	st = tables_find(&plan, r, e);
	if (!st && again)
		st = tables_tell(&plan, r, e);
	return tolerate(st, "page tables", e);
}

static enum status begin_tables(struct acquisition *a, struct err *e)
{
	const bool image = looks_into_image(a);
	enum status st = image ? look_into_image(a, false, e) : read_tables(a, TABLES_BEFORE, e);

	if (!st && (image || wants_tables(a, TABLES_AFTER)))
		a->watching = tables_watch(&a->reading, image ? &a->image : &a->before, &a->watch);
	return st;
}

static enum status read_all(struct acquisition *a, struct err *e)
{
	enum status st = begin_tables(a, e);

	if (!a->source->info.image)
		confirm_numbers(&a->files.list, &a->before.found.windows.paging_files);
	if (!st)
		st = read_content(a, e);
	if (!st)
		st = read_added_memory(a, e); /* which the tables may name by now */
	if (!st)
		st = looks_into_image(a) ? look_into_image(a, true, e)
					 : read_tables(a, TABLES_AFTER, e);
	if (!st)
		st = read_added_memory(a, e);
	return st ? st : changes_end(&a->changes, a->source, e);
}

/* Was the image written to since it was opened? */
static bool is_still_the_same(const struct acquisition *a)
{
	struct file_mark now;

	if (!a->still)
		return false;
	if (file_mark_take(a->source->info.path, &now) && now.size == a->mark.size &&
	    now.written == a->mark.written)
		return true;
	log_warning("image-changed", "%s: was written to, or opened for that, while it was read",
		    a->source->info.path);
	return false;
}

/* What the command ends with: the worst of what happened, unless the output failed. */
static enum status outcome(const struct acquisition *a, enum status output, struct err *e)
{
	const struct tally *t = &a->memory.stream.tally;

	if (output)
		return output;
	if (a->memory.stopped) {
		*e = a->memory.why;
		return err_add(e, a->memory.stopped, "sealed, but not complete");
	}
	if (files_have_gaps(&a->files))
		return err_set(e, ST_UNREADABLE,
			       "files were not copied, or not all of them; "
			       "the manifest says which");
	if (tally_has_gaps(t))
		return err_set(e, ST_UNREADABLE,
			       "%" PRIu64 " pages were unreadable and %" PRIu64
			       " not offered by the source; they are recorded",
			       t->pages[PAGE_UNREADABLE], t->pages[PAGE_SKIPPED]);
	if (changes_judge(&a->changes, e))
		return ST_UNREADABLE;
	return acquire_judge_source(&a->source->info, e);
}

static json_t *slots_json(const struct slots *s)
{
	const struct slots_counts c = slots_counts(s);

	return json_pack("{s:I, s:I, s:I, s:I}", "read", (json_int_t)c.read, "again",
			 (json_int_t)c.again, "dropped", (json_int_t)c.dropped, "waited_ns",
			 (json_int_t)c.waited_ns);
}

static json_t *order_json(const struct acquisition *a)
{
	const struct memory_result *m = &a->memory;
	json_t *o = json_pack(
		"{s:s, s:I, s:I, s:I, s:I, s:I}", "name", choose_order(a)->name, "guided_pages",
		(json_int_t)m->guided_pages, "retaken_pages", (json_int_t)m->retaken_pages,
		"not_retaken", (json_int_t)m->not_retaken, "tables_changed",
		(json_int_t)m->tables_changed, "tables_unsettled", (json_int_t)m->tables_unsettled);

	if (o && a->slots)
		json_object_set_new(o, "slots", slots_json(a->slots));
	return o;
}

static enum status write_end(struct acquisition *a, enum status st, const struct err *why,
			     struct err *e)
{
	json_t *changes = changes_json(&a->changes);
	json_t *doc = json_pack(
		"{s:s, s:i, s:s, s:s, s:o, s:o, s:o, s:o}", "event", "end", "exit_code",
		(int)status_exit_code(st), "outcome", exit_code_text(status_exit_code(st)),
		"message", st ? why->message : "", "memory", manifest_stream(&a->memory.stream),
		"order", order_json(a), "parts", changes_parts_json(&a->changes, a->source),
		"clocks", manifest_clocks());

	if (doc && !a->source->info.simulated) {
		json_object_set_new(doc, "usage", host_usage_json());
		json_object_set_new(doc, "footprint", host_footprint_json());
		json_object_set_new(doc, "sleeps", sealer_sleeps_json(a->sealer));
	}

	if (doc && a->source->info.image)
		json_object_set_new(doc, "still", json_boolean(is_still_the_same(a)));
	if (doc && a->changes.now.count)
		json_object_set_new(doc, "maps_at_end", manifest_maps_again(&a->changes.now));
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
		err_set(e, st, "%.400s; sealed, with all of the memory", why.message);
}

/* Reading ended before its time: on a full disk, without memory, by a signal. */
static enum status settle(struct acquisition *a, enum status st, struct err *e, struct err *late)
{
	json_t *meta = memory_meta(a);
	_cleanup_ranges_ struct range_list ranges = { 0 };
	struct missing_plan plan = {
		.ranges = &ranges,
		.meta = meta,
		.stream = stream_plan(a, 1, PROGRESS_QUIET),
		.result = &a->memory.stream,
		.reason = drv_is_abandoned(a->source) ? SKIP_SOURCE_FAILED : SKIP_INTERRUPTED,
	};
	uint64_t pages = range_list_bytes(&a->changes.missing) / PAGE_SIZE;
	enum status ret = changes_ranges(&a->changes, a->source, &ranges, late);

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

/* Closes the container whatever happened before; the room that was kept for it is used now. */
static enum status end_container(struct acquisition *a, enum status st, struct err *e)
{
	struct err late = ERR_INIT;
	const struct err why = *e;
	enum status closing = ST_OK;

	if (st == ST_OUTPUT || (st && !a->memory_named))
		closing = settle(a, st, e, &late);
	a->files_plan.stream = stream_plan(a, FILE_THREADS, PROGRESS_QUIET);
	if (!closing)
		closing = files_tell_rest(&a->files_plan, &a->files, st ? &why : NULL, &late);
	if (!closing)
		closing = write_end(a, st, e, &late);
	if (!closing)
		closing = sealer_close(a->sealer, a->root, &late);
	if (!closing)
		closing = output_commit(a->out, &late);
	if (!closing)
		return st;
	a->root[0] = '\0';
	*e = st == ST_OUTPUT ? why : late;
	if (st == ST_OUTPUT)
		return err_add(e, st, "not sealed; whole records are in %s", output_where(a->out));
	return closing;
}

/* The one line for people, and the object for programs. */
static void summarise(const struct acquisition *a, enum status st, const struct err *e)
{
	const uint64_t wall = clock_wall_ns(), mono = clock_mono_ns();
	char read[TEXT_SIZE_MAX], written[TEXT_SIZE_MAX], begin[CLOCK_RFC3339_SIZE],
		end[CLOCK_RFC3339_SIZE];
	const struct log_field fields[] = {
		log_text("output", output_where(a->out)),
		log_bool("sealed", a->root[0] != '\0'),
		log_text("root", a->root[0] ? a->root : NULL),
		log_i64("exit_code", status_exit_code(st)),
		log_text("outcome", exit_code_text(status_exit_code(st))),
		log_text("error", st ? e->message : NULL),
		log_text("begin", begin),
		log_text("end", end),
		log_u64("duration_ns", mono - sealer_begin_mono(a->sealer)),
		log_u64("bytes_written", output_bytes(a->out)),
		log_json("memory", manifest_stream(&a->memory.stream)),
		log_json("order", order_json(a)),
		log_json("parts", changes_parts_json(&a->changes, a->source)),
		log_json("driver", driver_session_json(a->driver)),
		log_bool("silent", a->source->info.silent),
		log_json("files", files_json(&a->files)),
		log_json("tables_before", a->before.start ? tables_json(&a->before) : json_null()),
		log_json("tables_after", a->after.start ? tables_json(&a->after) : json_null()),
		log_json("tables_image",
			 a->image_end.start ? tables_json(&a->image_end) : json_null()),
		log_json("usage", host_usage_json()),
		log_json("command", host_arguments_json(a->cli->argc, a->cli->argv)),
		{ .key = NULL },
	};

	clock_rfc3339(sealer_begin_wall(a->sealer), begin);
	clock_rfc3339(wall, end);
	text_size(a->memory.stream.bytes, read);
	text_size(output_bytes(a->out), written);
	if (a->root[0])
		log_result_with(fields, "summary", "%s: %s of memory in %s, root %s",
				output_where(a->out), read, written, a->root);
	else
		log_result_with(fields, "summary", "%s: %s of memory in %s, not sealed",
				output_where(a->out), read, written);
}

static enum status acquire(struct acquisition *a, struct err *e)
{
	enum status st = driver_session_begin(&a->o->driver, a->o->source, &a->driver, e);

	if (!st)
		st = acquire_open_source(a->o, &a->source, e);
	if (st)
		return st;
	a->reading =
		(struct reading){ .source = a->source, .limit_s = (unsigned)a->o->read_timeout };
	if (a->source->info.image) {
		a->inputs[0] = a->source->info.path;
		a->still = file_mark_take(a->source->info.path, &a->mark);
	}
	st = acquire_output_path(a->o, &a->source->info, ".rsz", &a->image_output, e);
	if (!st)
		st = find_files(a, e);
	if (!st)
		st = changes_begin(&a->changes, a->source, e);
	if (!st)
		st = begin_container(a, e);
	if (st)
		return st;
	acquire_announce_source(&a->source->info);
	st = outcome(a, read_all(a, e), e);
	st = end_container(a, st, e);
	summarise(a, st, e);
	return st;
}

enum status acquire_container(const struct cli *cli, const struct acquire_options *o, struct err *e)
{
	struct acquisition a = { .cli = cli,
				 .o = o,
				 .threads = command_threads(o->threads),
				 .memory_stream = UINT32_MAX };
	const enum status st = acquire(&a, e);

	acquisition_deinit(&a);
	return st;
}
