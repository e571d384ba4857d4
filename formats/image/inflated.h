/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A zlib stream (RFC 1950, RFC 1951) as the bytes that it becomes, at any offset. It is unpacked
 * once from end to end to find its size and check its checksum; on the way, places where unpacking
 * can start are remembered.
 *
 * Deflate has no markers to resume at after damage: what follows is lost. A wrong bit may be
 * noticed late, or only by the checksum at the end; then it is not known which bytes are wrong.
 */
#ifndef RAMSEAL_FORMATS_INFLATED_H
#define RAMSEAL_FORMATS_INFLATED_H

#include "formats/base/io.h"

/* The distance between places where unpacking can start, if there is memory for them. */
#define INFLATED_SPACING   ((uint64_t)1 << 20)

/*
 * The memory for these places with their windows; if it is exceeded, every other place is dropped.
 * LiME's windows have 2 KiB: 64 GiB of memory then have a place every 2 MiB.
 */
#define INFLATED_PLACES    ((size_t)64 << 20)

/*
 * Plain bytes of one block: unpacking can start only between blocks. zlib's compressor ends a block
 * after 32767 codes at the latest (deflate.h, LIT_MEM; memLevel 9), each 258 bytes at most: 8 MiB.
 */
#define INFLATED_BLOCK_MAX ((uint64_t)16 << 20)

/* Cached unpacked pieces, because neighbouring pages are read one by one. */
#define INFLATED_PIECE     ((size_t)256 << 10)
#define INFLATED_PIECES    8

enum inflated_end {
	INFLATED_WHOLE,
	INFLATED_CUT,     /* the blob ends before the stream does */
	INFLATED_DAMAGED, /* what follows is no stream */
	INFLATED_SUM,     /* whole, but its bytes do not have its Adler-32 */
};

struct inflated_state;

struct inflated {
	struct blob blob; /* what was unpacked before the end, or before damage */
	enum inflated_end end;
	uint64_t packed_end; /* offset after the used part of the packed blob */
	struct inflated_state *state;
};

/*
 * The first `len` bytes unpacked, or fewer up to its end or to damage. ST_NOT_MINE without a zlib
 * header.
 */
enum status inflated_probe(struct blob *packed, void *buf, size_t len, size_t *got, struct err *e);

/*
 * `packed` stays the caller's and must live as long. Pass INFLATED_SPACING and INFLATED_PLACES, or
 * a test's values. ST_NOT_MINE without a zlib header; ST_INPUT if it cannot be read. Damage is not
 * an error: see `end`. deinit also after a failure.
 */
enum status inflated_init(struct inflated *i, struct blob *packed, uint64_t spacing, size_t places,
			  struct err *e);
void inflated_deinit(struct inflated *i);

#endif
