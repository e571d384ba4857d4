/* SPDX-License-Identifier: Apache-2.0 */
/* The driver's file in memory. Layouts and constants are from Microsoft's "PE Format". */
#ifndef WINPMEM_KERNEL_IMAGE_H
#define WINPMEM_KERNEL_IMAGE_H

#include "kernel.h"

struct pe_file_header {
	uint16_t machine, sections;
	uint32_t time, symbols, symbol_count;
	uint16_t optional_size, characteristics;
};

struct pe_directory {
	uint32_t rva, size;
};

#define PE_DIRECTORY_EXPORT    0
#define PE_DIRECTORY_IMPORT    1
#define PE_DIRECTORY_EXCEPTION 3
#define PE_DIRECTORY_RELOC     5
#define PE_DIRECTORIES         16

/* PE32+ */
struct pe_optional_header {
	uint16_t magic;
	uint8_t linker_major, linker_minor;
	uint32_t code_size, data_size, bss_size, entry, code_base;
	uint64_t image_base;
	uint32_t section_alignment, file_alignment;
	uint16_t versions[6];
	uint32_t win32_version, image_size, headers_size, checksum;
	uint16_t subsystem, dll_characteristics;
	uint64_t stack_reserve, stack_commit, heap_reserve, heap_commit;
	uint32_t loader_flags, directories;
	struct pe_directory directory[PE_DIRECTORIES];
};

struct pe_headers {
	uint32_t signature; /* "PE\0\0" */
	struct pe_file_header file;
	struct pe_optional_header optional;
};

#define PE_SECTION_DISCARDABLE 0x02000000u
#define PE_SECTION_EXECUTE     0x20000000u
#define PE_SECTION_WRITE       0x80000000u

struct pe_section {
	char name[8];
	uint32_t virtual_size, rva, raw_size, raw, relocations, lines;
	uint16_t relocation_count, line_count;
	uint32_t characteristics;
};

_Static_assert(sizeof(struct pe_optional_header) == 240, "IMAGE_OPTIONAL_HEADER64");
_Static_assert(sizeof(struct pe_section) == 40, "IMAGE_SECTION_HEADER");

#define PE_SIGNATURE     0x00004550u
#define DOS_SIGNATURE    0x5a4du
#define DOS_HEADER_AT    0x3c
#define PE_MACHINE_AMD64 0x8664
#define PE_MAGIC_64      0x20b
#define PE_NATIVE        1

#define IMAGE_PAGES_MAX  64

struct image {
	uint64_t base;
	uint32_t pages;
	uint64_t frames[IMAGE_PAGES_MAX]; /* 0: discarded */
	const struct pe_headers *headers;
};

/*
 * Maps and links a file. STATUS_INVALID_IMAGE_FORMAT if it is not an x64 driver,
 * STATUS_IMAGE_CHECKSUM_MISMATCH if it was changed, STATUS_DRIVER_ENTRYPOINT_NOT_FOUND if an import
 * is missing. After success, image_unload() releases it.
 */
ntstatus image_load(const uint8_t *file, size_t len, struct image *ret);
void image_unload(struct image *image);

/* Discards what only DriverEntry() needed, once that has succeeded. */
void image_discard_init(struct image *image);

bool image_contains(uint64_t address);
/* The image that contains the address, or NULL. */
const struct image *image_at(uint64_t address);

static inline void *image_rva(const struct image *i, uint64_t rva)
{
	return (void *)(i->base + rva);
}

#endif
