/* SPDX-License-Identifier: Apache-2.0 */
/* What smear.c, which judges, shares with copies.c, which opens the container and walks it. */
#ifndef RAMSEAL_AGENT_SMEAR_SMEAR_INTERNAL_H
#define RAMSEAL_AGENT_SMEAR_SMEAR_INTERNAL_H

#include "agent/smear/captures.h"
#include "agent/smear/smear.h"

/* A page file or swap area by the number that entries have for it. */
struct slot_file {
	const struct captures *captures; /* NULL: there is none */
	bool assumed;                    /* its number was not the kernel's own word */
	struct range_list ranges;
	struct walk_set named;
	struct walk_set several;
};

/* One copy of the tables, to be walked space by space. */
struct source {
	struct physmem_rsz mem;
	struct rsz_cursor *cursor;
	struct walk_set set;
	struct leaves leaves;
	struct walk_budget budget;
	struct windows windows; /* of the space at hand */
	struct windows all;
};

/* Everything that the measure needs while it runs. */
struct measure {
	const struct smear_plan *plan;
	struct smear *ret;
	struct source copy[COPIES];
	struct stream_captures captures;
	const struct captures *memory;
	struct range_list ram;
	struct walk_set named;
	struct walk_set several;
	struct slot_file files[PTE_FILES_MAX];
	struct entry_reader entries;
	struct walk walk;
	uint64_t work;                                  /* steps that judging may still take */
	uint64_t states[PAIRS][PTE_STATES][PTE_STATES]; /* of the space at hand */
};

/*
 * Opens what the plan names, and chooses the layout, for which every space is walked once.
 * smear__tear_down() in any case.
 */
enum status smear__set_up(struct measure *m, struct err *e);
void smear__tear_down(struct measure *m);

/* The budgets of all copies anew: before all spaces are walked. */
void smear__begin_budget(struct measure *m);

/* True if a space has tables in that copy that are to be walked. */
bool smear__has_copy(const struct smear_id *id, enum copy copy);

/* Fills the leaves of every copy that the space has; the image's only if `image`. */
enum status smear__walk_space(struct measure *m, const struct smear_id *id, bool image,
			      struct err *e);

#endif
