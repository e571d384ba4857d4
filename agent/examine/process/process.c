/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/examine/process/process.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "agent/examine/process/symbol_layouts.h"
#include "agent/examine/process/unicode_string.h"
#include "agent/shared/program/log.h"
#include "formats/base/array.h"
#include "formats/base/page.h"

/* 16 MiB of pages: trees of VADs, heaps and lists of a process lie in a few thousand. */
#define PEEK_PAGES 4096

struct opened_process {
	struct process_facts facts;
	struct eprocess_choice choice;
	struct discovery machine;
	struct vad_list vads;
	struct section_parts sections;
	struct peek *peek;
	struct virtual_memory *v;
	struct symbol_set *symbols; /* or NULL */
	struct symbol_file *kernel_symbols;
	struct symbol_layouts layouts; /* by the kernel's symbols, if there are some */
};

/* A PID can have been used again: the one in the tables that are chosen comes first. */
static const struct process *find_listed_process(const struct process_list *l, uint32_t pid,
						 uint64_t dtb)
{
	const struct process *found = NULL;

	for (size_t i = 0; i < l->count; i++)
		if (l->at[i].pid == pid && (!found || l->at[i].dtb == dtb))
			found = &l->at[i];
	return found;
}

static enum status choose_eprocess_layout(struct opened_process *p, const struct memory_view *m,
					  struct err *e)
{
	const struct process_list *l = &p->machine.list;
	_cleanup_free_ uint64_t *objects = calloc(l->count, sizeof(*objects));
	const struct eprocess_evidence ev = {
		.pid = p->machine.windows.offsets.pid,
		.name = p->machine.windows.offsets.name,
		.build = p->machine.windows.version.build,
		.objects = objects,
		.count = l->count,
		.fields = p->kernel_symbols ? &p->layouts.fields : NULL,
		.vads = p->kernel_symbols && p->layouts.has_vads ? &p->layouts.vads : NULL,
		.doubtful = p->kernel_symbols && p->kernel_symbols->forced,
	};
	enum status st;

	if (!objects)
		return err_nomem(e);
	for (size_t i = 0; i < l->count; i++)
		objects[i] = l->at[i].object;
	st = eprocess_choose(m, &ev, &p->choice, e);
	if (!st && !p->choice.layout)
		return err_set(e, ST_INPUT, "unknown version of Windows: %s", p->choice.reason);
	return st;
}

static void tell_store(struct opened_process *p)
{
	const uint64_t base = p->machine.windows.base;
	uint32_t rva;

	if (base && symbols_address(p->kernel_symbols->symbols, "SmGlobals", &rva))
		virtual_set_store(p->v, base + rva);
}

static enum status take_kernel_symbols(struct opened_process *p, struct err *e)
{
	enum status st;

	if (!p->symbols)
		return ST_OK;
	st = symbol_set_take_kernel(p->symbols, &p->machine.windows, &p->kernel_symbols, e);
	if (!st && p->kernel_symbols) {
		st = symbol_layouts_read(p->kernel_symbols->symbols, &p->layouts, e);
		if (st)
			st = err_add(e, st, "%s", p->kernel_symbols->path);
		else
			tell_store(p);
	}
	return st;
}

/*
 * Behind virtual_set_vads(), because a module's pages may have no entry of their own. Where all are
 * the kernel's, modules are not looked at.
 */
static enum status take_module_symbols(struct opened_process *p, struct err *e)
{
	struct modules modules;
	enum status st;

	if (!p->symbols || p->symbols->count == (p->kernel_symbols != NULL))
		return ST_OK;
	st = process_modules(p, &modules, e);
	if (!st)
		st = symbol_set_take_modules(p->symbols, &modules, e);
	modules_deinit(&modules);
	return st;
}

static uint64_t user_address(uint64_t va)
{
	return va >> 47 ? 0 : va;
}

/* Before 10 it is the address of the 32-bit PEB, then that of an _EWOW64PROCESS in the kernel. */
static void read_wow64(struct process_facts *f, const struct eprocess_layout *l,
		       const struct memory_view *m, uint64_t wow64)
{
	f->wow64 = l->wow64_is_peb ? wow64 && wow64 <= UINT32_MAX : wow64 >> 47 == 0x1ffff;
	if (!f->wow64)
		return;
	if (l->wow64_is_peb)
		f->peb32 = wow64;
	else if (!view_u64(m, wow64, &f->peb32) || f->peb32 > UINT32_MAX)
		f->peb32 = 0;
}

/* Whatever is not there to be read stays 0. */
static void read_facts(struct opened_process *p, const struct memory_view *m,
		       const struct process *x)
{
	const struct eprocess_layout *l = p->choice.layout;
	struct process_facts *f = &p->facts;
	uint64_t wow64 = 0;

	*f = (struct process_facts){
		.pid = x->pid,
		.build = p->machine.windows.version.build,
		.layout = l->name,
		.layout_reason = p->choice.reason,
		.fields = l,
		.eprocess = x->object,
		.threads = x->object + l->threads,
		.vad_root = x->object + l->vad_root,
	};
	memcpy(f->name, x->name, sizeof(f->name));
	f->no_peb = view_u64(m, x->object + l->peb, &f->peb) && !f->peb;
	view_u64(m, x->object + l->create_time, &f->create_time);
	view_u64(m, x->object + l->parent, &f->parent);
	view_u64(m, x->object + l->wow64, &wow64);
	f->peb = user_address(f->peb);
	read_wow64(f, l, m, wow64);
}

/* From `va` to the page before `next`, or to the end of the user half. */
static uint64_t pages_to(uint64_t va, uint64_t next)
{
	return (next - va + PAGE_SIZE - 1) >> PAGE_SHIFT;
}

/* Where no VAD is: up to the next one. */
static enum vad_answer answer_between(const struct opened_process *p, uint64_t va, uint64_t *pages)
{
	const struct vad_list *l = &p->vads;
	const size_t next = FIRST_WHERE(i, l->count, l->at[i].end >= va);

	/* Five levels of tables have more addresses than the VADs that are read here can name. */
	if (va >> 47) {
		*pages = UINT64_MAX >> PAGE_SHIFT;
		return VAD_SAYS_NOTHING;
	}
	*pages = pages_to(va, next < l->count ? l->at[next].start : UINT64_C(1) << 47);
	return vad_list_is_whole(l) ? VAD_SAYS_UNMAPPED : VAD_SAYS_NOTHING;
}

static enum vad_answer answer_from_vads(void *context, uint64_t va, uint64_t *pages,
					uint64_t *prototype)
{
	const struct opened_process *p = context;
	const struct vad *v = vad_find(&p->vads, va);
	const struct section_part *s;

	if (!v)
		return answer_between(p, va, pages);
	*pages = pages_to(va, v->end + 1);
	if (v->torn)
		return VAD_SAYS_NOTHING;
	/* Other kinds keep entries for all their pages, or have none of Windows' own. */
	if (v->is_private)
		return v->type != VAD_NONE && v->type != VAD_WRITE_WATCH ? VAD_SAYS_NOTHING
		       : v->mem_commit                                   ? VAD_SAYS_ZEROS
									 : VAD_SAYS_RESERVED;
	s = section_part_find(&p->sections, va);
	if (!s)
		return VAD_SAYS_NOTHING;
	*pages = pages_to(va, s->end + 1);
	*prototype = s->prototype + ((va - s->start) >> PAGE_SHIFT) * 8;
	return VAD_SAYS_SECTION;
}

bool process_file_of(const struct opened_process *p, uint64_t va, struct process_file *ret)
{
	const struct vad *v = vad_find(&p->vads, va);
	const struct section_part *s = section_part_find(&p->sections, va);

	if (!v || !v->file)
		return false;
	*ret = (struct process_file){ .name = v->file, .image = v->type == VAD_IMAGE };
	if (s && s->has_offset) {
		ret->has_offset = true;
		ret->offset = s->offset + (va - s->start) / PAGE_SIZE * PAGE_SIZE;
	}
	return true;
}

static enum status open_parts(struct opened_process *p, struct virtual_memory *v, uint32_t pid,
			      struct err *e)
{
	const struct process *x;
	struct memory_view m;
	enum status st = virtual_discover(v, &p->machine, e);

	if (!st)
		st = take_kernel_symbols(p, e);
	if (st)
		return st;
	x = find_listed_process(&p->machine.list, pid, virtual_info(v)->dtb);
	if (!x)
		return err_set(e, ST_INPUT,
			       "no EPROCESS of process %" PRIu32 " was found (list of processes: "
			       "%s)",
			       pid, list_end_name(p->machine.list.end));
	st = peek_open(v, PEEK_PAGES, &p->peek, e);
	if (st)
		return st;
	m = peek_view(p->peek);
	st = choose_eprocess_layout(p, &m, e);
	/* What could not be read is no reason to call a version unknown. */
	if (peek_failed(p->peek, NULL))
		st = peek_failed(p->peek, e);
	if (!st) {
		read_facts(p, &m, x);
		st = vads_read(&m, p->choice.vads, p->facts.vad_root, 0, &p->vads, e);
	}
	if (!st)
		st = section_parts_read(&m, &p->vads, &p->sections, e);
	if (!st && p->sections.cut)
		log_warning("sections-cut",
			    "process %" PRIu32 " maps more parts of files than are followed: where "
			    "the pages of the rest are is not known",
			    pid);
	if (!st)
		st = peek_failed(p->peek, e);
	/* An empty tree is no answer: it is what a version that nobody knows looks like. */
	if (!st && p->vads.count)
		virtual_set_vads(v, &(const struct virtual_vads){ answer_from_vads, p });
	return st;
}

enum status process_open(struct virtual_memory *v, uint32_t pid, struct symbol_set *symbols,
			 struct opened_process **ret, struct err *e)
{
	struct opened_process *p;
	enum status st;

	if (virtual_info(v)->os != OS_WINDOWS)
		return err_set(e, ST_INPUT, "is not from Windows: only Windows has VADs");
	p = calloc(1, sizeof(*p));
	if (!p)
		return err_nomem(e);
	p->v = v;
	p->symbols = symbols;
	st = open_parts(p, v, pid, e);
	if (!st)
		st = take_module_symbols(p, e);
	if (!st)
		st = peek_failed(p->peek, e);
	if (st)
		process_close(p);
	else
		*ret = p;
	return st;
}

void process_close(struct opened_process *p)
{
	if (!p)
		return;
	virtual_set_vads(p->v, NULL);
	section_parts_deinit(&p->sections);
	vad_list_deinit(&p->vads);
	peek_close(p->peek);
	discovery_deinit(&p->machine);
	free(p);
}

const struct process_facts *process_facts(const struct opened_process *p)
{
	return &p->facts;
}

const struct vad_list *process_vads(const struct opened_process *p)
{
	return &p->vads;
}

const struct section_parts *process_sections(const struct opened_process *p)
{
	return &p->sections;
}

struct virtual_memory *process_memory(const struct opened_process *p)
{
	return p->v;
}

struct peek *process_peek(const struct opened_process *p)
{
	return p->peek;
}

const struct process_list *process_others(const struct opened_process *p)
{
	return &p->machine.list;
}

enum status process_modules(const struct opened_process *p, struct modules *ret, struct err *e)
{
	const struct memory_view m = peek_view(p->peek);
	_cleanup_free_ struct mapped_image *mapped = calloc(p->vads.count + 1, sizeof(*mapped));
	struct modules_plan plan = {
		.memory = &m,
		.peb = p->facts.peb,
		.peb32 = p->facts.peb32,
		.mapped = mapped,
	};

	*ret = (struct modules){ 0 };
	if (!mapped)
		return err_nomem(e);
	for (size_t i = 0; i < p->vads.count; i++) {
		const struct vad *v = &p->vads.at[i];

		if (v->type == VAD_IMAGE)
			mapped[plan.n_mapped++] = (struct mapped_image){
				.base = v->start,
				.size = v->end - v->start + 1,
				.path = v->file,
			};
	}
	return modules_find(&plan, ret, e);
}

/*
 * RTL_USER_PROCESS_PARAMETERS, the same in all builds of x64 (winsiderss/systeminformer 103cc43,
 * phnt/include/ntrtl.h); PEB.ProcessParameters.
 */
#define PEB_PARAMETERS 0x20
#define IMAGE_PATH     0x60
#define COMMAND_LINE   0x70

void process_start_read(const struct opened_process *p, struct process_start *ret)
{
	const struct memory_view m = peek_view(p->peek);
	uint64_t parameters;

	*ret = (struct process_start){ 0 };
	if (!p->facts.peb || !view_u64(&m, p->facts.peb + PEB_PARAMETERS, &parameters) ||
	    !parameters)
		return;
	ret->image = unicode_string_read(&m, parameters + IMAGE_PATH, true);
	ret->command_line = unicode_string_read(&m, parameters + COMMAND_LINE, true);
}

void process_start_deinit(struct process_start *s)
{
	free(s->image);
	free(s->command_line);
	*s = (struct process_start){ 0 };
}

enum status process_private_ranges(const struct opened_process *p, struct range_list *ret,
				   struct err *e)
{
	const struct vad_list *l = &p->vads;
	enum status st = ST_OK;

	for (size_t i = 0; i < l->count && !st; i++)
		if (l->at[i].is_private && l->at[i].protection & 4)
			st = range_list_add(ret, l->at[i].start, l->at[i].end, e);
	range_list_tidy(ret, NULL);
	return st;
}

enum status process_threads(const struct opened_process *p, struct threads *ret, struct err *e)
{
	const struct memory_view m = peek_view(p->peek);
	const struct threads_plan plan = {
		.memory = &m,
		.layout = p->choice.symbols && p->layouts.has_threads ? &p->layouts.threads : NULL,
		.eprocess = p->facts.eprocess,
		.pid = p->facts.pid,
		.wow64 = p->facts.wow64,
	};

	return threads_find(&plan, ret, e);
}

void process_address_text(const struct opened_process *p, const struct modules *m, uint64_t va,
			  char ret[static SYMBOL_TEXT_MAX])
{
	symbol_set_text(p->symbols, &p->machine.windows, m, va, ret);
}
