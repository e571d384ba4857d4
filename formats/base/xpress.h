/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Plain LZ77, which Windows calls XPRESS: decoding only. The layout is section 2.4 of [MS-XCA],
 * "Xpress Compression Algorithm", which Microsoft publishes. Windows 10 and later compress the
 * pages of their store with it.
 */
#ifndef RAMSEAL_BASE_XPRESS_H
#define RAMSEAL_BASE_XPRESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Decodes `in` into `out` until `out` is full or the input ends where a match would follow, which
 * ends a stream. *ret_size: how many bytes of `out` were written. False: the input is truncated, or
 * a match reaches before the output or beyond its end; the content of `out` is then undefined.
 * Nothing is allocated; the time is linear in `out_size`.
 */
bool xpress_decode(const uint8_t *in, size_t in_size, uint8_t *out, size_t out_size,
		   size_t *ret_size);

#endif
