/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ramseal check: what acquire would do here, how long it would take, and what stands in the way.
 * Nothing is written; a few MiB of memory are read.
 */
#include <inttypes.h>
#include <string.h>

#include "agent/collect/acquire/files.h"
#include "agent/collect/acquire/fit.h"
#include "agent/collect/acquire/volume_remarks.h"
#include "agent/commands/check_internal.h"
#include "agent/commands/commands.h"
#include "agent/collect/acquire/sources.h"
#include "agent/collect/host/context.h"
#include "agent/collect/acquire/driver_known.h"
#include "agent/collect/acquire/driver_policy.h"
#include "agent/collect/host/ci_host.h"
#include "agent/collect/host/driver_signers.h"
#include "agent/collect/host/host.h"
#include "agent/collect/host/host_lock.h"
#include "agent/collect/host/inventory.h"
#include "agent/shared/program/share.h"
#include "agent/shared/output/age_sink.h"
#include "agent/shared/program/json.h"

static enum status check_run(struct cli *cli, struct err *e);

static const struct option_def options[] = {
	CLI_HEADING("What to read"),
	CLI_STRING(struct check_options, acquire.source, 's', "source", "NAME[:PATH]",
		   "the source that acquire would read", .suggest = drv_source_name),
	CLI_STRING(struct check_options, acquire.map, 0, "map", "FILE", MAP_HELP),
	DRIVER_LOOK_OPTION(struct check_options, acquire.driver)
		CLI_FLAG(struct check_options, acquire.no_pagefile, 0, "no-pagefile",
			 "leave page files out"),
	CLI_FLAG(struct check_options, acquire.hibernation, 0, "hibernation",
		 "include Windows' hiberfil.sys"),
	DISK_OPTIONS_AT(struct check_options, acquire.disk),
	CLI_HEADING("Where to write"),
	CLI_STRING(struct check_options, acquire.output, 'o', "output", "FILE",
		   "where acquire would write (see Targets below); default: <host>-<UTC time>.rsz. "
		   "An address and its keys are checked, but nothing is sent without --probe-link"),
	CLI_GROUP(struct check_options, acquire.recipient, &recipient_option_group),
	CLI_FLAG(struct check_options, acquire.force, 'f', "force",
		 "as with acquire: accept an existing file and too little space"),
	CITOOL_OPTION(struct check_options, citool)
		CLI_FLAG(struct check_options, json, 'j', "json", "print one JSON object"),
	CLI_HEADING("Over the network"),
	CLI_FLAG(struct check_options, probe_link, 0, "probe-link",
		 "start an upload to the address, send up to 64 MiB of random bytes to measure the "
		 "link, and undo what can be undone (see below)"),
	CLI_GROUP(struct check_options, acquire.network, &network_option_group),
};

static void put_check_notes(FILE *to)
{
	command_put_targets(to);
	fputc('\n', to);
	sources_put_notes(to);
}

const struct command command_check = {
	.name = "check",
	.group = GROUP_MACHINE,
	.summary = "preview an acquisition: source, size, time, obstacles",
	.examples = { { "Preview an acquisition onto a USB disk",
			"%s check -o " EXAMPLE_USB "host.rsz" },
		      { "Measure the link to an object store as well",
			"%s check -o s3://evidence/case-7/ --ca roots.pem --probe-link" },
		      { "See which sources of memory this machine has, as JSON",
			"%s check --json" } },
	.options = options,
	.n_options = ARRAY_SIZE(options),
	.put_notes = put_check_notes,
	.notes = "Nothing is written here. A source that is a hazard is opened, but not read.\n"
		 "The exit code is 0 if acquire can start; otherwise it is the one that\n"
		 "acquire would end with.\n"
		 "\n"
		 "The size of the container is estimated from a sample of the memory and of\n"
		 "the page files. If the target has too little space for that, the exit code\n"
		 "is 6, unless --force is given. The estimate may be wrong, so acquire starts\n"
		 "anyway.\n"
		 "\n"
		 "--probe-link is a separate option because it leaves traces at the other end.\n"
		 "In s3, an aborted upload, or an incomplete one if the keys may not abort; in\n"
		 "azblob, a block that belongs to no blob, which Azure drops within a week; at\n"
		 "a receiver, a file that is no container, and lines in its log.\n",
	.values_size = sizeof(struct check_options),
	.defaults = &(const struct check_options){ .acquire.source = "auto",
						   .acquire.network = NETWORK_DEFAULTS },
	.run = check_run,
};

static void check_deinit(struct check *c)
{
	findings_deinit(&c->findings);
	json_decref(c->driver);
	json_decref(c->facts);
	json_decref(c->policy);
	json_decref(c->ci);
	json_decref(c->forecast);
	json_decref(c->files);
	json_decref(c->context);
	free(c->output);
	check_link_deinit(&c->link);
	age_recipients_deinit(&c->to);
	pagefile_list_deinit(&c->pagefiles);
	room_sample_destroy(c->memory_sample);
	room_sample_destroy(c->file_sample);
	disk_close(c->disk);
	acquire_close_source(c->source);
}

static const char *driver_text(const struct check *c, const char *key)
{
	return json_string_value(json_object_get(c->driver, key));
}

/* The file can be judged, and nothing is loaded; so nothing is known of the source. */
static enum status check_driver(struct check *c, struct err *e)
{
	const struct acquire_options *o = &c->o->acquire;
	struct err why = ERR_INIT;
	const enum status st = driver_session_inspect(&o->driver, o->source, &c->driver, &why);

	if (st == ST_USAGE || st == ST_NOMEM) {
		*e = why;
		return st;
	}
	if (st)
		findings_add(&c->findings, st, "driver", "%s", why.message);
	return ST_OK;
}

static void expect_driver(struct check *c)
{
	const json_t *memory = json_object_get(c->facts, "memory");
	char signers[DRIVER_SIGNERS_MAX];

	driver_signers_text(c->driver, signers);
	c->memory_bytes = (uint64_t)json_integer_value(json_object_get(memory, "total_bytes"));
	findings_add(&c->findings, ST_OK, "driver-to-load",
		     "%s (SHA-256 %s, %s) would be loaded; its speed can be measured only then",
		     driver_text(c, "path"), driver_text(c, "sha256"), signers);
}

/* Somebody has loaded them for some reason, and "auto" will not touch them. */
static void find_hazards(struct check *c)
{
	for (const struct drv_ops *const *ops = drv_table; *ops; ops++)
		if ((*ops)->kind == DRV_HAZARD && drv_is_there(*ops))
			findings_add(&c->findings, ST_OK, "hazard-is-there",
				     "%s: is present, but used only if you name it (--source %s), "
				     "because it is a hazard: %s",
				     (*ops)->default_path, (*ops)->name, (*ops)->reason);
}

/* "auto" goes on with other sources, which a container has even less: said in any case. */
static void find_kcore_mask(struct check *c)
{
	const char *source = c->o->acquire.source;

	if ((!strcmp(source, "auto") || !strcmp(source, "kcore")) &&
	    drv_kcore_is_masked("/proc/kcore"))
		findings_add(&c->findings, ST_OK, "kcore-masked",
			     "kcore is masked: this container is not privileged, or its systemd "
			     "unit has ProtectKernelTunables=");
}

static void check_withheld(struct check *c)
{
	struct drv_withheld w = { 0 };
	struct err why = ERR_INIT;
	const enum status st = drv_withheld(c->source, &w, &why);

	if (st)
		findings_add(&c->findings, st, "withheld", "%s", why.message);
	else if (w.offline.count || w.poisoned.count)
		findings_add(&c->findings, ST_OK, "pages-withheld",
			     "%" PRIu64 " pages are offline, unplugged or in a balloon, and "
			     "%" PRIu64 " poisoned: they will not be read",
			     range_list_bytes(&w.offline) / PAGE_SIZE,
			     range_list_bytes(&w.poisoned) / PAGE_SIZE);
	if (!st && w.holes.count)
		findings_add(&c->findings, ST_OK, "pages-unmapped",
			     "%" PRIu64 " pages are not in the kernel's direct map, as those of "
			     "memfd_secret: where they read as zeros they will be unreadable",
			     range_list_bytes(&w.holes) / PAGE_SIZE);
	drv_withheld_deinit(&w);
}

static void check_source(struct check *c)
{
	struct err why = ERR_INIT;
	enum status st = acquire_open_source(&c->o->acquire, &c->source, &why);
	const struct drv_info *info;

	if (st) {
		acquire_close_source(c->source);
		c->source = NULL;
		if (c->driver)
			expect_driver(c);
		else
			findings_add(&c->findings, st, "source", "%s", why.message);
		return;
	}
	info = &c->source->info;
	c->memory_bytes = range_list_bytes(&info->maps[0].ranges);
	check_withheld(c);
	if (info->silent)
		findings_add(&c->findings, ST_OK, "source-silent",
			     "%s: this source cannot report unreadable pages; they look like zeros",
			     info->path);
	if (info->note)
		findings_add(&c->findings, ST_OK, "source-note", "%s: %s", info->source,
			     info->note);
	if (info->odd)
		findings_add(&c->findings, ST_OK, "source-odd", "%s: %s", info->source, info->odd);
	if (info->lost)
		findings_add(&c->findings, ST_OK, "source-lost", "%s: %s", info->path, info->lost);
	if (c->source->ops->kind == DRV_HAZARD) {
		findings_add(&c->findings, ST_OK, "source-hazard",
			     "%s: check does not read it, because it is a hazard: %s", info->path,
			     c->source->ops->reason);
		return;
	}
	st = preflight_probe(c->source, room_sample_see, c->memory_sample, &c->probe, &why);
	if (st)
		findings_add(&c->findings, st, "probe", "%s", why.message);
	else if (c->probe.pages && c->probe.unreadable == c->probe.pages)
		findings_add(&c->findings, ST_SOURCE_FAILED, "unreadable",
			     "none of %" PRIu64 " pages that were tried can be read",
			     c->probe.pages);
	else if (c->probe.unreadable)
		findings_add(&c->findings, ST_OK, "unreadable",
			     "%" PRIu64 " of %" PRIu64 " pages that were tried are unreadable",
			     c->probe.unreadable, c->probe.pages);
}

/* How many bytes acquire would copy, and how well they compress. */
static void measure_pagefiles(struct check *c)
{
	for (size_t i = 0; i < c->pagefiles.count; i++) {
		const struct pagefile *p = &c->pagefiles.at[i];

		if (!p->readable)
			continue;
		c->pagefile_bytes += p->size;
		room_sample_file(c->file_sample, c->disk, p);
	}
}

static enum status check_pagefiles(const struct cli *cli, struct check *c, struct err *e)
{
	char text[ERR_MESSAGE_MAX];
	struct err why = ERR_INIT;
	struct files_plan plan;
	enum status st = acquire_plan_files(cli, &c->o->acquire, c->source, &c->disk, &plan, &why);

	if (st == ST_USAGE || st == ST_NOMEM)
		return err_set(e, st, "%s", why.message);
	if (st) {
		findings_add(&c->findings, st, "disk", "%s", why.message);
		return ST_OK;
	}
	st = files_list(&plan, &c->pagefiles, &why);
	if (st)
		findings_add(&c->findings, ST_OK, "pagefiles", "page files: %s", why.message);
	for (size_t i = 0; i < c->pagefiles.n_remarks; i++) {
		volume_remark_text(&c->pagefiles.remarks[i], text, sizeof(text));
		findings_add(&c->findings, ST_OK, "volume", "%s", text);
	}
	preflight_check_pagefiles(&c->pagefiles, &c->findings);
	measure_pagefiles(c);
	return ST_OK;
}

static enum status check_address(struct check *c, const struct drv_info *info, const char *suffix,
				 struct err *e)
{
	struct err why = ERR_INIT;
	enum status st = check_link_name(&c->link, &c->o->acquire, info, suffix, &c->need, e);

	if (st)
		return st;
	c->output = strdup(c->link.network->shown);
	if (!c->output)
		return err_nomem(e);
	st = check_link_try(&c->link, &why);
	if (st)
		findings_add(&c->findings, st, "target", "%s", why.message);
	else if (c->o->probe_link)
		return check_link_probe(&c->link, &c->findings, e);
	return ST_OK;
}

static enum status check_file(struct check *c, const struct drv_info *info, const char *suffix,
			      struct err *e)
{
	const struct acquire_options *o = &c->o->acquire;
	struct err why = ERR_INIT;
	enum status st = acquire_output_path(o, info, suffix, &c->output, &why);

	if (st == ST_OUTPUT) {
		findings_add(&c->findings, st, "output", "%s", why.message);
		c->output = strdup(o->output);
		return c->output ? ST_OK : err_nomem(e);
	}
	if (st)
		return err_set(e, st, "%s", why.message);
	preflight_check_output(c->output, o->force, &c->need, &c->room, &c->findings);
	if (c->to.count && age_sink_check_path(c->output, &why))
		findings_add(&c->findings, ST_OUTPUT, "encrypted-disk", "%s", why.message);
	else if (c->to.count && age_sink_lacks_suffix(c->output))
		findings_add(&c->findings, ST_OK, "name-without-age", AGE_SUFFIX_NOTE, c->output);
	return ST_OK;
}

static enum status check_output(struct check *c, struct err *e)
{
	const struct drv_info *info = c->source ? &c->source->info : NULL;
	const char *path = c->o->acquire.output, *suffix = c->to.count ? ".rsz.age" : ".rsz";

	c->need =
		room_estimate(c->memory_sample, c->memory_bytes, c->file_sample, c->pagefile_bytes);
	if (c->to.count)
		age_sink_need(&c->need);
	if (path && !strcmp(path, "-"))
		return ST_OK;
	return c->link.network ? check_address(c, info, suffix, e) : check_file(c, info, suffix, e);
}

static void tell_ci_problems(struct check *c)
{
	json_t *problems = ci_problems(c->ci);
	const json_t *one;
	size_t i;

	json_array_foreach(problems, i, one)
	{
		findings_add(&c->findings, ST_OK, "code-integrity", "not read: %s",
			     json_string_value(one));
	}
	json_decref(problems);
}

/* What is asked for the forecast goes into the output without a driver, too: for other machines. */
static enum status check_forecast(struct check *c, struct err *e)
{
	struct ci_subject subject = { 0 };

	if (driver_session_subject(&c->o->acquire.driver, &subject, NULL))
		subject = (struct ci_subject){ 0 };
	c->ci = ci_host_json(&subject, c->o->citool);
	if (c->ci && c->driver)
		c->forecast = driver_forecast_json(&(struct forecast_input){
			c->driver, c->facts, c->policy, c->context, c->ci });
	if (!c->ci || (c->driver && !c->forecast))
		return err_nomem(e);
	if (c->forecast)
		tell_ci_problems(c);
	driver_forecast_check(c->forecast, &c->findings);
	return ST_OK;
}

/* No driver is loaded, built in or named: which file to get? */
static enum status suggest_driver(struct check *c, struct err *e)
{
	if (!host_windows_build() || c->source || c->driver ||
	    !driver_is_wanted(c->o->acquire.source))
		return ST_OK;
	c->files = driver_known_list(
		&(struct forecast_input){ NULL, c->facts, c->policy, c->context, c->ci });
	if (!c->files)
		return err_nomem(e);
	driver_known_check(c->files, &c->findings);
	return ST_OK;
}

/* What the system says of drivers matters as long as one has to be loaded. */
static enum status check_policy(struct check *c, struct err *e)
{
	struct err why = ERR_INIT;
	enum status st = context_of_host(&c->context, &why);

	if (st && st != ST_NO_SOURCE)
		findings_add(&c->findings, ST_OK, "context", "the registry: %s", why.message);
	c->policy = driver_policy_json(c->facts, c->context);
	if (!c->policy)
		return err_nomem(e);
	if (!c->source && driver_is_wanted(c->o->acquire.source))
		driver_policy_check(c->policy, c->driver, &c->findings);
	st = check_forecast(c, e);
	return st ? st : suggest_driver(c, e);
}

/* What is wrong on the command line, as acquire says it. */
static enum status check_check_options(const struct cli *cli, struct check *c, struct err *e)
{
	const struct acquire_options *o = &c->o->acquire;
	enum status st = network_options_check(cli, &o->network, o->output, e);

	if (!st)
		st = recipients_load(&o->recipient, &c->to, e);
	if (!st)
		st = network_create(&o->network, o->output, &c->link.network, e);
	if (!st && c->o->probe_link && !c->link.network)
		st = cli_usage(cli, e, "--probe-link is for addresses such as s3://BUCKET/KEY");
	if (!st && c->link.network)
		c->link.network->remote.encrypted = c->to.count > 0;
	return st;
}

/* As acquire would take them, with the threads that it starts by default. */
static void check_limits(struct check *c)
{
	struct host_limits l;
	struct fit fit = {
		.level = ACQUIRE_LEVEL,
		.ram = c->memory_bytes,
		.spool = c->link.network ? c->link.network->uploader.spool : 0,
		.force = c->o->acquire.force,
	};
	struct err line = ERR_INIT, why = ERR_INIT;
	enum status st;

	host_limits(&l);
	fit.threads = share_threads(host_limits_cpus(&l), true);
	st = fit_memory(&fit, &l, &line, &why);
	if (line.message[0])
		findings_add(&c->findings, st, "memory-limit", "%s",
			     st ? why.message : line.message);
	if (fit_tell_cpu(&l, &line))
		findings_add(&c->findings, ST_OK, "cpu-limit", "%s", line.message);
	host_limits_deinit(&l);
}

/* One at a time, of this machine's own memory. */
static void check_running(struct check *c)
{
	struct err why = ERR_INIT;

	if ((!c->source || !c->source->info.simulated) && host_lock_look(&why))
		findings_add(&c->findings, ST_RUNNING, "running", "%s", why.message);
}

static enum status find_out(const struct cli *cli, struct check *c, struct err *e)
{
	enum status st = check_check_options(cli, c, e);

	if (!st)
		st = host_describe(cli->argc, cli->argv, &c->facts, e);
	if (!st)
		host_inventory(c->facts);
	if (!st)
		st = room_sample_create(ACQUIRE_LEVEL, &c->memory_sample, e);
	if (!st)
		st = room_sample_create(ACQUIRE_LEVEL, &c->file_sample, e);
	if (!st)
		st = check_driver(c, e);
	if (st)
		return st;
	check_source(c);
	find_kcore_mask(c);
	if (!strcmp(c->o->acquire.source, "auto"))
		find_hazards(c);
	st = check_pagefiles(cli, c, e);
	if (!st)
		st = check_output(c, e);
	if (st || (c->source && c->source->info.image))
		return st;
	preflight_check_host(c->facts, &c->findings);
	check_limits(c);
	check_running(c);
	return check_policy(c, e);
}

static enum status check_run(struct cli *cli, struct err *e)
{
	const struct check_options *o = cli->values;
	struct check c = { .o = o, .room = ROOM_UNKNOWN };
	enum status st, found = ST_OK;
	const struct finding *stop;

	st = find_out(cli, &c, e);
	stop = findings_stop(&c.findings);
	if (!st && stop)
		found = err_set(e, stop->st, "%s", stop->text.message);
	else if (!st && !o->acquire.force && check__room(&c) >= ROOM_SHORT)
		found = err_set(e, ST_OUTPUT,
				"%s: acquire would start, but the disk would probably be full "
				"before it ends",
				c.output);
	if (!st && o->json)
		st = json_print(check__json(&c, !stop, found), JSON_INDENT(1), e);
	else if (!st)
		check__print(&c, !stop, found);
	cli->told = !st && stop && !o->json;
	check_deinit(&c);
	return st ? st : found;
}
