/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Did the machine's counter go back while it was acquired? Times go on all the same (clock.h), but
 * whoever judges by them must know.
 */
#ifndef RAMSEAL_AGENT_COLLECT_CAPTURE_CLOCK_WATCH_H
#define RAMSEAL_AGENT_COLLECT_CAPTURE_CLOCK_WATCH_H

#include <jansson.h>
#include <stdbool.h>

#include "agent/shared/program/clock.h"

#define CLOCK_SPANS_MAX 32

struct clock_span {
	uint64_t from, to; /* monotonic ns: the steps were between these */
	struct clock_steps steps;
};

/* Not thread-safe. */
struct clock_watch {
	uint64_t mono; /* when it was looked last, */
	struct clock_steps seen;
	struct clock_span at[CLOCK_SPANS_MAX]; /* the last of a full list has all that came later */
	size_t count;
};

void clock_watch_begin(struct clock_watch *w);

/* Looks at the clock; cheap. Steps since the last look are recorded; the first is a warning. */
void clock_watch_sample(struct clock_watch *w);

/* The same for what the clock says. True: there were steps. */
bool clock_watch_add(struct clock_watch *w, uint64_t mono, struct clock_steps steps);

/* [{"from_ns":, "to_ns":, "count":, "back_ns":}]; NULL if out of memory. */
json_t *clock_watch_json(const struct clock_watch *w);

/* What such a list says, for people: one clause. False: nothing, or it is not there. */
#define CLOCK_TEXT_MAX 128
bool clock_watch_text(const json_t *steps, char ret[static CLOCK_TEXT_MAX]);

#endif
