/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/shared/program/crew.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>

struct crew {
	pthread_t threads[CREW_MAX - 1];
	unsigned n_threads;
	pthread_mutex_t lock; /* guards what follows */
	pthread_cond_t begun, ended;
	unsigned long number; /* of the work */
	bool open;            /* who comes now may help */
	bool over;            /* for good */
	unsigned inside;      /* who help */
	unsigned members;     /* who have a number */

	/* The work. Set while nobody is inside. */
	void (*work)(void *arg, unsigned member, size_t i);
	void *arg;
	size_t count;
	atomic_size_t next;
};

static void take_part(struct crew *c, unsigned member)
{
	size_t i;

	while ((i = atomic_fetch_add(&c->next, 1)) < c->count)
		c->work(c->arg, member, i);
}

static void *run_member(void *arg)
{
	struct crew *c = arg;
	unsigned long seen = 0;
	unsigned member;

	pthread_mutex_lock(&c->lock);
	member = ++c->members;
	while (!c->over) {
		if (!c->open || c->number == seen) {
			pthread_cond_wait(&c->begun, &c->lock);
			continue;
		}
		seen = c->number;
		c->inside++;
		pthread_mutex_unlock(&c->lock);
		take_part(c, member);
		pthread_mutex_lock(&c->lock);
		if (!--c->inside)
			pthread_cond_signal(&c->ended);
	}
	pthread_mutex_unlock(&c->lock);
	return NULL;
}

struct crew *crew_create(unsigned size)
{
	struct crew *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	pthread_mutex_init(&c->lock, NULL);
	pthread_cond_init(&c->begun, NULL);
	pthread_cond_init(&c->ended, NULL);
	while (c->n_threads + 1 < size && c->n_threads < CREW_MAX - 1 &&
	       !pthread_create(&c->threads[c->n_threads], NULL, run_member, c))
		c->n_threads++;
	if (c->n_threads)
		return c;
	crew_destroy(c);
	return NULL;
}

void crew_destroy(struct crew *c)
{
	if (!c)
		return;
	pthread_mutex_lock(&c->lock);
	c->over = true;
	pthread_cond_broadcast(&c->begun);
	pthread_mutex_unlock(&c->lock);
	for (unsigned i = 0; i < c->n_threads; i++)
		pthread_join(c->threads[i], NULL);
	pthread_cond_destroy(&c->ended);
	pthread_cond_destroy(&c->begun);
	pthread_mutex_destroy(&c->lock);
	free(c);
}

void crew_run(struct crew *c, void (*work)(void *arg, unsigned member, size_t i), void *arg,
	      size_t count)
{
	pthread_mutex_lock(&c->lock);
	c->work = work;
	c->arg = arg;
	c->count = count;
	atomic_store(&c->next, 0);
	c->number++;
	c->open = true;
	pthread_cond_broadcast(&c->begun);
	pthread_mutex_unlock(&c->lock);

	take_part(c, 0);

	pthread_mutex_lock(&c->lock);
	c->open = false;
	while (c->inside)
		pthread_cond_wait(&c->ended, &c->lock);
	pthread_mutex_unlock(&c->lock);
}
