/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The two clocks of an acquisition. The monotonic one never goes back: capture times and durations
 * are in it. The wall clock says when that was for people; both stand in every log line, so that
 * one can be turned into the other even if somebody sets the clock meanwhile.
 */
#ifndef RAMSEAL_AGENT_SHARED_PROGRAM_CLOCK_H
#define RAMSEAL_AGENT_SHARED_PROGRAM_CLOCK_H

#include <stddef.h>
#include <stdint.h>

#include "formats/base/utc.h"

#define NS_PER_SECOND UINT64_C(1000000000)

/*
 * Replaces both clocks by `now`, which any thread may call, for a machine with its own time. NULL:
 * real time again. Not while other threads run.
 */
void clock_use(uint64_t (*now)(void *arg), void *arg);

/* The wall-clock time of such a clock's 0: 2015-01-01T00:00:00Z. */
#define CLOCK_VIRTUAL_WALL (UINT64_C(1420070400) * NS_PER_SECOND)

/*
 * Since an arbitrary point: CLOCK_MONOTONIC, or the performance counter. Real time is never told
 * twice the same: of two answers the one that was asked for later is larger, on whatever processor,
 * even if the counter goes back. So whatever ends at a time not above the one at which something
 * else begins was over before; "safe" in smear is built on that (agent/examine/smear/METHOD.md).
 */
uint64_t clock_mono_ns(void);
uint64_t clock_wall_ns(void); /* since 1970-01-01T00:00:00Z */

/*
 * How long the machine has slept (suspend, hibernation) since it was started, as far as the system
 * counts that; 0 after clock_use(). Only its growth has a meaning, and it may jump back by a timer
 * tick.
 */
uint64_t clock_asleep_ns(void);

/*
 * How often the counter has gone back so far, and by how much in all. From the first time on the
 * system's tick holds the clock: it stays between the tick and CLOCK_SLACK_NS more, so that
 * durations are off by no more than that.
 */
struct clock_steps {
	uint64_t count, back_ns;
};

struct clock_steps clock_steps(void);

#define CLOCK_SLACK_NS (NS_PER_SECOND / 25) /* two ticks of 16 ms, and some */

/* The same of the system, whatever clock_use() said. */
uint64_t clock__mono_ns(void);
uint64_t clock__wall_ns(void);

/* clock.c's halves: what the system counts, and the tick, which is coarse and the same for all. */
uint64_t clock__counter_ns(void);
uint64_t clock__tick_ns(void);
uint64_t clock__slept_ns(void);

/* What is asked: the three above, unless a test sets another. */
extern uint64_t (*clock__counter)(void);
extern uint64_t (*clock__tick)(void);
extern uint64_t (*clock__asleep)(void);
/* For tests: as if nothing had been asked yet. */
void clock__forget(void);

/* "2026-11-20T05:30:12.000000042Z": RFC 3339, UTC, nanoseconds. */
#define CLOCK_RFC3339_SIZE UTC_RFC3339_SIZE
void clock_rfc3339(uint64_t wall_ns, char ret[static CLOCK_RFC3339_SIZE]);

/* "20261120T053012Z": ISO 8601 basic, for file names. */
#define CLOCK_FILE_NAME_SIZE sizeof("20261120T053012Z")
void clock_file_name(uint64_t wall_ns, char ret[static CLOCK_FILE_NAME_SIZE]);

#endif
