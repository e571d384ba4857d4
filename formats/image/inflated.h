/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A zlib stream (RFC 1950, RFC 1951) as the bytes that it becomes, at any offset. It is unpacked
 * once from end to end, which tells how many there are and whether their checksum is right; on the
 * way it is remembered how to begin in the middle.
 *
 * Deflate has nothing that would be found again behind damage: what follows that is lost. A bit
 * that is wrong need not be noticed at once, or only by the checksum at the end: then nobody can
 * say which bytes are wrong.
 */
#ifndef RAMSEAL_FORMATS_INFLATED_H
#define RAMSEAL_FORMATS_INFLATED_H

#include "formats/base/io.h"

/* So far apart are the places where unpacking can begin, if there is memory for them. */
#define INFLATED_SPACING   ((uint64_t)1 << 20)

/*
 * What these places take, with the window of each; where there are more, every other is forgotten.
 * LiME's windows have 2 KiB: 64 GiB of memory then are begun at every 2 MiB.
 */
#define INFLATED_PLACES    ((size_t)64 << 20)

/*
 * Plain bytes of one block, between which alone one can begin. zlib's compressor ends a block after
 * 32767 codes at the latest (deflate.h, LIT_MEM; memLevel 9), each 258 bytes at most: 8 MiB.
 */
#define INFLATED_BLOCK_MAX ((uint64_t)16 << 20)

/* Kept unpacked, in pieces: neighbours are asked for one by one. */
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
	uint64_t packed_end; /* offset behind what was used of the packed blob */
	struct inflated_state *state;
};

/*
 * The first `len` bytes that it becomes, or as many as there are before its end, or damage.
 * ST_NOT_MINE without a header of zlib.
 */
enum status inflated_probe(struct blob *packed, void *buf, size_t len, size_t *got, struct err *e);

/*
 * `packed` stays the caller's, and lives as long. INFLATED_SPACING and INFLATED_PLACES, or what a
 * test wants. ST_NOT_MINE without a header of zlib; ST_INPUT if it cannot be read. Damage is no
 * error: see `end`. deinit also after a failure.
 */
enum status inflated_init(struct inflated *i, struct blob *packed, uint64_t spacing, size_t places,
			  struct err *e);
void inflated_deinit(struct inflated *i);

#endif
