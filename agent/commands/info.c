/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ramseal info: what is in a container, from its headers and its manifest; no payload is checked.
 */
#include <inttypes.h>

#include "agent/collect/capture/clock_watch.h"
#include "agent/collect/capture/sleep_watch.h"
#include "agent/collect/host/process_names.h"
#include "agent/commands/commands.h"
#include "agent/shared/output/cage_command.h"
#include "agent/commands/info_machine.h"
#include "agent/commands/info_smear.h"
#include "agent/image/image_pass.h"
#include "agent/shared/container/identities.h"
#include "agent/shared/container/sums.h"
#include "agent/shared/container/tally.h"
#include "agent/shared/program/clock.h"
#include "agent/shared/program/json.h"
#include "agent/shared/program/lines.h"
#include "agent/shared/program/text.h"

static enum status info_run(struct cli *cli, struct err *e);

struct info_options {
	struct identity_options identity;
	bool json;
	bool full;
	bool brief;
};

static const struct option_def options[] = {
	CLI_FLAG(struct info_options, full, 0, "full",
		 "print all that is known; the default where stdout is not a terminal"),
	CLI_FLAG(struct info_options, brief, 0, "brief",
		 "print what matters most, in a dozen lines; the default on a terminal"),
	CLI_FLAG(struct info_options, json, 'j', "json", "print one JSON object"),
	CLI_GROUP(struct info_options, identity, &identity_option_group),
};

const struct command command_info = {
	.name = "info",
	.group = GROUP_EVIDENCE,
	.summary = "show what is in a container",
	.examples = { { "Show whether it is whole, and of what machine", "%s info host.rsz" },
		      { "Show machine, streams, pages and processes", "%s info --full host.rsz" },
		      { "Print the same as JSON", "%s info --json host.rsz" },
		      { "Look into a container on another machine",
			"ssh collector cat host.rsz | %s info -" } },
	.operands = { .text = "FILE", .min = 1, .max = 1 },
	.options = options,
	.n_options = ARRAY_SIZE(options),
	.notes = "Headers and manifest are taken as they are; `ramseal verify` checks them and\n"
		 "every hash.\n"
		 "\n"
		 "FILE can be '-': a container on stdin is read to its end, and what info\n"
		 "shows (headers, manifest, page tables) is kept in memory, at most 512 MiB.\n"
		 "Page contents are not kept, so the numbering of page files cannot be\n"
		 "compared with them.\n",
	.values_size = sizeof(struct info_options),
	.run = info_run,
};

/*
 * JSON
 */

static json_t *stream_json(const struct rsz_stream_info *info, const struct stream_sums *s)
{
	json_t *stream = json_fields(JSON_FIELDS(
		field_text("name", info->name), field_text("kind", rsz_kind_name(info->kind)),
		field_u64("chunks", s->chunks), field_u64("captured_bytes", s->captured),
		field_u64("stored_bytes", s->stored), field_u64("start_ns", s->start),
		field_u64("end_ns", s->end)));
	json_t *meta = json_loads(info->meta, 0, NULL);

	if (stream && info->paged)
		json_object_set_new(stream, "pages", tally_states_json(&s->tally));
	if (stream && meta)
		json_object_set(stream, "metadata", meta);
	json_decref(meta);
	return stream;
}

/* What was to be acquired, and is in no record. */
static void put_missing_pages(json_t *doc, const struct container *c)
{
	_cleanup_ranges_ struct range_list missing = { 0 };

	if (container_missing(c, &missing, NULL) || !missing.count)
		return;
	json_object_set_new(doc, "missing_pages",
			    json_integer((json_int_t)(range_list_bytes(&missing) / PAGE_SIZE)));
	json_object_set_new(doc, "missing", json_ranges(&missing));
}

static void put_memory(json_t *doc, struct container *c, const struct container_sums *s)
{
	_cleanup_ranges_ struct range_list ranges = { 0 };
	uint32_t stream;

	if (container_find_kind(c, RSZ_KIND_MEMORY, &stream, NULL) || stream >= s->count ||
	    rsz_reader_ranges(c->reader, stream, &ranges, NULL))
		return;
	json_object_set_new(doc, "pages", tally_states_json(&s->streams[stream].tally));
	json_object_set_new(doc, "ranges", json_ranges(&ranges));
	json_object_set_new(
		doc, "unreadable",
		tally_gaps_json(&s->streams[stream].tally, PAGE_UNREADABLE, TALLY_GAPS_MAX));
	json_object_set_new(
		doc, "skipped",
		tally_gaps_json(&s->streams[stream].tally, PAGE_SKIPPED, TALLY_GAPS_MAX));
}

/*
 * What `ramseal smear` says of it, where both passes over the page tables are there. An image has
 * one moment, of which something else is said.
 */
static enum status put_smear(json_t *doc, struct container *c, json_t *lines,
			     const struct container_sums *sums, const struct origin *o,
			     struct err *e)
{
	uint32_t before, after;

	if (!o->still && (container_find_kind(c, RSZ_KIND_TABLES_BEFORE, &before, NULL) ||
			  container_find_kind(c, RSZ_KIND_TABLES_AFTER, &after, NULL)))
		return ST_OK;
	return info_put_smear(doc, c, lines, sums, o, e);
}

/* In each pass over the page tables, the two lists of processes. */
static void put_compared(json_t *doc, const json_t *lines)
{
	json_t *line, *compared, *all = json_array();
	size_t i;

	json_array_foreach(lines, i, line)
	{
		compared = json_object_get(line, "processes_compared");
		if (!json_is_object(compared))
			continue;
		json_object_set(compared, "when", json_object_get(line, "when"));
		json_array_append(all, compared);
	}
	if (json_array_size(all))
		json_object_set(doc, "processes_compared", all);
	json_decref(all);
}

static json_t *info_json(struct container *c, const char *path, const struct container_sums *s)
{
	static const char *const begin_keys[] = {
		"process",         "tool",           "source",      "maps", "withheld", "driver",
		"driver_forecast", "code_integrity", "stays_awake", NULL
	};
	static const char *const end_keys[] = { "exit_code",      "outcome", "message",
						"order",          "parts",   "maps_at_end",
						"memory_changes", "usage",   "sleeps",
						"clock_steps",    NULL };
	static const char *const later_keys[] = { "sealed_later", NULL };
	const struct rsz_identity *id = rsz_reader_identity(c->reader);
	char time[CLOCK_RFC3339_SIZE], root[SHA256_HEX_SIZE];
	json_t *streams = json_array();
	json_t *doc;

	clock_rfc3339(id->wall, time);
	sha256_hex(s->end.root, root);
	for (size_t i = 0; i < s->count; i++)
		json_array_append_new(streams,
				      stream_json(rsz_reader_stream(c->reader, i), &s->streams[i]));
	doc = json_fields(JSON_FIELDS(
		FIELD_SCHEMA("info"), field_text("file", path), field_text("written_by", id->text),
		field_text("begun", id->wall ? time : NULL),
		field_bool("sealed", s->end.end == RSZ_END_SEALED),
		field_text("end", rsz_end_name(s->end.end)), field_text("reason", s->end.reason),
		field_u64("whole_bytes", s->end.whole), field_u64("records", s->end.records),
		field_u64("trailing_bytes", s->end.behind), field_text("root", root),
		field_made("streams", streams)));
	if (!doc)
		return NULL;
	info_copy_keys(doc, container_event(c, "begin"), begin_keys);
	info_copy_keys(doc, container_event(c, "end"), end_keys);
	info_copy_keys(doc, container_event(c, "sealed_later"), later_keys);
	put_memory(doc, c, s);
	put_missing_pages(doc, c);
	return doc;
}

/*
 * Text: the same object, read aloud.
 */

static const char *info_text_at(json_t *doc, const char *object, const char *key)
{
	const char *text = json_string_value(json_object_get(json_object_get(doc, object), key));

	return text ? text : "not recorded";
}

/* Without pages of which there is nothing but that they were skipped, or could not be read. */
static uint64_t content_bytes(const struct stream_sums *s)
{
	const uint64_t *pages = s->tally.pages;

	return s->captured -
	       MIN(s->captured, (pages[PAGE_SKIPPED] + pages[PAGE_UNREADABLE]) * PAGE_SIZE);
}

static void print_streams(struct container *c, const struct container_sums *s)
{
	for (size_t i = 0; i < s->count; i++) {
		const struct rsz_stream_info *info = rsz_reader_stream(c->reader, i);
		const struct stream_sums *sum = &s->streams[i];
		char captured[TEXT_SIZE_MAX], stored[TEXT_SIZE_MAX];

		text_size(content_bytes(sum), captured);
		text_size(sum->stored, stored);
		print_row("stream", "%s (%s): %s in %s, %" PRIu64 " chunks, read within %.3f s",
			  info->name, rsz_kind_name(info->kind), captured, stored, sum->chunks,
			  (double)(sum->end - sum->start) / 1e9);
	}
}

static void print_pages(json_t *doc)
{
	const char *state;
	json_t *count;
	char line[256] = "";
	size_t len = 0;

	json_object_foreach(json_object_get(doc, "pages"), state, count) if (len < sizeof(line))
		len += (size_t)snprintf(line + len, sizeof(line) - len, "%s%" PRId64 " %s",
					len ? ", " : "", (int64_t)json_integer_value(count), state);
	if (len)
		print_row("pages", "%s", line);
}

static int64_t order_count(json_t *doc, const char *key)
{
	return (int64_t)json_integer_value(json_object_get(json_object_get(doc, "order"), key));
}

/* What was captured again for the page tables, and whether all of it could be. */
static void print_again(json_t *doc)
{
	const int64_t again = order_count(doc, "retaken_pages");
	const int64_t not = order_count(doc, "not_retaken");

	if (again)
		print_row("again", "%" PRId64 " pages, because entries that name them had changed",
			  again);
	if (not)
		print_row("", "%" PRId64 " more were not: the limit was reached", not);
}

static void print_ranges(json_t *doc, const char *key, const char *label)
{
	enum { SHOWN_MAX = 16 };
	json_t *list = json_object_get(doc, key), *range;
	size_t i;

	json_array_foreach(list, i, range)
	{
		if (i == SHOWN_MAX) {
			print_row(label, "… and %zu more (--json lists them)",
				  json_array_size(list) - i);
			break;
		}
		print_row(label, "0x%012" PRIx64 " - 0x%012" PRIx64,
			  (uint64_t)json_integer_value(json_object_get(range, "first")),
			  (uint64_t)json_integer_value(json_object_get(range, "last")));
	}
}

/* Unreadable pages for which there is a reason that is known. */
static void print_reasons(json_t *doc)
{
	static const uint32_t errors[] = { DRV_POISONED, DRV_UNMAPPED };
	json_t *gap;
	size_t k;

	if (strcmp(info_text_at(doc, "source", "error_numbers"), "errno"))
		return;
	for (size_t i = 0; i < ARRAY_SIZE(errors); i++) {
		json_int_t pages = 0;

		json_array_foreach(json_object_get(doc, "unreadable"), k,
				   gap) if (json_integer_value(json_object_get(gap, "error")) ==
					    errors[i]) pages +=
			json_integer_value(json_object_get(gap, "pages"));
		if (pages)
			print_row("unreadable", "%" PRId64 " pages: %s", (int64_t)pages,
				  drv_error_meaning(errors[i]));
	}
}

/* One row for a kind of change, if there was any: how much. */
static void print_changed(json_t *doc, const char *key, const char *what)
{
	char size[TEXT_SIZE_MAX];
	uint64_t bytes = 0;
	json_t *range;
	size_t i;

	json_array_foreach(json_object_get(json_object_get(doc, "memory_changes"), key), i, range)
		bytes += (uint64_t)json_integer_value(json_object_get(range, "last")) -
			 (uint64_t)json_integer_value(json_object_get(range, "first")) + 1;
	text_size(bytes, size);
	if (bytes)
		print_row("meanwhile", "%s %s", size, what);
}

static void print_changes(json_t *doc)
{
	print_changed(doc, "added", "of memory was added to the machine");
	print_changed(doc, "missing", "of it was not acquired");
	print_changed(doc, "removed", "of memory was removed");
	print_changed(doc, "withheld",
		      "of memory went offline, were poisoned or left the direct map");
	print_changed(doc, "returned", "of memory came back");
}

/* The first pass whose two lists differ; else the last. */
static void print_processes(json_t *doc)
{
	json_t *list = json_object_get(doc, "processes_compared"), *o = NULL;
	size_t i = 0;

	while (i < json_array_size(list)) {
		o = json_array_get(list, i++);
		if (!json_is_true(json_object_get(o, "agree")))
			break;
	}
	if (json_is_true(json_object_get(o, "agree")))
		print_row("processes",
			  "%" PRId64
			  " in the kernel's list, which agrees with what the system reports",
			  (int64_t)json_integer_value(json_object_get(o, "kernel")));
	else if (o && !process_names_differences(o))
		print_row("processes",
			  "the kernel's list could not be read to its end; what there is of it "
			  "(%" PRId64 ") agrees with what the system told",
			  (int64_t)json_integer_value(json_object_get(o, "kernel")));
	else if (o)
		print_row("processes",
			  "%" PRId64 " in the kernel's list, the system told %" PRId64
			  ", and they differ: %zu only in the kernel's, %zu only in the system's, "
			  "%zu with another name (--json names them)%s",
			  (int64_t)json_integer_value(json_object_get(o, "kernel")),
			  (int64_t)json_integer_value(json_object_get(o, "system")),
			  json_array_size(json_object_get(o, "kernel_only")),
			  json_array_size(json_object_get(o, "system_only")),
			  json_array_size(json_object_get(o, "renamed")),
			  json_is_true(json_object_get(o, "pid_namespace"))
				  ? "; ramseal ran in a PID namespace, which has numbers of its own"
				  : "");
}

/* The file, and how far it is whole. */
static void info_print_state(json_t *doc, const struct rsz_scan_result *end)
{
	print_row("file", "%s", json_string_value(json_object_get(doc, "file")));
	if (end->end == RSZ_END_SEALED)
		print_row("state", "sealed, %" PRIu64 " records, root %s", end->records,
			  json_string_value(json_object_get(doc, "root")));
	else
		print_row("state", "%s: %s; whole up to offset %" PRIu64, rsz_end_name(end->end),
			  end->reason, end->whole);
	if (json_object_get(doc, "sealed_later"))
		print_row("", "not by the acquisition, but later");
	if (end->behind)
		print_row("", "%" PRIu64 " bytes follow that are no part of it", end->behind);
}

static void info_print_text(struct container *c, json_t *doc, const struct container_sums *s,
			    const struct origin *o)
{
	json_t *outcome = json_object_get(doc, "outcome");
	char slept[SLEEP_TEXT_MAX], stepped[CLOCK_TEXT_MAX];

	info_print_state(doc, &s->end);
	print_row("outcome", "%s",
		  outcome ? json_string_value(outcome) : "the acquisition did not finish");
	if (sleep_watch_text(json_object_get(doc, "sleeps"), slept))
		print_row("", "%s", slept);
	if (clock_watch_text(json_object_get(doc, "clock_steps"), stepped))
		print_row("", "%s", stepped);
	if (rsz_reader_identity(c->reader)->wall)
		print_row("begun", "%s by %s", json_string_value(json_object_get(doc, "begun")),
			  json_string_value(json_object_get(doc, "written_by")));
	else
		print_row("begun", "not known: the record that says it is damaged");
	print_row("tool", "SHA-256 %s", info_text_at(doc, "tool", "sha256"));
	info_print_host(o);
	print_row("source", "%s (%s)%s", info_text_at(doc, "source", "name"),
		  info_text_at(doc, "source", "path"),
		  json_is_true(json_object_get(json_object_get(doc, "source"), "silent"))
			  ? "; it cannot report unreadable pages"
			  : "");
	info_print_kernel(doc);
	print_processes(doc);
	print_streams(c, s);
	print_pages(doc);
	print_again(doc);
	if (json_object_get(doc, "missing_pages"))
		print_row("missing", "%" PRId64 " pages of the map of RAM are in no record",
			  (int64_t)json_integer_value(json_object_get(doc, "missing_pages")));
	print_changes(doc);
	if (json_object_get(doc, "smear"))
		print_row("smear", "%s", info_text_at(doc, "smear", "sentence"));
	if (json_object_get(json_object_get(doc, "smear"), "advice"))
		print_row("", "%s", info_text_at(doc, "smear", "advice"));
	print_ranges(doc, "ranges", "range");
	print_reasons(doc);
	print_ranges(doc, "unreadable", "unreadable");
	print_ranges(doc, "skipped", "skipped");
	print_ranges(doc, "missing", "missing");
	info_print_spaces(doc);
}

/*
 * Brief text: what decides what to do with it.
 */

static void brief_print_state(json_t *doc, const struct rsz_scan_result *end)
{
	const char *why = json_string_value(json_object_get(doc, "message"));
	json_t *outcome = json_object_get(doc, "outcome");

	if (end->end != RSZ_END_SEALED) {
		info_print_state(doc, end);
	} else {
		print_row("state", "sealed%s, %" PRIu64 " records; the acquisition: %s",
			  json_object_get(doc, "sealed_later") ? " later" : "", end->records,
			  outcome ? json_string_value(outcome) : "did not finish");
		print_row("root", "%s", json_string_value(json_object_get(doc, "root")));
	}
	if (why && *why)
		print_row("", "%.240s", why);
}

/* In numbers, if there are any; else as it is said. */
static void brief_print_trust(json_t *doc)
{
	static const char *const keys[] = { "safe", "at-risk", "wrong" };
	json_t *smear = json_object_get(doc, "smear");
	double pages[ARRAY_SIZE(keys)], all = 0;

	if (!smear)
		return;
	for (size_t i = 0; i < ARRAY_SIZE(keys); i++) {
		pages[i] = (double)json_integer_value(json_object_get(smear, keys[i]));
		all += pages[i];
	}
	if (all > 0)
		print_row("trust",
			  "of the user pages of processes that lived, %.1f %% are safe, %.1f %% at "
			  "risk, %.1f %% not here, by the page tables read before the memory%s; "
			  "`ramseal smear` says more",
			  100 * pages[0] / all, 100 * pages[1] / all, 100 * pages[2] / all,
			  json_is_true(json_object_get(smear, "in_doubt")) ? ", some of it in doubt"
									   : "");
	else
		print_row("trust", "%s", info_text_at(doc, "smear", "sentence"));
}

static uint64_t info_pages(json_t *doc, const char *state)
{
	return (uint64_t)json_integer_value(json_object_get(json_object_get(doc, "pages"), state));
}

static void brief_print_memory(struct container *c, json_t *doc, const struct container_sums *s)
{
	char captured[TEXT_SIZE_MAX], stored[TEXT_SIZE_MAX];
	uint32_t memory;
	size_t files = 0;

	for (size_t i = 0; i < s->count; i++)
		files += rsz_reader_stream(c->reader, i)->kind == RSZ_KIND_PAGEFILE;
	if (container_find_kind(c, RSZ_KIND_MEMORY, &memory, NULL) || memory >= s->count)
		return;
	text_size(content_bytes(&s->streams[memory]), captured);
	text_size(s->streams[memory].stored, stored);
	print_row("memory",
		  "%s in %s, read within %.3f s; pages: %" PRIu64 " unreadable, %" PRIu64
		  " skipped, %" PRId64 " missing",
		  captured, stored,
		  (double)(s->streams[memory].end - s->streams[memory].start) / 1e9,
		  info_pages(doc, "unreadable"), info_pages(doc, "skipped"),
		  (int64_t)json_integer_value(json_object_get(doc, "missing_pages")));
	if (files)
		print_row("", "and %zu page file%s or swap area%s", files, files == 1 ? "" : "s",
			  files == 1 ? "" : "s");
}

static bool differing_processes(json_t *doc)
{
	json_t *o;
	size_t i;

	json_array_foreach(json_object_get(doc, "processes_compared"), i,
			   o) if (!json_is_true(json_object_get(o, "agree"))) return true;
	return false;
}

static void info_print_brief(struct container *c, json_t *doc, const struct container_sums *s,
			     const struct origin *o)
{
	const char *begun = json_string_value(json_object_get(doc, "begun"));

	brief_print_state(doc, &s->end);
	brief_print_trust(doc);
	if (differing_processes(doc))
		print_processes(doc);
	info_print_host(o);
	/* "2015-01-01T01:00:00", and the rest of a second */
	print_row("begun", "%.19s%s by %s, from %s", begun ? begun : "at an unknown time",
		  begun ? "Z" : "", json_string_value(json_object_get(doc, "written_by")),
		  info_text_at(doc, "source", "name"));
	brief_print_memory(c, doc, s);
	print_row("more",
		  "--full: kernel, streams, ranges, processes; `ramseal verify` checks the hashes");
}

static bool is_brief(const struct info_options *o)
{
	return o->brief || (!o->full && lines_width(stdout) != LINES_ENDLESS);
}

/* What the manifest says beyond its first and last line. */
static enum status put_lines(json_t *doc, struct container *c, json_t *lines,
			     const struct container_sums *sums, struct origin *o, struct err *e)
{
	origin_of_lines(o, lines);
	info_put_machine(doc, o, container_event(c, "begin"), lines);
	put_compared(doc, lines);
	return put_smear(doc, c, lines, sums, o, e);
}

static enum status print_info(struct cli *cli, struct container *c, json_t *lines,
			      const struct container_sums *sums, struct err *e)
{
	const struct info_options *o = cli->values;
	struct origin origin;
	json_t *doc = info_json(c, input_name(cli->operands[0]), sums);
	enum status st = doc ? put_lines(doc, c, lines, sums, &origin, e) : err_nomem(e);

	if (!st && o->json)
		st = json_print(json_incref(doc), JSON_INDENT(1), e);
	else if (!st)
		(is_brief(o) ? info_print_brief : info_print_text)(c, doc, sums, &origin);
	json_decref(doc);
	return st;
}

static enum status tell_container(struct cli *cli, struct container *c,
				  const struct container_sums *sums, struct err *e)
{
	static const char *const events[] = { "begin", "tables", "file", "end", NULL };
	json_t *lines = NULL;
	enum status st = container_lines(c, events, &lines, e);

	if (st)
		return err_add(e, st, "%s", input_name(cli->operands[0]));
	st = container_answer(c, print_info(cli, c, lines, sums, e), e);
	json_decref(lines);
	return st;
}

static enum status info_run(struct cli *cli, struct err *e)
{
	const struct info_options *o = cli->values;
	_cleanup_identities_ struct age_identities *x = NULL;
	struct container_sums sums = { 0 };
	struct container c;
	enum status st = ST_OK;

	if (o->brief && o->full)
		return cli_usage(cli, e, "--brief and --full contradict each other");
	st = identities_load(&o->identity, &x, e);
	if (!st)
		cage_command(cli, false);
	if (!st)
		st = container_open_outline(cli->operands[0], x, &c, &sums, e);
	if (!st) {
		st = tell_container(cli, &c, &sums, e);
		container_close(&c);
	}
	container_sums_deinit(&sums);
	return st;
}
