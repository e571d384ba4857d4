/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Records that begin inside a page, and what their bytes are. AVML writes the bytes of the range
 * that its header names (microsoft/avml 633424c, src/image.rs, copy_if_nonzero()). LiME's module
 * steps through the range from its first address in steps of a page, but copies the whole page that
 * each step lies in (504ensicsLabs/LiME eb9a5e5 to 7511bff, src/main.c, write_range()): what it
 * writes for 0x6000058 is memory from 0x6000000 on, the last page is not in the file, and what is
 * left of the range is written as zeros. Both write the same headers.
 */
#ifndef RAMSEAL_DRIVER_INTERFACE_SKEW_H
#define RAMSEAL_DRIVER_INTERFACE_SKEW_H

#include "driver-interface/extents.h"

struct skew_record {
	struct range range; /* as the header has it */
	uint64_t present;   /* bytes of it that the file has */
	uint64_t offset;    /* of the first */
};

/* Bytes that are looked at, in pieces from all over the records that begin inside a page. */
#define SKEW_BYTES_MAX ((uint64_t)64 << 20)

struct skew {
	bool asked; /* a record begins inside a page */
	bool pages; /* the bytes are whole pages, as LiME's module writes them */
	bool sure;
};

/*
 * `module`: only LiME's module writes such a file. What tells them apart:
 * - AVML takes the last address of /proc/iomem for the one behind it (src/iomem.rs), and so its
 *   ranges end one byte before they should;
 * - what LiME's module writes for a part of a page at the end is zeros;
 * - zeros end where pages do, and so does whatever else has a page of its own.
 * If that leaves it open, LiME's format is taken to be LiME's.
 */
struct skew skew_judge(const struct skew_record *r, size_t count, bool module,
		       struct extents_bytes *b);

/*
 * Whether records in LiME's format are AVML's, by their ends or because ranges are split at 16 MiB.
 * AVML leaves blocks of zeros out in this format, too.
 */
bool skew_is_avml(const struct skew_record *r, size_t count);

/*
 * Makes ranges of headers those of whole pages. What an end in a page has of that is no memory, and
 * the page is left to the next record if that begins in it. A record of which nothing is left has
 * `present` 0 and a range of the page that it was in.
 */
void skew_move(struct skew_record *r, size_t count);

#endif
