/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ramseal vad: which addresses a process of Windows has reserved, as what, and where their pages
 * are.
 */
#include <inttypes.h>
#include <string.h>

#include "agent/commands/commands.h"
#include "agent/shared/output/cage_command.h"
#include "agent/examine/process/states.h"
#include "agent/examine/show/page_table.h"
#include "agent/examine/show/process_session.h"
#include "agent/shared/container/container.h"
#include "agent/shared/container/identities.h"
#include "agent/shared/program/lines.h"
#include "agent/shared/program/log.h"
#include "agent/shared/program/table.h"
#include "agent/shared/program/text.h"
#include "formats/base/utc.h"
#include "tsk-extract/registry.h"

static enum status vad_run(struct cli *cli, struct err *e);

struct vad_options {
	struct identity_options identity;
	struct process_options process;
	bool pages;
	bool json;
};

static const struct option_def options[] = {
	CLI_GROUP(struct vad_options, process, &process_option_group),
	CLI_FLAG(struct vad_options, pages, 0, "pages",
		 "count the pages of each range by state, and how many of them are safe"),
	CLI_FLAG(struct vad_options, json, 'j', "json", "print one JSON object"),
	CLI_GROUP(struct vad_options, identity, &identity_option_group),
};

const struct command command_vad = {
	.name = "vad",
	.group = GROUP_PROCESS,
	.summary = "list a process's address ranges and the files behind them",
	.examples = { { "List the address ranges of process 1234", "%s vad -p 1234 host.rsz" },
		      { "Count their pages by where they are",
			"%s vad -p 1234 --pages host.rsz" } },
	.operands = { .text = "FILE", .min = 1, .max = 1 },
	.options = options,
	.n_options = ARRAY_SIZE(options),
	.notes = "One row for each virtual address descriptor: addresses, pages, type\n"
		 "(private, mapped, image, ...), original protection, pages charged for it (*\n"
		 "all were committed at creation), and the mapped file with the offset of its\n"
		 "first page. `torn` before the file means that the row names a parent that is\n"
		 "not its parent in the tree. Offsets of kernel fields come from a table of\n"
		 "versions, chosen by which of them fits the trees of several processes, or\n"
		 "from the kernel's --symbols if those fit as well.\n"
		 "\n"
		 "With --pages, the pages of each range instead, named by its first address:\n"
		 "  valid         mapped, and captured with the memory\n"
		 "  transition    being paged out, and captured with the memory\n"
		 "  page file     captured with the page file\n"
		 "  compressed    in Windows' store of compressed memory\n"
		 "  demand zero   committed, and never touched\n"
		 "  on disk only  only the mapped file has them\n"
		 "  reserved      addresses without pages\n"
		 "  not captured  their place is known, but was not captured\n"
		 "  unknown       the tables that would locate them are lost\n"
		 "A state that no page is in has no column. Shared pages are followed through\n"
		 "prototype entries. `safe` and `at risk` count the pages that are valid, in\n"
		 "transition or in the page file, as `ramseal read` judges each of them; for\n"
		 "an image this cannot be told. `ramseal heap --pages` prints the same by\n"
		 "heap.\n"
		 "\n"
		 "If parts of the tree could not be read, the exit code is 3.\n",
	.values_size = sizeof(struct vad_options),
	.run = vad_run,
};

struct vad_request {
	const char *path;
	const struct container *container;
	const struct symbol_set *symbols;
	struct opened_process *p;
	struct process_pages pages; /* with --pages */
};

static void process_created_text(uint64_t filetime, char ret[static UTC_RFC3339_SIZE])
{
	uint64_t ns;

	if (filetime && registry_time(filetime, &ns))
		utc_rfc3339(ns, ret);
	else
		snprintf(ret, UTC_RFC3339_SIZE, "unknown");
}

/*
 * Text
 */

static void put_vad_file(const struct vad *v, char *ret, size_t size)
{
	char name[1024];

	*ret = '\0';
	if (v->file) {
		text_printable(v->file, name, sizeof(name));
		if (v->has_offset)
			snprintf(ret, size, "%s +0x%" PRIx64, name, v->file_offset);
		else
			snprintf(ret, size, "%s", name);
	} else if (v->lost_part) {
		snprintf(ret, size, "(what is mapped cannot be read)");
	}
}

static const struct table_column vad_columns[] = {
	{ "addresses", -29, 0 },  { "pages", 10, 1 }, { "kind", -11, 0 },
	{ "protection", -10, 2 }, { "commit", 8, 3 }, { "file", 0, 0 },
};

static void print_vad(struct table *t, const struct vad *v)
{
	char protection[VAD_PROTECTION_MAX], commit[32] = "-", file[1100];

	vad_protection_text(v->protection, protection);
	if (v->commit != VAD_NO_COMMIT)
		snprintf(commit, sizeof(commit), "%" PRIu64 "%s", v->commit,
			 v->mem_commit ? "*" : "");
	put_vad_file(v, file, sizeof(file));
	table_cell(t, "0x%012" PRIx64 "-0x%012" PRIx64, v->start, v->end);
	table_cell(t, "%" PRIu64, vad_pages(v));
	table_cell(t, "%s", vad_kind_name(v));
	table_cell(t, "%s", protection);
	table_cell(t, "%s", commit);
	table_cell(t, "%s%s%s", v->torn ? "torn" : "", v->torn && *file ? " " : "", file);
}

static void print_table_of_pages(const struct vad_request *r)
{
	const struct vad_list *l = process_vads(r->p);
	struct page_table t = {
		.label = 14,
		.tail = "file",
		.still = virtual_info(process_memory(r->p))->still,
		.total = &r->pages.total,
	};

	page_table_begin(&t, "start");
	for (size_t i = 0; i < l->count; i++) {
		char label[24], file[1100];

		snprintf(label, sizeof(label), "0x%012" PRIx64, l->at[i].start);
		put_vad_file(&l->at[i], file, sizeof(file));
		page_table_row(&t, label, &r->pages.each[i], file);
	}
	page_table_end(&t, "all");
}

static void print_vads(const struct vad_request *r)
{
	const struct process_facts *f = process_facts(r->p);
	const struct vad_list *l = process_vads(r->p);
	char name[80], created[UTC_RFC3339_SIZE];
	struct table t;

	text_printable(f->name, name, sizeof(name));
	process_created_text(f->create_time, created);
	printf("process %" PRIu32 " (%s), created %s\nEPROCESS 0x%" PRIx64, f->pid, name, created,
	       f->eprocess);
	if (f->peb)
		printf(", PEB 0x%" PRIx64, f->peb);
	if (f->peb32)
		printf(", 32-bit 0x%" PRIx64, f->peb32);
	putchar('\n');
	lines_print(stdout, 4, "fields of Windows %s, because %s", f->layout, f->layout_reason);
	if (r->pages.each) {
		print_table_of_pages(r);
		return;
	}
	table_begin(&t, stdout, vad_columns, ARRAY_SIZE(vad_columns));
	for (size_t i = 0; i < l->count; i++)
		print_vad(&t, &l->at[i]);
	table_end(&t);
}

/*
 * JSON
 */

static json_t *vad_address_json(uint64_t va)
{
	return va ? json_sprintf("0x%" PRIx64, va) : json_null();
}

static json_t *vad_json(const void *arg, size_t i)
{
	const struct vad_request *r = arg;
	const struct vad *v = &process_vads(r->p)->at[i];
	char protection[VAD_PROTECTION_MAX];
	json_t *o;

	vad_protection_text(v->protection, protection);
	o = json_fields(JSON_FIELDS(
		field_made("start", json_sprintf("0x%" PRIx64, v->start)),
		field_made("end", json_sprintf("0x%" PRIx64, v->end)),
		field_u64("pages", vad_pages(v)), field_text("kind", vad_kind_name(v)),
		field_bool("private", v->is_private), field_text("protection", protection),
		field_bool("mem_commit", v->mem_commit),
		field_json("commit", v->commit == VAD_NO_COMMIT ? NULL : json_u64(v->commit)),
		field_text("file", v->file),
		field_json("file_offset",
			   v->file && v->has_offset ? json_u64(v->file_offset) : NULL),
		field_bool("torn", v->torn), field_bool("section_lost", v->lost_part),
		field_made("node", json_sprintf("0x%" PRIx64, v->node))));
	if (o && r->pages.each)
		json_object_set_new(o, "counts", page_counts_json(&r->pages.each[i]));
	return o;
}

static json_t *outside_json(const struct vad_request *r)
{
	json_t *list = json_array();

	for (size_t i = 0; list && i < r->pages.outside.count; i++)
		json_array_append_new(
			list,
			json_pack("{s:o, s:o}", "start",
				  json_sprintf("0x%" PRIx64, r->pages.outside.at[i].first), "end",
				  json_sprintf("0x%" PRIx64, r->pages.outside.at[i].last)));
	return list;
}

static json_t *vads_json(const struct vad_request *r)
{
	const struct process_facts *f = process_facts(r->p);
	const struct vad_list *l = process_vads(r->p);
	char created[UTC_RFC3339_SIZE];
	json_t *o;

	process_created_text(f->create_time, created);
	o = json_fields(JSON_FIELDS(
		FIELD_SCHEMA("vad"), field_text("file", r->path), field_u64("pid", f->pid),
		field_made("name", json_bytes(f->name, strnlen(f->name, sizeof(f->name)))),
		field_json("created", f->create_time ? json_string(created) : NULL),
		field_json("parent", f->parent ? json_u64(f->parent) : NULL),
		field_made("eprocess", vad_address_json(f->eprocess)),
		field_made("peb", vad_address_json(f->peb)),
		field_made("peb32", vad_address_json(f->peb32)),
		field_json("build", f->build ? json_u64(f->build) : NULL),
		field_text("layout", f->layout), field_text("layout_reason", f->layout_reason),
		field_text("vad_layout", l->layout->name),
		field_made("symbols", symbol_options_json(r->symbols)),
		field_bool("whole", vad_list_is_whole(l)),
		field_json("expected", l->has_expected ? json_u64(l->expected) : NULL),
		field_u64("lost", l->lost), field_u64("refused", l->refused),
		field_u64("torn", l->torn)));
	if (o && r->pages.each) {
		json_object_set_new(o, "counts", page_counts_json(&r->pages.total));
		json_object_set_new(o, "outside", outside_json(r));
	}
	return o;
}

/*
 * The end
 */

static void warn_of_pages_outside(const struct vad_request *r)
{
	uint64_t pages = 0;

	for (size_t i = 0; i < r->pages.outside.count; i++)
		pages += ((r->pages.outside.at[i].last - r->pages.outside.at[i].first) >>
			  PAGE_SHIFT) +
			 1;
	/* In a tree of which a part is missing they are what is to be expected. */
	if (pages && vad_list_is_whole(process_vads(r->p)))
		log_warning_with(JSON_FIELDS(field_u64("pages", pages)), "mapped-outside-vads",
				 "%" PRIu64 " pages are mapped where the process has no VAD, the "
				 "first at 0x%" PRIx64,
				 pages, r->pages.outside.at[0].first);
}

static enum status sum_up_vads(const struct vad_request *r, struct err *e)
{
	const struct vad_list *l = process_vads(r->p);
	char expected[64] = "";

	if (l->has_expected)
		snprintf(expected, sizeof(expected), " of %" PRIu64, l->expected);
	log_result_with(JSON_FIELDS(field_u64("vads", l->count),
				    field_u64("unread_branches", l->lost),
				    field_u64("refused", l->refused), field_u64("torn", l->torn),
				    field_bool("whole", vad_list_is_whole(l))),
			"summary", "%zu%s VADs", l->count, expected);
	if (vad_list_is_whole(l))
		return ST_OK;
	return err_set(e, ST_UNREADABLE,
		       "%s: %zu%s VADs were found; %" PRIu64
		       " branches of the tree cannot be read, %" PRIu64 " contradict it, %" PRIu64
		       " nodes are torn",
		       r->path, l->count, expected, l->lost, l->refused, l->torn);
}

static enum status show_vads(struct vad_request *r, const struct vad_options *o, struct err *e)
{
	const struct vad_list *l = process_vads(r->p);
	enum status st = o->pages ? process_count_all(r->p, &r->pages, e) : ST_OK;

	if (!st && o->json)
		st = json_print_list(stdout, vads_json(r), "vads", l->count, vad_json, r, e);
	else if (!st)
		print_vads(r);
	/* Of pages that memory did not suffice to decode no count is right. */
	if (!st)
		st = container_answer(r->container, st, e);
	if (st)
		return err_add(e, st, "%s", r->path);
	warn_of_pages_outside(r);
	return sum_up_vads(r, e);
}

static enum status vad_run(struct cli *cli, struct err *e)
{
	const struct vad_options *o = cli->values;
	_cleanup_identities_ struct age_identities *x = NULL;
	struct process_session s;
	struct vad_request r;
	enum status st = identities_load(&o->identity, &x, e);

	if (!st)
		cage_command(cli, false);
	if (!st)
		st = process_session_open(cli, &o->process, x, &s, e);
	if (st)
		return st;
	r = (struct vad_request){
		.path = s.path,
		.container = &s.in.container,
		.symbols = &s.symbols,
		.p = s.process,
	};
	st = show_vads(&r, o, e);
	process_pages_deinit(&r.pages);
	return process_session_close(&s, st, e);
}
