/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Images made for tests, byte by byte. Nothing here comes from formats/: a mistake that the reader
 * and its test share would hide itself.
 */
#ifndef RAMSEAL_TESTS_GEN_IMAGES_H
#define RAMSEAL_TESTS_GEN_IMAGES_H

#include <stddef.h>
#include <stdint.h>

#include "tests/gen/temporary.h"

/* A file in the making. Zero-initialise; image_free() at the end. Gaps are zeros. */
struct image {
	uint8_t *at;
	size_t len;
	size_t room;
	char path[TEMPORARY_MAX]; /* after image_save() */
};

void image_put(struct image *i, size_t off, const void *p, size_t len);
void image_u8(struct image *i, size_t off, uint8_t v);
void image_u16(struct image *i, size_t off, uint16_t v);
void image_u32(struct image *i, size_t off, uint32_t v);
void image_u64(struct image *i, size_t off, uint64_t v);
void image_text(struct image *i, const char *text); /* at the end */

/* Writes it to a file of its own that image_free() removes. */
const char *image_save(struct image *i);
void image_free(struct image *i);

/*
 * Memory of known content: every 8 bytes hold their own physical address times an odd number, so
 * that no two agree and none but address 0 is zero. Byte-granular.
 */
void pattern(void *p, uint64_t addr, size_t len);
void image_memory(struct image *i, size_t off, uint64_t addr, size_t len);

/* A program header, in the order of the file. */
struct phdr {
	uint32_t type; /* 1 PT_LOAD, 4 PT_NOTE */
	uint64_t offset, vaddr, paddr, filesz, memsz;
};

/* An ELF64 core header of x86-64 with the table right behind it, at 64. */
void elf_header(struct image *i, const struct phdr *p, size_t count);

/* Appends a note at `off`; returns the offset behind it. */
size_t elf_note(struct image *i, size_t off, const char *name, const void *desc, size_t len);

/* Appends a LiME header at the end, or a header and its patterned memory. */
void lime_header(struct image *i, uint64_t first, uint64_t last);
void lime_range(struct image *i, uint64_t first, uint64_t last);

#endif
