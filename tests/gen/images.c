/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/gen/images.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void die(const char *what)
{
	perror(what);
	abort();
}

/* Doubled, because tests put millions of bytes one by one. */
static void grow(struct image *i, size_t len)
{
	if (len > i->room) {
		i->room = 2 * len;
		i->at = realloc(i->at, i->room);
		if (!i->at)
			die("realloc");
	}
	memset(i->at + i->len, 0, len - i->len);
	i->len = len;
}

void image_put(struct image *i, size_t off, const void *p, size_t len)
{
	if (off + len > i->len)
		grow(i, off + len);
	if (len)
		memcpy(i->at + off, p, len);
}

static void put_number(struct image *i, size_t off, uint64_t v, size_t size)
{
	uint8_t b[8];

	for (size_t k = 0; k < size; k++)
		b[k] = (uint8_t)(v >> 8 * k);
	image_put(i, off, b, size);
}

void image_u8(struct image *i, size_t off, uint8_t v)
{
	put_number(i, off, v, 1);
}

void image_u16(struct image *i, size_t off, uint16_t v)
{
	put_number(i, off, v, 2);
}

void image_u32(struct image *i, size_t off, uint32_t v)
{
	put_number(i, off, v, 4);
}

void image_u64(struct image *i, size_t off, uint64_t v)
{
	put_number(i, off, v, 8);
}

void image_text(struct image *i, const char *text)
{
	image_put(i, i->len, text, strlen(text));
}

const char *image_save(struct image *i)
{
	FILE *f;
	int fd;

	if (i->path[0])
		unlink(i->path); /* saved before, and changed since */
	snprintf(i->path, sizeof(i->path), "%s/ramseal-test-XXXXXX", temporary_folder());
	fd = mkstemp(i->path);
	f = fd < 0 ? NULL : fdopen(fd, "wb");
	if (!f || fwrite(i->at, 1, i->len, f) != i->len || fclose(f) != 0)
		die(i->path);
	return i->path;
}

void image_free(struct image *i)
{
	if (i->path[0])
		unlink(i->path);
	free(i->at);
	*i = (struct image){ 0 };
}

void pattern(void *p, uint64_t addr, size_t len)
{
	uint8_t *at = p;

	for (size_t k = 0; k < len; k++) {
		const uint64_t a = addr + k;
		const uint64_t word = (a & ~(uint64_t)7) * 0x9e3779b97f4a7c15u;

		at[k] = (uint8_t)(word >> 8 * (a & 7));
	}
}

void image_memory(struct image *i, size_t off, uint64_t addr, size_t len)
{
	image_put(i, off + len, "", 0);
	pattern(i->at + off, addr, len);
}

void elf_header(struct image *i, const struct phdr *p, size_t count)
{
	image_put(i, 0, "\177ELF\2\1\1", 7);
	image_u16(i, 16, 4);  /* ET_CORE */
	image_u16(i, 18, 62); /* EM_X86_64 */
	image_u32(i, 20, 1);
	image_u64(i, 32, 64); /* e_phoff */
	image_u16(i, 52, 64);
	image_u16(i, 54, 56);
	image_u16(i, 56, (uint16_t)count);
	image_put(i, 64, "", 0);
	for (size_t k = 0; k < count; k++) {
		const size_t at = 64 + 56 * k;

		image_u32(i, at, p[k].type);
		image_u32(i, at + 4, 7);
		image_u64(i, at + 8, p[k].offset);
		image_u64(i, at + 16, p[k].vaddr);
		image_u64(i, at + 24, p[k].paddr);
		image_u64(i, at + 32, p[k].filesz);
		image_u64(i, at + 40, p[k].memsz);
		image_u64(i, at + 48, 4096);
	}
}

size_t elf_note(struct image *i, size_t off, const char *name, const void *desc, size_t len)
{
	const size_t name_len = strlen(name) + 1;

	image_u32(i, off, (uint32_t)name_len);
	image_u32(i, off + 4, (uint32_t)len);
	image_u32(i, off + 8, 0);
	image_put(i, off + 12, name, name_len);
	off += 12 + (name_len + 3) / 4 * 4;
	image_put(i, off, desc, len);
	off += (len + 3) / 4 * 4;
	image_put(i, off, "", 0);
	return off;
}

void lime_header(struct image *i, uint64_t first, uint64_t last)
{
	const size_t at = i->len;

	image_put(i, at, "EMiL", 4);
	image_u32(i, at + 4, 1);
	image_u64(i, at + 8, first);
	image_u64(i, at + 16, last);
	image_u64(i, at + 24, 0);
}

void lime_range(struct image *i, uint64_t first, uint64_t last)
{
	lime_header(i, first, last);
	image_memory(i, i->len, first, (size_t)(last - first + 1));
}
