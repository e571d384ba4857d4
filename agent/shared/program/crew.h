/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A few threads that help their caller with work that is over in a millisecond, again and again:
 * between two such works they sleep. Who wakes too late to find anything left is not waited for.
 */
#ifndef RAMSEAL_AGENT_SHARED_PROGRAM_CREW_H
#define RAMSEAL_AGENT_SHARED_PROGRAM_CREW_H

#include <stddef.h>

#define CREW_MAX 4 /* with the caller */

struct crew;

/*
 * `size` of them with the caller, at most CREW_MAX; fewer where the system gives no threads. NULL:
 * no memory, or nobody would help.
 */
struct crew *crew_create(unsigned size);
void crew_destroy(struct crew *c); /* NULL is fine. Not while crew_run() runs. */

/*
 * work(arg, member, i) for each i below `count`, each once, on several threads at once; `member` is
 * another number below CREW_MAX on each, 0 on the caller's. Returns when all have returned. From
 * one thread at a time.
 */
void crew_run(struct crew *c, void (*work)(void *arg, unsigned member, size_t i), void *arg,
	      size_t count);

#endif
