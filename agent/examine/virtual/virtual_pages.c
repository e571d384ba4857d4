/* SPDX-License-Identifier: Apache-2.0 */
/* Pages of the virtual memory that virtual.c has opened: their content, or why they have none. */
#include <inttypes.h>
#include <string.h>

#include "agent/examine/virtual/virtual_internal.h"
#include "formats/base/bytes.h"

/* As much as is walked at once: what is kept of a walk grows with it. */
#define STEP_BYTES (UINT64_C(1) << 30)

bool virtual_table_is_lost(const struct virtual_page *p)
{
	/* An entry above the page table that is not present is of a table that is paged out. */
	return p->level != 1 && !p->has_verdict && p->row.raw;
}

bool virtual_page_is_absent(const struct virtual_page *p)
{
	if (p->given != GIVEN_NOTHING || virtual_table_is_lost(p))
		return false;
	if (p->row.pte.state != PTE_EMPTY)
		return p->row.pte.state == PTE_DECOMMITTED;
	/* A section may be reserved, too: then its prototype entry is empty. */
	return p->row.followed || p->vad == VAD_SAYS_RESERVED || p->vad == VAD_SAYS_UNMAPPED;
}

static bool copy_page(const struct rsz_page *p, uint8_t *buf)
{
	if (!p->captured || p->status.state == PAGE_UNREADABLE || p->status.state == PAGE_SKIPPED)
		return false;
	memcpy(buf, p->data, p->length);
	memset(buf + p->length, 0, PAGE_SIZE - p->length);
	return true;
}

/* Memory has a cursor that keeps more: tables, prototypes and pages all lie there. */
static struct rsz_cursor *cursor_of(const struct virtual_memory *v, uint32_t stream)
{
	return stream == v->m->memory_stream ? v->m->copy[COPY_IMAGE].cursor : v->cursor;
}

/* ST_END: there is no content. ST_CORRUPT: the container is damaged there. */
static enum status read_stream(struct virtual_memory *v, uint32_t stream, uint64_t address,
			       uint8_t *buf, struct rsz_times *when, struct err *e)
{
	struct rsz_page p;
	const enum status st = rsz_cursor_page(cursor_of(v, stream), stream, address, &p, e);

	if (st)
		return st;
	if (!copy_page(&p, buf))
		return ST_END;
	*when = (struct rsz_times){ p.start, p.end };
	return ST_OK;
}

/* Where the bytes of an entry's page are; false if they are in no stream. */
static bool locate_page(const struct virtual_memory *v, const struct pte *p, uint32_t *stream,
			uint64_t *address)
{
	const struct slot_file *f;

	if (pte_place(p) == PLACE_FRAME) {
		*stream = v->m->memory_stream;
		*address = p->frame;
		return true;
	}
	if (p->state == PTE_COMPRESSED || pte_place(p) != PLACE_SLOT || p->slot >> 40)
		return false;
	f = p->file < PTE_FILES_MAX ? &v->m->files[p->file] : NULL;
	if (!f || !f->captures)
		return false;
	*stream = f->stream;
	*address = p->slot * PAGE_SIZE;
	return true;
}

/*
 * Prototype entries
 */

bool virtual__read_page(struct virtual_memory *v, uint64_t dtb, uint64_t va, uint8_t *page,
			struct rsz_times *when)
{
	struct virt space = v->virt;
	struct virt_end end;
	struct pte p;
	uint32_t stream;
	uint64_t address;

	space.dtb = dtb;
	if (paging_canonical(space.mode, va) != va)
		return false;
	virt_find(&space, va, &end);
	if (!end.level || end.entry.kind == ENTRY_TABLE ||
	    (end.entry.kind != ENTRY_LEAF && end.level != 1))
		return false;
	p = entry_decode(&v->m->entries, end.level, end.raw);
	if (end.entry.kind == ENTRY_LEAF)
		p.frame =
			end.entry.frame + (va & (end.entry.size - 1) & ~(uint64_t)(PAGE_SIZE - 1));
	return locate_page(v, &p, &stream, &address) &&
	       !read_stream(v, stream, address, page, when, NULL);
}

/*
 * The page of the kernel's address space that holds the entry: Windows keeps prototypes in paged
 * pool, so that it may itself be in transition or in a page file. One that is behind a prototype is
 * not looked for.
 */
static bool read_kernel(struct virtual_memory *v, uint64_t va, uint8_t *page,
			struct rsz_times *when)
{
	return va >> 63 && virtual__read_page(v, v->virt.dtb, va, page, when);
}

/* Of those around it, mostly the one before it was asked for just now. */
static bool read_prototype(struct virtual_memory *v, uint64_t va, struct pte *ret,
			   struct rsz_times *when)
{
	const struct win_pte_context *c = &v->m->entries.windows;
	const uint64_t page = va & ~(uint64_t)(PAGE_SIZE - 1);

	if (va % 8 || !c->layout)
		return false;
	if (!v->proto_read || v->proto_page != page) {
		v->proto_there = read_kernel(v, page, v->protos, &v->proto_when);
		v->proto_page = page;
		v->proto_read = true;
	}
	if (!v->proto_there)
		return false;
	*when = v->proto_when;
	*ret = win_prototype_decode(c, get_le64(v->protos + va % PAGE_SIZE));
	return true;
}

/* Where a VAD has the prototype entry of the page. */
static bool find_by_vad(const struct virtual_memory *v, uint64_t va, uint64_t *ret)
{
	uint64_t pages;

	return v->vads.range && !(va >> 63) &&
	       v->vads.range(v->vads.context, va, &pages, ret) == VAD_SAYS_SECTION;
}

/*
 * Puts what a prototype entry comes to in the place of the mapping's; it stays what it is if that
 * cannot be read, or nobody knows where it is.
 */
static void follow_prototype(struct virtual_memory *v, struct mapping *x)
{
	struct pte *pte = &x->run.view[x->copy].pte;
	uint64_t at = pte->address;

	if (pte->state != PTE_PROTOTYPE && pte->state != PTE_VAD_PROTOTYPE)
		return;
	x->proto = at;
	if (pte->state == PTE_VAD_PROTOTYPE && !find_by_vad(v, x->run.va, &at))
		return;
	/* An index is no address: only the kernel's symbols tell what it counts. */
	if ((pte->state == PTE_PROTOTYPE && v->m->entries.windows.layout->indexed) ||
	    !read_prototype(v, at, pte, &x->times))
		return;
	x->proto = at;
	x->followed = true;
}

enum status virtual_is_prototypes(struct virtual_memory *v, uint64_t va, uint64_t frame, bool *ret,
				  struct err *e)
{
	struct rsz_times when;
	struct pte pte;
	uint64_t at;
	enum status st;

	*ret = false;
	if (!find_by_vad(v, va, &at))
		return ST_OK;
	st = smear__need_layout(v->m, e);
	*ret = !st && read_prototype(v, at, &pte, &when) && pte_place(&pte) == PLACE_FRAME &&
	       pte.frame == frame;
	return st;
}

/*
 * Telling of pages
 */

static enum status hand_out(struct virtual_memory *v, const struct virtual_page *p, struct err *e)
{
	v->counts->given[p->given] += p->pages;
	v->counts->damaged += p->damaged ? p->pages : 0;
	if (p->given != GIVEN_NOTHING)
		v->counts->trust[verdict_trust(p->row.verdict)] += p->pages;
	v->next = p->va + p->pages * PAGE_SIZE;
	v->through = !v->next;
	return v->reader->page(v->reader->context, p, e);
}

/* Where no VAD is. A process of a 32-bit Windows can have up to 3 GiB for itself. */
static bool is_kernel_address(const struct virtual_memory *v, uint64_t va)
{
	return v->virt.mode == PAGING_PAE ? va >= UINT64_C(0xc0000000) : va >> 63;
}

/*
 * Windows, no entry. VADs know the addresses that a process has for itself; so they are no answer
 * for the kernel's, nor where nobody knows whether these are a process's tables at all.
 */
static const char *why_empty(const struct virtual_memory *v, uint64_t va)
{
	if (is_kernel_address(v, va))
		return v->info.known ? "no entry: not mapped"
				     : "no entry: not mapped, or these are no top table's entries";
	return v->info.known ? "no entry: needs the VAD"
			     : "no entry: needs the VAD, or these are no process's tables";
}

static const char *why_unknown(const struct virtual_memory *v, const struct pte *p)
{
	const struct linux_pte_context *c = &v->m->entries.linux_;

	if (!v->smear.layout.found)
		return "no layout is known for its entry";
	if (!v->smear.layout.device_private && c->unsure >> p->file % LINUX_PTE_TYPES & 1)
		return "what its entry means depends on CONFIG_DEVICE_PRIVATE, which is not known";
	return "no layout that fits explains its entry, or several do not agree";
}

/*
 * What a marker leaves of its page: a guard's faults, a poisoned one's too, and what was protected
 * against writing is brought back by the next fault.
 */
static const char *why_marker(uint8_t marker)
{
	if (marker & LINUX_MARKER_GUARD)
		return "a guard region, which has no page";
	if (marker & LINUX_MARKER_POISONED)
		return "poisoned: by userfaultfd, or because its swap slot could not be read";
	if (marker & LINUX_MARKER_UFFD_WP)
		return "write-protected by userfaultfd: its page, if it has one, is only in the "
		       "page cache or in swap";
	return "a marker that no known kernel has";
}

/* Why an entry that names no page, or one that is not there, gives nothing. */
static const char *why_state(const struct virtual_memory *v, const struct smear_row *row)
{
	const bool windows = v->m->entries.os == OS_WINDOWS;

	switch (row->pte.state) {
	case PTE_EMPTY:
		if (row->followed)
			return "its prototype entry is empty";
		return windows ? why_empty(v, row->va)
			       : "no entry: not mapped, never touched, or only in the page cache "
				 "or in swap";
	case PTE_PROTOTYPE:
		return v->m->entries.windows.layout->indexed
			       ? "prototypes are numbers here: needs the kernel's symbols"
			       : "its prototype entry cannot be read";
	case PTE_VAD_PROTOTYPE:
		if (is_kernel_address(v, row->va))
			return "its entry is for a VAD, and the kernel's addresses have none";
		return v->vads.range ? "its VAD leads to no prototype entry that can be read"
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
	case PTE_MARKER:
		return why_marker(row->pte.marker);
	case PTE_UNKNOWN:
		return why_unknown(v, &row->pte);
	default:
		return "the entry stands for no page";
	}
}

static const char *why_verdict(const struct virtual_memory *v, const struct smear_row *row)
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
		return why_state(v, row);
	}
}

static enum status give_nothing(struct virtual_memory *v, const struct smear_row *row,
				struct err *e)
{
	const struct virtual_page p = {
		.va = row->va,
		.pages = row->pages,
		.why = why_verdict(v, row),
		.level = 1,
		.has_verdict = true,
		.row = *row,
	};

	return hand_out(v, &p, e);
}

static enum status give_page(struct virtual_memory *v, const struct smear_row *row, struct err *e)
{
	uint8_t bytes[PAGE_SIZE] = { 0 };
	struct virtual_page p = {
		.va = row->va,
		.pages = 1,
		.given = GIVEN_ZEROS,
		.bytes = bytes,
		.level = 1,
		.has_verdict = true,
		.row = *row,
	};
	struct rsz_times when;
	enum status st = ST_OK;

	if (row->verdict == VERDICT_SLOT_MAP)
		p.doubt = v->m->files[row->pte.file].doubt;
	if (row->captured) {
		p.given = row->stream == v->m->memory_stream ? GIVEN_MEMORY : GIVEN_PAGE_FILE;
		p.stream = rsz_reader_stream(v->m->plan->reader, row->stream)->name;
	}
	if (v->reader->unread) {
		p.bytes = NULL;
		p.pages = row->pages;
	} else if (row->captured) {
		const uint64_t at = pte_place(&row->pte) == PLACE_FRAME ? row->pte.frame
									: row->pte.slot * PAGE_SIZE;

		st = row->older
			     ? captures_read_older(cursor_of(v, row->stream), row->older, bytes, e)
			     : read_stream(v, row->stream, at, bytes, &when, e);
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
	return hand_out(v, &p, e);
}

/* Neighbours that the store does not give for the same reason. */
static enum status give_missing(struct virtual_memory *v, const struct smear_row *row,
				uint64_t from, uint64_t end, const char *why, struct err *e)
{
	struct virtual_page p = {
		.va = row->va + from * PAGE_SIZE,
		.pages = end - from,
		.why = why,
		.level = 1,
		.has_verdict = true,
		.row = *row,
	};

	p.row.va = p.va;
	p.row.pages = p.pages;
	p.row.pte.slot += from;
	v->counts->store_missing += p.pages;
	return from == end ? ST_OK : hand_out(v, &p, e);
}

static enum status give_compressed(struct virtual_memory *v, const struct smear_row *row,
				   uint64_t i, const uint8_t *bytes, const struct rsz_times *when,
				   struct err *e)
{
	const struct rsz_times *seen = &row->seen;
	struct virtual_page p = {
		.va = row->va + i * PAGE_SIZE,
		.pages = 1,
		.given = GIVEN_COMPRESSED,
		.bytes = bytes,
		.level = 1,
		.has_verdict = true,
		.row = *row,
	};

	p.row.va = p.va;
	p.row.pages = 1;
	p.row.pte.slot += i;
	p.row.content = *when;
	if (!v->info.still)
		p.row.window = MAX(seen->end, when->end) - MIN(seen->start, when->start);
	return hand_out(v, &p, e);
}

static enum status give_from_store(struct virtual_memory *v, const struct smear_row *row,
				   struct err *e)
{
	uint8_t bytes[PAGE_SIZE];
	const char *why, *last = NULL;
	struct rsz_times when;
	enum status st = ST_OK;
	uint64_t from = 0;

	for (uint64_t i = 0; i < row->pages && !st; i++) {
		st = virtual__read_store(v, row->pte.slot + i, bytes, &when, &why, e);
		if (!st && why != last) {
			if (last)
				st = give_missing(v, row, from, i, last, e);
			from = i;
			last = why;
		}
		if (!st && !why)
			st = give_compressed(v, row, i, bytes, &when, e);
	}
	return st || !last ? st : give_missing(v, row, from, row->pages, last, e);
}

/*
 * Pages of mapped files
 */

static bool is_in_file(const struct virtual_memory *v, const struct smear_row *row)
{
	return v->files.page && !v->reader->unread && row->followed &&
	       (row->pte.state == PTE_SUBSECTION || row->pte.state == PTE_FILE_BACKED);
}

/* So many pages of a row, from its page `from` on. */
static struct virtual_page page_of_row(const struct smear_row *row, uint64_t from, uint64_t pages)
{
	struct virtual_page p = {
		.va = row->va + from * PAGE_SIZE,
		.pages = pages,
		.level = 1,
		.has_verdict = true,
		.row = *row,
	};

	p.row.va = p.va;
	p.row.pages = pages;
	p.row.proto += 8 * from; /* their prototype entries lie behind each other */
	return p;
}

/* Neighbours that their file does not give for the same reason. */
static enum status give_no_file(struct virtual_memory *v, const struct smear_row *row,
				uint64_t from, uint64_t end, const char *why, struct err *e)
{
	struct virtual_page p = page_of_row(row, from, end - from);

	p.why = why;
	return from == end ? ST_OK : hand_out(v, &p, e);
}

static enum status give_file_page(struct virtual_memory *v, const struct smear_row *row, uint64_t i,
				  const struct virtual_file_page *f, struct err *e)
{
	struct virtual_page p = page_of_row(row, i, 1);

	p.given = GIVEN_FILE;
	p.bytes = f->bytes;
	p.doubt = f->doubt;
	p.row.verdict = VERDICT_FILE;
	return hand_out(v, &p, e);
}

static enum status give_from_file(struct virtual_memory *v, const struct smear_row *row,
				  struct err *e)
{
	uint8_t bytes[PAGE_SIZE];
	const char *last = NULL;
	enum status st = ST_OK;
	uint64_t from = 0;

	for (uint64_t i = 0; i < row->pages && !st; i++) {
		struct virtual_file_page f = {
			.va = row->va + i * PAGE_SIZE,
			.pte = &row->pte,
			.proto = row->proto + 8 * i,
			.bytes = bytes,
		};

		st = v->files.page(v->files.context, &f, e);
		if (!st && f.why != last) {
			if (last)
				st = give_no_file(v, row, from, i, last, e);
			from = i;
			last = f.why;
		}
		if (!st && !f.why)
			st = give_file_page(v, row, i, &f, e);
	}
	return st || !last ? st : give_no_file(v, row, from, row->pages, last, e);
}

static bool has_content(const struct smear_row *row)
{
	return row->captured || row->pte.state == PTE_DEMAND_ZERO;
}

/* The entry of a page in another copy of the tables, and how many pages it is of. */
static enum status entry_in_copy(struct virtual_memory *v, enum copy copy, uint64_t va,
				 struct pte *ret, uint64_t *pages, struct err *e)
{
	struct virt tables = v->virt;
	struct virt_end end;
	enum status st;

	*ret = (struct pte){ .state = PTE_EMPTY };
	tables.mem = &v->m->copy[copy].tables.mem;
	virt_find(&tables, va, &end);
	if (!end.level)
		return ST_OK;
	*pages = (end.entry.size - (va & (end.entry.size - 1))) >> PAGE_SHIFT;
	if (end.entry.kind != ENTRY_LEAF && end.entry.kind != ENTRY_ABSENT)
		return ST_OK;
	st = smear__decode(v->m, end.level, end.raw, ret, e);
	if (pte_place(ret) == PLACE_FRAME)
		ret->frame += va & (end.entry.size - 1) & ~(uint64_t)(PAGE_SIZE - 1);
	return st;
}

/*
 * An entry of the image that was empty for a moment, while both passes have pages there: Linux
 * clears that of 512 pages while it collapses them, and when it splits those of a file
 * (collapse_huge_page(), __split_huge_pmd_locked(); mm/khugepaged.c and mm/huge_memory.c).
 */
static enum status ask_passes(struct virtual_memory *v, struct virtual_page *p, struct err *e)
{
	const struct analysis *m = v->m;
	uint64_t pages[2] = { p->pages, p->pages };
	struct pte before, after;
	enum status st;

	if (m->entries.os != OS_LINUX || v->request.copy != COPY_IMAGE || p->va >> 63 ||
	    m->image_only || m->one_pass || v->space.id.fate != FATE_LIVED)
		return ST_OK;
	st = entry_in_copy(v, COPY_BEFORE, p->va, &before, &pages[0], e);
	if (!st)
		st = entry_in_copy(v, COPY_AFTER, p->va, &after, &pages[1], e);
	if (st)
		return st;
	p->pages = MIN(p->pages, MIN(pages[0], pages[1]));
	if (pte_place(&before) == PLACE_NONE || pte_place(&after) == PLACE_NONE)
		return ST_OK;
	p->has_verdict = true;
	p->row.change = change_of(&before, &after, true);
	p->row.verdict = p->row.change == CHANGE_STABLE ? VERDICT_TORN : VERDICT_CHANGED;
	p->why = "no entry in the image's tables, but those read before and after it have one";
	return ST_OK;
}

/*
 * Where no entry says anything: what the tables end with. Also entries above the page table that
 * are not present; Windows pages out page tables, and what they had in them is not looked for.
 */
static enum status explain(struct virtual_memory *v, uint64_t va, struct virtual_page *ret,
			   struct err *e)
{
	struct virt tables = v->virt;
	struct virtual_page p = { .va = va, .pages = 1 };
	struct virt_end end;
	struct pte pte;
	enum status st;

	tables.mem = &v->m->copy[v->request.copy].tables.mem;
	virt_find(&tables, va, &end);
	st = smear__decode(v->m, end.level ? end.level : 1, end.raw, &pte, e);
	p.level = end.level;
	p.row = (struct smear_row){
		.copy = v->request.copy,
		.id = &v->space.id,
		.va = va,
		.raw = end.raw,
		.pte = pte,
		.seen = { end.when.start, end.when.end },
	};
	switch (end.entry.kind) {
	case ENTRY_ZERO:
		p.why = why_state(v, &p.row);
		break;
	case ENTRY_TABLE:
		p.why = range_list_find(tables.mem->ranges, end.entry.frame)
				? "a page table on the way cannot be read"
				: "a page table on the way is not in this copy";
		break;
	case ENTRY_RESERVED:
		p.why = "a page table on the way has reserved bits set";
		break;
	default:
		p.why = v->m->entries.os == OS_WINDOWS ? "its page table is paged out"
						       : "a page table on the way is no table";
		break;
	}
	if (end.entry.kind == ENTRY_TABLE || end.entry.kind == ENTRY_RESERVED)
		p.row.pte = (struct pte){ .state = PTE_UNKNOWN, .raw = end.raw };
	if (end.level)
		p.pages = (end.entry.size - (va & (end.entry.size - 1))) >> PAGE_SHIFT;
	if (!st && end.level && end.entry.kind == ENTRY_ZERO)
		st = ask_passes(v, &p, e);
	*ret = p;
	return st;
}

/* Neighbours that are equally empty are one. */
static bool is_as_empty(const struct virtual_page *p, const struct virtual_page *q)
{
	return p->why == q->why && p->row.raw == q->row.raw && p->has_verdict == q->has_verdict &&
	       p->row.verdict == q->row.verdict && p->row.change == q->row.change;
}

/*
 * Pages without an entry, through the VADs
 */

/* Where the page of a prototype entry lies, and whether it was captured there. */
static enum verdict find_content(const struct virtual_memory *v, struct smear_row *row)
{
	const bool slot = pte_place(&row->pte) == PLACE_SLOT;
	const struct slot_file *f =
		slot && row->pte.file < PTE_FILES_MAX ? &v->m->files[row->pte.file] : NULL;
	const struct captures *captures =
		slot ? f && f->captures ? f->captures : NULL : v->m->memory;
	struct capture c;
	uint64_t at;

	if (row->pte.state == PTE_COMPRESSED)
		return VERDICT_STORE;
	if (!captures || !locate_page(v, &row->pte, &row->stream, &at))
		return VERDICT_NO_FILE;
	if (!range_list_find(slot ? &f->ranges : &v->m->ram, at))
		return VERDICT_OUTSIDE;
	if (!captures_from(captures, at, at | (PAGE_SIZE - 1), &c) || c.range.first > at)
		return VERDICT_MISSING;
	if (!capture_is_readable(&c))
		return c.state == PAGE_UNREADABLE ? VERDICT_UNREADABLE : VERDICT_MISSING;
	row->captured = true;
	row->captures = 1;
	row->content = (struct rsz_times){ c.start, c.end };
	return v->smear.still ? VERDICT_IMAGE : VERDICT_PROTOTYPE;
}

/*
 * The first of `pages`, whose prototype entry is there, with those behind it that are in the same
 * state and have no content. What is there is never safe: VADs were not compared with what they
 * were before or later.
 */
static enum status give_by_prototype(struct virtual_memory *v, struct smear_row *row,
				     uint64_t pages, uint64_t prototype, struct err *e)
{
	struct rsz_times when;
	struct pte next;
	const enum status st = smear__need_layout(v->m, e);

	if (st)
		return st;
	row->proto = prototype;
	row->pages = 1;
	row->followed = read_prototype(v, prototype, &row->pte, &when);
	row->verdict = v->smear.still ? VERDICT_IMAGE : VERDICT_PROTOTYPE;
	if (!row->followed) {
		/* Nor can be had what lies in the same page of the kernel. */
		row->pte = (struct pte){ .state = PTE_VAD_PROTOTYPE };
		row->pages = MIN(pages, (PAGE_SIZE - prototype % PAGE_SIZE + 7) / 8);
	} else if (pte_place(&row->pte) != PLACE_NONE) {
		row->verdict = find_content(v, row);
	}
	if (has_content(row))
		return give_page(v, row, e);
	while (row->followed && pte_place(&row->pte) == PLACE_NONE && row->pages < pages &&
	       read_prototype(v, prototype + 8 * row->pages, &next, &when) &&
	       next.raw == row->pte.raw)
		row->pages++;
	return is_in_file(v, row) ? give_from_file(v, row, e) : give_nothing(v, row, e);
}

static enum status give_no_page(struct virtual_memory *v, struct virtual_page *p, const char *why,
				struct err *e)
{
	p->why = why;
	return hand_out(v, p, e);
}

/* Committed and never touched: each of them is zeros. */
static enum status give_zeros(struct virtual_memory *v, struct smear_row *row, struct err *e)
{
	const uint64_t pages = row->pages;
	enum status st = ST_OK;

	row->pte.state = PTE_DEMAND_ZERO;
	row->verdict = v->smear.still ? VERDICT_IMAGE : VERDICT_VAD;
	if (v->reader->unread)
		return give_page(v, row, e);
	row->pages = 1;
	for (uint64_t i = 0; i < pages && !st; i++, row->va += PAGE_SIZE)
		st = give_page(v, row, e);
	return st;
}

/* Pages without an entry, `p`: what their VAD says of as many of them as it has one answer for. */
static enum status give_by_vad(struct virtual_memory *v, struct virtual_page *p, struct err *e)
{
	uint64_t pages = 1, prototype = 0;
	const enum vad_answer answer = v->vads.range(v->vads.context, p->va, &pages, &prototype);
	struct smear_row row = p->row;

	p->pages = p->row.pages = row.pages = MIN(p->pages, pages);
	p->vad = answer;
	switch (answer) {
	case VAD_SAYS_SECTION:
		return give_by_prototype(v, &row, p->pages, prototype, e);
	case VAD_SAYS_ZEROS:
		return give_zeros(v, &row, e);
	case VAD_SAYS_RESERVED:
		return give_no_page(v, p, "reserved by its VAD, and not committed", e);
	case VAD_SAYS_UNMAPPED:
		return give_no_page(v, p, "no entry and no VAD: not mapped", e);
	default:
		return give_no_page(v, p, p->why, e);
	}
}

static bool is_for_vad(const struct virtual_memory *v, const struct virtual_page *p)
{
	return v->vads.range && p->level && !p->row.raw && p->row.pte.state == PTE_EMPTY &&
	       !is_kernel_address(v, p->va);
}

/*
 * A run of them, which was explained once: a VAD may have an answer for each page. They lie in the
 * user half, so that no end wraps.
 */
static enum status give_run_by_vad(struct virtual_memory *v, const struct virtual_page *run,
				   struct err *e)
{
	const uint64_t end = run->va + run->pages * PAGE_SIZE;
	enum status st = ST_OK;

	while (!st && v->next < end) {
		struct virtual_page p = *run;

		p.va = p.row.va = v->next;
		p.pages = p.row.pages = (end - v->next) >> PAGE_SHIFT;
		st = give_by_vad(v, &p, e);
	}
	return st;
}

/* From v->next up to `last`. */
static enum status give_gap(struct virtual_memory *v, uint64_t last, struct err *e)
{
	enum status st = ST_OK;

	while (!st && !v->through && v->next <= last) {
		const uint64_t left = ((last - v->next) >> PAGE_SHIFT) + 1;
		struct virtual_page p, q;

		st = explain(v, v->next, &p, e);
		while (!st && p.pages < left) {
			st = explain(v, v->next + p.pages * PAGE_SIZE, &q, e);
			if (st || !is_as_empty(&p, &q))
				break;
			p.pages += q.pages;
		}
		if (st)
			break;
		p.pages = MIN(p.pages, left);
		p.row.va = p.va;
		p.row.pages = p.pages;
		st = is_for_vad(v, &p) ? give_run_by_vad(v, &p, e) : hand_out(v, &p, e);
	}
	return st;
}

static enum status give_row(struct virtual_memory *v, const struct smear_row *row, struct err *e)
{
	struct smear_row one = *row;
	enum status st = row->va ? give_gap(v, row->va - 1, e) : ST_OK;

	if (!st && row->pte.state == PTE_COMPRESSED && !v->reader->unread)
		return give_from_store(v, row, e);
	if (!st && is_in_file(v, row))
		return give_from_file(v, row, e);
	if (!st && !has_content(row))
		return give_nothing(v, row, e);
	if (!st && v->reader->unread)
		return give_page(v, row, e);
	one.pages = 1;
	for (uint64_t i = 0; i < row->pages && !st; i++) {
		st = give_page(v, &one, e);
		one.va += PAGE_SIZE;
		if (pte_place(&row->pte) == PLACE_FRAME)
			one.pte.frame += PAGE_SIZE;
		else if (pte_place(&row->pte) == PLACE_SLOT)
			one.pte.slot++;
	}
	return st;
}

static enum status take_mapping(struct virtual_memory *v, struct mapping *x, struct err *e)
{
	struct verdict_span span;
	enum status st = ST_OK;

	follow_prototype(v, x);
	while (!st && mapping_judge(x, &span)) {
		const struct smear_row row = mapping_row(x, &span);

		st = v->rows ? v->rows->row(v->rows->context, &row, e) : give_row(v, &row, e);
	}
	return st;
}

static enum status take_mappings(struct virtual_memory *v, uint64_t first, uint64_t last,
				 struct err *e)
{
	struct mapping_walk w;
	struct mapping x;
	enum status st = mapping_walk_range(&w, v->m, &v->space, v->request.copy, first, last, e);

	while (!st) {
		st = mapping_next(&w, &x, e);
		if (st)
			return st == ST_END ? ST_OK : st;
		st = take_mapping(v, &x, e);
	}
	return st;
}

/* The pages that [va, va + length) touches: their first and last byte. */
static enum status check_addresses(enum paging_mode mode, uint64_t va, uint64_t length,
				   uint64_t *first, uint64_t *last, struct err *e)
{
	if (!length || length - 1 > UINT64_MAX - va)
		return err_set(e, ST_USAGE,
			       "0x%" PRIx64 " and a length of %" PRIu64
			       " lead beyond the last address",
			       va, length);
	*last = va + (length - 1);
	if (paging_canonical(mode, va) != va || paging_canonical(mode, *last) != *last ||
	    va >> 63 != *last >> 63)
		return err_set(e, ST_USAGE,
			       "0x%" PRIx64 "-0x%" PRIx64
			       " is not a virtual address: tables of %d levels do not reach it",
			       va, *last, (int)mode);
	*first = va & ~(uint64_t)(PAGE_SIZE - 1);
	*last |= PAGE_SIZE - 1;
	return ST_OK;
}

/* What lies between the mappings is told only to who wants pages. */
static enum status visit_steps(struct virtual_memory *v, uint64_t first, uint64_t end,
			       struct err *e)
{
	enum status st;
	uint64_t last;

	v->next = first;
	v->through = false;
	do {
		last = MIN(end, first | (STEP_BYTES - 1));
		st = take_mappings(v, first, last, e);
		if (!st && !v->rows)
			st = give_gap(v, last, e);
		first = last + 1;
	} while (!st && last != end);
	return st;
}

enum status virtual_read(struct virtual_memory *v, uint64_t va, uint64_t length,
			 const struct virtual_reader *reader, struct virtual_counts *counts,
			 struct err *e)
{
	uint64_t first = 0, end = 0;
	const enum status st = check_addresses(v->info.mode, va, length, &first, &end, e);

	v->rows = NULL;
	v->reader = reader;
	v->counts = counts;
	return st ? st : visit_steps(v, first, end, e);
}

enum status virtual_read_rows(struct virtual_memory *v, uint64_t va, uint64_t length,
			      const struct virtual_rows *rows, struct err *e)
{
	uint64_t first = 0, end = 0;
	const enum status st = check_addresses(v->info.mode, va, length, &first, &end, e);

	v->rows = rows;
	return st ? st : visit_steps(v, first, end, e);
}
