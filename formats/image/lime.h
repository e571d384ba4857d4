/* SPDX-License-Identifier: Apache-2.0 */
/*
 * LiME, version 1: headers, each followed by the bytes of its range, up to the end of the file. All
 * integers are little-endian. Source: LiME's doc/README.md, "LiME Memory Range Header Version 1
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
	bool zeros;         /* there are none: all bytes are zeros */
};

/*
 * AVML 0.16 and 0.17 (f8d5d9e to 12c2a71, src/image.rs, copy_if_nonzero()) wrote only a header for
 * a range of zeros, if the range was not longer than this.
 */
#define LIME_ZERO_RANGE_MAX ((uint64_t)16 << 20)

/* How the file ends. */
enum lime_end {
	LIME_WHOLE,      /* with the last range */
	LIME_CUT_RANGE,  /* inside the last range, whose rest is missing */
	LIME_CUT_HEADER, /* inside a header: which ranges followed is not known */
	LIME_ZEROS,      /* in zeros after the last range: the target had been longer */
	LIME_NO_HEADER,  /* in something else: `problem` says what is in place of a header */
};

/* How many zeros at the end are checked; the rest is assumed to be zeros too. */
#define LIME_ZEROS_MAX   ((uint64_t)64 << 20)

/*
 * If records overlap, each candidate for a header is compared with all of them. After this many
 * comparisons, candidates count as part of the memory around them.
 */
#define LIME_COMPARE_MAX ((uint64_t)1 << 26)

/* Further rejected headers are not kept, but `passed` counts their bytes. */
#define LIME_DOUBTED_MAX 32

struct lime {
	struct lime_record *at; /* in the order of the file */
	size_t count;
	size_t room;
	enum lime_end end;
	uint64_t rest; /* bytes after the last range: a truncated header, zeros or something else */
	struct err problem; /* LIME_NO_HEADER */

	uint64_t zeros; /* bytes of records that are only a header */

	/* Headers found again where one was missing. */
	size_t found;
	size_t cut;      /* records before those, which lack bytes at their end */
	uint64_t lacked; /* those bytes */
	uint64_t passed; /* bytes that cannot be assigned to a record, left out */

	/* The records that lead to the end of the file, as a search finds them. */
	struct lime_record *last;
	size_t n_last;
	bool looked_for_last;

	uint64_t compared;
	struct range doubted[LIME_DOUBTED_MAX]; /* of rejected headers */
	size_t n_doubted;
};

/*
 * Walks all headers. ST_NOT_MINE if the blob does not begin with the magic; ST_CORRUPT if the first
 * header is wrong. Damage after the first record loses nothing before it: see `end`. The record of
 * a truncated range names the whole range. deinit also after a failure.
 *
 * A record can be shorter than its header says: when a write fails, LiME goes on with the next
 * range (504ensicsLabs/LiME 7511bff, src/main.c, write_range(), "Skipping Range..."). On a disk,
 * the part of that page that was written is then overwritten, because the file position stays
 * (src/disk.c, write_vaddr_disk()), so a record ends at a whole page; a socket keeps everything it
 * accepted. So if the walk does not lead to a header, one is searched for inside the record and
 * after it. Memory contains headers too, in the page cache of this file or of an earlier one. A
 * header is accepted if its range leads to another header or to the end of the file, or if it is
 * where it would be on a disk; but not if memory of its range is in a record behind it, from which
 * on each one leads to the next, up to the end: then it is a copy from the page cache, or of a
 * first try. After any other one, nothing counts as memory until one is accepted. The range of a
 * rejected header becomes a record without bytes, unless another record has a part of it.
 */
enum status lime_init(struct lime *l, struct blob *b, struct err *e);
void lime_deinit(struct lime *l);

/* Of LIME_HEADER_SIZE bytes, as those are that are looked for inside records. */
bool lime_is_header(const uint8_t *h, struct range *ret);

#endif
