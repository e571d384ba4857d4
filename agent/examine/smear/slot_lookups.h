/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the swap cache was seen to hold of a slot, and what follows for its content: METHOD.md,
 * section 6.
 */
#ifndef RAMSEAL_AGENT_EXAMINE_SMEAR_SLOT_LOOKUPS_H
#define RAMSEAL_AGENT_EXAMINE_SMEAR_SLOT_LOOKUPS_H

#include "agent/examine/smear/stand.h"

enum slot_lookup {
	SLOT_NOT_LOOKED_UP, /* in time, nobody has, or nobody could tell */
	SLOT_WRITTEN,       /* the page was not in the cache any more: the slot has it */
	SLOT_STILL_CACHED   /* it was: the slot may be older */
};

/*
 * What looks at the slot's page at `at`, made while the entry stood and before it was read, have
 * seen.
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
