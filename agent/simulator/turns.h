/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Several readers of one machine take turns, a page each, so their reads interleave and the machine
 * changes between any two pages. The host's scheduler decides who comes first, so such a run is
 * as true as any other but cannot be repeated exactly.
 */
#ifndef RAMSEAL_AGENT_SIMULATOR_TURNS_H
#define RAMSEAL_AGENT_SIMULATOR_TURNS_H

#include <pthread.h>
#include <stdint.h>

struct sim_turns {
	pthread_mutex_t lock; /* of the machine; held during a turn */
	pthread_cond_t moved;
	unsigned inside;      /* readers in the middle of a read */
	unsigned alone;       /* consecutive waits in which no other reader came */
	uint64_t given, next; /* tickets */
};

void sim__turns_init(struct sim_turns *t);
void sim__turns_deinit(struct sim_turns *t);

/*
 * Call at the start and end of a read. A lone reader waits a moment for another; otherwise a fast
 * one would finish its read before the next has begun.
 */
void sim__turns_enter(struct sim_turns *t);
void sim__turns_leave(struct sim_turns *t);

/* Waits for a turn, first come, first served, and takes the lock. Returns the number inside. */
unsigned sim__turn_begin(struct sim_turns *t);
void sim__turn_end(struct sim_turns *t);

#endif
