/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/collect/acquire/summary.h"

#include <string.h>

#include "agent/collect/host/host.h"
#include "agent/shared/container/tally.h"
#include "agent/shared/program/clock.h"
#include "agent/shared/program/log.h"
#include "agent/shared/program/self.h"

/*
 * Kept free on the file's disk, for when the container fills that. Without lists of many gaps or
 * page files a summary has 10 KB.
 */
#define SUMMARY_RESERVE ((uint64_t)128 << 10)

/*
 * What the machine is. How ramseal was called has a place of its own; and how the kernel was stays
 * in the manifest: a summary goes around, and people put passwords there.
 */
static enum status describe_summary_machine(struct summary *s, struct err *e)
{
	enum status st = host_describe(s->cli->argc, s->cli->argv, &s->machine, e);

	if (st)
		return st;
	json_object_del(json_object_get(s->machine, "process"), "arguments");
	json_object_del(json_object_get(s->machine, "os"), "command_line");
	return ST_OK;
}

/* A file gets the room that it keeps when it is first written to. */
static enum status keep_summary_room(const struct summary *s, struct err *e)
{
	return output_is_file(s->out) ? sink_write(output_sink(s->out), "\n", 1, e) : ST_OK;
}

/* What is going to be read is not even replaced with --force. */
static enum status open_summary_file(struct summary *s, const struct acquire_options *o,
				     struct err *e)
{
	const char *path = strchr(o->source, ':');
	const char **inputs = calloc(o->disk.images.count + 2, sizeof(*inputs));
	const struct output_options target = {
		.path = o->summary,
		.force = o->force,
		.inputs = inputs,
		.reserve = SUMMARY_RESERVE,
	};
	enum status st;

	if (!inputs)
		return err_nomem(e);
	for (size_t i = 0; i < o->disk.images.count; i++)
		inputs[i] = o->disk.images.at[i];
	inputs[o->disk.images.count] = path ? path + 1 : NULL;
	st = output_open(&target, &s->out, e);
	free(inputs);
	return st;
}

enum status summary_begin(struct summary *s, const struct cli *cli, const struct acquire_options *o,
			  struct err *e)
{
	enum status st;

	*s = (struct summary){ .cli = cli, .wall = clock_wall_ns(), .mono = clock_mono_ns() };
	if (!o->summary)
		return ST_OK;
	st = open_summary_file(s, o, e);
	if (!st && o->statement && strcmp(o->statement, "-") != 0)
		st = summary_check(s, o->statement, e);
	if (!st)
		st = keep_summary_room(s, e);
	return st ? st : describe_summary_machine(s, e);
}

static void discard_summary_file(struct summary *s)
{
	if (s->out)
		output_discard(s->out);
	output_destroy(s->out);
	s->out = NULL;
}

enum status summary_check(struct summary *s, const char *path, struct err *e)
{
	if (!s->out || !output_is_at(s->out, path))
		return ST_OK;
	discard_summary_file(s);
	return err_set(e, ST_OUTPUT, "%s: --summary names a file that another option writes", path);
}

json_t *summary_missing_json(const struct tally *memory, uint64_t bytes, size_t files)
{
	return json_fields(
		JSON_FIELDS(field_u64("unreadable_pages", memory->pages[PAGE_UNREADABLE]),
			    field_u64("skipped_pages", memory->pages[PAGE_SKIPPED]),
			    field_u64("unacquired_bytes", bytes), field_u64("files", files)));
}

/* With its hash only if that was needed for something else, too. */
static json_t *tool_json(const struct summary *s)
{
	json_t *known = json_object_get(s->machine, "tool");

	if (known)
		return json_incref(known);
	return json_fields(
		JSON_FIELDS(field_text("name", "ramseal"), field_text("version", RAMSEAL_VERSION)));
}

/* All of `machine` but the tool. */
static json_t *machine_json(const struct summary *s)
{
	json_t *o = json_copy(s->machine);

	json_object_del(o, "tool");
	return o;
}

/* What every summary has, and how long it took. */
static json_t *head_json(const struct summary *s, enum status st, const struct err *why,
			 struct summary_begun begun)
{
	char begin[CLOCK_RFC3339_SIZE], end[CLOCK_RFC3339_SIZE];
	json_t *doc;

	clock_rfc3339(begun.wall, begin);
	clock_rfc3339(clock_wall_ns(), end);
	doc = json_fields(JSON_FIELDS(
		FIELD_SCHEMA("summary"), field_i64("exit_code", status_exit_code(st)),
		field_text("outcome", exit_code_text(status_exit_code(st))),
		field_text("error", st ? why->message : NULL), field_text("begin", begin),
		field_text("end", end), field_u64("duration_ns", clock_mono_ns() - begun.mono),
		field_made("command", host_arguments_json(s->cli->argc, s->cli->argv)),
		field_u64("pid", self_pid()), field_made("tool", tool_json(s)),
		field_made("usage", self_usage_json())));
	if (doc && s->machine)
		json_object_set_new(doc, "machine", machine_json(s));
	return doc;
}

void summary_tell(struct summary *s, enum status st, const struct err *why,
		  struct summary_begun begun, const struct json_field *more, const char *text)
{
	json_t *doc = head_json(s, st, why, begun), *line;

	if (!json_add_fields(doc, more)) {
		json_decref(doc);
		doc = NULL;
	}
	s->doc = doc;
	/* A line of the log says of itself that it is an event. */
	line = json_copy(doc);
	json_object_del(line, "schema");
	log_result_with(JSON_FIELDS(field_members(line)), "summary", "%s", text);
}

static enum status write_doc(const struct summary *s, struct err *e)
{
	_cleanup_free_ char *text = json_dumped(s->doc, JSON_INDENT(1));
	struct sink *to = output_sink(s->out);
	enum status st = ST_OK;

	if (!text)
		return err_nomem(e);
	if (output_is_file(s->out))
		st = sink_cut(to, 0, e); /* and with it the room that was kept */
	if (!st)
		st = sink_write(to, text, strlen(text), e);
	if (!st)
		st = sink_write(to, "\n", 1, e);
	return st ? st : output_commit(s->out, e);
}

void summary_end(struct summary *s, enum status st, const struct err *why)
{
	struct err e = ERR_INIT;

	/*
	 * Without the machine it did not come to its beginning; and a command line that was refused
	 * may have been so because a secret stands in it.
	 */
	if (s->out && s->machine && (s->doc || st != ST_USAGE)) {
		if (!s->doc)
			s->doc = head_json(s, st, why, (struct summary_begun){ s->wall, s->mono });
		if (write_doc(s, &e))
			log_warning("summary-lost", "the summary: %s", e.message);
	}
	discard_summary_file(s);
	json_decref(s->machine);
	json_decref(s->doc);
	*s = (struct summary){ 0 };
}
