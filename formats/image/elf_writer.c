/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An ELF64 core of physical memory: header, program headers (notes first, then a PT_LOAD for each
 * range), section header 0 if there are too many of them, notes, and from the next page on the
 * bytes of all ranges, back to back.
 *
 * The kernel's image has a PT_LOAD of its own, as in a kdump: by its virtual address drgn finds the
 * root of the page tables (read_memory_via_pgtable() in libdrgn/program.c, 0.0.22). Unlike there it
 * is cut out of the range that it lies in, and segments rise in p_paddr: volatility3 wants them
 * sorted, and loses what follows one that lies inside another (layers/segmented.py, 2.x).
 */
#include <string.h>

#include "formats/base/bytes.h"
#include "formats/image/elf_core.h"

#define TABLE_BATCH 1024 /* program headers that are written at once */

/* What the headers say of the file. */
struct elf_layout {
	uint64_t phnum;
	uint64_t notes; /* offset */
	uint64_t data;
	bool extended; /* phnum is in section header 0 */
};

static const struct image_kernel *elf_kernel_of(const struct image_spec *spec)
{
	static const struct image_kernel none;

	return spec->own ? spec->own : &none;
}

/* Whether a range goes on over that address. */
static bool cuts_range(const struct image_spec *spec, uint64_t pa)
{
	const struct range *r = range_list_find(spec->ranges, pa);

	return r && r->first < pa;
}

static struct elf_layout lay_out_elf(const struct image_spec *spec)
{
	const struct image_kernel *k = elf_kernel_of(spec);
	struct elf_layout l = { .phnum = spec->ranges->count + (k->notes_size ? 1 : 0) };

	if (k->image_bytes)
		l.phnum += cuts_range(spec, k->image_pa) +
			   cuts_range(spec, k->image_pa + k->image_bytes);
	l.extended = l.phnum >= ELF_PN_XNUM;
	l.notes = ELF_EHDR_SIZE + l.phnum * ELF_PHDR_SIZE + (l.extended ? ELF_SHDR_SIZE : 0);
	l.data = (l.notes + k->notes_size + PAGE_SIZE - 1) & ~(uint64_t)(PAGE_SIZE - 1);
	return l;
}

static uint16_t elf_machine_of(const struct image_kernel *k)
{
	return k->machine.arch == ARCH_ARM64 ? ELF_MACHINE_ARM64 : ELF_MACHINE_X86_64;
}

static enum status put_ehdr(struct sink *out, const struct image_kernel *k,
			    const struct elf_layout *l, struct err *e)
{
	uint8_t h[ELF_EHDR_SIZE] = ELF_MAGIC;
	struct appender a = { h + 16 };

	h[4] = ELF_CLASS_64;
	h[5] = ELF_DATA_LSB;
	h[6] = ELF_VERSION;
	app_le16(&a, ELF_TYPE_CORE);
	app_le16(&a, elf_machine_of(k));
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

/*
 * `align` 0 and 1 mean the same (gABI, chapter 5), but crash takes a core whose first PT_LOAD has
 * another one for a netdump, and then does not look at VMCOREINFO (is_netdump() in netdump.c,
 * 8.0.2). A kdump has 0 (crash_prepare_elf64_headers() in kernel/kexec_file.c, since 6.6 in
 * crash_core.c).
 */
static void app_phdr(struct appender *a, uint32_t type, const struct elf_segment *s, uint64_t align)
{
	app_le32(a, type);
	app_le32(a, type == ELF_PT_LOAD ? ELF_FLAGS_RWX : 0);
	app_le64(a, s->offset);
	app_le64(a, s->vaddr);
	app_le64(a, s->paddr);
	app_le64(a, s->filesz);
	app_le64(a, s->memsz);
	app_le64(a, align);
}

/*
 * What begins at `pa` and goes up to `last` at most. p_vaddr is the direct map's, as in a kdump,
 * when it is known where that is. Otherwise 0, as QEMU's dump-guest-memory has it: crash and
 * libkdumpfile find memory by p_paddr, and walk the page tables that VMCOREINFO names.
 */
static struct elf_segment segment_at(const struct image_kernel *k, uint64_t pa, uint64_t last,
				     uint64_t offset)
{
	const uint64_t image_end = k->image_pa + k->image_bytes;
	const bool inside = pa >= k->image_pa && pa < image_end;
	uint64_t end = last + 1;
	struct elf_segment s = { .offset = offset, .paddr = pa };

	if (inside) {
		end = MIN(end, image_end);
		s.vaddr = pa - k->image_pa + k->image_va;
	} else {
		if (k->image_bytes && pa < k->image_pa)
			end = MIN(end, k->image_pa);
		s.vaddr = k->direct_map ? k->direct_map + pa : 0;
	}
	s.filesz = s.memsz = end - pa;
	return s;
}

/* Program headers on their way out. */
struct phdr_table {
	struct sink *out;
	uint8_t *batch; /* TABLE_BATCH of them */
	struct appender next;
	uint64_t align;
	uint64_t offset; /* of the next segment's bytes */
};

static enum status phdr_table_flush(struct phdr_table *t, struct err *e)
{
	const size_t len = (size_t)(t->next.at - t->batch);

	t->next.at = t->batch;
	return sink_write(t->out, t->batch, len, e);
}

static enum status put_load_range(struct phdr_table *t, const struct image_kernel *k,
				  struct range r, struct err *e)
{
	enum status st = ST_OK;

	while (r.first <= r.last && !st) {
		const struct elf_segment s = segment_at(k, r.first, r.last, t->offset);

		app_phdr(&t->next, ELF_PT_LOAD, &s, t->align);
		t->offset += s.filesz;
		r.first += s.memsz;
		if (t->next.at == t->batch + TABLE_BATCH * ELF_PHDR_SIZE)
			st = phdr_table_flush(t, e);
	}
	return st;
}

static enum status put_loads(struct sink *out, const struct image_spec *spec, uint64_t offset,
			     struct err *e)
{
	_cleanup_free_ uint8_t *batch = malloc(TABLE_BATCH * ELF_PHDR_SIZE);
	struct phdr_table t = {
		.out = out,
		.batch = batch,
		.next = { batch },
		.align = elf_kernel_of(spec)->notes_size ? 0 : PAGE_SIZE,
		.offset = offset,
	};
	enum status st = ST_OK;

	if (!batch)
		return err_nomem(e);
	for (size_t i = 0; i < spec->ranges->count && !st; i++)
		st = put_load_range(&t, elf_kernel_of(spec), spec->ranges->at[i], e);
	return st ? st : phdr_table_flush(&t, e);
}

static enum status put_note_phdr(struct sink *out, uint64_t offset, uint64_t size, struct err *e)
{
	uint8_t h[ELF_PHDR_SIZE];
	struct appender a = { h };

	app_phdr(&a, ELF_PT_NOTE,
		 &(struct elf_segment){ .offset = offset, .filesz = size, .memsz = size },
		 4); /* they are padded to 4 bytes */
	return sink_write(out, h, sizeof(h), e);
}

/*
 * gABI, "PN_XNUM": sh_info has the count. e_shnum is 1, because there is one; the other members are
 * 0 as fs/binfmt_elf.c leaves them.
 */
static enum status put_elf_section(struct sink *out, uint64_t phnum, struct err *e)
{
	uint8_t h[ELF_SHDR_SIZE] = { 0 };

	put_le32(h + ELF_SHDR_INFO, (uint32_t)phnum);
	return sink_write(out, h, sizeof(h), e);
}

static enum status put_elf_headers(struct sink *out, const struct image_spec *spec, struct err *e)
{
	const struct image_kernel *k = elf_kernel_of(spec);
	const struct elf_layout l = lay_out_elf(spec);
	enum status st = put_ehdr(out, k, &l, e);

	if (!st && k->notes_size)
		st = put_note_phdr(out, l.notes, k->notes_size, e);
	if (!st)
		st = put_loads(out, spec, l.data, e);
	if (!st && l.extended)
		st = put_elf_section(out, l.phnum, e);
	if (!st && k->notes_size)
		st = sink_write(out, k->notes, k->notes_size, e);
	return st ? st : sink_skip(out, l.data - l.notes - k->notes_size, e);
}

static enum status elf_create(const struct image_spec *spec, struct sink *out,
			      struct image_writer **ret, struct err *e)
{
	struct image_writer *w;
	enum status st;

	/* With the notes and two cuts there may be three program headers more. */
	if (spec->ranges->count > ELF_PHDRS_MAX - 3)
		return err_set(e, ST_INPUT, "%zu ranges are too many for an ELF core",
			       spec->ranges->count);
	st = put_elf_headers(out, spec, e);
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
	return ST_OK;
}

static void elf_destroy(struct image_writer *w)
{
	free(w);
}

const struct image_format elf_format = {
	.name = "elf",
	.summary = "ELF64 core with the kernel's notes: for crash, drgn, makedumpfile",
	.suffix = ".elf",
	.create = elf_create,
	.put = elf_put,
	.finish = elf_finish,
	.destroy = elf_destroy,
};
