/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pieces: the longest stretches of addresses over which each copy has one entry, or none. So a
 * large page and the 512 small ones that it was split into can be compared.
 */
#ifndef RAMSEAL_AGENT_SMEAR_PIECE_H
#define RAMSEAL_AGENT_SMEAR_PIECE_H

#include "agent/smear/smear_internal.h"

struct view {
	const struct leaf *leaf; /* NULL: nothing is mapped */
	const struct leaf_table *table;
	struct pte pte; /* of the piece: frame and slot are those of its first page */
};

struct piece {
	uint64_t va;
	uint64_t pages;
	struct view view[COPIES];
	enum change change[PAIRS];
};

/*
 * The first piece at or behind `from`; false if there is none. `at`: where each copy's leaves are;
 * zero before the first call.
 */
bool piece_next(struct measure *m, size_t at[COPIES], uint64_t from, struct piece *ret);

/*
 * Counts what that copy's entry names in the space's sums, and tells m->look or the plan's row() of
 * it. ST_OK, or what they returned. smear.c.
 */
enum status smear__judge(struct measure *m, struct smear_space *s, const struct piece *p,
			 enum copy copy, struct err *e);

/* From the view of one copy to that of another. */
enum change piece_change(const struct measure *m, const struct view *a, const struct view *b);

#endif
