/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/examine/show/process_session.h"

#include <stdlib.h>

#include "agent/shared/container/manifest_read.h"

#define CHOICE_MAP(X)                                                                              \
	X("image", COPY_IMAGE)                                                                     \
	X("before", COPY_BEFORE)                                                                   \
	X("after", COPY_AFTER)

#define X(name, copy) name,
const char *const copy_choices[] = { CHOICE_MAP(X) NULL };
#undef X
#define X(name, copy) copy,
const enum copy copy_of_choice[] = { CHOICE_MAP(X) };
#undef X

/*
 * Structures lie all over memory and the page files: with four chunks of each, up to 8 MiB each as
 * they are written, following a list seldom decodes one twice. Page tables are kept elsewhere.
 */
#define CHUNKS      4
#define CHUNK_BYTES ((size_t)64 << 20)

static const struct option_def options[] = {
	CLI_PARSED(struct process_options, who, 'p', "pid", PROCESS_CHOICE_VALUE,
		   process_choice_parse,
		   "the process to examine, by its PID, or by its name if only one is called so; "
		   "`ramseal info` lists them"),
	CLI_CHOICE(struct process_options, tables, 'T', "tables", NULL, copy_choices,
		   COPY_CHOICE_HELP),
	CLI_GROUP(struct process_options, symbols, &symbol_option_group),
};

const struct option_group process_option_group = { options, ARRAY_SIZE(options) };

static enum status open_memory(struct process_session *s, const struct process_options *o,
			       struct err *e)
{
	struct virtual_plan plan = {
		.in = s->in.container.blob,
		.reader = s->in.container.reader,
		.manifest = s->in.lines,
		.cached = CHUNKS,
		.cached_bytes = CHUNK_BYTES,
		.copy = copy_of_choice[o->tables],
		.pid = o->who.pid,
		.name = o->who.name,
	};
	enum status st = manifest_get_notes(container_event(&s->in.container, "begin"), &s->notes,
					    &plan.notes_size, e);

	plan.notes = s->notes;
	if (!st)
		st = virtual_open(&plan, &s->memory, e);
	/* A process has entries of every kind: sooner or later it is needed. */
	if (!st)
		st = virtual_need_layout(s->memory, e);
	if (!st)
		st = process_open(s->memory,
				  o->who.name ? virtual_info(s->memory)->pid : o->who.pid,
				  &s->symbols, &s->process, e);
	if (!st)
		symbol_options_tell(&s->symbols);
	return st;
}

enum status process_session_open(struct cli *cli, const struct process_options *o,
				 const struct age_identities *x, struct process_session *ret,
				 struct err *e)
{
	return process_session_open_at(cli, cli->operands[0], o, x, ret, e);
}

enum status process_session_open_at(struct cli *cli, const char *path,
				    const struct process_options *o, const struct age_identities *x,
				    struct process_session *ret, struct err *e)
{
	enum status st;

	if (!cli_given(cli, "pid"))
		return cli_usage(cli, e, "needs --pid PID or --pid NAME");
	*ret = (struct process_session){ .path = path };
	st = symbol_options_open(&o->symbols, &ret->symbols, e);
	if (!st)
		st = smear_input_open(ret->path, x, &ret->in, e);
	if (st) {
		symbol_set_deinit(&ret->symbols);
		return st;
	}
	st = open_memory(ret, o, e);
	if (st) {
		st = process_session_close(ret, st, e);
		return err_add(e, st, "%s", path);
	}
	return ST_OK;
}

enum status process_session_close(struct process_session *s, enum status st, struct err *e)
{
	st = container_answer(&s->in.container, st, e);
	process_close(s->process);
	virtual_close(s->memory);
	free(s->notes);
	smear_input_close(&s->in);
	symbol_set_deinit(&s->symbols);
	return st;
}
