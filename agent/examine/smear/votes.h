/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which page file a number in entries means, asked of the content: a page that was in a frame when
 * one copy of the tables was read, and in a slot of number n when another was, has the same bytes
 * in both, unless it was written to between. In the file that has the number by the acquisition's
 * word these bytes are found, or in another one, or in none. METHOD.md, section 6, says how many
 * are needed.
 */
#ifndef RAMSEAL_AGENT_EXAMINE_SMEAR_VOTES_H
#define RAMSEAL_AGENT_EXAMINE_SMEAR_VOTES_H

#include "agent/examine/smear/smear_internal.h"

/*
 * Fills in ret->numbers of what is measured, and what that says of m->files. Behind the choice of a
 * layout. Nothing is done where all numbers are known; of an outline it is only said that they are
 * not. Walks all spaces, and reads up to
 * VOTES_SAMPLE frames and slots for each number.
 */
enum status smear__vote(struct analysis *m, struct err *e);

#endif
