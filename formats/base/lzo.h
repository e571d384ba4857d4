/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A block of LZO1X: decoding only. Written from what Linux' Documentation/staging/lzo.rst says of
 * the stream (0eaed89c18ae, version 0 of it: makedumpfile, like all of user space, writes no runs
 * of zeros); the names of the instructions are its bits. makedumpfile -l packs pages in this way.
 */
#ifndef RAMSEAL_BASE_LZO_H
#define RAMSEAL_BASE_LZO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Decodes the block `in`, whose end-of-stream instruction must end where the input does. *ret_size:
 * how many bytes of `out` were written. False: the input is truncated, goes on behind its end, does
 * not fit into `out`, or copies from before the output; the content of `out` is then undefined.
 * Nothing is allocated; the time is linear in `out_size` and `in_size`.
 */
bool lzo_decode(const uint8_t *in, size_t in_size, uint8_t *out, size_t out_size, size_t *ret_size);

#endif
