/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/shared/program/clock.h"

#include <time.h>

static uint64_t clock_ns(clockid_t id)
{
	struct timespec ts = { 0 };

	clock_gettime(id, &ts);
	return (uint64_t)ts.tv_sec * NS_PER_SECOND + (uint64_t)ts.tv_nsec;
}

/*
 * CLOCK_MONOTONIC does not jump when the time is set, nor for a leap second; NTP only makes it run
 * up to 0.05 % faster or slower. CLOCK_MONOTONIC_RAW runs evenly, but the log, other programs and
 * the tick below do not go by it.
 */
uint64_t clock__counter_ns(void)
{
	return clock_ns(CLOCK_MONOTONIC);
}

/* As of the kernel's last tick: no processor's counter is read for it (clock_gettime(2)). */
uint64_t clock__tick_ns(void)
{
	return clock_ns(CLOCK_MONOTONIC_COARSE);
}

uint64_t clock__wall_ns(void)
{
	return clock_ns(CLOCK_REALTIME);
}

/*
 * CLOCK_BOOTTIME counts what CLOCK_MONOTONIC does, and suspend (clock_gettime(2), since Linux
 * 2.6.39).
 */
uint64_t clock__slept_ns(void)
{
	const uint64_t awake = clock_ns(CLOCK_MONOTONIC), all = clock_ns(CLOCK_BOOTTIME);

	return all > awake ? all - awake : 0;
}
