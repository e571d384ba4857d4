/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Did the machine sleep (suspend, hibernate) while it was acquired? Then what was read before and
 * after is further apart than the durations say, because Linux's monotonic clock stops during
 * sleep. Changes of the wall clock do not matter.
 */
#ifndef RAMSEAL_AGENT_COLLECT_CAPTURE_SLEEP_WATCH_H
#define RAMSEAL_AGENT_COLLECT_CAPTURE_SLEEP_WATCH_H

#include <jansson.h>
#include <stdbool.h>

#include "agent/shared/program/clock.h"

/* Less is noise: one of the two clocks may advance only with the timer tick (16 ms). */
#define SLEEP_LEAST (NS_PER_SECOND / 5)
#define SLEEPS_MAX  32

struct sleep {
	uint64_t from, to; /* monotonic ns when it was still awake, and awake again */
	uint64_t ns;       /* how long it slept */
};

/* Not thread-safe. */
struct sleep_watch {
	uint64_t mono, asleep; /* when the clocks were last read */
	struct sleep at[SLEEPS_MAX];
	size_t count;
	size_t more;    /* sleeps that did not fit */
	uint64_t total; /* ns, of all */
};

void sleep_watch_begin(struct sleep_watch *w);

/* Reads the clocks; cheap. Records a sleep since the last call, with a warning. */
void sleep_watch_sample(struct sleep_watch *w);

/* The same for given readings of the clocks. False if there was no sleep. */
bool sleep_watch_add(struct sleep_watch *w, uint64_t mono, uint64_t asleep, struct sleep *ret);

/* [{"from_ns":, "to_ns":, "asleep_ns":}]; NULL if out of memory. */
json_t *sleep_watch_json(const struct sleep_watch *w);

/* Such a list as one clause of text. False: there is no sleep in it, or no list. */
#define SLEEP_TEXT_MAX 128
bool sleep_watch_text(const json_t *sleeps, char ret[static SLEEP_TEXT_MAX]);

#endif
