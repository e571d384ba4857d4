/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ramseal report: a page for people about one acquisition, several side by side, or one process.
 */
#include <inttypes.h>
#include <string.h>

#include "agent/commands/commands.h"
#include "agent/shared/output/cage_command.h"
#include "agent/examine/report/fleet/fleet.h"
#include "agent/examine/report/host/pages.h"
#include "agent/examine/report/kit/page.h"
#include "agent/examine/report/process/process_page.h"
#include "agent/examine/show/heap_leaks.h"
#include "agent/examine/show/process_session.h"
#include "agent/shared/container/identities.h"
#include "agent/shared/output/output.h"
#include "agent/shared/program/log.h"
#include "agent/shared/program/pipeline.h"

/* More containers in one figure nobody tells apart. */
#define RUNS_MAX 16

static enum status report_run(struct cli *cli, struct err *e);

struct report_options {
	struct identity_options identity;
	struct process_options process;
	const char *output;
	const struct page_figure *figure;
	struct cli_strings labels;
	bool no_verify;
	uint64_t threads;
	bool force;
	bool named; /* by us: --output was not given */
};

static const char *suggest_figure(size_t i)
{
	return i < page_n_figures ? page_figures[i].name : NULL;
}

static enum status parse_figure(const char *text, void *at, struct err *e)
{
	for (size_t i = 0; i < page_n_figures; i++) {
		if (!strcmp(page_figures[i].name, text)) {
			*(const struct page_figure **)at = &page_figures[i];
			return ST_OK;
		}
	}
	return ST_USAGE;
}

static const struct option_def options[] = {
	CLI_HEADING("What to write"),
	CLI_STRINGS(struct report_options, labels, 'l', "label", "TEXT",
		    "label for the first, the second, ... FILE; default: its name"),
	CLI_PARSED(struct report_options, figure, 0, "figure", "NAME", parse_figure,
		   "write only this figure, as SVG", .suggest = suggest_figure),
	CLI_GROUP(struct report_options, process, &process_option_group),
	CLI_HEADING("Where to write"),
	CLI_STRING(struct report_options, output, 'o', "output", "FILE", COMMAND_OUTPUT_HELP),
	CLI_FLAG(struct report_options, force, 'f', "force", COMMAND_FORCE_HELP),
	CLI_HEADING("How"),
	CLI_GROUP(struct report_options, identity, &identity_option_group),
	CLI_FLAG(struct report_options, no_verify, 0, "no-verify",
		 "do not check every hash of the containers; the page says so"),
	CLI_UINT(struct report_options, threads, 't', "threads", "N", 1, PIPELINE_WORKERS_MAX,
		 COMMAND_THREADS_HELP),
};

const struct command command_report = {
	.name = "report",
	.group = GROUP_EVIDENCE,
	.summary = "write an HTML page: one or more acquisitions, a fleet, a process",
	.examples = { { "Write a page about an acquisition, host.html", "%s report host.rsz" },
		      { "Compare two acquisitions",
			"%s report -l before -l after -o both.html before.rsz after.rsz" },
		      { "Write a page about a fleet, from its summaries",
			"%s report -o fleet.html summaries/" },
		      { "Write a page about a Windows process",
			"%s report --pid 1234 -o process.html host.rsz" } },
	.operands = { .text = "FILE...", .min = 1, .max = FLEET_DOCS_MAX },
	.options = options,
	.n_options = ARRAY_SIZE(options),
	.notes = "Without --output, the page about one container has its name, ending in .html,\n"
		 "and is written into the current folder; a file of that name stays.\n"
		 "\n"
		 "The page is one self-contained HTML file. These figures can be written\n"
		 "alone: timeline, windows, curves, spread, verdicts, transitions, processes,\n"
		 "states. In 'spread', files with the same label count as repeated runs of the\n"
		 "same thing.\n"
		 "\n"
		 "With --pid, the page is about one Windows process: a map of its address\n"
		 "ranges, where their pages are and how far they can be trusted, its heaps,\n"
		 "modules and threads. If parts could not be read, the page says which, and\n"
		 "the exit code is 3. Not all hashes are checked for it.\n"
		 "\n"
		 "With the summaries of many hosts (acquire --summary), or directories of\n"
		 "them, the page is about the fleet: which hosts are complete, which are not\n"
		 "and why, and which are slow, large or duplicated. In directories, *.json is\n"
		 "read. The output of `info --json` for a container may be there too: it adds\n"
		 "the size of the smear. If a file is not a summary, the page names it, and\n"
		 "the exit code is 7.\n",
	.values_size = sizeof(struct report_options),
	.run = report_run,
};

static enum status check_report_options(const struct cli *cli, struct err *e)
{
	const struct report_options *o = cli->values;
	const struct page_figure *f = o->figure;

	if (f && !f->several && cli->n_operands > 1)
		return cli_usage(cli, e, "--figure %s takes one FILE", f->name);
	if (cli->n_operands > RUNS_MAX)
		return cli_usage(cli, e, "takes %d containers at most", RUNS_MAX);
	if (o->labels.count > cli->n_operands)
		return cli_usage(cli, e, "there are more labels than files");
	return ST_OK;
}

static const char *base_name_of(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash && slash[1] ? slash + 1 : path;
}

static enum status load_runs(const struct cli *cli, struct report_run *runs, struct err *e)
{
	const struct report_options *o = cli->values;
	_cleanup_identities_ struct age_identities *x = NULL;
	enum status st = identities_load(&o->identity, &x, e);

	if (!st)
		cage_command(cli, false);
	for (size_t i = 0; i < cli->n_operands && !st; i++) {
		const char *path = cli->operands[i];
		const struct run_plan plan = {
			.identities = x,
			.path = path,
			.label = i < o->labels.count ? o->labels.at[i] : base_name_of(path),
			.check = !o->no_verify && !o->figure,
			.threads = pipeline_threads(o->threads),
			.progress = cli_progress(cli),
		};

		st = run_load(&plan, &runs[i], e);
	}
	return st;
}

static enum status make_report(const struct cli *cli, const struct page_figure *f,
			       const struct report_run *runs, struct doc *d, struct err *e)
{
	for (size_t i = 0; f && f->wants_smear && i < cli->n_operands; i++)
		if (!runs[i].has_smear)
			return err_set(e, ST_INPUT, "%s: %s%s", runs[i].path,
				       runs[i].origin.still ? "not applicable: " : "",
				       runs[i].no_smear);
	if (f)
		f->put(d, runs, cli->n_operands, SVG_ALONE);
	else if (cli->n_operands == 1)
		page_of_one(d, runs);
	else
		page_of_several(d, runs, cli->n_operands);
	return d->lost ? err_nomem(e) : ST_OK;
}

/* In a directory: of one container its name, of several or a fleet none of theirs. For free(). */
static char *name_of_page(const struct cli *cli)
{
	const struct report_options *o = cli->values;
	char suffix[PROCESS_CHOICE_TEXT + 16], who[PROCESS_CHOICE_TEXT];

	process_choice_text(&o->process.who, who);
	if (o->figure)
		snprintf(suffix, sizeof(suffix), "-%s.svg", o->figure->name);
	else if (cli_given(cli, "pid"))
		snprintf(suffix, sizeof(suffix), "-%s.html", who);
	else
		snprintf(suffix, sizeof(suffix), ".html");
	return output_name_of(cli->n_operands == 1 && !fleet_is(cli->operands[0]) ? cli->operands[0]
										  : "report",
			      suffix);
}

static enum status write_out(const struct cli *cli, const struct doc *d, struct err *e)
{
	const struct report_options *o = cli->values;
	_cleanup_free_ char *name = name_of_page(cli);
	const struct output_options options_of = {
		.path = o->output,
		.name = name,
		.force = o->force,
		.inputs = (const char *const *)cli->operands,
		.need.least = d->len,
	};
	_cleanup_output_ struct output *out = NULL;
	enum status st;

	if (!name)
		return err_nomem(e);
	st = output_open(&options_of, &out, e);
	if (!st)
		st = sink_write(output_sink(out), d->at, d->len, e);
	if (!st)
		st = output_commit(out, e);
	if (st && out)
		output_discard(out);
	if (!st && o->named)
		log_info_with(JSON_FIELDS(field_text("output", output_where(out))),
			      "report-written", "the report is %s", output_where(out));
	return st;
}

/*
 * A page about something that is not whole is made, and does not pass for one of something that is.
 */
static enum status report_status(const struct cli *cli, const struct report_run *runs,
				 struct err *e)
{
	const struct report_options *o = cli->values;

	for (size_t i = 0; i < cli->n_operands; i++)
		if (!run_is_whole(&runs[i]))
			return err_set(e, ST_CORRUPT,
				       "%s: %s: %.300s; what is whole is reported in %s",
				       runs[i].path, rsz_end_name(runs[i].end.end),
				       runs[i].end.reason, o->named ? "the page" : o->output);
	return ST_OK;
}

/*
 * One process
 */

static enum status check_process_options(const struct cli *cli, struct err *e)
{
	const struct report_options *o = cli->values;

	if (!cli_given(cli, "pid"))
		return cli_usage(cli, e,
				 "--tables, --symbols and --force-symbols go with "
				 "--pid");
	if (cli->n_operands > 1)
		return cli_usage(cli, e, "--pid takes one FILE");
	if (o->figure || o->labels.count || o->no_verify)
		return cli_usage(cli, e, "--pid goes without --figure, --label and --no-verify");
	return ST_OK;
}

/* More blocks than a search can take: the page says that nothing was searched. */
static enum status report_leaks_of(const struct process_session *s, struct report_process *r,
				   struct err *e)
{
	const enum status st = heap_leaks_report(s, &r->blocks.leaks, e);

	return st == ST_INPUT ? ST_OK : st;
}

static enum status report_session(const struct cli *cli, const struct process_session *s,
				  struct err *e)
{
	_cleanup_doc_ struct doc d = { 0 };
	struct report_process r = { 0 };
	enum status st = report_process_load(s->path, s->process, &r, e);
	char foot[PAGE_FOOT_MAX];

	page_foot_of_container(rsz_reader_end(s->in.container.reader), foot);
	r.foot = foot;
	if (!st)
		st = report_process_blocks(&r, e);
	if (!st && r.n_heaps)
		st = report_leaks_of(s, &r, e);
	if (!st) {
		page_of_process(&d, &r);
		st = d.lost ? err_nomem(e) : write_out(cli, &d, e);
	}
	if (!st && !report_process_is_whole(&r))
		st = err_set(e, ST_UNREADABLE,
			     "%s: parts of process %" PRIu32
			     " could not be read; the page says which",
			     s->path, r.facts->pid);
	report_process_deinit(&r);
	return st;
}

static enum status report_process_of(struct cli *cli, struct err *e)
{
	const struct report_options *o = cli->values;
	_cleanup_identities_ struct age_identities *x = NULL;
	struct process_session s;
	enum status st = check_process_options(cli, e);

	if (!st)
		st = identities_load(&o->identity, &x, e);
	if (!st)
		cage_command(cli, false);
	if (!st)
		st = process_session_open(cli, &o->process, x, &s, e);
	if (st)
		return st;
	st = report_session(cli, &s, e);
	return process_session_close(&s, st, e);
}

/*
 * Summaries of many hosts
 */

static enum status check_fleet_options(const struct cli *cli, struct err *e)
{
	const struct report_options *o = cli->values;

	for (size_t i = 0; i < cli->n_operands; i++)
		if (!fleet_is(cli->operands[i]))
			return err_set(
				e, ST_INPUT,
				"%s: is neither a summary nor a directory, unlike the others",
				cli->operands[i]);
	if (o->figure || o->labels.count || o->no_verify)
		return cli_usage(cli, e,
				 "--figure, --label and --no-verify are for reports on containers");
	return ST_OK;
}

static enum status load_fleet(const struct cli *cli, struct fleet *f, struct err *e)
{
	enum status st = ST_OK;

	for (size_t i = 0; i < cli->n_operands && !st; i++)
		st = fleet_add(f, cli->operands[i], e);
	if (!st && !f->count && !f->n_faults && !f->n_smears)
		st = err_set(e, ST_INPUT, "%s: has no summaries (*.json)", cli->operands[0]);
	if (!st)
		fleet_finish(f);
	return st;
}

static enum status report_fleet(const struct cli *cli, struct fleet *f, struct err *e)
{
	const struct report_options *o = cli->values;
	_cleanup_doc_ struct doc d = { 0 };
	enum status st = load_fleet(cli, f, e);

	if (st)
		return st;
	page_of_fleet(&d, f);
	st = d.lost ? err_nomem(e) : write_out(cli, &d, e);
	if (!st && f->n_broken)
		st = err_set(e, ST_CORRUPT,
			     "%zu of %zu files are not readable summaries; %s names them",
			     f->n_broken, f->n_faults + f->count + f->n_smears, o->output);
	return st;
}

static enum status run_fleet(const struct cli *cli, struct err *e)
{
	struct fleet f = { 0 };
	enum status st = check_fleet_options(cli, e);

	if (!st)
		st = report_fleet(cli, &f, e);
	fleet_deinit(&f);
	return st;
}

static bool is_any_fleet(const struct cli *cli)
{
	for (size_t i = 0; i < cli->n_operands; i++)
		if (fleet_is(cli->operands[i]))
			return true;
	return false;
}

static enum status report_containers(const struct cli *cli, struct err *e)
{
	const struct report_options *o = cli->values;
	const struct page_figure *f = o->figure;
	enum status st = check_report_options(cli, e);
	_cleanup_doc_ struct doc d = { 0 };
	struct report_run *runs;

	if (st)
		return st;
	runs = calloc(cli->n_operands, sizeof(*runs));
	if (!runs)
		return err_nomem(e);
	st = load_runs(cli, runs, e);
	if (!st)
		st = make_report(cli, f, runs, &d, e);
	if (!st)
		st = write_out(cli, &d, e);
	if (!st)
		st = report_status(cli, runs, e);
	for (size_t i = 0; i < cli->n_operands; i++)
		run_deinit(&runs[i]);
	free(runs);
	return st;
}

/* A page about one container can be named after it; in the current folder, where nothing lies. */
static bool names_itself(const struct cli *cli)
{
	return cli->n_operands == 1 && strcmp(cli->operands[0], "-") != 0 &&
	       !fleet_is(cli->operands[0]);
}

static enum status report_run(struct cli *cli, struct err *e)
{
	struct report_options *o = cli->values;

	if (!o->output && !names_itself(cli))
		return cli_usage(cli, e, "needs --output FILE");
	if (!o->output) {
		o->output = ".";
		o->named = true;
		cli_assume_given(cli, "output");
	}
	if (cli_given(cli, "pid") || cli_given(cli, "tables") || cli_given(cli, "symbols") ||
	    cli_given(cli, "force-symbols"))
		return report_process_of(cli, e);
	return is_any_fleet(cli) ? run_fleet(cli, e) : report_containers(cli, e);
}
