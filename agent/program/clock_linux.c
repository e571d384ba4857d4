/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/program/clock.h"

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
