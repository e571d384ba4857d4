/* SPDX-License-Identifier: Apache-2.0 */
#include "formats/image/elf_core.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "formats/base/array.h"
#include "formats/base/bytes.h"
#include "formats/image/xen_core.h"

/* What of the ELF header leads on to the program headers. */
struct ehdr {
	enum machine_arch arch;
	uint64_t phoff;
	uint64_t phnum;
	struct elf_sections sections;
};

static enum status check_ident(const uint8_t *ident, struct err *e)
{
	if (ident[4] != ELF_CLASS_64)
		return err_set(e, ST_INPUT, "ELF class %u, only 64-bit cores are read", ident[4]);
	if (ident[5] != ELF_DATA_LSB)
		return err_set(e, ST_INPUT, "ELF byte order %u, only little-endian cores are read",
			       ident[5]);
	if (ident[6] != ELF_VERSION)
		return err_set(e, ST_CORRUPT, "ELF version %u is unknown", ident[6]);
	return ST_OK;
}

static enum status parse_ehdr(struct blob *b, struct ehdr *ret, struct err *e)
{
	uint8_t h[ELF_EHDR_SIZE] = { 0 };
	struct cursor c = cursor_over(h, sizeof(h));
	size_t got = 0;
	enum status st = b->read_at(b, 0, h, sizeof(h), &got, e);

	if (st)
		return st;
	if (got < ELF_MAGIC_SIZE || memcmp(h, ELF_MAGIC, ELF_MAGIC_SIZE) != 0)
		return err_set(e, ST_NOT_MINE, "not an ELF file");
	if (got < sizeof(h))
		return err_set(e, ST_CORRUPT, "ELF header is cut short");
	st = check_ident(cur_bytes(&c, 16), e);
	if (st)
		return st;

	const uint16_t type = cur_le16(&c);
	const uint16_t machine = cur_le16(&c);
	ret->arch = machine == ELF_MACHINE_ARM64 ? ARCH_ARM64 : ARCH_X86_64;
	cur_bytes(&c, 4 + 8); /* e_version again, e_entry */
	ret->phoff = cur_le64(&c);
	ret->sections.offset = cur_le64(&c);
	cur_bytes(&c, 4 + 2); /* e_flags, e_ehsize */
	const uint16_t phentsize = cur_le16(&c);
	ret->phnum = cur_le16(&c);
	cur_bytes(&c, 2); /* e_shentsize */
	ret->sections.count = cur_le16(&c);
	ret->sections.names = cur_le16(&c);

	if (type != ELF_TYPE_CORE)
		return err_set(e, ST_INPUT, "ELF type %u, not a core file", type);
	if (machine != ELF_MACHINE_X86_64 && machine != ELF_MACHINE_ARM64)
		return err_set(e, ST_INPUT, "ELF machine %u, only x86-64 and ARM64 are read",
			       machine);
	if (ret->phnum && phentsize != ELF_PHDR_SIZE)
		return err_set(e, ST_CORRUPT, "program headers of %u bytes instead of %d",
			       phentsize, ELF_PHDR_SIZE);
	return ST_OK;
}

/* gABI, "PN_XNUM": the real count is sh_info of section header 0. */
static enum status extended_phnum(struct blob *b, struct ehdr *h, struct err *e)
{
	uint8_t sh[ELF_SHDR_SIZE];
	enum status st;

	if (!h->sections.offset)
		return err_set(e, ST_CORRUPT, "PN_XNUM without a section header");
	st = blob_read(b, h->sections.offset, sh, sizeof(sh), e);
	if (st)
		return err_add(e, st, "section header 0");
	h->phnum = get_le32(sh + ELF_SHDR_INFO);
	return ST_OK;
}

static enum status check_core_table(const struct ehdr *h, uint64_t size, struct err *e)
{
	if (h->phnum > ELF_PHDRS_MAX)
		return err_set(e, ST_CORRUPT, "%" PRIu64 " program headers are too many", h->phnum);
	if (!range_fits(h->phoff, h->phnum * ELF_PHDR_SIZE, size))
		return err_set(e, ST_CORRUPT,
			       "%" PRIu64 " program headers at offset %" PRIu64
			       " reach past the end",
			       h->phnum, h->phoff);
	return ST_OK;
}

enum status elf_core_add_load(struct elf_core *c, const struct elf_segment *s, struct err *e)
{
	if (s->filesz > s->memsz)
		return err_set(e, ST_CORRUPT,
			       "0x%" PRIx64 " bytes in the file for 0x%" PRIx64 " of memory",
			       s->filesz, s->memsz);
	if (!s->memsz)
		return ST_OK;
	if (c->n_loads == ELF_PHDRS_MAX)
		return err_set(e, ST_CORRUPT, "memory in more than %" PRIu64 " pieces",
			       ELF_PHDRS_MAX);
	if (!ARRAY_ROOM(c->loads, c->n_loads, c->loads_room))
		return err_nomem(e);
	c->loads[c->n_loads++] = *s;
	return ST_OK;
}

static enum status add_notes(struct elf_core *c, struct blob *b, const struct elf_segment *s,
			     struct err *e)
{
	uint8_t *notes;
	enum status st;

	if (!s->filesz)
		return ST_OK;
	if (!range_fits(s->offset, s->filesz, b->size))
		return err_set(e, ST_CORRUPT, "notes reach past the end of the file");
	if (s->filesz > ELF_NOTES_MAX - c->notes_size)
		return err_set(e, ST_CORRUPT, "more than %" PRIu64 " bytes of notes",
			       ELF_NOTES_MAX);
	notes = realloc(c->notes, c->notes_size + (size_t)s->filesz);
	if (!notes)
		return err_nomem(e);
	c->notes = notes;
	st = blob_read(b, s->offset, notes + c->notes_size, (size_t)s->filesz, e);
	if (!st)
		c->notes_size += (size_t)s->filesz;
	return st;
}

static enum status add_phdr(struct elf_core *c, struct blob *b, const uint8_t *at, struct err *e)
{
	struct cursor cur = cursor_over(at, ELF_PHDR_SIZE);
	const uint32_t type = cur_le32(&cur);
	struct elf_segment s;

	cur_bytes(&cur, 4); /* p_flags: /proc/kcore says rwx everywhere, whatever the pages are */
	s.offset = cur_le64(&cur);
	s.vaddr = cur_le64(&cur);
	s.paddr = cur_le64(&cur);
	s.filesz = cur_le64(&cur);
	s.memsz = cur_le64(&cur);
	if (type == ELF_PT_LOAD)
		return elf_core_add_load(c, &s, e);
	if (type == ELF_PT_NOTE)
		return add_notes(c, b, &s, e);
	return ST_OK;
}

/* In batches, so that what is allocated follows what was read and not what was promised. */
static enum status parse_phdrs(struct elf_core *c, struct blob *b, const struct ehdr *h,
			       struct err *e)
{
	uint8_t batch[64 * ELF_PHDR_SIZE];
	enum status st = ST_OK;

	for (uint64_t i = 0; i < h->phnum && !st; i++) {
		const size_t at = i % 64;

		if (at == 0)
			st = blob_read(b, h->phoff + i * ELF_PHDR_SIZE, batch,
				       (size_t)MIN(h->phnum - i, 64) * ELF_PHDR_SIZE, e);
		if (!st)
			st = add_phdr(c, b, batch + at * ELF_PHDR_SIZE, e);
		if (st)
			return err_add(e, st, "program header %" PRIu64, i);
	}
	return st;
}

enum status elf_core_init(struct elf_core *c, struct blob *b, struct err *e)
{
	struct ehdr h = { 0 };
	enum status st;

	*c = (struct elf_core){ 0 };
	st = parse_ehdr(b, &h, e);
	if (!st && h.phnum == ELF_PN_XNUM)
		st = extended_phnum(b, &h, e);
	if (!st)
		st = check_core_table(&h, b->size, e);
	c->arch = h.arch;
	if (!st && !h.phnum) {
		st = xen_core_add(c, b, &h.sections, e);
		c->xen = !st;
		return st == ST_NOT_MINE ? ST_OK : st;
	}
	return st ? st : parse_phdrs(c, b, &h, e);
}

void elf_core_deinit(struct elf_core *c)
{
	free(c->loads);
	free(c->notes);
	*c = (struct elf_core){ 0 };
}

/* Names and descriptions are padded to 4 bytes, in 64-bit cores too (what Linux and GNU do). */
static const uint8_t *padded_bytes(struct cursor *c, uint32_t len)
{
	const uint8_t *p = cur_bytes(c, len);

	cur_bytes(c, MIN(-len & 3, c->left));
	return p;
}

bool elf_note_next(struct cursor *c, struct elf_note *ret)
{
	if (c->left < ELF_NHDR_SIZE)
		return false;
	ret->name_size = cur_le32(c);
	ret->desc_size = cur_le32(c);
	ret->type = cur_le32(c);
	ret->name = padded_bytes(c, (uint32_t)ret->name_size);
	ret->desc = padded_bytes(c, (uint32_t)ret->desc_size);
	return !c->bad;
}

bool elf_note_is(const struct elf_note *n, const char *name)
{
	return n->name_size == strlen(name) + 1 && memcmp(n->name, name, n->name_size) == 0;
}

const uint8_t *elf_note_find(const void *notes, size_t size, const char *name, size_t *ret_size)
{
	struct cursor c = cursor_over(notes, size);
	struct elf_note note;

	while (elf_note_next(&c, &note)) {
		if (elf_note_is(&note, name)) {
			*ret_size = note.desc_size;
			return note.desc;
		}
	}
	return NULL;
}

static size_t note_padded(size_t len)
{
	return (len + 3) & ~(size_t)3;
}

size_t elf_note_size(const char *name, size_t desc_size)
{
	return ELF_NHDR_SIZE + note_padded(strlen(name) + 1) + note_padded(desc_size);
}

void elf_note_put(void *at, const char *name, const void *desc, size_t desc_size)
{
	const size_t name_size = strlen(name) + 1;
	struct appender a = { at };

	memset(at, 0, elf_note_size(name, desc_size));
	app_le32(&a, (uint32_t)name_size);
	app_le32(&a, (uint32_t)desc_size);
	app_le32(&a, 0); /* n_type */
	app_bytes(&a, name, name_size);
	a.at += note_padded(name_size) - name_size;
	app_bytes(&a, desc, desc_size);
}

/* The value of `key` as a string; false if it is absent or does not fit. */
static bool vmcoreinfo_value(const void *text, size_t size, const char *key, char *value,
			     size_t room)
{
	const size_t key_len = strlen(key);
	const char *line = text, *const end = size ? line + size : line;

	while (line < end) {
		const char *nl = memchr(line, '\n', (size_t)(end - line));
		const size_t len = (size_t)((nl ? nl : end) - line);

		if (len > key_len && memcmp(line, key, key_len) == 0 && line[key_len] == '=') {
			const size_t value_len = len - key_len - 1;

			if (!value_len || value_len >= room)
				return false;
			memcpy(value, line + key_len + 1, value_len);
			value[value_len] = '\0';
			return true;
		}
		line += len + 1;
	}
	return false;
}

bool vmcoreinfo_hex(const void *text, size_t size, const char *key, uint64_t *ret)
{
	char value[32];
	const char *digits;
	char *end;

	if (!vmcoreinfo_value(text, size, key, value, sizeof(value)))
		return false;
	digits = value + (strncmp(value, "0x", 2) == 0 ? 2 : 0);
	if (!*digits || strspn(digits, "0123456789abcdefABCDEF") != strlen(digits))
		return false;
	errno = 0;
	*ret = strtoull(digits, &end, 16);
	return !errno;
}

bool vmcoreinfo_decimal(const void *text, size_t size, const char *key, int64_t *ret)
{
	char value[32];
	char *end;

	if (!vmcoreinfo_value(text, size, key, value, sizeof(value)))
		return false;
	errno = 0;
	*ret = strtoll(value, &end, 10);
	return !errno && end != value && !*end;
}

uint32_t vmcoreinfo_page_size(const void *text, size_t size, enum machine_arch arch)
{
	int64_t bytes;

	if (!vmcoreinfo_decimal(text, size, "PAGESIZE", &bytes) || bytes < 0 ||
	    !machine_page_size_is_valid(arch, (uint64_t)bytes))
		return 0;
	return (uint32_t)bytes;
}
