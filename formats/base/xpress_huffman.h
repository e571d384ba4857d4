/* SPDX-License-Identifier: Apache-2.0 */
/*
 * LZ77 with prefix codes, which Windows calls XPRESS Huffman: decoding only. The layout is section
 * 2.2 of [MS-XCA], "Xpress Compression Algorithm", which Microsoft publishes. CompactOS and
 * `compact /exe` compress files with it, 4, 8 or 16 KiB at a time.
 */
#ifndef RAMSEAL_BASE_XPRESS_HUFFMAN_H
#define RAMSEAL_BASE_XPRESS_HUFFMAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The bytes of one table of codes; longer streams, which have several tables, are not decoded. */
#define XPRESS_HUFFMAN_MAX ((size_t)1 << 16)

/*
 * Decodes `in` into exactly `size` bytes, XPRESS_HUFFMAN_MAX at most. False: the input is truncated
 * or invalid; the content of `out` is then undefined. Nothing is allocated.
 */
bool xpress_huffman_decode(const uint8_t *in, size_t in_size, uint8_t *out, size_t size);

#endif
