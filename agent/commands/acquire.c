/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ramseal acquire: from a source of physical memory into one sealed container, or into an image.
 */
#include <string.h>
#include <unistd.h>

#include "agent/collect/acquire/acquire.h"
#include "agent/collect/acquire/sources.h"
#include "agent/collect/acquire/summary.h"
#include "agent/collect/capture/reading.h"
#include "agent/collect/host/running.h"
#include "agent/collect/order/order.h"
#include "agent/commands/commands.h"
#include "agent/shared/program/address.h"
#include "agent/shared/program/detach.h"
#include "agent/shared/program/log.h"
#include "agent/shared/program/share.h"
#include "agent/shared/program/stay_awake.h"

static const char *const pagetables_choices[] = { [TABLES_BOTH] = "both",
						  [TABLES_BEFORE] = "before",
						  [TABLES_AFTER] = "after",
						  [TABLES_NONE] = "none",
						  NULL };

static const char *const pagefile_choices[] = { [PAGEFILE_BEFORE] = "before",
						[PAGEFILE_AFTER] = "after",
						[PAGEFILE_CONCURRENT] = "concurrent",
						[PAGEFILE_GUIDED] = "guided",
						NULL };

static enum status acquire_run(struct cli *cli, struct err *e);
static enum status parse_level(const char *text, void *at, struct err *e);
static enum status parse_order(const char *text, void *at, struct err *e);
static const char *suggest_order(size_t i);
static enum status parse_format(const char *text, void *at, struct err *e);
static const char *suggest_format(size_t i);

static const char *const level_choices[] = { "auto", "store", "-5", "1", "3", "9", "19", NULL };

static const struct option_def options[] = {
	CLI_HEADING("What to read"),
	CLI_STRING(struct acquire_options, source, 's', "source", "NAME[:PATH]",
		   "read memory from this source; PATH is its device or file",
		   .suggest = drv_source_name),
	CLI_STRING(struct acquire_options, map, 0, "map", "FILE", MAP_HELP),
	DRIVER_OPTIONS(struct acquire_options, driver) CLI_CHOICE(
		struct acquire_options, pagefile, 'p', "pagefile", NULL, pagefile_choices,
		"copy page files before the memory, after it, concurrently, or guided: each slot "
		"right after the page table that refers to it, and the rest at the end"),
	CLI_FLAG(struct acquire_options, no_pagefile, 0, "no-pagefile", "do not copy page files"),
	CLI_FLAG(struct acquire_options, hibernation, 0, "hibernation",
		 "copy Windows' hiberfil.sys too"),
	SYSTEM_HANDLE_OPTION(struct acquire_options, system_handle)
		CLI_STRINGS(struct acquire_options, files, 0, "file", "PATH",
			    "also copy this file from the volume, through the MFT"),
	DISK_OPTIONS(struct acquire_options),
	CLI_CHOICE(struct acquire_options, pagetables, 0, "pagetables", NULL, pagetables_choices,
		   "store a copy of all page tables before everything else, after it, or both; for "
		   "an image, only if this option is given"),
	CLI_PARSED(struct acquire_options, order, 0, "order", "ORDER", parse_order,
		   "order in which memory is read; default: guided, or linear if there are no page "
		   "tables to follow",
		   .suggest = suggest_order),
	CLI_HEADING("Where to write"),
	CLI_STRING(struct acquire_options, output, 'o', "output", "FILE",
		   "write to a file, a directory, an address or stdout (see Targets below); "
		   "default: <host>-<UTC time>.rsz in this directory"),
	CLI_PARSED(struct acquire_options, level, 'l', "level", "N", parse_level,
		   "compression: auto, store, or a zstd level, -50..-1 or 1..19 (e01 and kdump: "
		   "store or 1..12); auto follows the speed of the disk or the link between -5 and "
		   "6, and never gives the same bytes twice; default: 1",
		   .choices = level_choices),
	CLI_GROUP(struct acquire_options, recipient, &recipient_option_group),
	CLI_STRING(struct acquire_options, statement, 0, "statement", "FILE",
		   "write the statement (container, root hash, size, host, times) to FILE, or '-' "
		   "for stdout; it can be signed, and checked with verify --statement"),
	CLI_STRING(struct acquire_options, summary, 0, "summary", "FILE",
		   "when the acquisition ends, even in failure, write its summary as JSON to FILE, "
		   "or '-' for stdout"),
	CLI_FLAG(struct acquire_options, force, 'f', "force",
		 "overwrite an existing file, and start even if space is short"),
	CLI_FLAG(struct acquire_options, detach, 0, "detach",
		 "once source and output are open, continue in the background, and print where the "
		 "state file is, as JSON (see below)"),
	CLI_HEADING("Over the network"),
	CLI_GROUP(struct acquire_options, network, &network_option_group),
	CLI_HEADING("An image instead of a container"),
	CLI_PARSED(struct acquire_options, image.format, 'F', "format", "FORMAT", parse_format,
		   "what to write (see Formats below); default: rsz, the sealed container",
		   .suggest = suggest_format),
	CLI_GROUP(struct acquire_options, image, &image_option_group),
	CLI_GROUP(struct acquire_options, image, &image_format_option_group),
	CLI_HEADING("Rarely needed"),
	CLI_UINT(struct acquire_options, nice, 0, "nice", "N", 1, SHARE_NICE_MAX,
		 "yield to the machine's own work: on a busy CPU our threads get the share that "
		 "nice(1) gives at N (10: a tenth), the reader thread yields between chunks, and "
		 "output never queues at the disk. A busy machine slows the acquisition down, on "
		 "Linux to about three times its time alone: a thread waits at most twice as long "
		 "as it works. Default: 10 for this machine's memory"),
	CLI_FLAG(struct acquire_options, fast, 0, "fast",
		 "do not yield: use all CPUs and the full speed of the disk"),
	CLI_UINT(struct acquire_options, threads, 't', "threads", "N", 1, PIPELINE_WORKERS_MAX,
		 "compress with N threads, at most 64; default: one per CPU, with --nice one per "
		 "two "
		 "CPUs"),
	CLI_UINT(struct acquire_options, read_timeout, 0, "read-timeout", "SECONDS", 0, 86400,
		 "if one read takes longer than this, give up on the source and seal what was "
		 "read; 0: wait forever"),
	CLI_STRING(struct acquire_options, timestamp_url, 0, "timestamp-url", "URL",
		   "at the end, request an RFC 3161 time stamp for the statement from this "
		   "authority, and keep it in the statement's FILE.tsr"),
	CLI_STRING(struct acquire_options, timestamp_ca, 0, "timestamp-ca", "FILE",
		   "PEM certificates to trust for --timestamp-url https://..."),
	CLI_STRING(
		struct acquire_options, state, 0, "state", "FILE",
		"state file for status and stop; default: acquire.json in /run/ramseal "
		"(Windows: %ProgramData%\\ramseal), or without root in $XDG_RUNTIME_DIR/ramseal"),
	CLI_FLAG(struct acquire_options, allow_second, 0, "allow-second",
		 "start even if another acquisition of this machine is running"),
};

static void put_orders(FILE *to)
{
	cli_put_notes(to, "Orders in which memory is read:\n");
	for (size_t i = 0; orders[i]; i++)
		cli_put_wrapped(to, (size_t)fprintf(to, "  %s", orders[i]->name),
				orders[i]->summary);
}

static void put_acquire_notes(FILE *to)
{
	command_put_targets(to);
	fputc('\n', to);
	put_orders(to);
	fputc('\n', to);
	sources_put_notes(to);
	cli_put_notes(
		to, "The source \"file\" rejects known formats that are not memory, such as\n"
		    "archives, disks and minidumps. Page files come from --image or --volume if\n"
		    "given, and otherwise from this machine.\n"
		    "\n"
		    "On Linux, SIGUSR1 prints the progress.\n"
		    "\n"
		    "With two threads, level 1 needs about 12 MiB of memory and level 19 about 45\n"
		    "MiB. The guided order adds 9 MiB. Add three bits for each page of RAM, one\n"
		    "for each page of the page files, and --spool-size if the container goes to\n"
		    "an address.\n"
		    "\n"
		    "With --detach, the command returns once the acquisition has started, or with\n"
		    "the exit code of what prevented it. The acquisition survives the end of the\n"
		    "session and, on Windows, of a job that allows breakaway. It does not survive\n"
		    "the end of its cgroup: where a service manager kills by cgroup, start it\n"
		    "with `systemd-run`. It has no stdin, stdout or stderr; its log is in the\n"
		    "container. `ramseal status` shows its progress, and later ends with its exit\n"
		    "code. `ramseal stop` seals what it has so far.\n");
	fputc('\n', to);
	image_put_notes(to);
}

const struct command command_acquire = {
	.name = "acquire",
	.group = GROUP_MACHINE,
	.summary = "acquire this machine's memory into one sealed container",
	.examples = { { "Acquire this machine onto a USB disk",
			"%s acquire -o " EXAMPLE_USB "host.rsz" },
		      { "Encrypt for a recipient who is elsewhere",
			"%s acquire --recipient age1... -o " EXAMPLE_USB "host.rsz.age" },
		      { "Send it to an object store",
			"%s acquire -o s3://evidence/case-7/ --ca roots.pem" },
		      { "Send it to a machine that runs 'ramseal receive'",
			"%s acquire -o tls://collector:7007 --pin sha256//... --client-key "
			"@key.pem" } },
	.options = options,
	.n_options = ARRAY_SIZE(options),
	.put_notes = put_acquire_notes,
	.values_size = sizeof(struct acquire_options),
	.defaults = &(const struct acquire_options){ .source = "auto",
						     .network = NETWORK_DEFAULTS,
						     .level = { .level = ACQUIRE_LEVEL },
						     .pagefile = PAGEFILE_GUIDED,
						     .pagetables = TABLES_BOTH,
						     .read_timeout = READING_LIMIT_S },
	.run = acquire_run,
};

static enum status parse_level(const char *text, void *at, struct err *e)
{
	struct level_choice *choice = at;
	char *end;
	long level;

	*choice = (struct level_choice){ .level = ACQUIRE_LEVEL, .automatic = true };
	if (!strcmp(text, "auto"))
		return ST_OK;
	*choice = (struct level_choice){ .level = RSZ_LEVEL_STORE };
	if (!strcmp(text, "store"))
		return ST_OK;
	level = strtol(text, &end, 10);
	if (!*text || *end || level < RSZ_LEVEL_MIN || level > RSZ_LEVEL_MAX || !level)
		return err_set(e, ST_USAGE, "takes auto, store, %d..-1 or 1..%d", RSZ_LEVEL_MIN,
			       RSZ_LEVEL_MAX);
	choice->level = (int)level;
	return ST_OK;
}

static enum status parse_order(const char *text, void *at, struct err *e)
{
	const struct order *o = order_find(text);

	if (!o)
		return ST_USAGE;
	*(const struct order **)at = o;
	return ST_OK;
}

static const char *suggest_order(size_t i)
{
	return orders[i] ? orders[i]->name : NULL;
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

static bool is_dash(const char *path)
{
	return path && !strcmp(path, "-");
}

/* What does not go together, whatever is written. */
static enum status check_together(const struct cli *cli, const struct acquire_options *o,
				  struct err *e)
{
	const struct {
		bool given;
		const char *why_not;
	} rules[] = {
		{ cli_given(cli, "pagefile") && o->pagefile == PAGEFILE_GUIDED && o->order &&
			  !o->order->takes_slots,
		  "--pagefile guided follows the page tables: it needs --order guided" },
		{ o->fast && cli_given(cli, "nice"), "--nice and --fast cannot be combined" },
		{ o->hibernation && o->no_pagefile,
		  "--hibernation and --no-pagefile cannot be combined" },
		{ is_dash(o->statement) && is_dash(o->output),
		  "--statement - and --output - cannot be combined" },
		{ is_dash(o->summary) && (is_dash(o->output) || is_dash(o->statement)),
		  "only one of --summary, --statement and --output can be -" },
		{ o->timestamp_url && (!o->statement || is_dash(o->statement)),
		  "--timestamp-url needs --statement FILE" },
		{ o->timestamp_ca && !o->timestamp_url, "--timestamp-ca needs --timestamp-url" },
	};

	if (o->order && (o->order->wants_tables || o->order->wants_spaces) &&
	    (o->pagetables == TABLES_AFTER || o->pagetables == TABLES_NONE))
		return cli_usage(
			cli, e,
			"--order %s follows the page tables: it needs --pagetables both or before",
			o->order->name);
	for (size_t i = 0; i < ARRAY_SIZE(rules); i++)
		if (rules[i].given)
			return cli_usage(cli, e, "%s", rules[i].why_not);
	return ST_OK;
}

/* What an image cannot have. */
static enum status check_image(const struct cli *cli, const struct acquire_options *o,
			       const struct image_format *f, struct err *e)
{
	const bool level = cli_given(cli, "level");
	const struct {
		bool given;
		const char *before, *behind; /* the format's name */
	} rules[] = {
		{ o->network.to || (o->output && is_address(o->output)), "",
		  " is written only to files" },
		{ o->statement != NULL, "--statement is about a container, not about ", "" },
		{ o->files.count || o->hibernation || o->disk.volume || o->disk.images.count ||
			  cli_given(cli, "pagefile") || cli_given(cli, "pagetables") || o->order,
		  "", " holds memory only" },
		{ o->recipient.recipients.count || o->recipient.files.count, "",
		  " is not encrypted" },
		{ level && !f->compresses, "--level does not apply to ", "" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rules); i++)
		if (rules[i].given)
			return cli_usage(cli, e, "%s--format %s%s", rules[i].before, f->name,
					 rules[i].behind);
	if (level && (o->level.automatic || o->level.level < IMAGE_LEVEL_STORE ||
		      o->level.level > IMAGE_LEVEL_MAX))
		return cli_usage(cli, e, "--level of --format %s is store or 1..%d", f->name,
				 IMAGE_LEVEL_MAX);
	return ST_OK;
}

static enum status check_acquire_options(const struct cli *cli, struct err *e)
{
	const struct acquire_options *o = cli->values;
	enum status st = image_options_check(cli, &o->image, e);

	if (!st)
		st = network_options_check(cli, &o->network, o->output, e);
	if (!st)
		st = check_together(cli, o, e);
	return st || !o->image.format ? st : check_image(cli, o, o->image.format, e);
}

/* Before anything is opened, and before anybody is asked for a secret. */
static enum status check_detach(const struct cli *cli, struct err *e)
{
	const struct acquire_options *o = cli->values;
	const char *const outputs[] = { o->output, o->statement, o->summary };
	const char *const secrets[] = { o->network.to, o->network.keys, o->network.client_key };

	if (!o->detach)
		return ST_OK;
	for (size_t i = 0; i < ARRAY_SIZE(outputs); i++)
		if (is_dash(outputs[i]))
			return cli_usage(cli, e, "--detach: nobody will read stdout; name a file");
	for (size_t i = 0; i < ARRAY_SIZE(secrets) && !detach_passes_descriptors(); i++)
		if (secrets[i] && !strncmp(secrets[i], "fd:", 3))
			return cli_usage(cli, e,
					 "--detach: on Windows a descriptor does not reach the new "
					 "process; use @FILE or -");
	return ST_OK;
}

/* What a channel shows of the output is little: only what matters is to be in it. */
static void be_brief(struct cli *cli)
{
	cli->globals.quiet = !cli->globals.verbose && !cli->globals.log_json;
	log_init(&(struct log_config){ .fd = STDERR_FILENO,
				       .json = cli->globals.log_json,
				       .quiet = cli->globals.quiet,
				       .verbose = cli->globals.verbose });
}

/* From here on this process does the work. */
static enum status acquire_here(struct cli *cli, struct acquire_options *o, struct summary *s,
				struct err *e)
{
	_cleanup_recipients_ struct age_recipients to = { 0 };
	enum status st = recipients_load(&o->recipient, &to, e);

	if (st)
		return st;
	o->to = &to;
	stay_awake_begin();
	st = o->image.format ? acquire_image(cli, o, s, e) : acquire_container(cli, o, s, e);
	stay_awake_end();
	return st;
}

static enum status acquire_seen(struct cli *cli, struct acquire_options *o, struct err *e)
{
	const struct running_plan plan = {
		.state = o->state,
		.needed = o->detach || o->state,
		.host = drv_is_live(o->source),
		.allow_second = o->allow_second,
	};
	struct summary summary;
	enum status st = summary_begin(&summary, cli, o, e);

	if (!st)
		st = running_begin(&plan, &o->running, e);
	if (!st && o->detach)
		st = acquire_check_detached(running_state_path(o->running), e);
	if (!st)
		st = acquire_here(cli, o, &summary, e);
	summary_end(&summary, st, e); /* whoever waits for the state may read it then */
	running_end(o->running, st, e);
	return st;
}

static enum status acquire_run(struct cli *cli, struct err *e)
{
	struct acquire_options *o = cli->values;
	bool here = true;
	enum status st = check_acquire_options(cli, e);

	if (!st)
		st = check_detach(cli, e);
	if (!st && o->detach)
		st = detach_begin(&here, e);
	if (st || !here)
		return st;
	if (o->detach)
		be_brief(cli);
	return acquire_seen(cli, o, e);
}
