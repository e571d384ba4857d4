/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Condition variables that wait by the monotonic clock where the system allows it: those of
 * winpthreads take CLOCK_REALTIME only (mingw-w64 10.0, pthread_condattr_setclock()).
 */
#ifndef RAMSEAL_AGENT_SHARED_PROGRAM_TIMED_COND_H
#define RAMSEAL_AGENT_SHARED_PROGRAM_TIMED_COND_H

#include <pthread.h>
#include <stdint.h>
#include <time.h>

/* Like pthread_cond_init(). Returns the clock by which it waits. */
clockid_t timed_cond_init(pthread_cond_t *ret);

/* For pthread_cond_timedwait(): `ns` from now on. */
struct timespec timed_cond_until(clockid_t clock, uint64_t ns);

#endif
