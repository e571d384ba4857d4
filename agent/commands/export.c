/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ramseal export: a stream of pages in a format that other tools read.
 */
#include "agent/commands/commands.h"
#include "agent/shared/output/cage_command.h"
#include "agent/image/export.h"
#include "agent/shared/container/identities.h"
#include "formats/image/raw.h"

static enum status export_run(struct cli *cli, struct err *e);

struct export_options {
	struct identity_options identity;
	struct image_options image;
	const char *output;
	const char *stream;
	int level;
	uint64_t threads;
	bool force;
};

static const char *const level_choices[] = { "store", "1", "6", "12", NULL };

static const struct option_def options[] = {
	CLI_HEADING("What to write"),
	CLI_PARSED(struct export_options, image.format, 'F', "format", "FORMAT", image_parse_format,
		   "the format (see Formats below); default: raw", .suggest = image_suggest_format),
	CLI_STRING(struct export_options, stream, 'S', "stream", "NAME",
		   "export this stream; default: physical memory"),
	CLI_HEADING("Where to write"),
	CLI_STRING(struct export_options, output, 'o', "output", "FILE", COMMAND_OUTPUT_HELP),
	CLI_FLAG(struct export_options, force, 'f', "force", COMMAND_FORCE_HELP),
	CLI_HEADING("Image format"),
	CLI_GROUP(struct export_options, image, &image_option_group),
	CLI_PARSED(struct export_options, level, 'l', "level", "N", image_parse_level,
		   "e01, kdump: compression, store or 1..12; default: 1", .choices = level_choices),
	CLI_GROUP(struct export_options, image, &image_format_option_group),
	CLI_HEADING("How"),
	CLI_GROUP(struct export_options, identity, &identity_option_group),
	CLI_UINT(struct export_options, threads, 't', "threads", "N", 1, PIPELINE_WORKERS_MAX,
		 COMMAND_THREADS_HELP),
};

const struct command command_export = {
	.name = "export",
	.group = GROUP_EVIDENCE,
	.summary = "write a container's memory in a format for other tools",
	.examples = { { "Make an ELF core for crash or drgn",
			"%s export -F elf -o host.elf host.rsz" },
		      { "Make a Windows crash dump for WinDbg",
			"%s export -F dmp -o host.dmp host.rsz" },
		      { "Pipe raw memory into another program",
			"%s export -o - host.rsz | strings" } },
	.operands = { .text = "FILE", .min = 1, .max = 1 },
	.options = options,
	.n_options = ARRAY_SIZE(options),
	.put_notes = image_put_notes,
	.values_size = sizeof(struct export_options),
	.defaults = &(const struct export_options){ .image.format = &raw_format, .level = 1 },
	.run = export_run,
};

static enum status export_run(struct cli *cli, struct err *e)
{
	const struct export_options *o = cli->values;
	_cleanup_identities_ struct age_identities *x = NULL;
	struct container in;
	const struct export_plan plan = {
		.cli = cli,
		.in = &in,
		.image = &o->image,
		.output = o->output,
		.stream = o->stream,
		.level = o->level,
		.threads = o->threads,
		.force = o->force,
	};
	enum status st = image_options_check(cli, &o->image, e);

	if (st)
		return st;
	if (!o->output)
		return cli_usage(cli, e, "needs --output FILE");
	if (cli_given(cli, "level") && !o->image.format->compresses)
		return cli_usage(cli, e, "--level needs --format e01 or kdump");
	st = identities_load(&o->identity, &x, e);
	if (!st)
		cage_command(cli, o->image.format->own_files);
	if (!st)
		st = container_open(cli->operands[0], x, &in, e);
	if (st)
		return st;
	st = container_answer(&in, export_stream(&plan, e), e);
	container_close(&in);
	return st;
}
