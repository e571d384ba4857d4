/* SPDX-License-Identifier: Apache-2.0 */
#include "formats/image/xen_core.h"

#include <inttypes.h>
#include <string.h>

#include "formats/base/bytes.h"

/* A name of ours with its NUL, and more. */
#define NAME_ROOM   16

#define FRAME_BYTES 8
/* 52 bits of address: what x86-64 can have. */
#define FRAMES_END  ((uint64_t)1 << 40)
/* A page that the guest did not have: tools/libs/guest/xg_core.c, XC_CORE_INVALID_PFN. */
#define NO_FRAME    UINT64_MAX

struct section {
	uint32_t name;
	uint64_t offset, size;
};

static enum status read_elf_section(struct blob *b, const struct elf_sections *s, unsigned i,
				    struct section *ret, struct err *e)
{
	uint8_t h[ELF_SHDR_SIZE];
	enum status st;

	if (!range_fits(s->offset, (uint64_t)s->count * ELF_SHDR_SIZE, b->size))
		return err_set(e, ST_CORRUPT, "section headers reach past the end");
	st = blob_read(b, s->offset + (uint64_t)i * sizeof(h), h, sizeof(h), e);
	*ret = (struct section){ get_le32(h), get_le64(h + 24), get_le64(h + 32) };
	return st;
}

static bool has_elf_name(struct blob *b, const struct section *names, const struct section *s,
			 const char *name)
{
	char text[NAME_ROOM] = "";
	const size_t len = strlen(name) + 1;

	return range_fits(s->name, len, names->size) && names->offset <= INT64_MAX &&
	       !blob_read(b, names->offset + s->name, text, len, NULL) && !memcmp(text, name, len);
}

struct xen_sections {
	struct section pages, frames;
	bool has_pages, has_frames, paravirtual;
};

static enum status find_xen_sections(struct blob *b, const struct elf_sections *s,
				     struct xen_sections *ret, struct err *e)
{
	struct section names, one;
	enum status st = read_elf_section(b, s, s->names, &names, e);

	*ret = (struct xen_sections){ 0 };
	for (unsigned i = 0; i < s->count && !st; i++) {
		st = read_elf_section(b, s, i, &one, e);
		if (st)
			break;
		if (has_elf_name(b, &names, &one, ".xen_pages")) {
			ret->pages = one;
			ret->has_pages = true;
		} else if (has_elf_name(b, &names, &one, ".xen_pfn")) {
			ret->frames = one;
			ret->has_frames = true;
		} else if (has_elf_name(b, &names, &one, ".xen_p2m")) {
			ret->paravirtual = true;
		}
	}
	return st;
}

static enum status check_xen_sections(const struct xen_sections *x, uint64_t size, struct err *e)
{
	if (!x->has_pages)
		return ST_NOT_MINE;
	if (x->paravirtual)
		return err_set(e, ST_INPUT,
			       "is the core of a paravirtualized Xen guest, which is not read; "
			       "crash opens it");
	if (!x->has_frames)
		return err_set(e, ST_CORRUPT, "Xen core: no section says what its pages are");
	if (!range_fits(x->frames.offset, x->frames.size, size))
		return err_set(e, ST_CORRUPT, "Xen core: the list of frames reaches past the end");
	if (x->pages.offset > INT64_MAX || x->frames.size % FRAME_BYTES ||
	    x->pages.size / PAGE_SIZE != x->frames.size / FRAME_BYTES)
		return err_set(e, ST_CORRUPT,
			       "Xen core: %" PRIu64 " bytes of pages do not match %" PRIu64
			       " bytes of frame numbers; the file is damaged",
			       x->pages.size, x->frames.size);
	return ST_OK;
}

static enum status add_xen_page(struct elf_core *c, uint64_t frame, uint64_t offset, struct err *e)
{
	struct elf_segment *last = c->n_loads ? &c->loads[c->n_loads - 1] : NULL;

	if (frame == NO_FRAME)
		return ST_OK;
	if (frame >= FRAMES_END)
		return err_set(e, ST_CORRUPT,
			       "Xen core: frame number %" PRIu64
			       " is out of range; the file is damaged",
			       frame);
	if (last && last->paddr + last->memsz == frame << PAGE_SHIFT &&
	    last->offset + last->filesz == offset) {
		last->filesz += PAGE_SIZE;
		last->memsz += PAGE_SIZE;
		return ST_OK;
	}
	return elf_core_add_load(c,
				 &(struct elf_segment){ .offset = offset,
							.paddr = frame << PAGE_SHIFT,
							.filesz = PAGE_SIZE,
							.memsz = PAGE_SIZE },
				 e);
}

enum status xen_core_add(struct elf_core *c, struct blob *b, const struct elf_sections *s,
			 struct err *e)
{
	uint8_t batch[512 * FRAME_BYTES];
	struct xen_sections x;
	enum status st;

	if (!s->count || s->names >= s->count)
		return ST_NOT_MINE;
	st = find_xen_sections(b, s, &x, e);
	if (!st)
		st = check_xen_sections(&x, b->size, e);
	for (uint64_t i = 0; i < x.frames.size / FRAME_BYTES && !st; i++) {
		const size_t at = i * FRAME_BYTES % sizeof(batch);

		if (at == 0)
			st = blob_read(b, x.frames.offset + i * FRAME_BYTES, batch,
				       (size_t)MIN(x.frames.size - i * FRAME_BYTES, sizeof(batch)),
				       e);
		if (!st)
			st = add_xen_page(c, get_le64(batch + at), x.pages.offset + i * PAGE_SIZE,
					  e);
	}
	return st;
}
