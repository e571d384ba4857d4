/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds out from content which page file a number in entries means. A page that was in a frame when
 * one copy of the tables was read, and in a slot of number n when another was, has the same bytes
 * in both, unless it was written to in between. These bytes are then in the file to which the
 * acquisition gave the number, or in another one, or in none. METHOD.md, section 6, says how many
 * are needed.
 */
#ifndef RAMSEAL_AGENT_EXAMINE_SMEAR_VOTES_H
#define RAMSEAL_AGENT_EXAMINE_SMEAR_VOTES_H

#include "agent/examine/smear/smear_internal.h"

/*
 * Fills in ret->numbers, and what follows from it for m->files. To be called after a layout was
 * chosen. Does nothing where all numbers are known; for an outline it only notes that they are not.
 * Walks all spaces, and reads up to VOTES_SAMPLE frames and slots for each number.
 */
enum status smear__vote(struct analysis *m, struct err *e);

#endif
