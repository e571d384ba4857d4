/* SPDX-License-Identifier: Apache-2.0 */
/* Why a page has no content. */
#include "agent/examine/virtual/virtual_internal.h"

bool virtual__is_kernel_address(const struct virtual_memory *v, uint64_t va)
{
	return v->virt.mode == PAGING_PAE ? va >= UINT64_C(0xc0000000) : va >> 63;
}

/*
 * Windows, no entry. VADs know the addresses that a process has for itself; so they are no answer
 * for the kernel's, nor where nobody knows whether these are a process's tables at all.
 */
static const char *why_empty(const struct virtual_memory *v, uint64_t va)
{
	if (virtual__is_kernel_address(v, va))
		return v->info.known ? "no entry: not mapped"
				     : "no entry: not mapped, or this is not a top-level table";
	return v->info.known ? "no entry: needs the VAD"
			     : "no entry: needs the VAD, or this is not a process's table";
}

static const char *why_unknown(const struct virtual_memory *v, const struct pte *p)
{
	const struct linux_pte_context *c = &v->m->entries.linux_;

	if (!v->smear.layout.found)
		return "its entry has no known layout";
	if (!v->smear.layout.device_private && c->unsure >> p->file % LINUX_PTE_TYPES & 1)
		return "what its entry means depends on CONFIG_DEVICE_PRIVATE, which is not known";
	return "no fitting layout explains its entry, or several disagree";
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
	return "a marker that no known kernel uses";
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
		if (virtual__is_kernel_address(v, row->va))
			return "its entry is for a VAD, and the kernel's addresses have none";
		return v->vads.range ? "its VAD leads to no readable prototype entry"
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
		return "the entry does not refer to a page";
	}
}

const char *virtual__why(const struct virtual_memory *v, const struct smear_row *row)
{
	const bool slot = pte_place(&row->pte) == PLACE_SLOT;

	switch (row->verdict) {
	case VERDICT_OUTSIDE:
		return slot ? "its slot lies past the end of the file"
			    : "its frame is not in the RAM to be acquired";
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

enum status virtual__explain(struct virtual_memory *v, uint64_t va, struct virtual_page *ret,
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
						       : "a page table on the way is not a table";
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
