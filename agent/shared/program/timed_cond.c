/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/shared/program/timed_cond.h"

#include "agent/shared/program/clock.h"

clockid_t timed_cond_init(pthread_cond_t *ret)
{
	clockid_t clock = CLOCK_MONOTONIC;
	pthread_condattr_t by;

	pthread_condattr_init(&by);
	if (pthread_condattr_setclock(&by, clock))
		clock = CLOCK_REALTIME;
	pthread_cond_init(ret, &by);
	pthread_condattr_destroy(&by);
	return clock;
}

struct timespec timed_cond_until(clockid_t clock, uint64_t ns)
{
	struct timespec t;

	clock_gettime(clock, &t);
	ns += (uint64_t)t.tv_nsec;
	t.tv_sec += (time_t)(ns / NS_PER_SECOND);
	t.tv_nsec = (long)(ns % NS_PER_SECOND);
	return t;
}
