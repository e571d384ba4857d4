/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/simulator/turns.h"

#include <time.h>

/* How long one waits for another, and how often in vain: behind the last piece nobody comes. */
#define WAIT_NS 200000000
#define WAITS   3
#define SECOND  1000000000

void sim__turns_init(struct sim_turns *t)
{
	pthread_mutex_init(&t->lock, NULL);
	pthread_cond_init(&t->moved, NULL);
}

void sim__turns_deinit(struct sim_turns *t)
{
	pthread_cond_destroy(&t->moved);
	pthread_mutex_destroy(&t->lock);
}

/* With the lock. */
static void wait_for_company(struct sim_turns *t)
{
	struct timespec until;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_nsec += WAIT_NS;
	until.tv_sec += until.tv_nsec / SECOND;
	until.tv_nsec %= SECOND;
	while (t->inside == 1)
		if (pthread_cond_timedwait(&t->moved, &t->lock, &until))
			break;
	t->alone = t->inside == 1 ? t->alone + 1 : 0;
}

void sim__turns_enter(struct sim_turns *t)
{
	pthread_mutex_lock(&t->lock);
	t->inside++;
	if (t->inside > 1)
		t->alone = 0;
	pthread_cond_broadcast(&t->moved);
	if (t->inside == 1 && t->alone < WAITS)
		wait_for_company(t);
	pthread_mutex_unlock(&t->lock);
}

void sim__turns_leave(struct sim_turns *t)
{
	pthread_mutex_lock(&t->lock);
	t->inside--;
	pthread_mutex_unlock(&t->lock);
}

unsigned sim__turn_begin(struct sim_turns *t)
{
	uint64_t mine;

	pthread_mutex_lock(&t->lock);
	mine = t->given++;
	while (t->next != mine)
		pthread_cond_wait(&t->moved, &t->lock);
	return t->inside;
}

void sim__turn_end(struct sim_turns *t)
{
	t->next++;
	pthread_cond_broadcast(&t->moved);
	pthread_mutex_unlock(&t->lock);
}
