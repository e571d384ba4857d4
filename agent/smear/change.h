/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What became of an entry from one copy of the tables to the next. METHOD.md defines the words.
 */
#ifndef RAMSEAL_AGENT_SMEAR_CHANGE_H
#define RAMSEAL_AGENT_SMEAR_CHANGE_H

#include "agent/paging/discover.h"
#include "agent/paging/pte.h"

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

/* How a machine's entries are to be read; from evidence. */
struct entry_reader {
	enum discover_os os;
	uint64_t ignore; /* see struct walk_options */
	struct win_pte_context windows;
	struct linux_pte_context linux_;
};

/* `level` is the table's. Without a layout, what is not present is PTE_UNKNOWN. */
struct pte entry_decode(const struct entry_reader *r, unsigned level, uint64_t raw);

/* In a frame that the entry names, in a slot, or nowhere that it says. */
enum place { PLACE_NONE, PLACE_FRAME, PLACE_SLOT };

enum place pte_place(const struct pte *p);

/* True if they differ in nothing but what the processor or an ageing scan changes by itself. */
bool entry_same_rights(const struct entry_reader *r, uint64_t a, uint64_t b);

/*
 * The entry without those bits. Two entries that are the same by entry_same_rights() are the same
 * here; the reverse holds, too, where both are present, or neither.
 */
uint64_t entry_hard_bits(const struct entry_reader *r, uint64_t raw);

/* `same_rights`: entry_same_rights() of the two, and the same level. */
enum change change_of(const struct pte *a, const struct pte *b, bool same_rights);

#endif
