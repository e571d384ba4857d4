/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The seats of a receiver: at most --max-senders uploads have a session at a time. A sender that
 * finds none free may get that of another, so that nobody can keep everyone else out.
 *
 * All functions are called with the store's lock held; those that wait let go of it meanwhile.
 */
#ifndef RAMSEAL_AGENT_COLLECT_RECEIVE_SEATS_H
#define RAMSEAL_AGENT_COLLECT_RECEIVE_SEATS_H

#include <pthread.h>

#include "agent/collect/receive/upload.h"

struct seats {
	struct upload **at; /* uploads that a session owns, in no order */
	unsigned count, max;
	uint64_t quiet_ns; /* a sender that was silent for this long can lose its seat */
	pthread_mutex_t *lock;
	pthread_cond_t released; /* a seat became free */
	clockid_t clock;         /* for timed waits on `released` */
};

enum status seats_init(struct seats *s, pthread_mutex_t *lock, unsigned max, unsigned quiet_s,
		       struct err *e);
void seats_deinit(struct seats *s); /* also after seats_init() failed */

/* *owner becomes true when the session must go. An upload without an owner needs a free seat. */
void seats_give(struct seats *s, struct upload *u, atomic_bool *owner);
void seats_release(struct seats *s, struct upload *u);

/*
 * Waits until a seat is free. If none is, the least worthy session is told to go: a silent one, or
 * one whose key would still hold more seats than `pin`. ST_OUTPUT, with *why.
 */
enum status seats_make_room(struct seats *s, const char *pin, struct frame_refused *why);

/* Tells the session that owns `u` to go, and waits until it has. ST_OUTPUT, with *why. */
enum status seats_take_over(struct seats *s, struct upload *u, struct frame_refused *why);

#endif
