/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/examine/virtual/virtual.h"

#include <inttypes.h>
#include <stdlib.h>

#include "agent/examine/virtual/virtual_internal.h"
#include "agent/shared/container/origin.h"

const char *given_name(enum given g)
{
	static const char *const names[GIVENS] = {
#define X(name, text) [name] = text,
		GIVEN_MAP(X)
#undef X
	};

	return (unsigned)g < GIVENS ? names[g] : "?";
}

static const struct smear_id *find_pid(const struct smear_spaces *s, uint32_t pid, enum copy copy)
{
	const struct smear_id *found = NULL;

	/* A PID that was used again is two spaces: the one that has this copy. */
	for (size_t i = 0; i < s->count; i++)
		if (s->at[i].listed && s->at[i].pid == pid &&
		    (!found || smear__has_copy(&s->at[i], copy)))
			found = &s->at[i];
	return found;
}

static const struct smear_id *find_dtb(const struct smear_spaces *s, uint64_t dtb, enum copy copy)
{
	const struct smear_id *found = NULL;

	for (size_t i = 0; i < s->count; i++)
		if (s->at[i].dtb == dtb && (!found || smear__has_copy(&s->at[i], copy)))
			found = &s->at[i];
	return found;
}

static const struct smear_id *find_sharer(const struct smear_spaces *s, uint32_t pid,
					  enum copy copy)
{
	for (size_t i = 0; i < s->n_sharers; i++)
		if (s->sharers[i].pid == pid)
			return find_dtb(s, s->sharers[i].dtb, copy);
	return NULL;
}

static bool has_page(struct virtual_memory *v, enum copy copy, uint64_t pa)
{
	uint8_t page[PAGE_SIZE];

	return v->m->copy[copy].cursor &&
	       physmem_read_page(&v->m->copy[copy].mem.mem, pa & ~(uint64_t)(PAGE_SIZE - 1), page,
				 NULL);
}

/* A root that is no process's: the kernel's, its twin for user mode, or one that somebody found. */
static struct smear_id id_of_root(struct virtual_memory *v, uint64_t dtb)
{
	const bool before = has_page(v, COPY_BEFORE, dtb), after = has_page(v, COPY_AFTER, dtb);

	return (struct smear_id){
		.dtb = dtb,
		.fate = v->m->image_only  ? FATE_NOT_APPLICABLE
			: before && after ? FATE_LIVED
			: after           ? FATE_BORN
					  : FATE_ENDED,
	};
}

static const char *where_copy_is(enum copy copy)
{
	static const char *const text[COPIES] = {
		[COPY_BEFORE] = "that were read before the memory",
		[COPY_IMAGE] = "in the image",
		[COPY_AFTER] = "that were read after the memory",
	};

	return text[copy];
}

static enum status take_space(struct virtual_memory *v, const struct smear_id *id, uint32_t pid,
			      struct err *e)
{
	const enum copy copy = v->request.copy;

	v->space = (struct smear_space){ .id = *id };
	v->known = id;
	if (!has_page(v, copy, id->dtb) || (copy != COPY_IMAGE && !smear__has_copy(id, copy)))
		return err_set(e, ST_INPUT, "process %" PRIu32 " has no page tables %s", pid,
			       where_copy_is(copy));
	return ST_OK;
}

static enum status find_wanted_space(struct virtual_memory *v, const struct virtual_plan *plan,
				     struct err *e)
{
	const struct smear_spaces *s = &v->smear.spaces;
	const enum copy copy = v->request.copy;
	const struct smear_id *id;
	uint32_t pid = plan->pid;

	if (plan->by_dtb) {
		const uint64_t dtb = paging_root(s->mode, plan->dtb);

		id = find_dtb(s, dtb, copy);
		v->space.id = id ? *id : id_of_root(v, dtb);
		v->known = id;
		if (!has_page(v, copy, dtb))
			return err_set(e, ST_INPUT, "0x%" PRIx64 " names no page table %s",
				       plan->dtb, where_copy_is(copy));
		return ST_OK;
	}
	if (plan->name) {
		const enum status st = smear_spaces_pid(s, plan->name, &pid, e);

		if (st)
			return st;
	}
	id = find_pid(s, pid, copy);
	if (!id)
		id = find_sharer(s, pid, copy);
	if (!id)
		return err_set(e, ST_INPUT, "no process %" PRIu32 " with page tables", pid);
	return take_space(v, id, pid, e);
}

static enum status check_copy(const struct virtual_memory *v, struct err *e)
{
	const enum copy copy = v->request.copy;

	if (v->m->copy[copy].cursor)
		return ST_OK;
	return err_set(e, ST_INPUT, "holds no page tables %s", where_copy_is(copy));
}

/*
 * The chosen tables. Where a pass has them, it comes first; memory then has the rest of the
 * kernel's pages, such as those with prototype entries.
 */
static enum status open_virt(struct virtual_memory *v, struct err *e)
{
	struct analysis *m = v->m;
	uint32_t streams[2] = { 0 };
	size_t n = 0;
	enum status st = rsz_cursor_create(m->plan->reader, MAX(m->plan->cached, 1), &v->cursor, e);

	if (v->request.copy != COPY_IMAGE)
		streams[n++] = m->copy[v->request.copy].mem.streams[0];
	streams[n++] = m->memory_stream;
	if (!st)
		st = physmem_rsz_init(&v->mem, m->plan->reader, m->copy[COPY_IMAGE].cursor, streams,
				      n, e);
	if (!st)
		st = physmem_cache_init(&v->tables, &v->mem.mem, e);
	v->virt = (struct virt){
		.mem = &v->tables.mem,
		.mode = v->smear.spaces.mode,
		.ignore = v->smear.spaces.ignore,
	};
	return st;
}

static void tell_info(struct virtual_memory *v)
{
	v->virt.dtb = v->space.id.dtb;
	v->info.mode = v->smear.spaces.mode;
	v->info.os = v->smear.spaces.os;
	v->info.user_last = paging_user_last(v->smear.spaces.mode);
	v->info.copy = v->request.copy;
	v->info.dtb = v->space.id.dtb;
	v->info.known = v->known != NULL;
	v->info.listed = v->space.id.listed;
	v->info.pid = v->space.id.pid;
	v->info.name = v->space.id.listed ? v->space.id.name : "";
	v->info.still = v->smear.still;
	v->info.assumed_levels = v->smear.assumed_levels;
}

static enum status set_up_virtual(struct virtual_memory *v, const struct virtual_plan *plan,
				  struct err *e)
{
	enum status st = smear__set_up(v->m, e);

	if (!st)
		st = check_copy(v, e);
	if (!st)
		st = open_virt(v, e);
	if (!st && plan->cached_bytes) {
		rsz_cursor_bound(v->m->copy[COPY_IMAGE].cursor, plan->cached_bytes);
		rsz_cursor_bound(v->cursor, plan->cached_bytes);
	}
	if (!st && !plan->chosen_later)
		st = find_wanted_space(v, plan, e);
	if (!st)
		tell_info(v);
	return st;
}

const struct smear_spaces *virtual_spaces(const struct virtual_memory *v)
{
	return &v->smear.spaces;
}

enum status virtual_choose(struct virtual_memory *v, const struct smear_id *id, struct err *e)
{
	const enum status st = take_space(v, id, id->pid, e);

	virtual_set_vads(v, NULL);
	virtual_set_files(v, NULL);
	v->proto_read = false;
	if (!st)
		tell_info(v);
	return st;
}

void virtual_set_vads(struct virtual_memory *v, const struct virtual_vads *vads)
{
	v->vads = vads ? *vads : (struct virtual_vads){ NULL, NULL };
}

void virtual_set_files(struct virtual_memory *v, const struct virtual_files *files)
{
	v->files = files ? *files : (struct virtual_files){ NULL, NULL };
}

enum status virtual_mapped(struct virtual_memory *v, struct range_list *ret, bool *ret_cut,
			   struct err *e)
{
	enum status st = smear__need_layout(v->m, e);

	if (v->known)
		v->space.id.pass_tables = v->known->pass_tables;
	if (!st)
		st = smear__mapped(v->m, &v->space, v->request.copy, ret, ret_cut, e);
	range_list_join(ret);
	return st;
}

/*
 * The tables of an image are the same whenever they were read: those in its memory serve for all.
 */
static enum copy copy_of_image(const struct virtual_plan *plan)
{
	const enum rsz_kind kind =
		plan->copy == COPY_BEFORE ? RSZ_KIND_TABLES_BEFORE : RSZ_KIND_TABLES_AFTER;
	struct origin origin;

	origin_of_lines(&origin, plan->manifest);
	for (uint32_t i = 0; origin.still && i < rsz_reader_streams(plan->reader); i++)
		if (rsz_reader_stream(plan->reader, i)->kind == (uint32_t)kind)
			return COPY_IMAGE;
	return plan->copy;
}

enum status virtual_open(const struct virtual_plan *plan, struct virtual_memory **ret,
			 struct err *e)
{
	struct virtual_memory *v = calloc(1, sizeof(*v));
	enum status st;

	if (v)
		v->m = calloc(1, sizeof(*v->m));
	if (!v || !v->m) {
		free(v);
		return err_nomem(e);
	}
	v->plan = (struct smear_plan){
		.in = plan->in,
		.reader = plan->reader,
		.manifest = plan->manifest,
		.cached = plan->cached,
	};
	v->request = (struct space_request){
		.copy = copy_of_image(plan),
		.by_dtb = plan->by_dtb,
		.dtb = plan->dtb,
		.notes = plan->notes,
		.notes_size = plan->notes_size,
	};
	v->m->plan = &v->plan;
	v->m->ret = &v->smear;
	v->m->request = &v->request;
	st = set_up_virtual(v, plan, e);
	if (st)
		virtual_close(v);
	else
		*ret = v;
	return st;
}

void virtual_close(struct virtual_memory *v)
{
	if (!v)
		return;
	virtual__free_store(v->store);
	physmem_cache_deinit(&v->tables);
	physmem_rsz_deinit(&v->mem);
	rsz_cursor_destroy(v->cursor);
	for (size_t i = 0; i < SWEEP_THREADS_MAX; i++)
		rsz_cursor_destroy(v->sweep_cursors[i]);
	smear__tear_down(v->m);
	smear_deinit(&v->smear);
	free(v->m);
	free(v);
}

const struct layout_choice *virtual_layout(const struct virtual_memory *v)
{
	return v->m->asked_layout ? &v->smear.layout : NULL;
}

enum status virtual_need_layout(struct virtual_memory *v, struct err *e)
{
	return smear__need_layout(v->m, e);
}

const struct virtual_info *virtual_info(const struct virtual_memory *v)
{
	return &v->info;
}
