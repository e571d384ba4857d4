/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/shared/program/clock.h"

#include <time.h>

static uint64_t clock_ns(clockid_t id)
{
	struct timespec ts = { 0 };

	clock_gettime(id, &ts);
	return (uint64_t)ts.tv_sec * NS_PER_SECOND + (uint64_t)ts.tv_nsec;
}

uint64_t clock__mono_ns(void)
{
	return clock_ns(CLOCK_MONOTONIC);
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
