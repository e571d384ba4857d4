/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An ELF64 core of physical memory: header, program headers (notes first, then a PT_LOAD for each
 * range), section header 0 if there are too many of them, notes, and from the next page on the
 * bytes of all ranges, back to back.
 */
#include <string.h>

#include "formats/base/bytes.h"
#include "formats/elf_core.h"

#define TABLE_BATCH 1024 /* program headers that are written at once */

/* What the headers say of the file. */
struct layout {
	uint64_t phnum;
	uint64_t notes; /* offset */
	uint64_t data;
	bool extended; /* phnum is in section header 0 */
};

static struct layout lay_out(const struct image_spec *spec)
{
	struct layout l = { .phnum = spec->ranges->count + (spec->notes_size ? 1 : 0) };

	l.extended = l.phnum >= ELF_PN_XNUM;
	l.notes = ELF_EHDR_SIZE + l.phnum * ELF_PHDR_SIZE + (l.extended ? ELF_SHDR_SIZE : 0);
	l.data = (l.notes + spec->notes_size + PAGE_SIZE - 1) & ~(uint64_t)(PAGE_SIZE - 1);
	return l;
}

static enum status put_ehdr(struct sink *out, const struct layout *l, struct err *e)
{
	uint8_t h[ELF_EHDR_SIZE] = ELF_MAGIC;
	struct appender a = { h + 16 };

	h[4] = ELF_CLASS_64;
	h[5] = ELF_DATA_LSB;
	h[6] = ELF_VERSION;
	app_le16(&a, ELF_TYPE_CORE);
	app_le16(&a, ELF_MACHINE_X86_64);
	app_le32(&a, ELF_VERSION);
	app_le64(&a, 0);                                                          /* e_entry */
	app_le64(&a, ELF_EHDR_SIZE);                                              /* e_phoff */
	app_le64(&a, l->extended ? ELF_EHDR_SIZE + l->phnum * ELF_PHDR_SIZE : 0); /* e_shoff */
	app_le32(&a, 0);                                                          /* e_flags */
	app_le16(&a, ELF_EHDR_SIZE);
	app_le16(&a, ELF_PHDR_SIZE);
	app_le16(&a, l->extended ? ELF_PN_XNUM : (uint16_t)l->phnum);
	app_le16(&a, l->extended ? ELF_SHDR_SIZE : 0);
	app_le16(&a, l->extended ? 1 : 0); /* e_shnum */
	app_le16(&a, 0);                   /* e_shstrndx */
	return sink_write(out, h, sizeof(h), e);
}

static void app_phdr(struct appender *a, uint32_t type, const struct elf_segment *s)
{
	app_le32(a, type);
	app_le32(a, type == ELF_PT_LOAD ? ELF_FLAGS_RWX : 0);
	app_le64(a, s->offset);
	app_le64(a, s->vaddr);
	app_le64(a, s->paddr);
	app_le64(a, s->filesz);
	app_le64(a, s->memsz);
	app_le64(a, type == ELF_PT_LOAD ? PAGE_SIZE : 4); /* notes are padded to 4 bytes */
}

/*
 * p_vaddr is the direct map's, as in a kdump, when the source told where that is. Otherwise 0, as
 * QEMU's dump-guest-memory has it: crash, drgn and libkdumpfile find memory by p_paddr, and walk
 * the page tables that VMCOREINFO names.
 */
static enum status put_loads(struct sink *out, const struct image_spec *spec, uint64_t offset,
			     struct err *e)
{
	_cleanup_free_ uint8_t *batch = malloc(TABLE_BATCH * ELF_PHDR_SIZE);
	const struct range_list *l = spec->ranges;
	enum status st = ST_OK;

	if (!batch)
		return err_nomem(e);
	for (size_t i = 0; i < l->count && !st; i += TABLE_BATCH) {
		const size_t n = MIN(l->count - i, TABLE_BATCH);
		struct appender a = { batch };

		for (size_t k = i; k < i + n; k++) {
			const struct elf_segment s = {
				.offset = offset,
				.vaddr = spec->direct_map ? spec->direct_map + l->at[k].first : 0,
				.paddr = l->at[k].first,
				.filesz = range_bytes(l->at[k]),
				.memsz = range_bytes(l->at[k]),
			};

			app_phdr(&a, ELF_PT_LOAD, &s);
			offset += s.filesz;
		}
		st = sink_write(out, batch, n * ELF_PHDR_SIZE, e);
	}
	return st;
}

static enum status put_note_phdr(struct sink *out, const struct image_spec *spec, uint64_t offset,
				 struct err *e)
{
	uint8_t h[ELF_PHDR_SIZE];
	struct appender a = { h };

	app_phdr(&a, ELF_PT_NOTE,
		 &(struct elf_segment){
			 .offset = offset, .filesz = spec->notes_size, .memsz = spec->notes_size });
	return sink_write(out, h, sizeof(h), e);
}

/*
 * gABI, "PN_XNUM": sh_info has the count. e_shnum is 1, because there is one; the other members are
 * 0 as fs/binfmt_elf.c leaves them.
 */
static enum status put_section(struct sink *out, uint64_t phnum, struct err *e)
{
	uint8_t h[ELF_SHDR_SIZE] = { 0 };

	put_le32(h + ELF_SHDR_INFO, (uint32_t)phnum);
	return sink_write(out, h, sizeof(h), e);
}

static enum status put_headers(struct sink *out, const struct image_spec *spec, struct err *e)
{
	const struct layout l = lay_out(spec);
	enum status st = put_ehdr(out, &l, e);

	if (!st && spec->notes_size)
		st = put_note_phdr(out, spec, l.notes, e);
	if (!st)
		st = put_loads(out, spec, l.data, e);
	if (!st && l.extended)
		st = put_section(out, l.phnum, e);
	if (!st && spec->notes_size)
		st = sink_write(out, spec->notes, spec->notes_size, e);
	return st ? st : sink_skip(out, l.data - l.notes - spec->notes_size, e);
}

static enum status elf_create(const struct image_spec *spec, struct sink *out,
			      struct image_writer **ret, struct err *e)
{
	struct image_writer *w;
	enum status st;

	if (spec->ranges->count >= ELF_PHDRS_MAX)
		return err_set(e, ST_INPUT, "%zu ranges are too many for an ELF core",
			       spec->ranges->count);
	st = put_headers(out, spec, e);
	if (st)
		return st;
	w = calloc(1, sizeof(*w));
	if (!w)
		return err_nomem(e);
	*w = (struct image_writer){ .format = &elf_format, .spec = spec, .out = out };
	*ret = w;
	return ST_OK;
}

static enum status elf_put(struct image_writer *w, const struct image_piece *p, struct err *e)
{
	return image__write(w->out, p, (uint64_t)p->pages * PAGE_SIZE, e);
}

/* One that ends early lacks bytes that its headers name: readers see that. */
static enum status elf_finish(struct image_writer *w, bool whole, struct err *e)
{
	(void)w;
	(void)whole;
	(void)e;
	return ST_OK;
}

static void elf_destroy(struct image_writer *w)
{
	free(w);
}

const struct image_format elf_format = {
	.name = "elf",
	.summary = "ELF64 core with the source's notes: for crash, drgn, libkdumpfile",
	.suffix = ".elf",
	.create = elf_create,
	.put = elf_put,
	.finish = elf_finish,
	.destroy = elf_destroy,
};
