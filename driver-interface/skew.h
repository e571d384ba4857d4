/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Records that begin inside a page, and how to read their bytes. AVML writes the bytes of the range
 * that its header names (microsoft/avml 633424c, src/image.rs, copy_if_nonzero()). LiME's module
 * steps through the range from its first address in steps of a page, but copies the whole page that
 * each step lies in (504ensicsLabs/LiME eb9a5e5 to 7511bff, src/main.c, write_range()): what it
 * writes for 0x6000058 is memory from 0x6000000 on, the last page is missing, and the rest of the
 * range is written as zeros. Both write the same headers.
 */
#ifndef RAMSEAL_DRIVER_INTERFACE_SKEW_H
#define RAMSEAL_DRIVER_INTERFACE_SKEW_H

#include "driver-interface/extents.h"

struct skew_record {
	struct range range; /* as the header has it */
	uint64_t present;   /* bytes of it that the file has */
	uint64_t offset;    /* of the first */
};

/* How many bytes are sampled from all records that begin inside a page. */
#define SKEW_BYTES_MAX ((uint64_t)64 << 20)

struct skew {
	bool asked; /* a record begins inside a page */
	bool pages; /* the bytes are whole pages, as LiME's module writes them */
	bool sure;
};

/*
 * `module`: only LiME's module writes such a file. The differences:
 * - AVML takes the last address in /proc/iomem for the end after it (src/iomem.rs), so its ranges
 *   end one byte too early;
 * - what LiME's module writes for a part of a page at the end is zeros;
 * - zeros end where pages do, and so does whatever else has a page of its own. If that is
 * inconclusive, LiME's format is assumed to be from LiME.
 */
struct skew skew_judge(const struct skew_record *r, size_t count, bool module,
		       struct extents_bytes *b);

/*
 * Are records in LiME's format from AVML? Judged by their ends, or because ranges are split at 16
 * MiB. AVML leaves out blocks of zeros in this format too.
 */
bool skew_is_avml(const struct skew_record *r, size_t count);

/*
 * Turns the headers' ranges into whole pages. The part of a page at the end of a range is not
 * memory, and the page is left to the next record if that begins in it. A record with nothing left
 * gets `present` 0 and the range of its page.
 */
void skew_move(struct skew_record *r, size_t count);

#endif
