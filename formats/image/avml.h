/* SPDX-License-Identifier: Apache-2.0 */
/*
 * AVML's compressed images, version 2: a header, the bytes of its range as a snappy stream
 * (snappy.h), and the length of that stream, again and again, to the end of the file. All integers
 * are little-endian. Source: microsoft/avml 633424c (0.20), src/image.rs and src/io/snappy.rs.
 *
 *	 0  u32  magic 0x4C4D5641 ("AVML" in the file)
 *	 4  u32  version 2
 *	 8  u64  first address of the block
 *	16  u64  last address, inclusive; a block is 16 MiB at most, but for those of 2019 (4409f00)
 *	24  u64  0
 *	32       the stream, then u64 its bytes
 *
 * Blocks that are zeros from end to end are left out since 0.4.1 (1ff59e7): what no block covers
 * may be zeros as well as no memory. 0.16 and 0.17 (f8d5d9e to 12c2a71) wrote the headers of those,
 * with nothing after them.
 *
 * A damaged length hides where the next block begins. That is searched for, and accepted if the
 * length before it fits the stream before, or if a whole block follows. A header whose range and
 * stream differ in length is left out with its stream: which of its addresses is wrong is not
 * known.
 */
#ifndef RAMSEAL_FORMATS_AVML_H
#define RAMSEAL_FORMATS_AVML_H

#include "formats/base/range.h"
#include "formats/image/snappy.h"

#define AVML_MAGIC         0x4C4D5641u
#define AVML_VERSION       2u
#define AVML_HEADER_SIZE   32
#define AVML_TRAILER_SIZE  8

/* As many as records of LiME (lime.h): 16 TiB in blocks of 16 MiB. */
#define AVML_BLOCKS_MAX    ((size_t)1 << 20)

/*
 * 4409f00 (2019) to 1ff59e7 (2022) wrote blocks of 100 MiB, all others smaller ones. Of an
 * incomplete block that claims more, only the bytes that are there count: its header may be
 * damaged.
 */
#define AVML_CLAIM_MAX     ((uint64_t)100 << 20)

/* image.rs, MAX_BLOCK_SIZE: the longest range that is left out if it is zeros. */
#define AVML_ZEROS_MAX     ((uint64_t)16 << 20)

/*
 * How far apart the remembered places of a stream are: at most this much is walked to find a page.
 */
#define AVML_POINT_PLAIN   ((uint64_t)256 << 10)
#define AVML_POINT_STORED  ((uint64_t)1 << 20)

/*
 * Bytes that the search after damage may read for each byte of the file: it passes over everything
 * once, and walks each plausible block again.
 */
#define AVML_SEARCH_FACTOR 3

struct avml_block {
	struct range range; /* as the header has it: any address, any length */
	uint64_t plain;     /* its first byte, as avml_read() counts */
	uint64_t present;   /* bytes of the range that are there */
};

/* Where a chunk begins. */
struct avml_point {
	uint64_t plain;
	uint64_t offset; /* in the file; AVML_ZEROS: these bytes are zeros */
};

#define AVML_ZEROS UINT64_MAX

enum avml_end {
	AVML_WHOLE,
	AVML_CUT,     /* inside a stream: the last block lacks its rest */
	AVML_CUT_END, /* inside a header or a length: every block that is there is whole */
	AVML_DAMAGED, /* no further block was found: `rest` bytes are not read */
};

struct avml {
	struct blob *blob; /* borrowed */
	struct avml_block *at;
	size_t count, room;
	struct avml_point *points;
	size_t n_points, points_room;
	uint64_t plain;      /* bytes of memory in the file */
	uint64_t zeros;      /* of these: blocks without a stream */
	uint64_t damaged;    /* places whose lengths are damaged */
	uint64_t passed;     /* bytes between them and the next block */
	uint64_t overstated; /* incomplete blocks with an impossibly long header */
	enum avml_end end;
	uint64_t rest;
	uint64_t searched;

	/* One chunk unpacked, and where the next one is. */
	uint8_t *packed, *unpacked;
	uint64_t held;     /* its first byte */
	uint32_t held_len; /* 0: none is held */
	bool held_bad;
	struct avml_point next;
};

/*
 * Walks all blocks, without unpacking any. ST_NOT_MINE if the blob does not begin with the magic,
 * ST_INPUT for another version, ST_CORRUPT if the first header is wrong; later damage loses nothing
 * before it, see `end`. deinit also after a failure.
 */
enum status avml_init(struct avml *a, struct blob *b, struct err *e);
void avml_deinit(struct avml *a);

/*
 * Bytes of memory, `plain` numbering those that are there as blocks[] tells. *got < len: the chunk
 * there is damaged (ST_CORRUPT), cannot be read (ST_INPUT), or is after the last one (ST_OK).
 */
enum status avml_read(struct avml *a, uint64_t plain, void *buf, size_t len, size_t *got,
		      struct err *e);

#endif
