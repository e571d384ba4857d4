/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Compressed streams, through libtsk, which undoes LZNT1 but wants to open the whole volume and the
 * whole file for it. What it must not see of them is hidden or refused first: no MFT record reaches
 * it that is not sound (record.h).
 */
#ifndef RAMSEAL_TSK_EXTRACT_PACKED_H
#define RAMSEAL_TSK_EXTRACT_PACKED_H

#include "tsk-extract/mft.h"

struct packed;

/*
 * The compressed stream `name`, as it is written, of a base record. Borrows what `n` has borrowed.
 */
enum status packed_open(struct mft *n, uint64_t number, const struct name *name,
			struct packed **ret, struct err *e);
void packed_close(struct packed *p); /* NULL is fine */

/*
 * Appends the extents as libtsk has found them. They are the ones that count, because it
 * decompresses what it has found, and fills what it has not found with zeros.
 */
enum status packed_extents(const struct packed *p, struct extent_list *ret, struct err *e);

uint64_t packed_unit_size(const struct packed *p); /* bytes */

/* One compression unit, or what is left of it at the end of the stream. */
enum status packed_read(struct packed *p, uint64_t off, void *buf, size_t len, struct err *e);

#endif
