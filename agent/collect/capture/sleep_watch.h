/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Did the machine sleep while it was acquired (suspend, hibernation)? What was read before and what
 * was read after are then of two times, further apart than durations tell: of Linux' monotonic
 * clock sleep is no part. Changes of the wall clock do not matter.
 */
#ifndef RAMSEAL_AGENT_COLLECT_CAPTURE_SLEEP_WATCH_H
#define RAMSEAL_AGENT_COLLECT_CAPTURE_SLEEP_WATCH_H

#include <jansson.h>
#include <stdbool.h>

#include "agent/shared/program/clock.h"

/* Less is the two clocks' own noise: one of them may move on by the timer tick only (16 ms). */
#define SLEEP_LEAST (NS_PER_SECOND / 5)
#define SLEEPS_MAX  32

struct sleep {
	uint64_t from, to; /* monotonic ns: it was awake then; the sleep was in between */
	uint64_t ns;       /* how long it slept */
};

/* Not thread-safe. */
struct sleep_watch {
	uint64_t mono, asleep; /* when it was looked last */
	struct sleep at[SLEEPS_MAX];
	size_t count;
	size_t more;    /* that did not fit */
	uint64_t total; /* ns, of all */
};

void sleep_watch_begin(struct sleep_watch *w);

/* Looks at the clocks; cheap. A sleep since the last look is recorded, and there is a warning. */
void sleep_watch_sample(struct sleep_watch *w);

/* The same for what the clocks say; *ret is the sleep, false if there was none. */
bool sleep_watch_add(struct sleep_watch *w, uint64_t mono, uint64_t asleep, struct sleep *ret);

/* [{"from_ns":, "to_ns":, "asleep_ns":}]; NULL if out of memory. */
json_t *sleep_watch_json(const struct sleep_watch *w);

/* What such a list says, for people: one clause. False: nothing, or it is not there. */
#define SLEEP_TEXT_MAX 128
bool sleep_watch_text(const json_t *sleeps, char ret[static SLEEP_TEXT_MAX]);

#endif
