/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ramseal read: virtual memory out of a container, with what each page's bytes are worth.
 */
#include <inttypes.h>
#include <string.h>

#include "agent/commands/commands.h"
#include "agent/shared/output/cage_command.h"
#include "agent/examine/process/process.h"
#include "agent/examine/show/byte_dump.h"
#include "agent/examine/show/process_session.h"
#include "agent/examine/show/read_captures.h"
#include "agent/examine/show/read_files.h"
#include "agent/examine/show/read_page.h"
#include "agent/examine/show/symbol_options.h"
#include "agent/examine/smear/input.h"
#include "agent/examine/virtual/virtual.h"
#include "agent/image/image_out.h"
#include "agent/shared/container/container.h"
#include "agent/shared/container/identities.h"
#include "agent/shared/container/manifest_read.h"
#include "agent/shared/container/origin.h"
#include "agent/shared/program/interrupt.h"
#include "agent/shared/program/lines.h"
#include "agent/shared/program/log.h"
#include "agent/shared/program/text.h"

static enum status read_run(struct cli *cli, struct err *e);

struct read_options {
	struct identity_options identity;
	struct symbol_options symbols;
	struct read_file_options files;
	struct process_choice who;
	uint64_t dtb;
	uint64_t va;
	uint64_t length;
	uint64_t pa;
	uint64_t capture;
	size_t tables;
	const char *output;
	struct fill_pattern fill;
	bool force;
	bool json;
};

/* A whole address space may be asked for; what is not mapped costs next to nothing. */
#define LENGTH_MAX (UINT64_C(1) << 56)

static const struct option_def options[] = {
	CLI_HEADING("What to read"),
	CLI_PARSED(struct read_options, who, 'p', "pid", PROCESS_CHOICE_VALUE, process_choice_parse,
		   "read the address space of this process, by its PID or its name"),
	CLI_UINT(struct read_options, dtb, 0, "dtb", "ADDRESS", 0, UINT64_MAX,
		 "read the address space whose top-level table is at this physical address"),
	CLI_UINT(struct read_options, va, 'a', "va", "ADDRESS", 0, UINT64_MAX,
		 "start at this virtual address"),
	CLI_SIZE(struct read_options, length, 'n', "length", "SIZE", 1, LENGTH_MAX,
		 "number of bytes; default: 4K"),
	CLI_CHOICE(struct read_options, tables, 'T', "tables", NULL, copy_choices,
		   COPY_CHOICE_HELP),
	CLI_UINT(struct read_options, pa, 0, "pa", "ADDRESS", 0, UINT64_MAX,
		 "instead of a process, read every capture of the page at this physical address"),
	CLI_UINT(struct read_options, capture, 0, "capture", "N", 1, UINT64_MAX,
		 "with --pa and --output: write capture N; default: the newest"),
	CLI_GROUP(struct read_options, files, &read_file_option_group),
	CLI_HEADING("Where to write"),
	CLI_STRING(
		struct read_options, output, 'o', "output", "FILE",
		"write the bytes to FILE, into a directory, or to '-' for stdout; default: print "
		"them in hexadecimal"),
	CLI_PARSED(struct read_options, fill, 0, "fill", "HEX", image_parse_fill, IMAGE_FILL_HELP),
	CLI_FLAG(struct read_options, json, 'j', "json",
		 "print one JSON object per page, and no bytes"),
	CLI_FLAG(struct read_options, force, 'f', "force", COMMAND_FORCE_HELP),
	CLI_HEADING("How"),
	CLI_GROUP(struct read_options, identity, &identity_option_group),
	CLI_GROUP(struct read_options, symbols, &symbol_option_group),
};

const struct command command_read = {
	.name = "read",
	.group = GROUP_EVIDENCE,
	.summary = "read the virtual memory of a process",
	.examples = { { "Print the page at an address of process 1234",
			"%s read -p 1234 -a 0x7f0000000000 host.rsz" },
		      { "Write 16 MiB to a file",
			"%s read -p 1234 -a 0x7f0000000000 -n 16M -o part.bin host.rsz" },
		      { "Take pages that only a mapped file has from a disk image",
			"%s read -p 1234 -a 0x7ff600001000 --file-pages disk.E01 host.rsz" },
		      { "Show every capture of a physical page", "%s read --pa 0x1000 host.rsz" } },
	.operands = { .text = "FILE", .min = 1, .max = 1 },
	.options = options,
	.n_options = ARRAY_SIZE(options),
	.notes = "`ramseal info` lists PIDs, and `ramseal smear --mappings PID` lists mapped\n"
		 "addresses.\n"
		 "\n"
		 "For each page, read prints the page-table entry and its meaning, where the\n"
		 "content was found, when it was captured, and whether it certainly belongs to\n"
		 "the process (METHOD.md defines the terms). This goes to stdout, or to stderr\n"
		 "with --output -, unless --quiet is given. Compressed pages of Windows are\n"
		 "looked up in its compression store. Pages that are not in the container, and\n"
		 "pages that only a mapped file could supply, are filled and reported; the\n"
		 "exit code is then 3. On Windows, pages without an entry are looked up\n"
		 "through the VADs, and the mapped file is named. --dtb needs no stored page\n"
		 "tables.\n"
		 "\n"
		 "With --file-pages, such pages come from the file as it is now, or as it was\n"
		 "when its disk was imaged: from another time than the memory, and therefore\n"
		 "never safe. A file whose size or header does not match memory is rejected.\n"
		 "The output says what was compared, and what may differ.\n"
		 "\n"
		 "If a page was captured more than once, each mapping gets the capture that\n"
		 "best fits its entry, and the output says which. --pa lists all captures of a\n"
		 "page.\n",
	.values_size = sizeof(struct read_options),
	.run = read_run,
};

struct read_request {
	const struct read_options *o;
	const char *path;
	const struct age_identities *identities; /* NULL: none */
	enum copy copy;
	struct fill_pattern fill;
	struct symbol_set symbols;
	uint64_t first; /* the bytes that were asked for */
	uint64_t last;
	uint64_t length;
	uint64_t begun; /* the container's first moment, monotonic ns */
	const struct virtual_info *info;
	struct opened_process *process; /* NULL: not of Windows, or its VADs are not known */
	struct file_origins *origins;   /* NULL: pages of mapped files are not wanted */
	struct file_pages *files;       /* then: */
	struct virtual_counts counts;
	struct output *out; /* NULL: the bytes are shown, or not wanted */
	bool is_stdout;
	uint64_t pages;
};

static enum status tell_page(const struct read_request *r, const struct virtual_page *p,
			     struct err *e)
{
	const struct read_page_context x = { r->begun, r->info, r->process, r->files };
	char line[READ_PAGE_TEXT_MAX];

	if (r->o->json)
		return json_print(read_page_json(&x, p), JSON_COMPACT, e);
	read_page_text(&x, p, line);
	if (r->is_stdout)
		log_info_with(JSON_FIELDS(field_json("page", read_page_json(&x, p))), "page", "%s",
			      line);
	else
		lines_print(stdout, 4, "%s", line);
	return ST_OK;
}

/* What was asked for of the page at `va`: bytes [*from, *to). */
static void clip_to_request(const struct read_request *r, uint64_t va, size_t *from, size_t *to)
{
	*from = r->first > va ? (size_t)(r->first - va) : 0;
	*to = r->last - va < PAGE_SIZE - 1 ? (size_t)(r->last - va) + 1 : PAGE_SIZE;
}

static enum status write_pages(struct read_request *r, const struct virtual_page *p, struct err *e)
{
	uint8_t filled[PAGE_SIZE];
	enum status st = ST_OK;

	if (!p->bytes)
		image_fill_page(filled, &r->fill);
	for (uint64_t i = 0; i < p->pages && !st; i++) {
		const uint8_t *bytes = p->bytes ? p->bytes : filled;
		size_t from, to;

		clip_to_request(r, p->va + i * PAGE_SIZE, &from, &to);
		st = sink_write(output_sink(r->out), bytes + from, to - from, e);
		if (!st && interrupted())
			st = interrupt_status(e);
	}
	return st;
}

static enum status read_take_page(void *context, const struct virtual_page *p, struct err *e)
{
	struct read_request *r = context;
	enum status st = tell_page(r, p, e);
	size_t from, to;

	r->pages += p->pages;
	if (!st && r->out)
		return write_pages(r, p, e);
	if (!st && p->bytes && !r->o->json) {
		clip_to_request(r, p->va, &from, &to);
		byte_dump_print(p->va, p->bytes, from, to);
	}
	if (!st && interrupted())
		st = interrupt_status(e);
	return st;
}

/*
 * The end
 */

/* `l` is wanted only where the log is JSON. */
static void summarise_read(const struct read_request *r, const struct layout_choice *l)
{
	const struct virtual_info *v = r->info;
	const struct virtual_counts *c = &r->counts;
	char whose[300], shown[300], trust[200], store[120] = "", files[64] = "";

	if (v->listed)
		snprintf(whose, sizeof(whose), "process %" PRIu32 " (%s)", v->pid, v->name);
	else
		snprintf(whose, sizeof(whose), "the tables at 0x%" PRIx64, v->dtb);
	text_printable(whose, shown, sizeof(shown));
	if (v->still)
		snprintf(trust, sizeof(trust),
			 "safe or at risk: not applicable, because " ORIGIN_STILL_WHY);
	else
		snprintf(trust, sizeof(trust), "%" PRIu64 " safe, %" PRIu64 " at risk",
			 c->trust[TRUST_SAFE], c->trust[TRUST_AT_RISK]);
	if (c->given[GIVEN_COMPRESSED] || c->store_missing)
		snprintf(store, sizeof(store),
			 ", %" PRIu64 " from the compression store (which lacks %" PRIu64
			 " of those missing)",
			 c->given[GIVEN_COMPRESSED], c->store_missing);
	if (r->files)
		snprintf(files, sizeof(files), ", %" PRIu64 " from files, at another time",
			 c->given[GIVEN_FILE]);
	if (!v->known)
		log_warning("dtb-unknown",
			    "0x%" PRIx64
			    " is not the top table of any address space that was found; if it is "
			    "not a page table at all, the result is meaningless",
			    v->dtb);
	log_result_with(
		JSON_FIELDS(
			field_u64("dtb", v->dtb), field_text("name", v->listed ? v->name : NULL),
			field_text("os", discover_os_name(v->os)),
			field_i64("levels", (int)v->mode), field_text("layout", l ? l->name : NULL),
			field_text("layout_reason", l ? l->reason : NULL),
			field_text("tables", copy_name(r->copy)), field_u64("pages", r->pages),
			field_u64("memory", c->given[GIVEN_MEMORY]),
			field_u64("page_file", c->given[GIVEN_PAGE_FILE]),
			field_u64("zeros", c->given[GIVEN_ZEROS]),
			field_u64("compressed", c->given[GIVEN_COMPRESSED]),
			field_u64("from_files", c->given[GIVEN_FILE]),
			field_u64("none", c->given[GIVEN_NOTHING]),
			field_u64("store_missing", c->store_missing),
			field_u64("safe", c->trust[TRUST_SAFE]),
			field_u64("at_risk", c->trust[TRUST_AT_RISK]),
			field_u64("not_applicable", c->trust[TRUST_NOT_APPLICABLE]),
			field_text("output", r->out ? output_name(r->out) : NULL)),
		"summary",
		"%s: of %" PRIu64 " pages %" PRIu64 " from memory, %" PRIu64
		" from page files%s, %" PRIu64 " zeros, %" PRIu64 " missing%s; %s",
		shown, r->pages, c->given[GIVEN_MEMORY], c->given[GIVEN_PAGE_FILE], files,
		c->given[GIVEN_ZEROS], c->given[GIVEN_NOTHING], store, trust);
}

static enum status read_status(const struct read_request *r, struct err *e)
{
	const struct virtual_counts *c = &r->counts;

	if (c->damaged)
		return err_set(e, ST_CORRUPT, "%s: %" PRIu64 " of the pages are damaged", r->path,
			       c->damaged);
	if (c->given[GIVEN_NOTHING])
		return err_set(e, ST_UNREADABLE,
			       "%s: %" PRIu64 " of %" PRIu64 " pages have no content", r->path,
			       c->given[GIVEN_NOTHING], r->pages);
	return ST_OK;
}

/* What the bytes are called in a directory: whose they are, and from where on. For free(). */
static char *name_of_bytes(const struct cli *cli, const struct read_request *r)
{
	const struct read_options *o = r->o;
	char suffix[PROCESS_CHOICE_TEXT + 48], who[PROCESS_CHOICE_TEXT];

	process_choice_text(&o->who, who);
	if (cli_given(cli, "pa"))
		snprintf(suffix, sizeof(suffix), "-pa-0x%" PRIx64 ".bin", o->pa);
	else if (cli_given(cli, "pid"))
		snprintf(suffix, sizeof(suffix), "-pid-%s-0x%" PRIx64 ".bin", who, r->first);
	else
		snprintf(suffix, sizeof(suffix), "-dtb-0x%" PRIx64 "-0x%" PRIx64 ".bin", o->dtb,
			 r->first);
	return output_name_of(r->path, suffix);
}

/* New files take free clusters of a live volume, and may be what it is read for. */
static enum status check_read_target(const struct read_request *r, const struct output_options *o,
				     struct err *e)
{
	_cleanup_free_ char *path = NULL;
	enum status st;

	if (!r->origins || r->is_stdout)
		return ST_OK;
	st = output_place(o, &path, e);
	return st ? st : read_files_check_target(r->origins, path, r->o->force, e);
}

static enum status open_read_output(const struct cli *cli, struct read_request *r, struct err *e)
{
	const char *const inputs[] = { r->path, NULL };
	_cleanup_free_ char *name = name_of_bytes(cli, r);
	const struct output_options o = {
		.path = r->o->output,
		.name = name,
		.force = r->o->force,
		.inputs = inputs,
		.need.least = r->length,
	};
	enum status st;

	if (!r->o->output)
		return ST_OK;
	st = name ? check_read_target(r, &o, e) : err_nomem(e);
	return st ? st : output_open(&o, &r->out, e);
}

static enum status check_read_options(struct cli *cli, struct read_request *r, struct err *e)
{
	static const char *const virtual_only[] = { "va", "length", "tables", "fill" };

	if (cli_given(cli, "pid") + cli_given(cli, "dtb") + cli_given(cli, "pa") != 1)
		return cli_usage(cli, e, "needs one of --pid, --dtb and --pa");
	for (size_t i = 0; i < ARRAY_SIZE(virtual_only); i++)
		if (cli_given(cli, "pa") && cli_given(cli, virtual_only[i]))
			return cli_usage(cli, e, "--%s cannot be used with --pa", virtual_only[i]);
	if (cli_given(cli, "capture") && !(cli_given(cli, "pa") && r->o->output))
		return cli_usage(cli, e, "--capture needs --pa and --output");
	if (!cli_given(cli, "pa") && !cli_given(cli, "va"))
		return cli_usage(cli, e, "needs --va ADDRESS");
	if (cli_given(cli, "fill") && !r->o->output)
		return cli_usage(cli, e, "--fill needs --output");
	if (cli_given(cli, "symbols") && !cli_given(cli, "pid"))
		return cli_usage(cli, e, "--symbols needs --pid");
	if (r->o->json && r->is_stdout)
		return cli_usage(cli, e,
				 "--json needs stdout for itself; --log-json has the pages");
	return ST_OK;
}

/*
 * What Windows says of a process beside its page tables: where pages without an entry are, and
 * which file others come from. Without it there is less to say, and nothing else is wrong.
 */
static enum status open_vads(struct read_request *r, struct virtual_memory *v, struct err *e)
{
	const bool wanted = r->symbols.count || r->origins;
	struct err why;
	enum status st;

	if (!wanted && (r->info->os != OS_WINDOWS || !r->info->listed))
		return ST_OK;
	st = process_open(v, r->info->pid, r->symbols.count ? &r->symbols : NULL, &r->process,
			  &why);
	if (st == ST_INPUT && !wanted) {
		log_debug("no-vads", "%s: %s", r->path, why.message);
		return ST_OK;
	}
	if (st)
		*e = why;
	else
		symbol_options_tell(&r->symbols);
	return st;
}

static enum status open_file_origins(struct read_request *r, const struct virtual_plan *plan,
				     struct err *e)
{
	const uint64_t wall = rsz_reader_identity(plan->reader)->wall;
	/* Of an image nobody knows. */
	const uint64_t since = r->info->still ? 0 : read_files_filetime(wall);
	enum status st;

	if (!r->origins)
		return ST_OK;
	st = file_origins_set_container(r->origins, plan->reader, plan->manifest, e);
	if (!st)
		st = file_pages_open(r->origins, r->process, since, r->first, r->last, &r->files,
				     e);
	return st;
}

/* Everything that is asked for, once the container is open. */
static enum status read_virtual(struct read_request *r, const struct virtual_plan *plan,
				struct err *e)
{
	const struct virtual_reader reader = { read_take_page, r };
	struct virtual_memory *v;
	enum status st = virtual_open(plan, &v, e);

	if (st)
		return err_add(e, st, "%s", r->path);
	r->info = virtual_info(v);
	st = open_vads(r, v, e);
	if (!st)
		st = open_file_origins(r, plan, e);
	if (!st)
		st = virtual_read(v, r->o->va, r->length, &reader, &r->counts, e);
	if (!st && log_is_json())
		st = virtual_need_layout(v, e);
	if (r->info->assumed_levels)
		log_warning(
			"levels-assumed",
			"nothing in this container says how its page tables are built; 4 levels "
			"are assumed");
	if (virtual_layout(v) && virtual_layout(v)->doubt[0])
		log_warning("layout-doubt", "in doubt: %s", virtual_layout(v)->doubt);
	if (st)
		st = err_add(e, st, "%s", r->path);
	else if (r->out)
		st = output_commit(r->out, e);
	if (!st) {
		summarise_read(r, virtual_layout(v));
		st = read_status(r, e);
	}
	file_pages_close(r->files);
	process_close(r->process);
	virtual_close(v);
	return st;
}

static enum status read_from_container(struct cli *cli, struct read_request *r, struct err *e)
{
	_cleanup_free_ uint8_t *notes = NULL;
	struct virtual_plan plan = {
		.copy = r->copy,
		.by_dtb = cli_given(cli, "dtb"),
		.pid = r->o->who.pid,
		.name = r->o->who.name,
		.dtb = r->o->dtb,
	};
	struct smear_input in;
	enum status st = smear_input_open(r->path, r->identities, &in, e);

	if (st)
		return st;
	plan.in = in.container.blob;
	plan.reader = in.container.reader;
	plan.manifest = in.lines;
	r->begun = rsz_reader_identity(in.container.reader)->mono;
	st = manifest_get_notes(container_event(&in.container, "begin"), &notes, &plan.notes_size,
				e);
	plan.notes = notes;
	st = st ? err_add(e, st, "%s", r->path) : read_virtual(r, &plan, e);
	st = container_answer(&in.container, st, e);
	smear_input_close(&in);
	return st;
}

static enum status read_physical(const struct read_request *r, struct err *e)
{
	const struct captures_request request = {
		.path = r->path,
		.identities = r->identities,
		.pa = r->o->pa,
		.number = r->o->capture,
		.out = r->out,
		.json = r->o->json,
		.silent = r->is_stdout,
	};
	const enum status st = read_captures(&request, e);

	return st || !r->out ? st : output_commit(r->out, e);
}

static enum status read_run(struct cli *cli, struct err *e)
{
	const struct read_options *o = cli->values;
	_cleanup_identities_ struct age_identities *x = NULL;
	const uint64_t length = o->length ? o->length : PAGE_SIZE;
	struct read_request r = {
		.o = o,
		.path = cli->operands[0],
		.copy = copy_of_choice[o->tables],
		.fill = o->fill.length ? o->fill : image_missing_fill,
		.first = o->va,
		.last = o->va + (length - 1), /* checked by virtual_read() */
		.length = length,
		.is_stdout = o->output && !strcmp(o->output, "-"),
	};
	enum status st = check_read_options(cli, &r, e);

	if (!st)
		st = identities_load(&o->identity, &x, e);
	r.identities = x;
	if (!st)
		cage_command(cli, false);
	if (!st)
		st = symbol_options_open(&o->symbols, &r.symbols, e);
	if (!st)
		st = read_files_open(cli, &o->files, &r.origins, e);
	if (!st)
		st = open_read_output(cli, &r, e);
	if (!st && cli_given(cli, "pa"))
		st = read_physical(&r, e);
	else if (!st)
		st = read_from_container(cli, &r, e);
	output_destroy(r.out);
	file_origins_close(r.origins);
	symbol_set_deinit(&r.symbols);
	return st;
}
