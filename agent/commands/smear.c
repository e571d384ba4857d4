/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ramseal smear: how far the page tables and the pages of a container belong together.
 */
#include "agent/commands/commands.h"
#include "agent/shared/output/cage_command.h"
#include "agent/examine/show/process_choice.h"
#include "agent/examine/smear/input.h"
#include "agent/examine/smear/print.h"
#include "agent/shared/container/identities.h"
#include "agent/shared/program/json.h"
#include "agent/shared/program/lines.h"

static enum status smear_run(struct cli *cli, struct err *e);

struct mappings_choice {
	bool all;
	struct process_choice who;
};

struct smear_options {
	struct identity_options identity;
	bool json;
	bool csv;
	bool changes;
	bool full;
	bool brief;
	struct mappings_choice mappings;
};

static enum status parse_mappings_choice(const char *text, void *at, struct err *e)
{
	struct mappings_choice *c = at;

	c->all = !strcmp(text, "all");
	return c->all ? ST_OK : process_choice_parse(text, &c->who, e);
}

static const struct option_def options[] = {
	CLI_FLAG(struct smear_options, full, 0, "full",
		 "print all numbers; the default where stdout is not a terminal"),
	CLI_FLAG(struct smear_options, brief, 0, "brief",
		 "print the verdict and what to do about it; the default on a terminal"),
	CLI_FLAG(struct smear_options, json, 'j', "json", "print one JSON object"),
	CLI_FLAG(struct smear_options, csv, 0, "csv",
		 "print CSV: pages by process, copy of the page tables, place, verdict and reason"),
	CLI_FLAG(struct smear_options, changes, 0, "changes",
		 "print CSV: pages by process, pair of copies and change of state"),
	CLI_PARSED(
		struct smear_options, mappings, 'p', "mappings", "PID|NAME|all",
		parse_mappings_choice,
		"print a row for each mapping of that process, or of all; with --json, an object"),
	CLI_GROUP(struct smear_options, identity, &identity_option_group),
};

const struct command command_smear = {
	.name = "smear",
	.group = GROUP_EVIDENCE,
	.summary = "count the pages of each process that can be trusted",
	.examples = { { "See how far each process can be trusted", "%s smear host.rsz" },
		      { "See every mapping of process 1234, and why",
			"%s smear --mappings 1234 host.rsz" },
		      { "Get the reasons for all processes as a table",
			"%s smear --csv host.rsz > smear.csv" },
		      { "Get every mapping of every process, with capture times",
			"%s smear --mappings all host.rsz > mappings.csv" } },
	.operands = { .text = "FILE", .min = 1, .max = 1 },
	.options = options,
	.n_options = ARRAY_SIZE(options),
	.notes = "Memory changes while it is read. So each mapped page of a process counts as:\n"
		 "  safe     the page certainly holds what its page-table entry refers to\n"
		 "  at risk  entry and page were read at different times, and one of them may\n"
		 "           have changed in between\n"
		 "  wrong    what the entry refers to is certainly not in the container, for\n"
		 "           example because the page file was not copied\n"
		 "The end recommends what to do about it. --csv and --mappings give the reason\n"
		 "for each group of pages, and METHOD.md (in share/doc/ramseal or\n"
		 "agent/examine/smear) explains the reasons. docs/smear-tables.md reads these\n"
		 "tables in R and pandas.\n"
		 "\n"
		 "`ramseal read` judges single pages. A new acquisition has fewer pages at\n"
		 "risk with --order guided (the default), a faster output, and less activity\n"
		 "on the machine.\n"
		 "\n"
		 "The container needs both copies of the page tables (acquire\n"
		 "--pagetables=both, the default). An image file captures a single moment, so\n"
		 "its present pages are only counted.\n",
	.values_size = sizeof(struct smear_options),
	.run = smear_run,
};

/* Rows of mappings; nothing is printed before the first. */
struct rows {
	bool json;
	bool all; /* of several processes */
	bool begun;
};

static void begin_rows(struct rows *r)
{
	if (!r->begun && !r->json)
		(r->all ? smear_print_all_rows_head : smear_print_rows_head)(stdout);
	r->begun = true;
}

static enum status print_mapping_row(void *context, const struct smear_row *row, struct err *e)
{
	struct rows *r = context;

	begin_rows(r);
	if (!r->json) {
		(r->all ? smear_print_row_of_all : smear_print_row)(row, stdout);
		return ST_OK;
	}
	return json_print((r->all ? smear_row_of_all_json : smear_row_json)(row), JSON_COMPACT, e);
}

static enum status print_smear(const struct smear_options *o, const struct smear *s,
			       const char *path, struct err *e)
{
	if (o->csv || o->changes) {
		(o->csv ? smear_print_csv : smear_print_changes)(s, stdout);
		return ST_OK;
	}
	if (o->json)
		return smear_print_json(s, path, stdout, e);
	if (o->brief || (!o->full && lines_width(stdout) != LINES_ENDLESS))
		smear_print_short(s, stdout);
	else
		smear_print_text(s, stdout);
	return ST_OK;
}

static bool has_pid(const struct smear *s, uint64_t pid)
{
	for (size_t i = 0; i < s->count; i++)
		if (s->at[i].id.listed && s->at[i].id.pid == pid)
			return true;
	return false;
}

static enum status measure_smear_of_input(const struct smear_options *o, struct smear_input *in,
					  const char *path, bool mappings, struct err *e)
{
	struct rows rows = { .json = o->json, .all = o->mappings.all };
	struct smear_plan plan = smear_input_plan(in);
	struct smear s;
	enum status st;

	plan.row = mappings ? print_mapping_row : NULL;
	plan.context = &rows;
	plan.row_pid = o->mappings.who.pid;
	plan.row_name = mappings && !o->mappings.all ? o->mappings.who.name : NULL;
	plan.all_rows = o->mappings.all;
	st = smear_analyse(&plan, &s, e);
	if (!st && mappings && !o->mappings.all && !o->mappings.who.name &&
	    !has_pid(&s, o->mappings.who.pid))
		st = err_set(e, ST_INPUT, "no process %u with page tables", plan.row_pid);
	else if (!st && mappings)
		begin_rows(&rows);
	else if (!st)
		st = print_smear(o, &s, path, e);
	smear_deinit(&s);
	return st ? err_add(e, st, "%s", path) : ST_OK;
}

static enum status smear_run(struct cli *cli, struct err *e)
{
	const struct smear_options *o = cli->values;
	const bool mappings = cli_given(cli, "mappings");
	const char *path = cli->operands[0];
	_cleanup_identities_ struct age_identities *x = NULL;
	struct smear_input in;
	enum status st;

	if (o->brief && o->full)
		return cli_usage(cli, e, "--brief and --full contradict each other");
	if (o->csv + o->changes + mappings > 1 || (o->json && (o->csv || o->changes)))
		return cli_usage(cli, e,
				 "--csv, --changes and --mappings exclude each other, and --json "
				 "goes only with --mappings");
	st = identities_load(&o->identity, &x, e);
	if (!st)
		cage_command(cli, false);
	if (!st)
		st = smear_input_open(path, x, &in, e);
	if (st)
		return st;
	st = container_answer(&in.container, measure_smear_of_input(o, &in, path, mappings, e), e);
	smear_input_close(&in);
	return st;
}
