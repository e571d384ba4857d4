/* SPDX-License-Identifier: Apache-2.0 */
/*
 * LZX as in Windows image files (WIM) and `compact /exe:lzx`: independent chunks of 32 KiB.
 * Decoding only. [MS-PATCH] describes LZX; the differences are documented in wimlib
 * (src/lzx_decompress.c, 1.13): the size of a block is one bit where it is 32 KiB, and jumps (E8)
 * are always translated, for a file of 12,000,000 bytes.
 */
#ifndef RAMSEAL_BASE_LZX_H
#define RAMSEAL_BASE_LZX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LZX_CHUNK ((size_t)1 << 15)

/*
 * Decodes `in` into exactly `size` bytes, LZX_CHUNK at most. False: the input is truncated or
 * invalid; the content of `out` is then undefined. Nothing is allocated.
 */
bool lzx_decode(const uint8_t *in, size_t in_size, uint8_t *out, size_t size);

#endif
