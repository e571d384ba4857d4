/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ramseal extract-file: one file of an NTFS volume, locked or not, through its MFT record.
 */
#include <inttypes.h>
#include <string.h>

#include "agent/commands/commands.h"
#include "agent/shared/output/cage_command.h"
#include "agent/collect/acquire/disk_options.h"
#include "agent/shared/output/output.h"
#include "agent/shared/program/interrupt.h"
#include "agent/shared/program/log.h"
#include "formats/base/os.h"
#include "tsk-extract/extract.h"

static enum status extract_file_run(struct cli *cli, struct err *e);

/* A reference to a record has 48 bits for its number (tsk-extract/record.h). */
#define RECORD_MAX (((uint64_t)1 << 48) - 1)

struct extract_file_options {
	struct disk_options disk;
	const char *output;
	uint64_t record;
	bool raw_tail;
	bool force;
};

static const struct option_def options[] = {
	DISK_OPTIONS(struct extract_file_options),
	CLI_STRING(struct extract_file_options, output, 'o', "output", "FILE", COMMAND_OUTPUT_HELP),
	CLI_UINT(struct extract_file_options, record, 0, "record", "NUMBER", 0, RECORD_MAX,
		 "the file with this MFT record, whatever it is called; instead of PATH"),
	CLI_FLAG(struct extract_file_options, raw_tail, 0, "raw-tail",
		 "beyond the initialised size, read the contents of the clusters; default: zeros"),
	CLI_FLAG(struct extract_file_options, force, 'f', "force",
		 "overwrite an existing file, and allow writing to the volume that is read"),
};

const struct command command_extract_file = {
	.name = "extract-file",
	.group = GROUP_DISKS,
	.summary = "copy one file from an NTFS volume, even a locked one",
	.examples = { { "Copy a page file that Windows has locked",
			"%s extract-file -V " EXAMPLE_VOLUME " -o copy.sys pagefile.sys" },
		      { "Copy a registry hive from a disk image",
			"%s extract-file -i disk.E01 -o SYSTEM Windows/System32/config/SYSTEM" },
		      { "Copy the file that an MFT record describes",
			"%s extract-file -i disk.E01 -o file.bin --record 41873" } },
	.operands = { .text = "PATH", .max = 1 },
	.options = options,
	.n_options = ARRAY_SIZE(options),
	.notes = "PATH is within the volume, for example pagefile.sys,\n"
		 "Windows/System32/config/SYSTEM, $MFT or notes.txt:stream; with --record it is\n"
		 "left out, or names a stream (:stream). Sectors that cannot be read are\n"
		 "replaced by zeros and listed.\n",
	.values_size = sizeof(struct extract_file_options),
	.run = extract_file_run,
};

#define BUFFER_PAGES (EXTRACT_BUFFER / PAGE_SIZE)

/* Everything that a copy needs until its end. */
struct copy {
	const struct cli *cli;
	const struct extract_file_options *o;
	const char *path; /* as given; or NULL until the file is open */
	struct disk *disk;
	struct extract *file;
	struct output *out;
	uint8_t *buf;
	struct page_status status[BUFFER_PAGES];
	uint64_t pages[PAGE_STATES];
	struct extract_changes changes;
};

static void copy_deinit(struct copy *c)
{
	extract_changes_deinit(&c->changes);
	output_destroy(c->out);
	extract_close(c->file);
	disk_close(c->disk);
	os_buffer_free(c->buf);
}

static enum status open_copy_input(struct copy *c, struct err *e)
{
	const unsigned flags = c->o->raw_tail ? EXTRACT_RAW_TAIL : 0;
	const struct volume *v = NULL;
	enum status st = disk_options_open(c->cli, &c->o->disk, &c->disk, &v, e);

	if (st)
		return st;
	if (cli_given(c->cli, "record"))
		st = extract_open_record(disk_reader(c->disk), v, c->o->record,
					 c->path ? c->path : "", flags, &c->file, e);
	else
		st = extract_open(disk_reader(c->disk), v, c->path, flags, &c->file, e);
	if (st == ST_USAGE)
		return cli_usage(c->cli, e, "%s", e->message);
	if (st)
		return err_add(e, st, "%s", disk_options_name(&c->o->disk));
	c->path = extract_path(c->file);
	return ST_OK;
}

/* A file of zeros would look like one that was read. */
static enum status refuse_elsewhere(const struct copy *c, struct err *e)
{
	const struct extract_state *s = extract_now(c->file);

	if (!s->elsewhere || s->elsewhere < s->size)
		return ST_OK;
	return err_set(e, ST_UNREADABLE, "%s: is %s; nothing was written", c->path,
		       s->elsewhere_text);
}

/* New files take free clusters, and those are what a later look at deleted data would want. */
static enum status check_copy_target(const struct copy *c, const char *to, struct err *e)
{
	if (!strcmp(to, "-"))
		return ST_OK;
	switch (reader_target_risk(disk_reader(c->disk), to)) {
	case TARGET_IS_SOURCE:
		return err_set(e, ST_OUTPUT, "%s: is the input that is being read", to);
	case TARGET_ON_SOURCE:
		if (!c->o->force)
			return err_set(e, ST_OUTPUT,
				       "%s: is on the volume that is being read; use --force to "
				       "write there anyway",
				       to);
		log_warning("target-on-source", "%s: is on the volume that is being read", to);
		return ST_OK;
	case TARGET_SAFE:
		break;
	}
	return ST_OK;
}

static enum status open_copy_output(struct copy *c, struct err *e)
{
	struct output_options target = {
		.path = c->o->output,
		.name = c->path,
		.force = c->o->force,
		.need.least = extract_now(c->file)->size,
	};
	_cleanup_free_ char *path = NULL;
	enum status st = output_place(&target, &path, e);

	if (!st)
		st = check_copy_target(c, path, e);
	target.path = path;
	target.name = NULL;
	return st ? st : output_open(&target, &c->out, e);
}

/*
 * Counts states; true if nothing of the piece was read, so that the output can have a hole there.
 */
static bool count_piece_pages(struct copy *c, const struct extract_piece *piece)
{
	bool empty = true;

	for (size_t i = 0; i * PAGE_SIZE < piece->length; i++) {
		const uint32_t state = c->status[i].state;

		c->pages[state]++;
		empty = empty && (state == PAGE_HOLE || state == PAGE_SKIPPED);
	}
	return empty;
}

static enum status copy_piece(struct copy *c, uint64_t *done, struct err *e)
{
	struct extract_piece piece;
	enum status st =
		interrupted() ? err_set(e, ST_INTERRUPTED, "%s: interrupted", c->path)
			      : extract_next(c->file, c->buf, EXTRACT_BUFFER, c->status, &piece, e);

	if (st)
		return st;
	*done += piece.length;
	return count_piece_pages(c, &piece)
		       ? sink_skip(output_sink(c->out), piece.length, e)
		       : sink_write(output_sink(c->out), c->buf, piece.length, e);
}

static enum status copy_pieces(struct copy *c, struct err *e)
{
	struct progress p;
	uint64_t done = 0;
	enum status st = ST_OK;

	progress_init(&p, cli_progress(c->cli), "copy", extract_now(c->file)->size);
	while (!st) {
		st = copy_piece(c, &done, e);
		progress_update(&p, done, c->pages[PAGE_UNREADABLE]);
	}
	progress_finish(&p);
	if (st == ST_END)
		st = extract_check(c->file, &c->changes, e);
	return st ? st : output_commit(c->out, e);
}

static json_t *copy_bad_json(const struct extract *x)
{
	json_t *list = json_array();
	size_t n;
	const struct extract_bad *bad = extract_bad(x, &n);

	for (size_t i = 0; i < n; i++)
		json_array_append_new(list, json_pack("{s:I, s:I, s:i}", "offset",
						      (json_int_t)bad[i].offset, "length",
						      (json_int_t)bad[i].length, "error",
						      (int)bad[i].error));
	return list;
}

static void summarise_copy(const struct copy *c)
{
	const struct extract_state *s = extract_first(c->file);

	log_result_with(
		JSON_FIELDS(field_text("path", c->path), field_text("output", output_name(c->out)),
			    field_u64("mft_record", s->record), field_u64("sequence", s->sequence),
			    field_u64("size", s->size), field_u64("allocated", s->allocated),
			    field_u64("initialised", s->initialised),
			    field_u64("fragments", s->fragments),
			    field_u64("mft_records", s->n_records),
			    field_u64("pages_data", c->pages[PAGE_DATA]),
			    field_u64("pages_hole", c->pages[PAGE_HOLE]),
			    field_u64("pages_skipped", c->pages[PAGE_SKIPPED]),
			    field_u64("pages_unreadable", c->pages[PAGE_UNREADABLE]),
			    field_json("bad", copy_bad_json(c->file)),
			    field_bool("changed", c->changes.any)),
		"file-copied", "%s: %" PRIu64 " bytes in %zu fragments, MFT record %" PRIu64,
		c->path, s->size, s->fragments, s->record);
	if (s->note.message[0])
		log_warning("found-by-record", "%s: %s", c->path, s->note.message);
	if (s->lost_records)
		log_warning("records-lost", "%s: %zu extension records are lost: %s", c->path,
			    s->lost_records, s->problem.message);
	if (s->encrypted)
		log_warning("encrypted", "%s: is encrypted by EFS; this is the ciphertext",
			    c->path);
}

/* An output is only appended to, so nothing can be copied again: say what does not fit together. */
static enum status copy_status(const struct copy *c, struct err *e)
{
	const struct extract_state *s = extract_now(c->file);
	const struct extract_changes *ch = &c->changes;

	if (ch->gone)
		return err_set(e, ST_UNREADABLE, "%s: was deleted while it was copied", c->path);
	if (ch->again.count)
		return err_set(e, ST_UNREADABLE,
			       "%s: moved or grew while it was copied; the first "
			       "of %zu parts that differ is at byte %" PRIu64,
			       c->path, ch->again.count, ch->again.at[0].file);
	if (c->pages[PAGE_UNREADABLE])
		return err_set(e, ST_UNREADABLE, "%s: %" PRIu64 " pages could not be read%s%s",
			       c->path, c->pages[PAGE_UNREADABLE], s->elsewhere ? ": it is " : "",
			       s->elsewhere_text);
	return ST_OK;
}

static enum status extract_file_run(struct cli *cli, struct err *e)
{
	struct copy c = { .cli = cli, .o = cli->values, .path = cli->operands[0] };
	enum status st;

	if (!c.path && !cli_given(cli, "record"))
		return cli_usage(cli, e, "missing operand: PATH, or --record");
	if (c.path && *c.path != ':' && cli_given(cli, "record"))
		return cli_usage(cli, e,
				 "PATH and --record both name a file: give one of them, or a "
				 "stream of the record as :NAME");
	if (!c.o->output)
		return cli_usage(cli, e, "say where to write with --output");
	cage_command(cli, false);
	c.buf = os_buffer(EXTRACT_BUFFER);
	st = c.buf ? open_copy_input(&c, e) : err_nomem(e);
	if (!st)
		st = refuse_elsewhere(&c, e);
	if (!st)
		st = open_copy_output(&c, e);
	if (!st)
		st = copy_pieces(&c, e);
	if (!st) {
		summarise_copy(&c);
		st = copy_status(&c, e);
	}
	copy_deinit(&c);
	return st;
}
