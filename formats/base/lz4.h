/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A block of LZ4: decoding only. The layout is that of lz4/lz4 6c850832,
 * doc/lz4_Block_format.md. Windows 11 24H2 and later compress the pages of their store with it.
 */
#ifndef RAMSEAL_BASE_LZ4_H
#define RAMSEAL_BASE_LZ4_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Decodes the block `in`, which ends where the input does. *ret_size: how many bytes of `out` were
 * written. False: the input is truncated, does not end as a block must, does not fit into `out`, or
 * has a match that begins before the output; the content of `out` is then undefined. Nothing is
 * allocated; the time is linear in `out_size` and `in_size`.
 */
bool lz4_decode(const uint8_t *in, size_t in_size, uint8_t *out, size_t out_size, size_t *ret_size);

#endif
