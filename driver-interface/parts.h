/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which source delivered which page, one bit a page for each source that delivered any. Memory is
 * read in any order, a page here and a page there: a list of ranges would be sorted over and over.
 */
#ifndef RAMSEAL_DRIVER_INTERFACE_PARTS_H
#define RAMSEAL_DRIVER_INTERFACE_PARTS_H

#include "driver-interface/drv.h"

struct parts;

/* `ranges` is borrowed; pages outside it are not noted. NULL without memory. */
struct parts *parts_create(const struct range_list *ranges);
void parts_destroy(struct parts *p); /* NULL is fine */

/*
 * Those of these pages that are data come from `source` (static, told apart by address), whoever
 * had delivered them before. Without memory they come from nobody: bookkeeping must not end an
 * acquisition.
 */
void parts_note(struct parts *p, const char *source, uint64_t addr, size_t pages,
		const struct page_status *status);

/* As drv_parts(). */
const struct drv_part *parts_list(struct parts *p, size_t *ret_count);

#endif
