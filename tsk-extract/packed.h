/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Compressed streams, through libtsk, which decompresses LZNT1 but opens the whole volume and the
 * whole file for that. Dangerous parts are hidden or rejected first: only sound MFT records reach
 * it (record.h).
 */
#ifndef RAMSEAL_TSK_EXTRACT_PACKED_H
#define RAMSEAL_TSK_EXTRACT_PACKED_H

#include "tsk-extract/mft.h"

struct packed;

/*
 * Opens the compressed stream `name`, in its exact case, of a base record. Borrows what `n` has
 * borrowed.
 */
enum status packed_open(struct mft *n, uint64_t number, const struct name *name,
			struct packed **ret, struct err *e);
void packed_close(struct packed *p); /* NULL is fine */

/*
 * Appends the extents found by libtsk. These count, because it decompresses what it has found and
 * fills the rest with zeros.
 */
enum status packed_extents(const struct packed *p, struct extent_list *ret, struct err *e);

uint64_t packed_unit_size(const struct packed *p); /* bytes */

/* One compression unit, or the rest of it at the end of the stream. */
enum status packed_read(struct packed *p, uint64_t off, void *buf, size_t len, struct err *e);

#endif
