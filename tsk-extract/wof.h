/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files compressed by CompactOS and `compact /exe`: the unnamed stream is a hole of the file's
 * size, and the stream WofCompressedData has a table and then the chunks, each compressed
 * separately.
 *
 * The stream is that of a file in a WIM (Microsoft's "Windows Imaging File Format (WIM)" of 2007):
 * the table has the offset after it of each chunk except the first, in 4 bytes, or in 8 if the file
 * has more than 4 GiB; a chunk as long as its content is not compressed.
 *
 * Internal to this folder.
 */
#ifndef RAMSEAL_TSK_EXTRACT_WOF_H
#define RAMSEAL_TSK_EXTRACT_WOF_H

#include "tsk-extract/reparse.h"

#define WOF_STREAM "WofCompressedData"

struct wof;

/* Borrows `n`. `size`: the file's. ST_INPUT, ST_CORRUPT: there is no such stream. */
enum status wof_open(struct mft *n, uint64_t number, enum wof_algorithm algorithm, uint64_t size,
		     struct wof **ret, struct err *e);
void wof_close(struct wof *w); /* NULL is fine */

const char *wof_algorithm_name(enum wof_algorithm a);
uint64_t wof_unit_size(const struct wof *w);
const struct mft_stream *wof_stream(const struct wof *w);

/* One chunk, which begins at `off` of the file. ST_CORRUPT if it cannot be decompressed. */
enum status wof_read(struct wof *w, uint64_t off, void *buf, size_t len, struct err *e);

#endif
