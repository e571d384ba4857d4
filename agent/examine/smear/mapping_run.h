/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs of mappings: the longest stretches of addresses over which each copy has one entry, or none.
 * So a large page and the 512 small ones that it was split into can be compared.
 */
#ifndef RAMSEAL_AGENT_EXAMINE_SMEAR_MAPPING_RUN_H
#define RAMSEAL_AGENT_EXAMINE_SMEAR_MAPPING_RUN_H

#include "agent/examine/smear/smear_internal.h"

struct view {
	const struct leaf *leaf; /* NULL: nothing is mapped */
	const struct leaf_table *table;
	struct pte pte; /* of the run: frame and slot are those of its first page */
};

struct mapping_run {
	uint64_t va;
	uint64_t pages;
	struct view view[COPIES];
	enum change change[PAIRS];
};

/*
 * The first run at or behind `from`; false if there is none. `at`: where each copy's leaves are;
 * zero before the first call.
 */
bool mapping_run_next(struct analysis *m, size_t at[COPIES], uint64_t from,
		      struct mapping_run *ret);

/* From the view of one copy to that of another. */
enum change mapping_run_change(const struct analysis *m, const struct view *a,
			       const struct view *b);

#endif
