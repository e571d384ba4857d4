/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "agent/collect/acquire/acquire_internal.h"
#include "agent/collect/host/host.h"
#include "agent/shared/program/clock.h"
#include "agent/shared/program/log.h"
#include "agent/shared/program/text.h"

#ifdef _WIN32
#define SEPARATORS "/\\"
#else
#define SEPARATORS "/"
#endif

static bool goes_to_stdout(const struct acquisition *a)
{
	return a->o->statement && !strcmp(a->o->statement, "-");
}

enum status acquire__begin_statement(struct acquisition *a, struct err *e)
{
	const struct output_options target = {
		.path = a->o->statement,
		.force = a->o->force,
		.inputs = a->base.inputs,
	};
	enum status st;

	if (!a->o->statement || goes_to_stdout(a))
		return ST_OK;
	st = output_open(&target, &a->statement_out, e);
	if (!st && output_is_at(a->statement_out, a->base.output))
		return err_set(e, ST_OUTPUT, "%s: container and statement name the same file",
			       a->base.output);
	return st;
}

/* A file's name alone: where it lies on this machine says nothing elsewhere. */
static const char *name_of_output(const struct acquisition *a)
{
	const char *name = output_name(a->out);
	const size_t folder = strlen(name);

	for (size_t i = folder; output_is_file(a->out) && i; i--)
		if (strchr(SEPARATORS, name[i - 1]))
			return name + i;
	return name;
}

/* Text of the manifest; NULL if that lacks it. */
static const char *begin_text(const json_t *begin, const char *object, const char *key)
{
	return json_string_value(json_object_get(json_object_get(begin, object), key));
}

void acquire__state_begin(struct acquisition *a, const json_t *begin)
{
	const json_t *made_on = json_object_get(begin, "made_on");
	const char *name = begin_text(made_on ? made_on : begin, "host", "name");
	const char *hash = begin_text(begin, "tool", "sha256");
	struct statement *s = &a->stated;
	char host[HOST_NAME_SIZE];

	host_name(host);
	statement_set_text(s->host, name ? name : host);
	statement_set_text(s->source, begin_text(begin, "source", "name"));
	statement_set_text(s->tool, "ramseal " RAMSEAL_VERSION);
	s->has_tool_hash = hash && text_from_hex(hash, 2 * sizeof(s->tool_sha256), s->tool_sha256);
	text_from_hex(sealer_id(a->sealer), 2 * sizeof(s->container), s->container);
	s->begin_wall = sealer_begin_wall(a->sealer);
	s->begin_mono = sealer_begin_mono(a->sealer);
}

static void state_end(struct acquisition *a, enum status st)
{
	struct statement *s = &a->stated;

	statement_set_text(s->name, name_of_output(a));
	s->outcome = statement_outcome_of(a->root[0], status_exit_code(st));
	s->has_root = a->root[0] && text_from_hex(a->root, 2 * sizeof(s->root), s->root);
	s->size = sealer_size(a->sealer);
	s->end_wall = clock_wall_ns();
	s->end_mono = clock_mono_ns();
}

static enum status write_statement_text(struct acquisition *a, size_t len, struct err *e)
{
	enum status st;

	/* What stdout does not take, main() finds when it closes it. */
	if (goes_to_stdout(a))
		fwrite(a->statement, 1, len, stdout);
	if (!a->statement_out)
		return ST_OK;
	st = sink_write(output_sink(a->statement_out), a->statement, len, e);
	if (!st)
		st = output_commit(a->statement_out, e);
	if (st)
		output_discard(a->statement_out);
	a->statement_kept = !st;
	return st;
}

/* What is worse than a statement that could not be written is told first. */
static enum status tell_lost(enum status st, const struct err *why, struct err *e)
{
	if (st && st != ST_UNREADABLE) {
		log_warning("statement-lost", "the statement: %s", why->message);
		return st;
	}
	*e = *why;
	return err_add(e, ST_OUTPUT, "the container is sealed, but its statement is lost");
}

json_t *acquire__statement_json(const struct acquisition *a)
{
	const size_t len = strlen(a->statement);
	char hex[SHA256_HEX_SIZE];

	if (sha256_hex_of(a->statement, len, hex, NULL))
		return NULL;
	return output_file_json("statement", output_where(a->statement_out), len, hex, NULL);
}

enum status acquire__end_statement(struct acquisition *a, enum status st, struct err *e)
{
	struct err why = ERR_INIT;
	size_t len;

	a->statement = malloc(STATEMENT_MAX);
	if (!a->statement)
		return tell_lost(st, &(struct err){ "out of memory" }, e);
	state_end(a, st);
	len = statement_write(&a->stated, a->statement);
	return write_statement_text(a, len, &why) ? tell_lost(st, &why, e) : st;
}
