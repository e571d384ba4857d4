/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Compressed kdump, what makedumpfile writes of Linux' /proc/vmcore and crash, drgn and
 * libkdumpfile read: each page compressed separately, and two bitmaps, so a page that is not in the
 * dump never looks like zeros.
 *
 *	block 0    main header
 *	block 1    sub header, VMCOREINFO and ELF notes; as many blocks as it says
 *	then       bitmap 1: a bit for each page frame, set where there is memory
 *	           bitmap 2: set where the dump has the page; each begins with a block
 *	then       a descriptor for each bit of bitmap 2 that is set, in their order
 *	anywhere   pages: zstd, zlib, lzo, snappy, or stored
 *
 * Layout: makedumpfile, diskdump_mod.h and IMPLEMENTATION (b7587f1e8f45), compared with crash's
 * diskdump.c (abcb45e7d443) and libkdumpfile's src/kdumpfile/diskdump.c (764baba26d0f). All of it
 * is laid out as by the x86-64 kernel's compiler: little-endian, longs of 8 bytes, aligned.
 *
 * The flattened form is the same file for a pipe: records of an offset, a length and bytes, which
 * `makedumpfile -R` puts where they belong. Its integers are big-endian.
 */
#ifndef RAMSEAL_FORMATS_KDUMP_H
#define RAMSEAL_FORMATS_KDUMP_H

#include "formats/image/image.h"

#define KDUMP_SIGNATURE           "KDUMP   "
#define KDUMP_SIGNATURE_SIZE      8
#define KDUMP_VERSION             6 /* the first with 64-bit page frame numbers, and the last */

/* Main header (struct disk_dump_header). */
#define KDUMP_HEADER_SIZE         464
#define KDUMP_UTS                 12 /* offset of struct new_utsname */
#define KDUMP_STATUS              424
#define KDUMP_BLOCK_SIZE          428
#define KDUMP_SUB_HEADER_BLOCKS   432
#define KDUMP_BITMAP_BLOCKS       436 /* of both bitmaps together */
#define KDUMP_MAX_MAPNR           440 /* 32 bits; the last frame plus one */
#define KDUMP_CPUS                460

/* Sub header (struct kdump_sub_header). */
#define KDUMP_SUB_HEADER_SIZE     104
#define KDUMP_SUB_PHYS_BASE       0
#define KDUMP_SUB_SPLIT           12 /* the dump is one of several files */
#define KDUMP_SUB_VMCOREINFO      32 /* offset in the file, size; both 64 bits */
#define KDUMP_SUB_NOTES           48 /* the same */
#define KDUMP_SUB_MAX_MAPNR       96

/* Page descriptor (struct page_desc): offset in the file, size, flags, and struct page's flags. */
#define KDUMP_DESC_SIZE           24

/* Flags of a descriptor, and of the header's status. */
#define KDUMP_ZLIB                0x01
#define KDUMP_LZO                 0x02
#define KDUMP_SNAPPY              0x04
#define KDUMP_INCOMPLETE          0x08 /* status: the disk was full */
#define KDUMP_ZSTD                0x20

/* Flattened: struct makedumpfile_header, then a struct makedumpfile_data_header for each record. */
#define KDUMP_FLAT_SIGNATURE      "makedumpfile\0\0\0\0"
#define KDUMP_FLAT_SIGNATURE_SIZE 16
#define KDUMP_FLAT_TYPE           1
#define KDUMP_FLAT_VERSION        1
#define KDUMP_FLAT_HEADER_SIZE    4096
#define KDUMP_FLAT_RECORD_SIZE    16
/* Offset and length of the last record, which has no bytes. */
#define KDUMP_FLAT_END            UINT64_MAX

/* image_spec.own */
struct kdump_settings {
	const struct image_kernel *kernel; /* or NULL: nothing is known */
	int level;                         /* zstd's, or IMAGE_LEVEL_STORE */
};

/* Writes one, flattened if the sink cannot rewrite: kdump_writer.c. */
extern const struct image_format kdump_format;

#endif
