/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/shared/program/clock.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

#include "formats/base/defs.h"

static struct {
	uint64_t (*now)(void *arg); /* NULL: time is real */
	void *arg;
} other;

void clock_use(uint64_t (*now)(void *arg), void *arg)
{
	other.now = now;
	other.arg = arg;
}

/*
 * Answers are made larger by 1 where the counter has not moved on, and processors may disagree by
 * far less than a read takes: that is no step back.
 */
#define CLOCK_NOISE_NS 10000

static struct {
	_Atomic uint64_t last; /* answer */
	_Atomic uint64_t tick; /* when that was, about */
	_Atomic bool stepped;  /* from then on, `held` says what time it is */
} real;

static struct {
	pthread_mutex_t lock; /* guards the rest */
	uint64_t ahead;       /* our time before the counter's, modulo 2^64 */
	uint64_t base, tick;  /* our time, and the tick then, when the counter first went back */
	struct clock_steps steps;
} held = { .lock = PTHREAD_MUTEX_INITIALIZER };

uint64_t (*clock__counter)(void) = clock__counter_ns;
uint64_t (*clock__tick)(void) = clock__tick_ns;

void clock__forget(void)
{
	real.last = real.tick = 0;
	real.stepped = false;
	held.steps = (struct clock_steps){ 0 };
}

/* The counter is asked after the last answer was seen: it can be behind for no other reason. */
static void note_step(uint64_t last, uint64_t now)
{
	if (now < last && last - now > CLOCK_NOISE_NS) {
		held.steps.count++;
		held.steps.back_ns += last - now;
	}
}

/*
 * The counter's steps are followed as long as they stay close to the tick: a counter that went back
 * for good goes on from there, and those of processors that disagree do not add up.
 */
static uint64_t held_now(void)
{
	uint64_t last, now, tick, least;

	pthread_mutex_lock(&held.lock);
	last = real.last;
	if (!real.stepped) {
		held.base = last;
		held.tick = real.tick;
		held.ahead = 0;
		real.stepped = true;
	}
	now = clock__counter() + held.ahead;
	tick = clock__tick();
	note_step(last, now);
	least = held.base + (tick > held.tick ? tick - held.tick : 0);
	if (now - least > CLOCK_SLACK_NS) { /* or it is below, modulo 2^64 */
		held.ahead += MAX(last + 1, least) - now;
		now = MAX(last + 1, least);
	}
	/* Who did not see `stepped` yet may still come in between. */
	do {
		now = MAX(last + 1, now);
	} while (!atomic_compare_exchange_weak(&real.last, &last, now));
	pthread_mutex_unlock(&held.lock);
	return now;
}

uint64_t clock__mono_ns(void)
{
	uint64_t last, now;

	do {
		last = real.last;
		now = clock__counter();
		if (real.stepped || (now < last && last - now > CLOCK_NOISE_NS))
			return held_now();
		now = MAX(last + 1, now);
	} while (!atomic_compare_exchange_weak(&real.last, &last, now));
	real.tick = clock__tick();
	return now;
}

struct clock_steps clock_steps(void)
{
	struct clock_steps ret;

	if (other.now)
		return (struct clock_steps){ 0 };
	pthread_mutex_lock(&held.lock);
	ret = held.steps;
	pthread_mutex_unlock(&held.lock);
	return ret;
}

uint64_t clock_mono_ns(void)
{
	return other.now ? other.now(other.arg) : clock__mono_ns();
}

uint64_t clock_wall_ns(void)
{
	return other.now ? CLOCK_VIRTUAL_WALL + other.now(other.arg) : clock__wall_ns();
}

uint64_t (*clock__asleep)(void) = clock__slept_ns;

uint64_t clock_asleep_ns(void)
{
	return other.now ? 0 : clock__asleep();
}

void clock_rfc3339(uint64_t wall_ns, char ret[static CLOCK_RFC3339_SIZE])
{
	utc_rfc3339(wall_ns, ret);
}

void clock_file_name(uint64_t wall_ns, char ret[static CLOCK_FILE_NAME_SIZE])
{
	const struct utc t = utc_of(wall_ns / NS_PER_SECOND);

	snprintf(ret, CLOCK_FILE_NAME_SIZE, "%04u%02u%02uT%02u%02u%02uZ", t.year % 10000,
		 t.month % 100, t.day % 100, t.hour % 100, t.minute % 100, t.second % 100);
}
