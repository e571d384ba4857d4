/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Records which source delivered which page, with one bit per page for each source that delivered
 * any. Memory is read in any order, so a list of ranges would be sorted again and again.
 */
#ifndef RAMSEAL_DRIVER_INTERFACE_PARTS_H
#define RAMSEAL_DRIVER_INTERFACE_PARTS_H

#include "driver-interface/drv.h"

struct parts;

/* `ranges` is borrowed; pages outside it are not recorded. NULL if out of memory. */
struct parts *parts_create(const struct range_list *ranges);
void parts_destroy(struct parts *p); /* NULL is fine */

/*
 * Records that the data pages among these come from `source` (static, compared by address),
 * replacing any earlier record. If out of memory, nothing is recorded: bookkeeping must not end an
 * acquisition.
 */
void parts_note(struct parts *p, const char *source, uint64_t addr, size_t pages,
		const struct page_status *status);

/* As drv_parts(). */
const struct drv_part *parts_list(struct parts *p, size_t *ret_count);

#endif
