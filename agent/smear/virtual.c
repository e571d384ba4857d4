/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/smear/virtual.h"

#include <inttypes.h>
#include <string.h>

#include "agent/origin.h"
#include "agent/smear/smear_internal.h"
#include "formats/base/bytes.h"

/* As much as is walked at once: what is kept of a walk grows with it. */
#define STEP_BYTES (UINT64_C(1) << 30)

struct reading {
	struct look look; /* the first: callbacks get it back */
	const struct virtual_plan *plan;
	struct virtual_result *ret;
	struct measure *m;
	struct smear smear; /* what m fills in */
	struct smear_space space;
	struct physmem_rsz mem; /* the chosen tables, and the memory where they are silent */
	struct rsz_cursor *cursor;
	struct virt virt;
	uint64_t next; /* the first page that has not been told of */
	uint64_t last; /* of the last page, its last byte */
	bool through;  /* the last page of all addresses was told of: .next is 0 again */
};

const char *given_name(enum given g)
{
	static const char *const names[GIVENS] = {
#define X(name, text) [name] = text,
		GIVEN_MAP(X)
#undef X
	};

	return (unsigned)g < GIVENS ? names[g] : "?";
}

/*
 * Whose tables
 */

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

static bool has_page(struct reading *r, enum copy copy, uint64_t pa)
{
	uint8_t page[PAGE_SIZE];

	return r->m->copy[copy].cursor &&
	       physmem_read_page(&r->m->copy[copy].mem.mem, pa & ~(uint64_t)(PAGE_SIZE - 1), page,
				 NULL);
}

/* A root that is no process's: the kernel's, its twin for user mode, or one that somebody found. */
static struct smear_id id_of_root(struct reading *r, uint64_t dtb)
{
	const bool before = has_page(r, COPY_BEFORE, dtb), after = has_page(r, COPY_AFTER, dtb);

	return (struct smear_id){
		.dtb = dtb,
		.fate = r->m->image_only  ? FATE_NOT_APPLICABLE
			: before && after ? FATE_LIVED
			: after           ? FATE_BORN
					  : FATE_ENDED,
	};
}

static const char *where(enum copy copy)
{
	static const char *const text[COPIES] = {
		[COPY_BEFORE] = "that were read before the memory",
		[COPY_IMAGE] = "in the image",
		[COPY_AFTER] = "that were read after the memory",
	};

	return text[copy];
}

static enum status find_space(struct reading *r, struct err *e)
{
	const struct virtual_plan *plan = r->plan;
	const struct smear_spaces *s = &r->smear.spaces;
	const struct smear_id *id;

	if (plan->by_dtb) {
		const uint64_t dtb = paging_root(s->mode, plan->dtb);

		id = find_dtb(s, dtb, plan->copy);
		r->space.id = id ? *id : id_of_root(r, dtb);
		r->ret->known = id != NULL;
		if (!has_page(r, plan->copy, dtb))
			return err_set(e, ST_INPUT, "0x%" PRIx64 " names no page table %s",
				       plan->dtb, where(plan->copy));
		return ST_OK;
	}
	id = find_pid(s, plan->pid, plan->copy);
	if (!id)
		id = find_sharer(s, plan->pid, plan->copy);
	if (!id)
		return err_set(e, ST_INPUT, "no process %" PRIu32 " with page tables", plan->pid);
	r->space.id = *id;
	r->ret->known = true;
	if (!has_page(r, plan->copy, id->dtb) ||
	    (plan->copy != COPY_IMAGE && !smear__has_copy(id, plan->copy)))
		return err_set(e, ST_INPUT, "process %" PRIu32 " has no page tables %s", plan->pid,
			       where(plan->copy));
	return ST_OK;
}

static enum status check_copy(const struct reading *r, struct err *e)
{
	const enum copy copy = r->plan->copy;

	if (r->m->copy[copy].cursor)
		return ST_OK;
	return err_set(e, ST_INPUT, "holds no page tables %s", where(copy));
}

static enum status check_addresses(struct reading *r, struct err *e)
{
	const enum paging_mode mode = r->smear.spaces.mode;
	const uint64_t first = r->plan->va, length = r->plan->length;
	uint64_t last;

	if (!length || length - 1 > UINT64_MAX - first)
		return err_set(e, ST_USAGE,
			       "0x%" PRIx64 " and a length of %" PRIu64
			       " lead beyond the last address",
			       first, length);
	last = first + (length - 1);
	if (paging_canonical(mode, first) != first || paging_canonical(mode, last) != last ||
	    first >> 63 != last >> 63)
		return err_set(e, ST_USAGE,
			       "0x%" PRIx64 "-0x%" PRIx64 " is no virtual memory: tables of %d "
			       "levels do not reach it",
			       first, last, (int)mode);
	r->next = first & ~(uint64_t)(PAGE_SIZE - 1);
	r->last = last | (PAGE_SIZE - 1);
	return ST_OK;
}

/*
 * The chosen tables. Where a pass has them, it comes first; memory then has the rest of the kernel's
 * pages, such as those with prototype entries.
 */
static enum status open_virt(struct reading *r, struct err *e)
{
	struct measure *m = r->m;
	uint32_t streams[2] = { 0 };
	size_t n = 0;
	enum status st = rsz_cursor_create(m->plan->reader, 1, &r->cursor, e);

	if (r->plan->copy != COPY_IMAGE)
		streams[n++] = m->copy[r->plan->copy].mem.streams[0];
	streams[n++] = m->memory_stream;
	if (!st)
		st = physmem_rsz_init(&r->mem, m->plan->reader, m->copy[COPY_IMAGE].cursor, streams,
				      n, e);
	r->virt = (struct virt){
		.mem = &r->mem.mem,
		.mode = r->smear.spaces.mode,
		.dtb = r->space.id.dtb,
		.ignore = r->smear.spaces.ignore,
	};
	return st;
}

/*
 * Content
 */

static bool copy_page(const struct rsz_page *p, uint8_t *buf)
{
	if (!p->captured || p->status.state == PAGE_UNREADABLE || p->status.state == PAGE_SKIPPED)
		return false;
	memcpy(buf, p->data, p->length);
	memset(buf + p->length, 0, PAGE_SIZE - p->length);
	return true;
}

/* ST_END: there is no content. ST_CORRUPT: the container is damaged there. */
static enum status read_stream(struct reading *r, uint32_t stream, uint64_t address, uint8_t *buf,
			       struct rsz_times *when, struct err *e)
{
	/* Memory has a cursor that keeps more: tables, prototypes and pages all lie there. */
	struct rsz_cursor *c =
		stream == r->m->memory_stream ? r->m->copy[COPY_IMAGE].cursor : r->cursor;
	struct rsz_page p;
	const enum status st = rsz_cursor_page(c, stream, address, &p, e);

	if (st)
		return st;
	if (!copy_page(&p, buf))
		return ST_END;
	*when = (struct rsz_times){ p.start, p.end };
	return ST_OK;
}

/* A capture that is not the newest: as read_stream(). */
static enum status read_older(struct reading *r, const struct smear_row *row, uint8_t *buf,
			      struct err *e)
{
	const struct older_page *o = row->older;
	struct rsz_cursor *c =
		row->stream == r->m->memory_stream ? r->m->copy[COPY_IMAGE].cursor : r->cursor;
	const struct rsz_chunk *chunk;
	const enum status st = rsz_cursor_load(c, o->record, &chunk, e);

	if (st)
		return st;
	if ((uint64_t)o->data + o->length > chunk->length)
		return err_set(e, ST_CORRUPT, "a capture of 0x%" PRIx64 " is not where it was",
			       o->address);
	memcpy(buf, chunk->data + o->data, o->length);
	memset(buf + o->length, 0, PAGE_SIZE - o->length);
	return ST_OK;
}

/* Where the bytes of an entry's page are; false if they are in no stream. */
static bool locate(const struct reading *r, const struct pte *p, uint32_t *stream,
		   uint64_t *address)
{
	const struct slot_file *f;

	if (pte_place(p) == PLACE_FRAME) {
		*stream = r->m->memory_stream;
		*address = p->frame;
		return true;
	}
	if (p->state == PTE_COMPRESSED || pte_place(p) != PLACE_SLOT || p->slot >> 40)
		return false;
	f = p->file < PTE_FILES_MAX ? &r->m->files[p->file] : NULL;
	if (!f || !f->captures)
		return false;
	*stream = f->stream;
	*address = p->slot * PAGE_SIZE;
	return true;
}

/*
 * Prototype entries
 */

/*
 * The page of the kernel's address space that holds the entry: Windows keeps prototypes in paged pool,
 * so that it may itself be in transition or in a page file. One that is behind a prototype is not
 * looked for.
 */
static bool read_kernel(struct reading *r, uint64_t va, uint8_t *page, struct rsz_times *when)
{
	struct virt_end end;
	struct pte p;
	uint32_t stream;
	uint64_t address;

	if (!(va >> 63) || paging_canonical(r->virt.mode, va) != va)
		return false;
	virt_find(&r->virt, va, &end);
	if (!end.level || end.entry.kind == ENTRY_TABLE ||
	    (end.entry.kind != ENTRY_LEAF && end.level != 1))
		return false;
	p = entry_decode(&r->m->entries, end.level, end.raw);
	if (end.entry.kind == ENTRY_LEAF)
		p.frame =
			end.entry.frame + (va & (end.entry.size - 1) & ~(uint64_t)(PAGE_SIZE - 1));
	return locate(r, &p, &stream, &address) &&
	       !read_stream(r, stream, address, page, when, NULL);
}

static bool follow(const struct look *l, struct pte *pte, struct rsz_times *when)
{
	struct reading *r = (struct reading *)(uintptr_t)l;
	const struct win_pte_context *c = &r->m->entries.windows;
	uint8_t page[PAGE_SIZE];

	/* An index is no address: only the kernel's symbols tell what it counts. */
	if (c->layout->indexed || pte->address % 8 ||
	    !read_kernel(r, pte->address & ~(uint64_t)(PAGE_SIZE - 1), page, when))
		return false;
	*pte = win_prototype_decode(c, get_le64(page + pte->address % PAGE_SIZE));
	return true;
}

/*
 * Telling of pages
 */

static enum status hand_out(struct reading *r, const struct virtual_page *p, struct err *e)
{
	r->ret->given[p->given] += p->pages;
	r->ret->damaged += p->damaged ? p->pages : 0;
	if (p->given != GIVEN_NOTHING)
		r->ret->trust[verdict_trust(p->row.verdict)] += p->pages;
	r->next = p->va + p->pages * PAGE_SIZE;
	r->through = !r->next;
	return r->plan->page(r->plan->context, p, e);
}

/* Where no VAD is. A process of a 32-bit Windows can have up to 3 GiB for itself. */
static bool is_kernel_address(const struct reading *r, uint64_t va)
{
	return r->virt.mode == PAGING_PAE ? va >= UINT64_C(0xc0000000) : va >> 63;
}

/*
 * Windows, no entry. VADs know the addresses that a process has for itself; so they are no answer for
 * the kernel's, nor where nobody knows whether these are a process's tables at all.
 */
static const char *why_empty(const struct reading *r, uint64_t va)
{
	if (is_kernel_address(r, va))
		return r->ret->known ? "no entry: not mapped"
				     : "no entry: not mapped, or these are no top table's entries";
	return r->ret->known ? "no entry: needs the VAD"
			     : "no entry: needs the VAD, or these are no process's tables";
}

/* Why an entry that names no page, or one that is not there, gives nothing. */
static const char *why_state(const struct reading *r, const struct smear_row *row)
{
	const bool windows = r->m->entries.os == OS_WINDOWS;

	switch (row->pte.state) {
	case PTE_EMPTY:
		if (row->followed)
			return "its prototype entry is empty";
		return windows ? why_empty(r, row->va) : "no entry: not mapped, or never touched";
	case PTE_PROTOTYPE:
		return r->m->entries.windows.layout->indexed
			       ? "prototypes are numbers here: needs the kernel's symbols"
			       : "its prototype entry cannot be read";
	case PTE_VAD_PROTOTYPE:
		return is_kernel_address(r, row->va)
			       ? "its entry is for a VAD, and the kernel's addresses have none"
			       : "needs the VAD";
	case PTE_COMPRESSED:
		return "needs the compression store";
	case PTE_DECOMMITTED:
		return "was given back";
	case PTE_SUBSECTION:
	case PTE_FILE_BACKED:
		return "needs the mapped file";
	case PTE_POISONED:
		return "broken memory";
	case PTE_DEVICE:
		return "in a device's own memory";
	case PTE_SWAP_ERROR:
		return "the system could not read it from its swap area";
	case PTE_UNKNOWN:
		return "no layout is known for its entry";
	default:
		return "the entry stands for no page";
	}
}

static const char *why_verdict(const struct reading *r, const struct smear_row *row)
{
	const bool slot = pte_place(&row->pte) == PLACE_SLOT;

	switch (row->verdict) {
	case VERDICT_OUTSIDE:
		return slot ? "its slot lies behind the end of the file"
			    : "its frame is no RAM that was to be acquired";
	case VERDICT_UNREADABLE:
		return slot ? "its slot could not be read" : "its frame could not be read";
	case VERDICT_MISSING:
		return slot ? "its slot was not captured" : "its frame was not captured";
	case VERDICT_NO_FILE:
		return "its page file or swap area is not in this container";
	default:
		return why_state(r, row);
	}
}

static enum status give_nothing(struct reading *r, const struct smear_row *row, struct err *e)
{
	const struct virtual_page p = {
		.va = row->va,
		.pages = row->pages,
		.why = why_verdict(r, row),
		.level = 1,
		.judged = true,
		.row = *row,
	};

	return hand_out(r, &p, e);
}

static enum status give_page(struct reading *r, const struct smear_row *row, struct err *e)
{
	uint8_t bytes[PAGE_SIZE] = { 0 };
	struct virtual_page p = {
		.va = row->va,
		.pages = 1,
		.given = GIVEN_ZEROS,
		.bytes = bytes,
		.level = 1,
		.judged = true,
		.row = *row,
	};
	struct rsz_times when;
	enum status st = ST_OK;

	if (row->verdict == VERDICT_SLOT_MAP)
		p.doubt = r->m->files[row->pte.file].doubt;
	if (row->captured) {
		const uint64_t at = pte_place(&row->pte) == PLACE_FRAME ? row->pte.frame
									: row->pte.slot * PAGE_SIZE;

		p.given = row->stream == r->m->memory_stream ? GIVEN_MEMORY : GIVEN_PAGE_FILE;
		p.stream = rsz_reader_stream(r->m->plan->reader, row->stream)->name;
		st = row->older ? read_older(r, row, bytes, e)
				: read_stream(r, row->stream, at, bytes, &when, e);
	}
	if (st && st != ST_CORRUPT && st != ST_END)
		return st;
	if (st) {
		p.given = GIVEN_NOTHING;
		p.bytes = NULL;
		p.stream = NULL;
		p.damaged = st == ST_CORRUPT;
		p.why = "the container is damaged there";
	}
	return hand_out(r, &p, e);
}

static bool has_content(const struct smear_row *row)
{
	return row->captured || row->pte.state == PTE_DEMAND_ZERO;
}

/*
 * Where no entry says anything: what the tables end with. Also entries above the page table that are
 * not present; Windows pages out page tables, and what they had in them is not looked for.
 */
static struct virtual_page explain(struct reading *r, uint64_t va)
{
	struct virt v = r->virt;
	struct virtual_page p = { .va = va, .pages = 1 };
	struct virt_end end;

	v.mem = &r->m->copy[r->plan->copy].mem.mem;
	virt_find(&v, va, &end);
	p.level = end.level;
	p.row = (struct smear_row){
		.copy = r->plan->copy,
		.id = &r->space.id,
		.va = va,
		.raw = end.raw,
		.pte = entry_decode(&r->m->entries, end.level ? end.level : 1, end.raw),
		.seen = { end.when.start, end.when.end },
	};
	switch (end.entry.kind) {
	case ENTRY_ZERO:
		p.why = why_state(r, &p.row);
		break;
	case ENTRY_TABLE:
		p.why = range_list_find(v.mem->ranges, end.entry.frame)
				? "a page table on the way cannot be read"
				: "a page table on the way is not in this copy";
		break;
	case ENTRY_RESERVED:
		p.why = "a page table on the way has reserved bits set";
		break;
	default:
		p.why = r->m->entries.os == OS_WINDOWS ? "its page table is paged out"
						       : "a page table on the way is no table";
		break;
	}
	if (end.entry.kind == ENTRY_TABLE || end.entry.kind == ENTRY_RESERVED)
		p.row.pte = (struct pte){ .state = PTE_UNKNOWN, .raw = end.raw };
	if (end.level)
		p.pages = (end.entry.size - (va & (end.entry.size - 1))) >> PAGE_SHIFT;
	return p;
}

/* From r->next up to `last`. */
static enum status give_gap(struct reading *r, uint64_t last, struct err *e)
{
	enum status st = ST_OK;

	while (!st && !r->through && r->next <= last) {
		const uint64_t left = ((last - r->next) >> PAGE_SHIFT) + 1;
		struct virtual_page p = explain(r, r->next);

		/* Neighbours that are equally empty are one. */
		while (p.pages < left) {
			const struct virtual_page q = explain(r, r->next + p.pages * PAGE_SIZE);

			if (q.why != p.why || q.row.raw != p.row.raw)
				break;
			p.pages += q.pages;
		}
		p.pages = MIN(p.pages, left);
		p.row.va = p.va;
		p.row.pages = p.pages;
		st = hand_out(r, &p, e);
	}
	return st;
}

static enum status take_row(const struct look *l, const struct smear_row *row, struct err *e)
{
	struct reading *r = (struct reading *)(uintptr_t)l;
	struct smear_row one = *row;
	enum status st = row->va ? give_gap(r, row->va - 1, e) : ST_OK;

	if (!st && !has_content(row))
		return give_nothing(r, row, e);
	one.pages = 1;
	for (uint64_t i = 0; i < row->pages && !st; i++) {
		st = give_page(r, &one, e);
		one.va += PAGE_SIZE;
		if (pte_place(&row->pte) == PLACE_FRAME)
			one.pte.frame += PAGE_SIZE;
		else if (pte_place(&row->pte) == PLACE_SLOT)
			one.pte.slot++;
	}
	return st;
}

static enum status read_all(struct reading *r, struct err *e)
{
	uint64_t first = r->next, last;
	enum status st = ST_OK;

	do {
		last = MIN(r->last, first | (STEP_BYTES - 1));
		st = smear__look(r->m, &r->space, first, last, e);
		if (!st)
			st = give_gap(r, last, e);
		first = last + 1;
	} while (!st && last != r->last);
	return st;
}

static enum status tell_result(struct reading *r, struct err *e)
{
	struct virtual_result *ret = r->ret;

	ret->mode = r->smear.spaces.mode;
	ret->os = r->smear.spaces.os;
	ret->layout = r->smear.layout;
	ret->dtb = r->space.id.dtb;
	ret->still = r->smear.still;
	ret->assumed_levels = r->smear.assumed_levels;
	ret->listed = r->space.id.listed;
	ret->pid = r->space.id.pid;
	ret->name = strdup(ret->listed ? r->space.id.name : "");
	return ret->name ? ST_OK : err_nomem(e);
}

static enum status run(struct reading *r, struct err *e)
{
	enum status st = smear__set_up(r->m, e);

	if (!st)
		st = check_copy(r, e);
	if (!st)
		st = check_addresses(r, e);
	if (!st)
		st = find_space(r, e);
	if (!st)
		st = open_virt(r, e);
	if (!st)
		st = tell_result(r, e);
	return st ? st : read_all(r, e);
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

enum status virtual_read(const struct virtual_plan *plan, struct virtual_result *ret, struct err *e)
{
	const struct smear_plan smear_plan = {
		.in = plan->in,
		.reader = plan->reader,
		.manifest = plan->manifest,
		.cached = plan->cached,
	};
	struct virtual_plan one = *plan;
	struct reading *r = calloc(1, sizeof(*r));
	enum status st;

	one.copy = copy_of_image(plan);
	*ret = (struct virtual_result){ 0 };
	if (r)
		r->m = calloc(1, sizeof(*r->m));
	if (!r || !r->m) {
		free(r);
		return err_nomem(e);
	}
	r->look = (struct look){
		.copy = one.copy,
		.by_dtb = plan->by_dtb,
		.dtb = plan->dtb,
		.notes = plan->notes,
		.notes_size = plan->notes_size,
		.follow = follow,
		.row = take_row,
	};
	r->plan = &one;
	r->ret = ret;
	r->m->plan = &smear_plan;
	r->m->ret = &r->smear;
	r->m->look = &r->look;
	st = run(r, e);
	physmem_rsz_deinit(&r->mem);
	rsz_cursor_destroy(r->cursor);
	smear__tear_down(r->m);
	smear_deinit(&r->smear);
	free(r->m);
	free(r);
	return st;
}

void virtual_result_deinit(struct virtual_result *r)
{
	free(r->name);
	r->name = NULL;
}
