/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by mft.c and mft_stream.c. */
#ifndef RAMSEAL_TSK_EXTRACT_MFT_INTERNAL_H
#define RAMSEAL_TSK_EXTRACT_MFT_INTERNAL_H

#include "tsk-extract/mft.h"

struct packed;

/* Adds the clusters of one piece of an attribute. Invalid runs are left out and count as lost. */
enum status mft__add_runs(const struct mft *n, const struct attribute *a, struct extent_list *ret,
			  struct err *e);

/* Reads [off, off + len) of what `extents` describe; zeros for holes. ST_CORRUPT. */
enum status mft__read_extents(struct mft *n, const struct extent_list *extents, uint64_t off,
			      uint8_t *buf, size_t len, struct err *e);

/* The last loaded compressed stream. */
struct packed **mft__packed(struct mft *n);

#endif
