/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Page tables that refer to memory that an image does not have. In a raw image, which does not say
 * where its bytes belong, this shows that its RAM banks are stored end to end, or that it is
 * truncated.
 */
#ifndef RAMSEAL_AGENT_COLLECT_ACQUIRE_OUTSIDE_H
#define RAMSEAL_AGENT_COLLECT_ACQUIRE_OUTSIDE_H

#include "agent/collect/capture/reading.h"
#include "agent/shared/kernel/discover.h"

/* Entries for tables or for pages of programs, which are rarely a device's registers. */
struct outside {
	uint64_t looked;  /* entries */
	uint64_t entries; /* of those, references to memory that the image lacks */
	uint64_t first;   /* their lowest and highest address, except absurd ones */
	uint64_t last;
};

/* Walks all address spaces, unless that takes too long. */
enum status outside_look(const struct reading *reading, struct drv *source,
			 const struct discovery *d, struct outside *ret, struct err *e);

/* True if there are too many for a correct image. Torn tables explain a few. */
bool outside_is_wrong(const struct outside *o, const struct drv_info *info);

/* The sentence: "... entries of page tables refer to memory that the image does not have". */
void outside_text(const struct outside *o, struct err *ret);

#endif
