/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ramseal driver: what a memory driver's file says of itself, and whether a certain Windows would
 * load it; and on Windows the drivers of ours that are on this machine.
 */
#include <string.h>

#include "agent/collect/acquire/driver_forecast.h"
#include "agent/collect/acquire/driver_known.h"
#include "agent/collect/acquire/driver_policy.h"
#include "agent/collect/host/ci_host.h"
#include "agent/collect/host/context.h"
#include "agent/collect/host/driver.h"
#include "agent/collect/host/driver_signers.h"
#include "agent/collect/host/host.h"
#include "agent/commands/driver_internal.h"
#include "agent/shared/output/cage_command.h"
#include "agent/shared/program/json.h"
#include "agent/shared/program/lines.h"
#include "agent/shared/program/text.h"

static enum status driver_run(struct cli *cli, struct err *e);

static const struct option_def options[] = {
#ifdef _WIN32
	DRIVER_DIR_OPTION(struct driver_command, folder),
	DRIVER_RISK_OPTION(struct driver_command, risk),
#endif
	CITOOL_OPTION(struct driver_command, citool) CLI_STRING(
		struct driver_command, host, 0, "host", "FILE",
		"inspect, files: forecast for the Windows that this output of 'check --json' is "
		"of; "
		"default: this machine, if it is Windows"),
	CLI_STRINGS(struct driver_command, policies, 0, "policy", "FILE",
		    "inspect: ask this .cip or .p7b, copied from that host, about the driver"),
	CLI_FLAG(struct driver_command, json, 'j', "json",
		 "inspect, files, status: print one JSON object"),
};

#ifdef _WIN32
static const char *const actions[] = { "status",  "load",  "unload", "cleanup",
				       "inspect", "files", NULL };
#define ACTIONS "status|load|unload|cleanup|inspect|files [FILE.sys]"
#define LEAST   1
#else
static const char *const actions[] = { "inspect", "files", NULL };
#define ACTIONS "inspect FILE.sys|files"
#define LEAST   1
#endif

#define INSPECT_NOTES                                                                              \
	"  inspect  show who signed FILE.sys, and whether Windows would load it: on the\n"         \
	"           host of --host, or on this one\n"                                              \
	"  files    list the WinPmem drivers that their authors publish, with SHA-256 and\n"       \
	"           address, and a forecast for that host\n"

#define INSPECT_CODES                                                                              \
	"\n"                                                                                       \
	"Signatures are read, not verified. Exit code of inspect: 0 if the driver will\n"          \
	"load, or no host was given; 4 if it will be blocked; 14 if it will load and\n"            \
	"restart the host's evaluation of the Windows Driver Policy; 15 if that cannot be\n"       \
	"known. What is only probable has the same code; --json tells both apart.\n"

const struct command command_driver = {
	.name = "driver",
	.group = GROUP_MACHINE,
	.summary = "inspect memory drivers for Windows; there, show, load or remove them",
	.examples = {
		{ "Show who signed a driver", "%s driver inspect winpmem_x64.sys" },
		{ "List the drivers to choose from", "%s driver files --host check.json" },
		{ "Ask whether another host would load it",
		  "%s driver inspect winpmem_x64.sys --host check.json" },
#ifdef _WIN32
		{ "Remove what a killed acquisition left behind", "%s driver cleanup" },
#endif
	},
	.operands = { .text = ACTIONS, .min = LEAST, .max = 2, .choices = actions },
	.options = options,
	.n_options = ARRAY_SIZE(options),
#ifdef _WIN32
	.notes = "  status   show which drivers are loaded and what earlier runs left; changes\n"
		 "           nothing\n"
		 "  load     load FILE.sys or the built-in driver, and leave it loaded\n"
		 "  unload   remove what load left\n"
		 "  cleanup  remove what a killed run left, unless it is in use\n" INSPECT_NOTES
		 "Drivers that ramseal did not load are never touched.\n" INSPECT_CODES,
#else
	.notes = INSPECT_NOTES INSPECT_CODES,
#endif
	.values_size = sizeof(struct driver_command),
	.run = driver_run,
};

/*
 * The host
 */

struct inspection {
	const struct driver_command *o;
	struct ci_subject subject;
	json_t *driver, *facts, *context, *policy, *ci, *forecast;
};

static void inspection_deinit(struct inspection *i)
{
	json_decref(i->driver);
	json_decref(i->facts);
	json_decref(i->context);
	json_decref(i->policy);
	json_decref(i->ci);
	json_decref(i->forecast);
}

static void forget_other_driver(json_t *ci, const json_t *theirs, const json_t *ours)
{
	if (!json_is_string(theirs) || !json_equal(theirs, ours))
		ci_forget_driver(ci);
}

/* `check --json`; PowerShell writes a byte order mark in front, and UTF-16 if it is old. */
static enum status read_host_file(struct inspection *i, struct err *e)
{
	_cleanup_free_ uint8_t *bytes = NULL;
	json_error_t why;
	size_t len = 0, at;
	json_t *doc;
	enum status st = driver_bytes_of_file(i->o->host, &bytes, &len, e);

	if (st)
		return st;
	at = len > 3 && !memcmp(bytes, "\xef\xbb\xbf", 3) ? 3 : 0;
	doc = json_loadb((const char *)bytes + at, len - at, 0, &why);
	if (!doc)
		return err_set(e, ST_INPUT, "%s: is no JSON in UTF-8: line %d: %s", i->o->host,
			       why.line, why.text);
	i->facts = json_incref(json_object_get(doc, "machine"));
	i->context = json_incref(json_object_get(doc, "context"));
	i->ci = json_deep_copy(json_object_get(doc, "code_integrity"));
	if (i->ci)
		forget_other_driver(i->ci,
				    json_object_get(json_object_get(doc, "driver"), "sha256"),
				    json_object_get(i->driver, "sha256"));
	json_decref(doc);
	if (!json_is_object(i->facts))
		return err_set(e, ST_INPUT, "%s: is not the output of 'check --json'", i->o->host);
	return ST_OK;
}

static enum status describe_here(const struct cli *cli, struct inspection *i, struct err *e)
{
	const enum status st = host_describe(cli->argc, cli->argv, &i->facts, e);
	json_t *trust;

	if (st)
		return st;
	if (context_of_host(&i->context, NULL))
		i->context = NULL;
	trust = i->driver ? driver_trust_json(json_string_value(json_object_get(i->driver, "path")))
			  : NULL;
	if (trust)
		json_object_set_new(i->driver, "trust", trust);
	i->ci = ci_host_json(&i->subject, i->o->citool);
	return i->ci ? ST_OK : err_nomem(e);
}

/* In the place of what the host itself said of a policy of that name. */
static void replace_policy(json_t *ci, json_t *one)
{
	json_t *list = json_object_get(ci, "policy_files"), *old;
	const char *id = json_string_value(json_object_get(one, "id"));
	size_t i;

	if (id && ci_same_id(id, CI_POLICY_BLOCKLIST)) {
		json_object_set_new(ci, "block_list", one);
		return;
	}
	if (!list) {
		list = json_array();
		json_object_set_new(ci, "policy_files", list);
	}
	json_array_foreach(list, i, old)
	{
		const char *other = json_string_value(json_object_get(old, "id"));

		if (id && other && ci_same_id(id, other)) {
			json_array_set_new(list, i, one);
			return;
		}
	}
	json_array_append_new(list, one);
}

/* A policy is called like its file; two have names of their own. */
static void policy_name_of(const char *path, char ret[static CI_GUID_SIZE])
{
	const char *slash = strrchr(path, '/'), *back = strrchr(path, '\\');
	const char *name = slash > back ? slash + 1 : back ? back + 1 : path;

	snprintf(ret, CI_GUID_SIZE, "%s",
		 *name == '{'                        ? name
		 : !strcasecmp(name, "sipolicy.p7b") ? CI_POLICY_SINGLE
						     : CI_POLICY_BLOCKLIST);
}

static enum status read_policies(struct inspection *i, struct err *e)
{
	enum status st = ST_OK;

	for (size_t k = 0; k < i->o->policies.count && !st; k++) {
		const char *path = i->o->policies.at[k];
		_cleanup_free_ uint8_t *bytes = NULL;
		char id[CI_GUID_SIZE];
		size_t len;

		st = driver_bytes_of_file(path, &bytes, &len, e);
		if (st)
			return st;
		policy_name_of(path, id);
		if (!json_is_object(i->ci)) {
			json_decref(i->ci);
			i->ci = json_object();
		}
		replace_policy(i->ci, ci_policy_json(id, path, bytes, len, &i->subject));
	}
	return st;
}

/*
 * What is told
 */

static void print_signer(const json_t *s)
{
	const json_t *chain = json_object_get(s, "chain"),
		     *covers = json_object_get(s, "covers_file");
	const char *time = json_string_value(json_object_get(s, "time"));
	const char *root = json_string_value(json_object_get(s, "root"));
	char text[512];
	const char *name = json_string_value(json_object_get(s, "name"));

	text_printable(name ? name : "unnamed", text, sizeof(text));
	lines_print(
		stdout, 4, "signature: %s (%s%s%s%s)", text,
		json_string_value(json_object_get(s, "class")),
		json_is_true(json_object_get(s, "nested")) ? ", nested" : "",
		json_is_true(json_object_get(s, "whql")) ? ", usage 1.3.6.1.4.1.311.10.3.5" : "",
		json_is_true(json_object_get(s, "attestation")) ? ", usage 1.3.6.1.4.1.311.10.3.5.1"
								: "");
	for (size_t i = 1; i < json_array_size(chain); i++) {
		text_printable(json_string_value(json_array_get(chain, i)), text, sizeof(text));
		lines_print(stdout, 4, "  issued by: %s", text);
	}
	text_printable(root ? root : "unknown", text, sizeof(text));
	lines_print(stdout, 4, "  root: %s", text);
	lines_print(stdout, 4, "  time stamp: %s", time ? time : "none");
	lines_print(stdout, 4, "  over this file: %s, by its %s",
		    json_is_null(covers)   ? "not checked"
		    : json_is_true(covers) ? "yes"
					   : "no",
		    json_string_value(json_object_get(s, "digest")));
}

static void print_published(const json_t *published)
{
	if (json_is_object(published))
		lines_print(stdout, 4, "published: %s of %s",
			    json_string_value(json_object_get(published, "path")),
			    json_string_value(json_object_get(published, "repository")));
	else
		puts("published: not a file that its authors published, as far as is known");
}

static void print_inspection(const struct inspection *i)
{
	const json_t *signers = json_object_get(i->driver, "signers"), *one;
	const json_t *reasons = json_object_get(i->forecast, "reasons");
	const char *version = json_string_value(json_object_get(i->driver, "version"));
	struct err line = ERR_INIT;
	json_t *problems;
	char text[1024];
	size_t k;

	text_printable(json_string_value(json_object_get(i->driver, "path")), text, sizeof(text));
	lines_print(stdout, 4, "%s: %s%s", text,
		    version ? "WinPmem " : "a version that is not known", version ? version : "");
	lines_print(stdout, 4, "SHA-256: %s",
		    json_string_value(json_object_get(i->driver, "sha256")));
	print_published(json_object_get(i->driver, "published"));
	json_array_foreach(signers, k, one) print_signer(one);
	if (!json_array_size(signers))
		puts("signature: none");
	if (!json_is_object(i->forecast))
		return;
	json_array_foreach(reasons, k, one)
	{
		text_printable(json_string_value(json_object_get(one, "text")), text, sizeof(text));
		lines_print(stdout, 4, "note: %s", text);
	}
	problems = ci_problems(i->ci);
	json_array_foreach(problems, k, one)
	{
		text_printable(json_string_value(one), text, sizeof(text));
		lines_print(stdout, 4, "not read: %s", text);
	}
	json_decref(problems);
	driver_forecast_text(i->forecast, &line);
	text_printable(line.message, text, sizeof(text));
	lines_print(stdout, 4, "forecast: %s", text);
}

static enum status print_inspection_json(const struct inspection *i, struct err *e)
{
	json_t *doc = json_pack("{s:s, s:O}", "schema", JSON_SCHEMA("driver-inspect"), "driver",
				i->driver);

	if (doc && json_is_object(i->forecast)) {
		json_object_set(doc, "driver_policy", i->policy);
		json_object_set(doc, "code_integrity", i->ci);
		json_object_set(doc, "forecast", i->forecast);
	}
	return json_print(doc, JSON_INDENT(1), e);
}

/* The facts of the host that is asked about: of --host, of this Windows, or none. */
static enum status load_host(const struct cli *cli, struct inspection *i, struct err *e)
{
	enum status st = ST_OK;

	if (i->o->host)
		st = read_host_file(i, e);
	else if (host_windows_build())
		st = describe_here(cli, i, e);
	return st;
}

static enum status judge_driver(const struct cli *cli, struct inspection *i, struct err *e)
{
	enum status st = load_host(cli, i, e);

	/* Elsewhere there is no host to forecast for. */
	if (st || !i->facts)
		return st;
	st = read_policies(i, e);
	if (st)
		return st;
	i->policy = driver_policy_json(i->facts, i->context);
	i->forecast =
		i->policy ? driver_forecast_json(&(struct forecast_input){ .driver = i->driver,
									   .facts = i->facts,
									   .policy = i->policy,
									   .context = i->context,
									   .ci = i->ci })
			  : NULL;
	return i->forecast ? ST_OK : err_nomem(e);
}

static enum status inspect_driver(const struct cli *cli, const char *path, struct inspection *i,
				  struct err *e)
{
	_cleanup_free_ uint8_t *bytes = NULL;
	size_t len = 0;
	enum status st = driver_bytes_of_file(path, &bytes, &len, e);

	if (!st)
		st = driver_describe(path, bytes, len, &i->driver, e);
	if (!st)
		st = driver_subject(bytes, len, &i->subject, e);
	if (!st)
		json_object_set_new(
			i->driver, "published",
			driver_known_json(json_string_value(json_object_get(i->driver, "sha256"))));
	return st ? st : judge_driver(cli, i, e);
}

static enum exit_code inspection_code(const json_t *forecast)
{
	if (!json_is_object(forecast))
		return EXIT_COMPLETE;
	switch (driver_forecast_verdict(forecast)) {
	case FORECAST_RESTARTS:
		return EXIT_RESTARTS;
	case FORECAST_UNKNOWN:
		return EXIT_UNKNOWN;
	case FORECAST_BLOCKED:
		return EXIT_NO_SOURCE;
	default:
		return EXIT_COMPLETE;
	}
}

/* What this Windows would do with a driver is in its registry, and more than a file. */
static void cage_inspection(struct cli *cli, const struct driver_command *o)
{
	if (o->host || !host_windows_build())
		cage_command(cli, false);
}

static enum status run_inspect(struct cli *cli, const char *path, struct err *e)
{
	struct inspection i = { .o = cli->values };
	enum status st;

	cage_inspection(cli, i.o);
	st = inspect_driver(cli, path, &i, e);
	if (!st && i.o->json)
		st = print_inspection_json(&i, e);
	else if (!st)
		print_inspection(&i);
	cli->answer = inspection_code(i.forecast);
	inspection_deinit(&i);
	return st;
}

static enum status run_files(struct cli *cli, struct err *e)
{
	struct inspection i = { .o = cli->values };
	json_t *list = NULL;
	enum status st;

	cage_inspection(cli, i.o);
	st = load_host(cli, &i, e);
	if (!st)
		i.policy = i.facts ? driver_policy_json(i.facts, i.context) : NULL;
	if (!st)
		list = driver_known_list(&(struct forecast_input){
			.facts = i.facts, .policy = i.policy, .context = i.context, .ci = i.ci });
	if (!st && !list)
		st = err_nomem(e);
	if (!st && i.o->json)
		st = json_print(json_pack("{s:s, s:O}", "schema", JSON_SCHEMA("driver-files"),
					  "files", list),
				JSON_INDENT(1), e);
	else if (!st)
		driver_known_print(list, stdout);
	json_decref(list);
	inspection_deinit(&i);
	return st;
}

static enum status driver_run(struct cli *cli, struct err *e)
{
	const struct driver_command *o = cli->values;
	const char *action = cli->operands[0];
	const char *file = cli->n_operands > 1 ? cli->operands[1] : NULL;
	const bool inspect = !strcmp(action, "inspect"), files = !strcmp(action, "files");

	if (inspect && !file)
		return cli_usage(cli, e, "inspect needs the driver's file");
	if (inspect && o->policies.count && !o->host && !host_windows_build())
		return cli_usage(cli, e, "--policy needs --host");
	if (inspect)
		return run_inspect(cli, file, e);
	if (file && strcmp(action, "load") != 0)
		return cli_usage(cli, e, "%s takes no file", action);
	if (o->policies.count || (o->host && !files))
		return cli_usage(cli, e, "--%s is for inspect", o->host ? "host" : "policy");
	if (files)
		return run_files(cli, e);
#ifdef _WIN32
	for (const char *const *known = actions; *known; known++)
		if (!strcmp(action, *known))
			return driver__run_loaded(o, action, file, e);
#endif
	return cli_usage(cli, e, "unknown action \"%s\"", action);
}
