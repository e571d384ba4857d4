/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ramseal extract: one stream of a container as the file that it was.
 */
#include <inttypes.h>
#include <string.h>

#include "agent/commands/commands.h"
#include "agent/shared/output/cage_command.h"
#include "agent/image/export.h"
#include "agent/shared/container/identities.h"
#include "agent/shared/program/interrupt.h"
#include "agent/shared/program/log.h"
#include "agent/shared/program/text.h"
#include "formats/image/raw.h"

static enum status extract_run(struct cli *cli, struct err *e);

struct extract_options {
	struct identity_options identity;
	struct image_options image;
	const char *output;
	const char *stream;
	uint64_t threads;
	bool force;
};

static const struct option_def options[] = {
	CLI_STRING(struct extract_options, stream, 'S', "stream", "NAME",
		   "extract this stream; without this option and --output, list the streams"),
	CLI_STRING(struct extract_options, output, 'o', "output", "FILE", COMMAND_OUTPUT_HELP),
	CLI_GROUP(struct extract_options, image, &image_option_group),
	CLI_UINT(struct extract_options, threads, 't', "threads", "N", 1, PIPELINE_WORKERS_MAX,
		 COMMAND_THREADS_HELP),
	CLI_GROUP(struct extract_options, identity, &identity_option_group),
	CLI_FLAG(struct extract_options, force, 'f', "force", COMMAND_FORCE_HELP),
};

const struct command command_extract = {
	.name = "extract",
	.group = GROUP_EVIDENCE,
	.summary = "write out a page file, another file, the log or the manifest",
	.examples = { { "List the streams of a container", "%s extract host.rsz" },
		      { "Write out a page file",
			"%s extract -S pagefile.sys -o pagefile.sys host.rsz" },
		      { "Print the log of the acquisition", "%s extract -S log -o - host.rsz" } },
	.operands = { .text = "FILE", .min = 1, .max = 1 },
	.options = options,
	.n_options = ARRAY_SIZE(options),
	.notes = "The file gets its original length. Holes stay holes, and everything beyond\n"
		 "the initialised size is zeros, as in the file system. Pages that could not\n"
		 "be read are filled, and listed in OUTPUT.gaps.json. The summary gives the\n"
		 "file's name and metadata, when it was read, and the SHA-256 of what was\n"
		 "written.\n",
	.values_size = sizeof(struct extract_options),
	.defaults = &(const struct extract_options){ .image.format = &raw_format },
	.run = extract_run,
};

/* The log, the manifest: bytes without pages. */
struct text_run {
	const struct container *in;
	uint32_t stream;
	struct rsz_cursor *cursor;
	struct output *out;
	char sha256[SHA256_HEX_SIZE];
	uint64_t damaged; /* bytes that are left out, because their chunk is damaged */
	struct err why;   /* the first such failure */
};

static void text_run_deinit(struct text_run *x)
{
	output_destroy(x->out);
	rsz_cursor_destroy(x->cursor);
}

/* Piece by piece: a few kilobytes of a container can hold gigabytes of text. */
static enum status copy_stream_text(struct text_run *x, struct err *e)
{
	uint64_t at = 0;

	while (!interrupted()) {
		struct err why = ERR_INIT;
		const uint8_t *text;
		size_t len;
		enum status st = rsz_cursor_next_text(x->cursor, x->stream, &at, &text, &len, &why);

		if (st == ST_END)
			return ST_OK;
		if (st == ST_CORRUPT) {
			if (!x->damaged)
				x->why = why;
			x->damaged += len;
			continue;
		}
		if (!st)
			st = sink_write(output_sink(x->out), text, len, &why);
		if (st) {
			*e = why;
			return st;
		}
	}
	return interrupt_status(e);
}

static enum status write_stream_text(struct text_run *x, const struct output_options *target,
				     struct err *e)
{
	enum status st = rsz_cursor_create(x->in->reader, 1, &x->cursor, e);

	if (!st)
		st = output_open(target, &x->out, e);
	if (!st)
		st = hash_sink_put_on(&x->out, e);
	if (!st)
		st = copy_stream_text(x, e);
	if (st)
		return st;
	hash_sink_end(x->out, x->sha256);
	return output_commit(x->out, e);
}

static enum status check_text(const struct text_run *x, const char *path, struct err *e)
{
	if (x->damaged)
		return err_set(e, ST_CORRUPT,
			       "%s: %" PRIu64 " bytes are damaged and left out: %.300s", path,
			       x->damaged, x->why.message);
	return export_check_end(x->in, path, e);
}

static void summarise_text(const struct text_run *x, const char *path)
{
	const struct rsz_stream_info *info = rsz_reader_stream(x->in->reader, x->stream);
	const bool complete = !x->damaged && container_is_complete(x->in);

	log_result_with(JSON_FIELDS(field_text("output", output_name(x->out)),
				    field_bool("complete", complete),
				    field_u64("bytes_written", output_bytes(x->out)),
				    field_u64("damaged_bytes", x->damaged),
				    field_text("sha256", x->sha256),
				    field_json("stream", export_stream_json(info)),
				    field_json("origin", export_origin_json(x->in, path, info))),
			"summary", "%s: %" PRIu64 " bytes, sha256 %s%s", output_name(x->out),
			output_bytes(x->out), x->sha256, complete ? "" : ", not complete");
}

static enum status extract_text(const struct cli *cli, const struct container *in, uint32_t stream,
				struct err *e)
{
	const struct extract_options *o = cli->values;
	const char *path = cli->operands[0];
	const struct output_options target = {
		.path = o->output,
		.name = rsz_reader_stream(in->reader, stream)->name,
		.force = o->force,
		.inputs = (const char *const[]){ path, NULL },
	};
	struct text_run x = { .in = in, .stream = stream };
	enum status st = write_stream_text(&x, &target, e);

	if (!st) {
		st = check_text(&x, path, e);
		summarise_text(&x, path);
	}
	text_run_deinit(&x);
	return st;
}

static enum status extract_pages(const struct cli *cli, struct container *in, struct err *e)
{
	const struct extract_options *o = cli->values;
	const struct export_plan plan = {
		.cli = cli,
		.in = in,
		.image = &o->image,
		.output = o->output,
		.stream = o->stream,
		.threads = o->threads,
		.force = o->force,
		.whole_file = true,
	};

	return export_stream(&plan, e);
}

/* What there is to choose from, one a line: the name, a tab, what it is. */
static void list_streams(const struct container *in)
{
	char name[1024];

	for (uint32_t i = 0; i < rsz_reader_streams(in->reader); i++) {
		const struct rsz_stream_info *info = rsz_reader_stream(in->reader, i);

		text_printable(info->name, name, sizeof(name));
		printf("%s\t%s\n", name, rsz_kind_name(info->kind));
	}
}

static enum status extract_run(struct cli *cli, struct err *e)
{
	const struct extract_options *o = cli->values;
	_cleanup_identities_ struct age_identities *x = NULL;
	struct container in;
	uint32_t stream = 0;
	enum status st;

	if (!o->stream && o->output)
		return cli_usage(cli, e, "needs --stream NAME; extract FILE alone lists them");
	if (o->stream && !o->output)
		return cli_usage(cli, e, "needs --output FILE");
	st = identities_load(&o->identity, &x, e);
	if (!st)
		cage_command(cli, o->image.format->own_files);
	if (!st)
		st = container_open(cli->operands[0], x, &in, e);
	if (st)
		return st;
	if (!o->stream) {
		list_streams(&in);
		container_close(&in);
		return ST_OK;
	}
	st = container_find_name(&in, o->stream, &stream, e);
	if (!st && rsz_reader_stream(in.reader, stream)->paged)
		st = extract_pages(cli, &in, e);
	else if (!st)
		st = extract_text(cli, &in, stream, e);
	st = container_answer(&in, st, e);
	container_close(&in);
	return st;
}
