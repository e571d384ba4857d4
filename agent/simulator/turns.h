/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Several readers of one machine: they take turns, a page each, so that what they read lies among
 * what the others read, and the machine goes on between any two pages. Who comes first is the
 * host's business: such a run is as true as any other, but not the same twice.
 */
#ifndef RAMSEAL_AGENT_SIMULATOR_TURNS_H
#define RAMSEAL_AGENT_SIMULATOR_TURNS_H

#include <pthread.h>
#include <stdint.h>

struct sim_turns {
	pthread_mutex_t lock; /* of the machine: who has the turn holds it */
	pthread_cond_t moved;
	unsigned inside;      /* readers in the middle of a read */
	unsigned alone;       /* times in a row that nobody came */
	uint64_t given, next; /* tickets */
};

void sim__turns_init(struct sim_turns *t);
void sim__turns_deinit(struct sim_turns *t);

/*
 * A read begins and ends. One who is alone waits a moment for another: otherwise whoever is fast
 * has read a whole piece before the next one has begun.
 */
void sim__turns_enter(struct sim_turns *t);
void sim__turns_leave(struct sim_turns *t);

/* One's turn, in the order in which it was asked for, with the lock. How many are inside. */
unsigned sim__turn_begin(struct sim_turns *t);
void sim__turn_end(struct sim_turns *t);

#endif
