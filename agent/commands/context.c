/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ramseal context: what the registry of a Windows machine says about how its memory looked.
 */
#include "agent/commands/commands.h"
#include "agent/shared/output/cage_command.h"
#include "agent/collect/acquire/disk_options.h"
#include "agent/collect/host/context.h"
#include "agent/shared/program/log.h"

/* The schema first. */
static enum status context_print_json(json_t *context, struct err *e)
{
	json_t *doc = json_pack("{s:s}", "schema", JSON_SCHEMA("context"));

	if (doc && json_object_update(doc, context)) {
		json_decref(doc);
		doc = NULL;
	}
	return json_print(doc, JSON_INDENT(1), e);
}

static enum status context_run(struct cli *cli, struct err *e);

struct context_options {
	struct disk_options disk;
	struct cli_strings hives;
	bool json;
};

static const struct option_def options[] = {
	CLI_STRINGS(struct context_options, hives, 'H', "hive", "FILE",
		    "a SOFTWARE or SYSTEM hive; give the option once for each"),
	DISK_OPTIONS(struct context_options),
	CLI_FLAG(struct context_options, json, 'j', "json", "print one JSON object"),
};

const struct command command_context = {
	.name = "context",
	.group = GROUP_DISKS,
	.summary = "show settings in a Windows registry that affect memory",
	.examples = { { "Show the settings of this machine", "%s context" },
		      { "Show those of a disk image", "%s context -i disk.E01" },
		      { "Show those in hives that were copied",
			"%s context -H SYSTEM -H SOFTWARE" } },
	.options = options,
	.n_options = ARRAY_SIZE(options),
	.notes = "Shows page files, memory protections, heap debugging, and the programs that\n"
		 "RADAR found to use much memory. Reads hives, the first Windows on a disk, or\n"
		 "the registry of this machine.\n",
	.values_size = sizeof(struct context_options),
	.run = context_run,
};

static enum status read_context_input(const struct cli *cli, const struct context_options *o,
				      json_t **ret, struct err *e)
{
	const bool disk = o->disk.volume || o->disk.images.count;
	struct disk *d = NULL;
	enum status st;

	if (disk && o->hives.count)
		return cli_usage(cli, e, "--hive cannot be combined with --image or --volume");
	if (!disk && cli_given(cli, "offset"))
		return cli_usage(cli, e, "--offset needs --image or --volume");
	if (o->hives.count || disk)
		cage_command(cli, false);
	if (o->hives.count)
		return context_of_hives(o->hives.at, o->hives.count, ret, e);
	if (!disk)
		return context_of_host(ret, e);
	st = disk_options_open(cli, &o->disk, &d, NULL, e);
	if (!st)
		st = context_of_disk(d, ret, e);
	disk_close(d);
	return st;
}

static enum status context_run(struct cli *cli, struct err *e)
{
	const struct context_options *o = cli->values;
	const json_t *problems;
	json_t *doc = NULL;
	enum status st = read_context_input(cli, o, &doc, e);
	size_t n;

	if (st)
		return st;
	problems = json_object_get(doc, "problems");
	n = context_problems(doc);
	for (size_t i = 0; i < n; i++)
		log_warning("context-problem", "%s",
			    json_string_value(json_array_get(problems, i)));
	if (o->json)
		st = context_print_json(doc, e);
	else
		context_print(doc, stdout);
	json_decref(doc);
	if (!st && n)
		return err_set(e, ST_CORRUPT, "%zu part%s of the registry could not be read", n,
			       n == 1 ? "" : "s");
	return st;
}
