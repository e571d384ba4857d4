/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What became of an entry from one copy of the tables to the next. METHOD.md defines the words.
 */
#ifndef RAMSEAL_AGENT_EXAMINE_SMEAR_CHANGE_H
#define RAMSEAL_AGENT_EXAMINE_SMEAR_CHANGE_H

#include "agent/shared/kernel/entry_reader.h"

#define CHANGE_MAP(X)                                                                              \
	X(CHANGE_STABLE, "stable")       /* same state, same frame or slot, same rights */         \
	X(CHANGE_RIGHTS, "rights")       /* same frame or slot; rights or page size differ */      \
	X(CHANGE_REMAPPED, "remapped")   /* another frame */                                       \
	X(CHANGE_TRIMMED, "trimmed")     /* Windows: valid to transition, same frame */            \
	X(CHANGE_RECALLED, "recalled")   /* Windows: transition to valid, same frame */            \
	X(CHANGE_PAGED_OUT, "paged-out") /* from a frame to a slot */                              \
	X(CHANGE_PAGED_IN, "paged-in")   /* from a slot to a frame */                              \
	X(CHANGE_MOVED, "moved")         /* another slot */                                        \
	X(CHANGE_APPEARED, "appeared")   /* named no page of its own, and does now */              \
	X(CHANGE_GONE, "gone")           /* the other way round */                                 \
	X(CHANGE_OTHER, "other")         /* neither names a page */

enum change {
#define X(name, text) name,
	CHANGE_MAP(X)
#undef X
		CHANGES
};

const char *change_name(enum change c);

/* `same_rights`: entry_same_rights() of the two, and the same level. */
enum change change_of(const struct pte *a, const struct pte *b, bool same_rights);

#endif
