/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What was found in the swap cache for a slot, and what follows for the slot's content: METHOD.md,
 * section 6.
 */
#ifndef RAMSEAL_AGENT_EXAMINE_SMEAR_SLOT_LOOKUPS_H
#define RAMSEAL_AGENT_EXAMINE_SMEAR_SLOT_LOOKUPS_H

#include "agent/examine/smear/stand.h"

enum slot_lookup {
	SLOT_NOT_LOOKED_UP, /* or not in time, or without an answer */
	SLOT_WRITTEN,       /* the page was not in the cache any more: the slot has it */
	SLOT_STILL_CACHED   /* it was: the slot may be older */
};

/*
 * What was seen by look-ups of the slot's page at `at` that were made while the entry stood and
 * before the slot was read.
 */
enum slot_lookup slot_lookups_before(const struct captures *lookups, uint64_t at,
				     const struct stand *s, const struct rsz_times *read);

/*
 * The page as the cache had it while the entry stood: the newest such capture. False: there is
 * none.
 */
bool slot_lookups_content(const struct captures *lookups, uint64_t at, const struct stand *s,
			  struct content *ret);

#endif
