/* SPDX-License-Identifier: Apache-2.0 */
/* ramseal process: what one process is: where from, its modules, its threads. */
#include <inttypes.h>
#include <stdio.h>

#include "agent/commands/commands.h"
#include "agent/shared/output/cage_command.h"
#include "agent/examine/process/modules.h"
#include "agent/examine/process/threads.h"
#include "agent/examine/show/process_session.h"
#include "agent/shared/container/identities.h"
#include "agent/shared/program/json.h"
#include "agent/shared/program/lines.h"
#include "agent/shared/program/log.h"
#include "agent/shared/program/table.h"
#include "agent/shared/program/text.h"
#include "formats/base/utc.h"
#include "tsk-extract/registry.h"

static enum status process_run(struct cli *cli, struct err *e);

struct process_command {
	struct identity_options identity;
	struct process_options process;
	bool json;
};

static const struct option_def options[] = {
	CLI_GROUP(struct process_command, process, &process_option_group),
	CLI_GROUP(struct process_command, identity, &identity_option_group),
	CLI_FLAG(struct process_command, json, 'j', "json", "print one JSON document"),
};

const struct command command_process = {
	.name = "process",
	.group = GROUP_PROCESS,
	.summary = "show the modules and threads of a process",
	.examples = { { "Show modules and threads of process 1234", "%s process -p 1234 host.rsz" },
		      { "Show those of the only process of that name",
			"%s process -p lsass.exe host.rsz" },
		      { "Name addresses by symbols of the kernel and a module",
			"%s process -p 1234 --symbols ntkrnlmp.pdb --symbols app.pdb host.rsz" } },
	.operands = { .text = "FILE", .min = 1, .max = 1 },
	.options = options,
	.n_options = ARRAY_SIZE(options),
	.notes = "A name instead of a PID is compared in any case. The kernel keeps only its\n"
		 "first 14 or 15 characters: a longer name means a process whose name has so\n"
		 "many and begins the same. If several processes have that name, their PIDs\n"
		 "are listed, and the exit code is 2.\n"
		 "\n"
		 "Kernel versions in ramseal's table need no symbols. For others, --symbols\n"
		 "gives the offsets of kernel fields; for any, it gives names for addresses. A\n"
		 "module is known from the process's own module list, from an image that is\n"
		 "mapped there (its VAD), or from both. If the two disagree, a line says so. The\n"
		 "program may have been mapped by hand or unlinked from the list, but\n"
		 "images that are mapped for their resources are in no list either. If a list\n"
		 "cannot be followed to its end, or VADs are lost, the exit code is 3. System\n"
		 "and other processes that run no program have no PEB and therefore no module\n"
		 "list; that is not a loss.\n",
	.values_size = sizeof(struct process_command),
	.run = process_run,
};

struct found {
	const struct process_session *session;
	const struct process_facts *facts;
	const struct vad_list *vads;
	struct modules modules;
	struct threads threads;
	struct process_start start;
	uint64_t created; /* ns since 1970; 0: not known */
};

static enum status find_process_parts(struct found *f, struct err *e)
{
	struct peek *peek = process_peek(f->session->process);
	enum status st = process_modules(f->session->process, &f->modules, e);

	if (!st)
		st = process_threads(f->session->process, &f->threads, e);
	process_start_read(f->session->process, &f->start);
	if (!f->facts->create_time || !registry_time(f->facts->create_time, &f->created))
		f->created = 0;
	return st ? st : peek_failed(peek, e);
}

static void forget_process_parts(struct found *f)
{
	modules_deinit(&f->modules);
	threads_deinit(&f->threads);
	process_start_deinit(&f->start);
}

/* Whether a missing image or module can be said to be missing. */
static bool knows_mapped(const struct found *f)
{
	return vad_list_is_whole(f->vads);
}

static bool knows_listed(const struct found *f)
{
	return modules_know_listed(&f->modules, f->facts->wow64);
}

/* A process without a PEB has no loader whose list could be lost. */
static bool has_all_modules(const struct found *f)
{
	return f->facts->no_peb || knows_listed(f);
}

static bool has_all_threads(const struct found *f)
{
	return f->threads.end == LIST_CLOSED || (f->facts->no_peb && f->threads.none);
}

static const char *remark_of(const struct found *f, const struct module *m)
{
	return module_finding(m, knows_mapped(f), knows_listed(f));
}

/* "module!symbol+0x10"; "" where no module is. As process_address_text() has it. */
static void place_text(const struct found *f, uint64_t va, char ret[static SYMBOL_TEXT_MAX])
{
	char raw[SYMBOL_TEXT_MAX];

	process_address_text(f->session->process, &f->modules, va, raw);
	text_printable(raw, ret, SYMBOL_TEXT_MAX);
}

/*
 * For people
 */

static void print_labelled(const char *what, const char *text)
{
	char shown[1024];

	text_printable(text, shown, sizeof(shown));
	lines_print(stdout, 14, "%-13s %s", what, shown);
}

static void print_process_head(const struct found *f)
{
	const struct process_facts *p = f->facts;
	struct lines_piece line = { .out = stdout, .indent = 14 };
	char name[64], created[UTC_RFC3339_SIZE];

	text_printable(p->name, name, sizeof(name));
	printf("%-13s %" PRIu32 " %s%s\n", "process", p->pid, name, p->wow64 ? " (32-bit)" : "");
	if (p->parent)
		printf("%-13s %" PRIu64 "\n", "parent", p->parent);
	if (f->created) {
		utc_rfc3339(f->created, created);
		printf("%-13s %s\n", "created", created);
	}
	print_labelled("image", f->start.image ? f->start.image : "not available");
	print_labelled("command line",
		       f->start.command_line ? f->start.command_line : "not available");
	lines_add(&line, "%-13s EPROCESS 0x%" PRIx64, "structures", p->eprocess);
	if (p->peb)
		lines_add(&line, ", PEB 0x%" PRIx64, p->peb);
	else
		lines_add(&line, ", %s", p->no_peb ? "no PEB" : "PEB not available");
	if (p->peb32)
		lines_add(&line, ", 32-bit 0x%" PRIx64, p->peb32);
	lines_end(&line);
	lines_print(stdout, 14, "%-13s %s (%s)", "layout", p->layout, p->layout_reason);
}

/* What an 80 columns' row has no room for. */
#define DETAIL "                "

static const struct table_column module_columns[] = {
	{ "base", -14, 0 },
	{ "size", 11, 1 },
	{ " path", 0, 0 },
};

static void print_module(struct table *t, const struct found *f, const struct module *m)
{
	const char *remark = remark_of(f, m);
	char path[512], pdb[2 * PE_PDB_MAX] = "", guid[PE_GUID_TEXT];

	text_printable(m->path ? m->path : "?", path, sizeof(path));
	table_cell(t, "0x%012" PRIx64, m->base);
	table_cell(t, "%#10" PRIx64, m->size);
	table_cell(t, " %s", path);
	if (remark)
		lines_print(stdout, 18, DETAIL "! %s", remark);
	if (m->has_headers && m->program.has_pdb) {
		pe_guid_text(m->program.pdb.guid, guid);
		text_printable(m->program.pdb.name, pdb, sizeof(pdb));
		lines_print(stdout, 18, DETAIL "PDB %s%" PRIX32 " %s", guid, m->program.pdb.age,
			    pdb);
	}
}

static void print_thread(const struct found *f, const struct thread *t)
{
	char start[SYMBOL_TEXT_MAX], at[SYMBOL_TEXT_MAX];

	place_text(f, t->start, start);
	printf("%14" PRIu64 "  0x%012" PRIx64 "  ", t->tid, t->teb);
	if (t->has_stack)
		printf("0x%012" PRIx64 "-0x%012" PRIx64 "\n", t->stack_limit, t->stack_base);
	else
		printf("%s\n", t->teb ? "not available" : "none");
	if (t->narrow_base)
		lines_print(stdout, 18, DETAIL "32-bit stack 0x%08" PRIx64 "-0x%08" PRIx64,
			    t->narrow_limit, t->narrow_base);
	lines_print(stdout, 18, DETAIL "start 0x%012" PRIx64 "%s%s", t->start, *start ? " " : "",
		    start);
	if (t->has_frame) {
		place_text(f, t->rip, at);
		lines_print(stdout, 18, DETAIL "at 0x%012" PRIx64 "%s%s", t->rip, *at ? " " : "",
			    at);
	}
}

static void put_count(size_t n, const char *what)
{
	printf("\n%zu %s%s", n, what, n == 1 ? "" : "s");
}

static void print_process(const struct found *f)
{
	const struct modules *m = &f->modules;
	struct table t;

	print_process_head(f);
	put_count(m->count, "module");
	if (f->facts->no_peb)
		printf("; it has no PEB, and so no loader that keeps a list of them");
	else
		printf("; the loader's list: %s", list_end_name(m->end));
	if (f->facts->wow64)
		printf("; the 32-bit one: %s", list_end_name(m->narrow_end));
	printf("%s\n", knows_mapped(f) ? "" : "; VADs are lost");
	if (m->count)
		table_begin(&t, stdout, module_columns, ARRAY_SIZE(module_columns));
	for (size_t i = 0; i < m->count; i++)
		print_module(&t, f, &m->at[i]);
	if (m->count)
		table_end(&t);
	put_count(f->threads.count, "thread");
	if (f->facts->no_peb && f->threads.none)
		printf("; it has no list of threads\n");
	else
		printf("; their list: %s\n", list_end_name(f->threads.end));
	if (f->threads.count)
		printf("%14s  %-14s  %s\n", "thread", "TEB", "stack, committed part");
	for (size_t i = 0; i < f->threads.count; i++)
		print_thread(f, &f->threads.at[i]);
}

/*
 * For programs
 */

static json_t *process_hex(uint64_t v)
{
	return json_sprintf("0x%" PRIx64, v);
}

static json_t *hex_or_null(uint64_t v)
{
	return v ? process_hex(v) : json_null();
}

static json_t *pdb_json(const struct module *m)
{
	char guid[PE_GUID_TEXT];

	if (!m->has_headers || !m->program.has_pdb)
		return json_null();
	pe_guid_text(m->program.pdb.guid, guid);
	return json_fields(JSON_FIELDS(field_text("name", m->program.pdb.name),
				       field_text("guid", guid),
				       field_u64("age", m->program.pdb.age)));
}

static json_t *module_json(const struct found *f, const struct module *m)
{
	json_t *o = json_fields(JSON_FIELDS(
		field_made("base", process_hex(m->base)), field_u64("size", m->size),
		field_text("path", m->path), field_u64("bits", m->narrow ? 32 : 64),
		field_bool("listed", m->listed), field_bool("mapped", m->mapped),
		field_text("finding", remark_of(f, m)), field_made("pdb", pdb_json(m))));

	if (m->has_headers)
		json_add_fields(
			o, JSON_FIELDS(field_u64("time_date_stamp", m->program.time_date_stamp)));
	return o;
}

static json_t *place_json(const struct found *f, uint64_t va)
{
	char text[SYMBOL_TEXT_MAX];

	process_address_text(f->session->process, &f->modules, va, text);
	return *text ? json_text(text) : json_null();
}

static json_t *thread_json(const struct found *f, const struct thread *t)
{
	json_t *o = json_fields(JSON_FIELDS(field_u64("tid", t->tid),
					    field_made("ethread", process_hex(t->object)),
					    field_made("start", process_hex(t->start)),
					    field_made("start_place", place_json(f, t->start)),
					    field_made("teb", hex_or_null(t->teb))));

	if (t->has_stack)
		json_add_fields(o,
				JSON_FIELDS(field_made("stack_limit", process_hex(t->stack_limit)),
					    field_made("stack_base", process_hex(t->stack_base))));
	if (t->narrow_base)
		json_add_fields(
			o, JSON_FIELDS(field_made("stack32_limit", process_hex(t->narrow_limit)),
				       field_made("stack32_base", process_hex(t->narrow_base))));
	if (t->has_frame)
		json_add_fields(o, JSON_FIELDS(field_made("rip", process_hex(t->rip)),
					       field_made("rip_place", place_json(f, t->rip)),
					       field_made("rsp", process_hex(t->rsp))));
	return o;
}

static json_t *modules_json(const struct found *f)
{
	json_t *list = json_array();

	for (size_t i = 0; list && i < f->modules.count; i++)
		if (json_array_append_new(list, module_json(f, &f->modules.at[i])))
			return json_decref(list), NULL;
	return list;
}

static json_t *threads_json(const struct found *f)
{
	json_t *list = json_array();

	for (size_t i = 0; list && i < f->threads.count; i++)
		if (json_array_append_new(list, thread_json(f, &f->threads.at[i])))
			return json_decref(list), NULL;
	return list;
}

static json_t *process_json(const struct found *f)
{
	const struct process_facts *p = f->facts;

	return json_fields(JSON_FIELDS(
		FIELD_SCHEMA("process"), field_text("file", f->session->path),
		field_u64("pid", p->pid), field_text("name", p->name),
		field_json("parent", p->parent ? json_u64(p->parent) : NULL),
		field_json("created_ns", f->created ? json_u64(f->created) : NULL),
		field_text("image", f->start.image),
		field_text("command_line", f->start.command_line),
		field_made("eprocess", process_hex(p->eprocess)),
		field_made("peb", hex_or_null(p->peb)), field_bool("no_peb", p->no_peb),
		field_made("peb32", hex_or_null(p->peb32)), field_text("layout", p->layout),
		field_text("layout_reason", p->layout_reason),
		field_made("symbols", symbol_options_json(&f->session->symbols)),
		field_bool("vads_whole", knows_mapped(f)),
		field_text("loader_list", list_end_name(f->modules.end)),
		field_json("loader_list32",
			   p->wow64 ? json_string(list_end_name(f->modules.narrow_end)) : NULL),
		field_made("modules", modules_json(f)),
		field_text("thread_list", list_end_name(f->threads.end)),
		field_made("threads", threads_json(f))));
}

static enum status process_outcome(const struct found *f, struct err *e)
{
	if (!has_all_modules(f) || !knows_mapped(f) || !has_all_threads(f))
		return err_set(e, ST_UNREADABLE,
			       "%s: process %" PRIu32
			       " has modules or threads that could not be read",
			       f->session->path, f->facts->pid);
	return ST_OK;
}

static enum status show_process(const struct process_session *s, bool json, struct err *e)
{
	struct found f = {
		.session = s,
		.facts = process_facts(s->process),
		.vads = process_vads(s->process),
	};
	enum status st = find_process_parts(&f, e);

	if (!st && json)
		st = json_print(process_json(&f), JSON_INDENT(2), e);
	else if (!st)
		print_process(&f);
	if (!st)
		st = process_outcome(&f, e);
	forget_process_parts(&f);
	return st;
}

static enum status process_run(struct cli *cli, struct err *e)
{
	const struct process_command *o = cli->values;
	_cleanup_identities_ struct age_identities *x = NULL;
	struct process_session s;
	enum status st = identities_load(&o->identity, &x, e);

	if (!st)
		cage_command(cli, false);
	if (!st)
		st = process_session_open(cli, &o->process, x, &s, e);
	if (st)
		return st;
	st = show_process(&s, o->json, e);
	return process_session_close(&s, st, e);
}
