/* SPDX-License-Identifier: Apache-2.0 */
/*
 * LiME, version 1: a header and the bytes of its range, again and again, to the end of the file.
 * All integers are little-endian. Source: LiME's doc/README.md, "LiME Memory Range Header Version 1
 * Specification", and src/lime.h.
 *
 *	 0  u32  magic 0x4C694D45 ("EMiL" in the file)
 *	 4  u32  version 1
 *	 8  u64  first address of the range
 *	16  u64  last address of the range, inclusive
 *	24  u64  reserved; written as 0, ignored by readers
 */
#ifndef RAMSEAL_FORMATS_LIME_H
#define RAMSEAL_FORMATS_LIME_H

#include "formats/image/image.h"

#define LIME_MAGIC       0x4C694D45u
#define LIME_VERSION     1u
#define LIME_HEADER_SIZE 32

/* As many as program headers in a core (elf_core.h); every record is a range of RAM. */
#define LIME_RECORDS_MAX ((size_t)1 << 20)

/* Writes one: lime_writer.c. */
extern const struct image_format lime_format;

struct lime_record {
	struct range range; /* as the header has it: any address, any length */
	uint64_t offset;    /* of the first byte of the range in the file */
	uint64_t present;   /* bytes of it that the file has */
	bool zeros;         /* none, because all are zeros */
};

/*
 * AVML 0.16 and 0.17 (f8d5d9e to 12c2a71, src/image.rs, copy_if_nonzero()) wrote a header of a
 * range that is zeros, and nothing behind it, if the range was not longer than this.
 */
#define LIME_ZERO_RANGE_MAX ((uint64_t)16 << 20)

/* How the file ends. */
enum lime_end {
	LIME_WHOLE,      /* with the last range */
	LIME_CUT_RANGE,  /* inside the last range, whose rest is missing */
	LIME_CUT_HEADER, /* inside a header: of what ranges followed, nobody knows */
	LIME_ZEROS,      /* in zeros behind the last range: what was written to had been longer */
	LIME_NO_HEADER,  /* in something else: `problem` says what stands where a header should */
};

/* As many of the zeros at the end are looked at; what lies behind them is taken to be zeros too. */
#define LIME_ZEROS_MAX   ((uint64_t)64 << 20)

/*
 * Where records overlap, each candidate for a header is compared with all of them. Beyond so many
 * comparisons a candidate counts as a part of the memory around it.
 */
#define LIME_COMPARE_MAX ((uint64_t)1 << 26)

/* More headers that are not believed are forgotten; `passed` counts their bytes all the same. */
#define LIME_DOUBTED_MAX 32

struct lime {
	struct lime_record *at; /* in the order of the file */
	size_t count;
	size_t room;
	enum lime_end end;
	uint64_t rest; /* bytes behind the last range: of a cut header, zeros or something else */
	struct err problem; /* LIME_NO_HEADER */

	uint64_t zeros; /* bytes of records that are headers alone */

	/* Found again where a header should have been and was not. */
	size_t found;
	size_t cut;      /* records in front of those that lack bytes at their end */
	uint64_t lacked; /* those bytes */
	uint64_t passed; /* bytes that belong to no record for certain, and are left out */

	uint64_t compared;
	struct range doubted[LIME_DOUBTED_MAX]; /* of headers that were not believed */
	size_t n_doubted;
};

/*
 * Walks all headers. ST_NOT_MINE if the blob does not begin with the magic; ST_CORRUPT if the first
 * header is wrong. What is wrong behind the first record loses nothing in front of it: see `end`.
 * If a range is cut, its record names what should be there. deinit also after a failure.
 *
 * A record can be shorter than its header says: when a write fails, LiME goes on with the next
 * range (504ensicsLabs/LiME 7511bff, src/main.c, write_range(), "Skipping Range..."). On a disk
 * what was written of that page is then written over, as the file position stays
 * (src/disk.c, write_vaddr_disk()), so that a record is cut at a whole page; a socket keeps all
 * that it took. So where the walk does not lead to a header, one is looked for inside the record,
 * and behind it. Memory has headers, too, in the page cache of this file or of an earlier one. One
 * is believed if its range leads to another or to the end of the file, or if it stands where a
 * disk's would; from any other one on, nothing is taken for memory until one is believed. The
 * range of such a one, if no other record has a part of it, is a record without a byte.
 */
enum status lime_init(struct lime *l, struct blob *b, struct err *e);
void lime_deinit(struct lime *l);

#endif
