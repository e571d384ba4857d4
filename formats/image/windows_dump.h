/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads crash dumps of 64-bit Windows that hold physical memory: a header of 8 KiB, and pages back
 * to back. All integers are little-endian. Sources, which agree: 0vercl0k/kdmp-parser 0114c86,
 * src/lib/kdmp-parser-structs.h; qemu/qemu dafd950, include/qemu/win_dump_defs.h; ufrisk/LeechCore,
 * leechcore/device_file.c. Unset fields read "PAGE", repeated.
 *
 *	0x000  "PAGEDU64"
 *	0x00c  u32  MinorVersion: Windows' build
 *	0x010  u64  DirectoryTableBase
 *	0x030  u32  MachineImageType: 0x8664
 *	0x034  u32  NumberProcessors
 *	0x038  u32  BugCheckCode
 *	0x088  u32  NumberOfRuns, 0x090 u64 NumberOfPages, 0x098 16 bytes a run: BasePage, PageCount
 *	0xf98  u32  DumpType
 *	0xfa8  u64  SystemTime, a FILETIME
 *
 * Type 1 (complete): the pages of all runs from 0x2000 on. Types 5 and 6 (bitmap: complete, active
 * or kernel memory):
 *
 *	0x2000  "SDMPDUMP" or "FDMPDUMP"
 *	0x2020  u64  offset of the first page
 *	0x2028  u64  pages in the file
 *	0x2030  u64  bits in the bitmap
 *	0x2038       the bitmap: bit n is set if page frame n is there; pages follow in its order
 *
 * There the runs say where RAM is: RAM without a bit is a gap.
 */
#ifndef RAMSEAL_FORMATS_WINDOWS_DUMP_H
#define RAMSEAL_FORMATS_WINDOWS_DUMP_H

#include "formats/base/io.h"
#include "formats/base/range.h"

#define WINDOWS_DUMP_HEADER    ((size_t)0x2000)
#define WINDOWS_DUMP_SIGNATURE "PAGEDU64"

/* Between the first run at 0x98 and ContextRecord at 0x348, of which QEMU uses all. */
#define WINDOWS_DUMP_RUNS_MAX  43

/* As many as program headers in a core (elf_core.h): ranges of pages in a bitmap. */
#define WINDOWS_DUMP_PARTS_MAX ((size_t)1 << 20)

/* 64 TiB: "Memory limits for Windows" has no release with more than 48 TB. */
#define WINDOWS_DUMP_PAGES_MAX ((uint64_t)1 << 34)

enum windows_dump_type {
	WINDOWS_DUMP_FULL = 1,
	WINDOWS_DUMP_BITMAP_FULL = 5,
	WINDOWS_DUMP_BITMAP_KERNEL = 6,
};

/* Pages that are adjacent in memory and in the file. */
struct windows_dump_part {
	struct range range;
	uint64_t offset; /* in the file; may reach past the end of a truncated file */
};

struct windows_dump {
	uint32_t type; /* enum windows_dump_type */
	uint32_t build, processors, bug_check;
	uint64_t dtb;                 /* as in the header; 0 if that is invalid */
	uint64_t system_time;         /* FILETIME; 0 if it is not set */
	struct range_list ram;        /* the runs from the header; empty if they are not set */
	struct windows_dump_part *at; /* in the order of the file */
	size_t count, room;
	bool cut; /* the file ends before the last page */
};

/*
 * ST_NOT_MINE if the blob does not begin with the signature, ST_INPUT for a dump of another kind
 * (the message says which), ST_CORRUPT if the fields that locate pages contradict each other or are
 * impossible. deinit also after a failure.
 */
enum status windows_dump_init(struct windows_dump *d, struct blob *b, struct err *e);
void windows_dump_deinit(struct windows_dump *d);

/* "complete", "bitmap", "kernel bitmap". */
const char *windows_dump_type_name(uint32_t type);

#endif
