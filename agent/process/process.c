/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/process/process.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "formats/base/page.h"

/* 16 MiB of pages: trees of VADs, heaps and lists of a process lie in a few thousand. */
#define PEEK_PAGES 4096

struct opened_process {
	struct process_facts facts;
	struct eprocess_choice choice;
	struct discovery machine;
	struct vad_list vads;
	struct peek *peek;
};

/* A PID can have been used again: the one in the tables that are chosen comes first. */
static const struct process *find_process(const struct process_list *l, uint32_t pid, uint64_t dtb)
{
	const struct process *found = NULL;

	for (size_t i = 0; i < l->count; i++)
		if (l->at[i].pid == pid && (!found || l->at[i].dtb == dtb))
			found = &l->at[i];
	return found;
}

static enum status choose_layout(struct opened_process *p, const struct memory_view *m,
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
	};
	enum status st;

	if (!objects)
		return err_nomem(e);
	for (size_t i = 0; i < l->count; i++)
		objects[i] = l->at[i].object;
	st = eprocess_choose(m, &ev, &p->choice, e);
	if (!st && !p->choice.layout)
		return err_set(e, ST_INPUT, "this version of Windows is not known: %s",
			       p->choice.reason);
	return st;
}

static uint64_t user_address(uint64_t va)
{
	return va >> 47 ? 0 : va;
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
	view_u64(m, x->object + l->peb, &f->peb);
	view_u64(m, x->object + l->create_time, &f->create_time);
	view_u64(m, x->object + l->parent, &f->parent);
	view_u64(m, x->object + l->wow64, &wow64);
	f->peb = user_address(f->peb);
	if (l->wow64_is_peb)
		f->peb32 = wow64;
	else if (wow64)
		view_u64(m, wow64, &f->peb32);
	f->peb32 = f->peb32 > UINT32_MAX ? 0 : f->peb32;
}

static enum status open_parts(struct opened_process *p, struct virtual_memory *v, uint32_t pid,
			      struct err *e)
{
	const struct process *x;
	struct memory_view m;
	enum status st = virtual_discover(v, &p->machine, e);

	if (st)
		return st;
	x = find_process(&p->machine.list, pid, virtual_info(v)->dtb);
	if (!x)
		return err_set(e, ST_INPUT,
			       "no EPROCESS of process %" PRIu32 " was found (list of processes: "
			       "%s)",
			       pid, list_end_name(p->machine.list.end));
	st = peek_open(v, PEEK_PAGES, &p->peek, e);
	if (st)
		return st;
	m = peek_view(p->peek);
	st = choose_layout(p, &m, e);
	if (!st) {
		read_facts(p, &m, x);
		st = vads_read(&m, p->choice.vads, p->facts.vad_root, 0, &p->vads, e);
	}
	return st ? st : peek_failed(p->peek, e);
}

enum status process_open(struct virtual_memory *v, uint32_t pid, struct opened_process **ret,
			 struct err *e)
{
	struct opened_process *p;
	enum status st;

	if (virtual_info(v)->os != OS_WINDOWS)
		return err_set(e, ST_INPUT, "is not of Windows: only Windows has VADs");
	p = calloc(1, sizeof(*p));
	if (!p)
		return err_nomem(e);
	st = open_parts(p, v, pid, e);
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

struct peek *process_peek(const struct opened_process *p)
{
	return p->peek;
}

const struct process_list *process_others(const struct opened_process *p)
{
	return &p->machine.list;
}
