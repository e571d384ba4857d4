/* SPDX-License-Identifier: Apache-2.0 */
/* Pages by what an entry says of them, and the prototype entries that some of them lead to. */
#include <string.h>

#include "agent/examine/virtual/virtual_internal.h"
#include "formats/base/bytes.h"

static bool copy_captured_page(const struct rsz_page *p, uint8_t *buf)
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
static inline enum status read_stream_page(struct virtual_memory *v, uint32_t stream,
					   uint64_t address, uint8_t *buf, struct rsz_times *when,
					   struct err *e)
{
	struct rsz_page p;
	const enum status st = rsz_cursor_page(cursor_of(v, stream), stream, address, &p, e);

	if (st)
		return st;
	if (!copy_captured_page(&p, buf))
		return ST_END;
	*when = (struct rsz_times){ p.start, p.end };
	return ST_OK;
}

enum status virtual__read_captured(struct virtual_memory *v, const struct smear_row *row,
				   uint8_t *buf, struct err *e)
{
	const uint64_t at =
		pte_place(&row->pte) == PLACE_FRAME ? row->pte.frame : row->pte.slot * PAGE_SIZE;
	struct rsz_times when;

	return row->older ? captures_read_older(cursor_of(v, row->stream), row->older, buf, e)
			  : read_stream_page(v, row->stream, at, buf, &when, e);
}

bool virtual__locate_page(const struct virtual_memory *v, const struct pte *p, uint32_t *stream,
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
	return virtual__locate_page(v, &p, &stream, &address) &&
	       !read_stream_page(v, stream, address, page, when, NULL);
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
bool virtual__read_prototype(struct virtual_memory *v, uint64_t va, struct pte *ret,
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

void virtual__follow_prototype(struct virtual_memory *v, struct mapping *x)
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
	    !virtual__read_prototype(v, at, pte, &x->times))
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
	*ret = !st && virtual__read_prototype(v, at, &pte, &when) &&
	       pte_place(&pte) == PLACE_FRAME && pte.frame == frame;
	return st;
}
