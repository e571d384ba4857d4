/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Snappy, as AVML uses it: the chunks of a framed stream, and their content. Sources: google/snappy
 * 45ead86, framing_format.txt (revised 2022-05-23) and format_description.txt.
 *
 * A chunk is one byte of type, three of length (everything is little-endian), and that many bytes:
 *
 *	0x00        masked CRC-32C of the plain bytes (u32), then the bytes packed
 *	0x01        the same, then the bytes as they are
 *	0x80..0xfe  to be skipped; 0xfe is padding
 *	0xff        "sNaPpY": begins a stream, and is skipped elsewhere
 *
 * Packed bytes begin with the length of the plain ones, 7 bits a byte, the lowest first. The two
 * types without a checksum (0x02, 0x03), which came in 2022, are refused: damage could not be
 * detected, and AVML does not write them.
 */
#ifndef RAMSEAL_FORMATS_SNAPPY_H
#define RAMSEAL_FORMATS_SNAPPY_H

#include <stdbool.h>

#include "formats/base/checks_sums.h"
#include "formats/base/io.h"

/* The first chunk of every stream, with its header. */
#define SNAPPY_IDENTIFIER      "\xff\x06\x00\x00sNaPpY"
#define SNAPPY_IDENTIFIER_SIZE 10

/* framing_format.txt 4.2 and 4.3: no chunk has more plain bytes. */
#define SNAPPY_PLAIN_MAX       ((size_t)65536)

/*
 * The most that this can take, when nothing repeats: 32 + n + n / 6 (snappy.cc,
 * MaxCompressedLength()).
 */
#define SNAPPY_PACKED_MAX      (32 + SNAPPY_PLAIN_MAX + SNAPPY_PLAIN_MAX / 6)

/*
 * Plain bytes for each packed one, rounded up: the best that an element can do is 64 for 3
 * (format_description.txt 2.2.2). Anything that claims more is not snappy, so there are no
 * decompression bombs.
 */
#define SNAPPY_RATIO_MAX       22

enum snappy_kind {
	SNAPPY_DATA,
	SNAPPY_SKIP, /* holds no plain bytes */
	SNAPPY_CUT,  /* reaches past the end of the blob */
	SNAPPY_BAD,  /* not a valid chunk of a stream */
};

struct snappy_chunk {
	enum snappy_kind kind;
	bool stored;
	uint32_t crc;    /* masked */
	uint32_t plain;  /* bytes it becomes: SNAPPY_PLAIN_MAX at most */
	uint64_t offset; /* of what follows the CRC in the blob */
	uint32_t size;   /* of that: SNAPPY_PACKED_MAX at most */
	uint64_t next;   /* offset of the next chunk; not for SNAPPY_CUT and SNAPPY_BAD */
};

/* Looks at the beginning of the chunk at `off`. ST_INPUT if the blob cannot be read. */
enum status snappy_chunk_at(struct blob *b, uint64_t off, struct snappy_chunk *ret, struct err *e);

/*
 * Unpacks what follows the CRC into `plain` bytes. ST_CORRUPT if that is not exactly as many with
 * that CRC; the output is then undefined. `packed`: room for SNAPPY_PACKED_MAX bytes.
 */
enum status snappy_unpack(struct blob *b, const struct snappy_chunk *c, uint8_t *packed,
			  uint8_t *plain, struct err *e);

/* Its two parts, for tests and fuzzers. False if `len` bytes are not exactly `plain_len`. */
bool snappy_decode(const uint8_t *packed, size_t len, uint8_t *plain, size_t plain_len);
uint32_t snappy_masked_crc(const uint8_t *p, size_t len);

#endif
