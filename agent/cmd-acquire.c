/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ramseal acquire: from a source of physical memory into one sealed container, or into an image.
 */
#include <inttypes.h>
#include <pthread.h>
#include <string.h>

#include "agent/clock.h"
#include "agent/commands.h"
#include "agent/disk_options.h"
#include "agent/files.h"
#include "agent/host.h"
#include "agent/image_out.h"
#include "agent/log.h"
#include "agent/manifest.h"
#include "agent/memory.h"
#include "agent/output.h"
#include "agent/sealer.h"
#include "agent/tables.h"
#include "agent/text.h"

/*
 * Level 1 keeps up with every source that we have measured; what higher ones gain in size they
 * lose in time, and time is smear.
 */
#define LEVEL_DEFAULT 1

/*
 * A target with less room than this share of memory is refused without --force: container sizes
 * of busy machines lie between a third and two thirds, and one of idle ones is far smaller, so a
 * quarter is where it is visibly too small.
 */
#define ROOM_SHARE    4

struct level_choice {
	int level;
	bool automatic;
};

struct acquire_options {
	struct image_options image; /* without a format: into a container */
	const char *source;
	const char *output;
	struct level_choice level;
	struct disk_options disk;
	struct cli_strings files;
	size_t pagefile; /* enum pagefile_time */
	bool no_pagefile;
	size_t pagetables; /* enum pagetables */
	uint64_t threads;
	bool force;
};

/*
 * When page files are copied, relative to the memory. Side by side they are done sooner, but the
 * memory takes longer (by 12 % in a guest with a swap partition in use, by 77 % with a page file as
 * fast as memory on two CPUs), and it is the memory that changes while one waits.
 */
enum pagefile_time { PAGEFILE_BEFORE, PAGEFILE_AFTER, PAGEFILE_CONCURRENT };

/* Which passes over the page tables are made. */
enum pagetables { TABLES_BOTH, TABLES_BEFORE, TABLES_AFTER, TABLES_NONE };

static const char *const pagetables_choices[] = { [TABLES_BOTH] = "both",
						  [TABLES_BEFORE] = "before",
						  [TABLES_AFTER] = "after",
						  [TABLES_NONE] = "none",
						  NULL };

static const char *const pagefile_choices[] = { [PAGEFILE_BEFORE] = "before",
						[PAGEFILE_AFTER] = "after",
						[PAGEFILE_CONCURRENT] = "concurrent",
						NULL };

static enum status run(struct cli *cli, struct err *e);
static enum status parse_level(const char *text, void *at, struct err *e);
static enum status parse_format(const char *text, void *at, struct err *e);
static const char *suggest_source(size_t i);
static const char *suggest_format(size_t i);

static const char *const level_choices[] = { "auto", "store", "-5", "1", "3", "9", "19", NULL };

static const struct option_def options[] = {
	CLI_STRING(struct acquire_options, source, 's', "source", "NAME[:PATH]",
		   "read memory from NAME; PATH is its device or file", .suggest = suggest_source),
	CLI_STRING(struct acquire_options, output, 'o', "output", "FILE",
		   "write to FILE, or '-' for stdout; default: <host>-<UTC time>.rsz"),
	CLI_PARSED(struct acquire_options, image.format, 'F', "format", "FORMAT", parse_format,
		   "what to write; default: rsz, the sealed container", .suggest = suggest_format),
	CLI_PARSED(struct acquire_options, level, 'l', "level", "N", parse_level,
		   "compression: auto (follow the output), store, or zstd's -50..-1 and 1..19 "
		   "(e01: store, 1..12); default: 1",
		   .choices = level_choices),
	IMAGE_OPTIONS(struct acquire_options, image),
	IMAGE_E01_OPTIONS(struct acquire_options, image),
	CLI_CHOICE(struct acquire_options, pagefile, 'p', "pagefile", NULL, pagefile_choices,
		   "copy page files before, after or while memory is read"),
	CLI_CHOICE(struct acquire_options, pagetables, 0, "pagetables", NULL, pagetables_choices,
		   "store all page tables, read before or after everything else, or both"),
	CLI_FLAG(struct acquire_options, no_pagefile, 0, "no-pagefile", "copy no page files"),
	CLI_STRINGS(struct acquire_options, files, 0, "file", "PATH",
		    "copy a file of the volume too, by its MFT record"),
	DISK_OPTIONS(struct acquire_options),
	CLI_UINT(struct acquire_options, threads, 't', "threads", "N", 1, PIPELINE_WORKERS_MAX,
		 COMMAND_THREADS_HELP),
	CLI_FLAG(struct acquire_options, force, 'f', "force",
		 "replace an existing file, and start though there is little room"),
};

const struct command command_acquire = {
	.name = "acquire",
	.summary = "seal this machine's physical memory into a container",
	.options = options,
	.n_options = ARRAY_SIZE(options),
	.notes = "Sources, in the order in which \"auto\" asks them: linpmem, pmem, crash, kcore, "
		 "devmem.\n"
		 "file:PATH reads an image instead: raw, ELF core or LiME.\n"
		 "Page files come from --image or --volume, or else from this machine.\n"
		 "Level 1 takes some 12 MiB of memory at two threads, level 19 some 45 "
		 "MiB.\n" IMAGE_NOTES,
	.values_size = sizeof(struct acquire_options),
	.defaults = &(const struct acquire_options){ .source = "auto",
						     .level = { .level = LEVEL_DEFAULT },
						     .pagefile = PAGEFILE_AFTER,
						     .pagetables = TABLES_BOTH },
	.run = run,
};

/* Everything that lives from the first line of the manifest to the last. */
struct acquisition {
	const struct cli *cli;
	const struct acquire_options *o;
	unsigned threads;
	struct drv *source;
	struct output *out;
	struct sealer *sealer;
	struct memory_result memory;
	const char *inputs[2]; /* the file that is the source, if it is one */
	struct disk *disk;     /* of --image or --volume */
	struct files_plan files_plan;
	struct files files;
	struct tables_result before, after;
	char root[SHA256_HEX_SIZE];
};

static void acquisition_deinit(struct acquisition *a)
{
	memory_result_deinit(&a->memory);
	files_deinit(&a->files);
	tables_result_deinit(&a->before);
	tables_result_deinit(&a->after);
	disk_close(a->disk);
	sealer_destroy(a->sealer);
	output_destroy(a->out);
	drv_close(a->source);
}

static const char *suggest_source(size_t i)
{
	if (!i)
		return "auto";
	return drv_table[i - 1] ? drv_table[i - 1]->name : NULL;
}

static enum status parse_level(const char *text, void *at, struct err *e)
{
	struct level_choice *choice = at;
	char *end;
	long level;

	*choice = (struct level_choice){ .level = LEVEL_DEFAULT, .automatic = true };
	if (!strcmp(text, "auto"))
		return ST_OK;
	*choice = (struct level_choice){ .level = RSZ_LEVEL_STORE };
	if (!strcmp(text, "store"))
		return ST_OK;
	level = strtol(text, &end, 10);
	if (!*text || *end || level < RSZ_LEVEL_MIN || level > RSZ_LEVEL_MAX || !level)
		return err_set(e, ST_USAGE, "wants auto, store, %d..-1 or 1..%d", RSZ_LEVEL_MIN,
			       RSZ_LEVEL_MAX);
	choice->level = (int)level;
	return ST_OK;
}

static enum status parse_format(const char *text, void *at, struct err *e)
{
	if (strcmp(text, "rsz") != 0)
		return image_parse_format(text, at, e);
	*(const struct image_format **)at = NULL;
	return ST_OK;
}

static const char *suggest_format(size_t i)
{
	return i ? image_suggest_format(i - 1) : "rsz";
}

/* Also what it costs not to know, said before it starts. */
static void announce_source(const struct drv_info *info)
{
	const struct range_list *ranges = &info->maps[0].ranges;
	char size[TEXT_SIZE_MAX];

	text_size(range_list_bytes(ranges), size);
	log_info_with(LOG_FIELDS(log_json("source", manifest_source(info))), "source-opened",
		      "%s (%s): %s in %zu range%s", info->source, info->path, size, ranges->count,
		      ranges->count == 1 ? "" : "s");
	if (info->silent)
		log_warning("source-silent",
			    "%s: this source cannot report unreadable pages; they look like zeros",
			    info->path);
	if (info->note)
		log_info("source-note", "%s: %s", info->source, info->note);
	for (size_t i = 1; i < info->n_maps; i++)
		if (!range_list_same(ranges, &info->maps[i].ranges))
			log_warning("maps-disagree",
				    "%s and %s name different RAM; both are recorded",
				    info->maps[0].origin, info->maps[i].origin);
}

static enum status open_source(struct acquisition *a, struct err *e)
{
	const struct drv_info *info;
	enum status st = drv_open(a->o->source, &a->source, e);

	if (st == ST_NOT_MINE || st == ST_CORRUPT)
		st = err_add(e, ST_INPUT, "%s", a->o->source);
	if (st)
		return st;
	info = &a->source->info;
	a->inputs[0] = info->image ? info->path : NULL;
	if (!info->n_maps || !info->maps[0].ranges.count)
		return err_set(e, ST_NO_SOURCE, "%s: names no memory", info->path);
	return ST_OK;
}

/*
 * Whose bytes an image file holds is not this machine's business; everything else is the memory
 * of the host that the manifest describes.
 */
static enum status write_begin(struct acquisition *a, struct err *e)
{
	const struct drv_info *info = &a->source->info;
	json_t *doc = NULL;
	enum status st = host_describe(a->cli->argc, a->cli->argv, &doc, e);

	if (st)
		return st;
	json_object_set_new(doc, "event", json_string("begin"));
	json_object_set_new(doc, "manifest", json_integer(MANIFEST_VERSION));
	json_object_set_new(doc, "container", json_string(sealer_id(a->sealer)));
	json_object_set_new(doc, "source", manifest_source(info));
	json_object_set_new(doc, "maps", manifest_maps(info));
	json_object_set_new(doc, "level", json_integer(a->o->level.level));
	json_object_set_new(doc, "level_auto", json_boolean(a->o->level.automatic));
	json_object_set_new(doc, "threads", json_integer(a->threads));
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
	const struct output_options target = {
		.path = a->o->output,
		.force = a->o->force,
		.inputs = a->inputs,
		.expected = (range_list_bytes(&a->source->info.maps[0].ranges) +
			     files_bytes(&a->files)) /
			    ROOM_SHARE,
	};
	enum status st = check_target(a, e);

	if (!st)
		st = output_open(&target, &a->out, e);
	if (!st)
		st = sealer_create(a->out, &a->sealer, e);
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

static enum status read_memory(struct acquisition *a, struct err *e)
{
	struct memory_plan plan = {
		.source = a->source,
		.stream = stream_plan(a, a->threads, command_progress(a->cli)),
	};
	json_t *meta = json_pack("{s:o, s:s}", "source", json_text(a->source->info.source),
				 "error_numbers", a->source->info.error_numbers);
	enum status st =
		sealer_stream(a->sealer, RSZ_KIND_MEMORY, "memory", meta, &plan.stream.stream, e);

	return st ? st : memory_acquire(&plan, &a->memory, e);
}

/*
 * Page files come from the disk that is named, or else from this machine if it is its memory that is
 * read.
 */
static enum status find_files(struct acquisition *a, struct err *e)
{
	const struct acquire_options *o = a->o;
	const bool named = o->disk.volume || o->disk.images.count;
	struct files_plan *plan = &a->files_plan;
	enum status st = ST_OK;

	if (o->files.count && !named)
		return cli_usage(a->cli, e, "--file wants the volume: --image or --volume");
	if (named)
		st = disk_options_open(a->cli, &o->disk, &a->disk,
				       o->files.count ? &plan->volume : NULL, e);
	if (st)
		return st;
	plan->disk = a->disk;
	plan->paths = &o->files;
	plan->pagefiles = !o->no_pagefile && (named || !a->source->info.image);
	st = files_find(plan, &a->files, e);
	if (!st || named)
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

/* An image does not change while it is read: its tables are in it, and once is enough. */
static bool wants_tables(const struct acquisition *a, enum pagetables pass)
{
	const enum pagetables asked = (enum pagetables)a->o->pagetables;

	if (a->source->info.image && !cli_given(a->cli, "pagetables"))
		return false;
	return asked == TABLES_BOTH || asked == pass;
}

static enum status read_tables(struct acquisition *a, enum pagetables pass, struct err *e)
{
	const struct tables_plan plan = {
		.source = a->source,
		.earlier = pass == TABLES_AFTER && a->before.start ? &a->before.found : NULL,
		.kind = pass == TABLES_BEFORE ? RSZ_KIND_TABLES_BEFORE : RSZ_KIND_TABLES_AFTER,
		.stream = stream_plan(a, a->threads, PROGRESS_QUIET),
	};

	if (!wants_tables(a, pass) || a->source->dead || a->memory.stopped)
		return ST_OK;
	return tolerate(tables_acquire(&plan, pass == TABLES_BEFORE ? &a->before : &a->after, e),
			"page tables", e);
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
	case PAGEFILE_AFTER:
		st = read_memory(a, e);
		return st ? st : copy_files(a, e);
	}
	return st;
}

static enum status read_all(struct acquisition *a, struct err *e)
{
	enum status st = read_tables(a, TABLES_BEFORE, e);

	if (!st)
		st = read_content(a, e);
	return st ? st : read_tables(a, TABLES_AFTER, e);
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
	return ST_OK;
}

static enum status write_end(struct acquisition *a, enum status st, const struct err *why,
			     struct err *e)
{
	json_t *doc = json_pack(
		"{s:s, s:i, s:s, s:s, s:o, s:o, s:o, s:o, s:o}", "event", "end", "exit_code",
		(int)status_exit_code(st), "outcome", exit_code_text(status_exit_code(st)),
		"message", st ? why->message : "", "memory", manifest_stream(&a->memory.stream),
		"parts", manifest_parts(a->source), "clocks", manifest_clocks(), "usage",
		host_usage_json(), "footprint", host_footprint_json());

	return sealer_manifest(a->sealer, doc, e);
}

/*
 * Closes the container whatever happened before. When the output failed, its last unfinished
 * record is given back first, and if that leaves room for the end, what is there is sealed.
 */
static enum status end_container(struct acquisition *a, enum status st, struct err *e)
{
	struct err late = ERR_INIT;
	enum status closing = ST_OK;

	if (st == ST_OUTPUT)
		closing = sealer_recover(a->sealer, &late);
	if (!closing)
		closing = write_end(a, st, e, &late);
	if (!closing)
		closing = sealer_close(a->sealer, a->root, &late);
	if (!closing)
		closing = output_commit(a->out, &late);
	if (!closing)
		return st;
	a->root[0] = '\0';
	if (st == ST_OUTPUT)
		return err_add(e, st, "not sealed; whole records are in %s", output_where(a->out));
	*e = late;
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
		log_json("parts", manifest_parts(a->source)),
		log_json("files", files_json(&a->files)),
		log_json("tables_before", a->before.start ? tables_json(&a->before) : json_null()),
		log_json("tables_after", a->after.start ? tables_json(&a->after) : json_null()),
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
	enum status st = open_source(a, e);

	if (!st)
		st = find_files(a, e);
	if (!st)
		st = begin_container(a, e);
	if (st)
		return st;
	announce_source(&a->source->info);
	st = outcome(a, read_all(a, e), e);
	st = end_container(a, st, e);
	summarise(a, st, e);
	return st;
}

/*
 * Into an image, with nothing but the summary and the list of gaps to say where it came from.
 */

static enum status open_image(const struct acquisition *a, struct image_out *out, struct err *e)
{
	const struct drv_info *info = &a->source->info;
	const struct image_request r = {
		.options = &a->o->image,
		.path = a->o->output,
		.force = a->o->force,
		.inputs = a->inputs,
		.spec = { .ranges = &info->maps[0].ranges,
			  .notes = info->notes,
			  .notes_size = info->notes_size,
			  .direct_map = info->direct_map,
			  .level = a->o->level.level,
			  .threads = a->threads },
		.progress = command_progress(a->cli),
		.phase = "memory",
	};

	return image_out_open(&r, out, e);
}

static void summarise_image(const struct acquisition *a, const struct image_out *out,
			    uint64_t begin_wall, uint64_t begin_mono, enum status st,
			    const struct err *e)
{
	char begin[CLOCK_RFC3339_SIZE], end[CLOCK_RFC3339_SIZE];

	clock_rfc3339(begin_wall, begin);
	clock_rfc3339(clock_wall_ns(), end);
	image_out_summarise(
		out, st, e,
		LOG_FIELDS(log_text("begin", begin), log_text("end", end),
			   log_u64("duration_ns", clock_mono_ns() - begin_mono),
			   log_json("source", manifest_source(&a->source->info)),
			   log_json("maps", manifest_maps(&a->source->info)),
			   log_json("parts", manifest_parts(a->source)),
			   log_json("command", host_arguments_json(a->cli->argc, a->cli->argv))));
}

static enum status write_image(struct acquisition *a, struct image_out *out, struct err *e)
{
	const uint64_t wall = clock_wall_ns(), mono = clock_mono_ns();
	struct drv_pages pages;
	enum status st = open_image(a, out, e);

	if (st)
		return st;
	announce_source(&a->source->info);
	drv_pages_init(&pages, a->source);
	st = image_out_write(out, &pages.pages,
			     json_pack("{s:o}", "source", manifest_source(&a->source->info)), e);
	if (!st)
		st = image_out_judge(out, a->source->info.path, e);
	summarise_image(a, out, wall, mono, st, e);
	return st;
}

static enum status acquire_image(struct acquisition *a, struct err *e)
{
	struct image_out out = { .out = NULL };
	enum status st = open_source(a, e);

	if (!st)
		st = write_image(a, &out, e);
	image_out_close(&out);
	return st;
}

static enum status check_options(const struct cli *cli, struct err *e)
{
	const struct acquire_options *o = cli->values;
	const struct image_format *f = o->image.format;
	const enum status st = image_options_check(cli, &o->image, e);

	if (st || !f)
		return st;
	if (o->files.count || o->disk.volume || o->disk.images.count ||
	    cli_given(cli, "pagefile") || cli_given(cli, "pagetables"))
		return cli_usage(cli, e, "--format %s holds memory only", f->name);
	if (!cli_given(cli, "level"))
		return ST_OK;
	if (!f->compresses)
		return cli_usage(cli, e, "--level has no meaning for --format %s", f->name);
	if (o->level.automatic || o->level.level < IMAGE_LEVEL_STORE ||
	    o->level.level > IMAGE_LEVEL_MAX)
		return cli_usage(cli, e, "--level of --format %s is store or 1..%d", f->name,
				 IMAGE_LEVEL_MAX);
	return ST_OK;
}

static enum status run(struct cli *cli, struct err *e)
{
	const struct acquire_options *o = cli->values;
	struct acquisition a = { .cli = cli, .o = o, .threads = command_threads(o->threads) };
	enum status st = check_options(cli, e);

	if (!st)
		st = o->image.format ? acquire_image(&a, e) : acquire(&a, e);
	acquisition_deinit(&a);
	return st;
}
