/* SPDX-License-Identifier: Apache-2.0 */
/* Between mft.c and mft_stream.c. */
#ifndef RAMSEAL_TSK_EXTRACT_MFT_INTERNAL_H
#define RAMSEAL_TSK_EXTRACT_MFT_INTERNAL_H

#include "tsk-extract/mft.h"

struct packed;

/* Adds the clusters of one piece of an attribute. What makes no sense stays out, and is lost. */
enum status mft__add_runs(const struct mft *n, const struct attribute *a, struct extent_list *ret,
			  struct err *e);

/* Reads [off, off + len) of what `extents` describe; zeros for holes. ST_CORRUPT. */
enum status mft__read_extents(struct mft *n, const struct extent_list *extents, uint64_t off,
			      uint8_t *buf, size_t len, struct err *e);

/* Where the compressed stream is kept that was loaded last. */
struct packed **mft__packed(struct mft *n);

#endif
