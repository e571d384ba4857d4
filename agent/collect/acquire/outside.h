/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Page tables that name memory which an image does not have. Of a raw image, in which nothing says
 * where its bytes belong, that tells that its RAM banks stand end to end, or that it is cut.
 */
#ifndef RAMSEAL_AGENT_COLLECT_ACQUIRE_OUTSIDE_H
#define RAMSEAL_AGENT_COLLECT_ACQUIRE_OUTSIDE_H

#include "agent/collect/capture/reading.h"
#include "agent/shared/kernel/discover.h"

/* Entries that name tables, or pages of programs: a device's registers are hardly among them. */
struct outside {
	uint64_t looked;  /* entries */
	uint64_t entries; /* of those, those that refer to what the image does not have */
	uint64_t first; /* the least and the greatest address that they name, but for absurd ones */
	uint64_t last;
};

/* Walks all address spaces, unless that takes too long. */
enum status outside_look(const struct reading *reading, struct drv *source,
			 const struct discovery *d, struct outside *ret, struct err *e);

/* There are so many that the image cannot be right; torn tables name a few. */
bool outside_is_wrong(const struct outside *o, const struct drv_info *info);

/* The sentence: "... entries of page tables refer to memory that the image does not have". */
void outside_text(const struct outside *o, struct err *ret);

#endif
