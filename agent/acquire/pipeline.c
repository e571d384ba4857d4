/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/acquire/pipeline.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>

/*
 * Items are numbered as they are filled; item n lives in slot n % n_slots. Always
 * drained <= taken <= filled <= drained + n_slots.
 */
struct slot {
	void *item;
	bool done; /* worked on, ready to be drained */
	enum status st;
	struct err err;
};

struct pipeline {
	const struct pipeline_ops *ops;
	void *arg;
	struct slot *slots;
	size_t n_slots;

	pthread_mutex_t lock; /* guards everything below, and slot->done */
	pthread_cond_t room;  /* a slot was drained, or the run failed */
	pthread_cond_t work;  /* an item was filled, or no more will be */
	pthread_cond_t ready; /* an item was worked on, or no more will be */
	uint64_t filled;
	uint64_t taken;
	uint64_t drained;
	bool full_stop; /* no more items will be filled */
	enum status st; /* why the drain ended early */
	struct err err;
};

struct worker {
	struct pipeline *p;
	unsigned number;
	pthread_t thread;
};

static void *work_thread(void *arg)
{
	struct worker *w = arg;
	struct pipeline *p = w->p;

	pthread_mutex_lock(&p->lock);
	for (;;) {
		struct slot *s;

		while (p->taken == p->filled && !p->full_stop)
			pthread_cond_wait(&p->work, &p->lock);
		if (p->taken == p->filled)
			break;
		s = &p->slots[p->taken++ % p->n_slots];
		pthread_mutex_unlock(&p->lock);
		s->st = p->ops->work(p->arg, w->number, s->item, &s->err);
		pthread_mutex_lock(&p->lock);
		s->done = true;
		pthread_cond_signal(&p->ready);
	}
	pthread_mutex_unlock(&p->lock);
	return NULL;
}

/* The first failure of the drain ends the run: whoever fills, learns it from p->st. */
static void fail(struct pipeline *p, enum status st, const struct err *why)
{
	p->st = st;
	p->err = *why;
	p->full_stop = true;
	pthread_cond_broadcast(&p->work);
}

static void *drain_thread(void *arg)
{
	struct pipeline *p = arg;

	pthread_mutex_lock(&p->lock);
	for (;;) {
		struct slot *s = &p->slots[p->drained % p->n_slots];

		while (p->drained < p->filled ? !s->done : !p->full_stop)
			pthread_cond_wait(&p->ready, &p->lock);
		if (p->drained == p->filled)
			break;
		s->done = false;
		if (!p->st) {
			enum status st = s->st;

			pthread_mutex_unlock(&p->lock);
			if (!st)
				st = p->ops->drain(p->arg, s->item, &s->err);
			pthread_mutex_lock(&p->lock);
			if (st)
				fail(p, st, &s->err);
		}
		p->drained++;
		pthread_cond_signal(&p->room);
	}
	pthread_mutex_unlock(&p->lock);
	return NULL;
}

/* The next free slot, or NULL once the drain has failed. */
static struct slot *wait_for_room(struct pipeline *p)
{
	struct slot *s;

	pthread_mutex_lock(&p->lock);
	while (p->filled - p->drained == p->n_slots && !p->st)
		pthread_cond_wait(&p->room, &p->lock);
	s = p->st ? NULL : &p->slots[p->filled % p->n_slots];
	pthread_mutex_unlock(&p->lock);
	return s;
}

static enum status fill_all(struct pipeline *p, struct err *e)
{
	struct slot *s;

	while ((s = wait_for_room(p))) {
		const enum status st = p->ops->fill(p->arg, s->item, e);

		if (st)
			return st == ST_END ? ST_OK : st;
		s->st = ST_OK;
		s->err.message[0] = '\0';
		pthread_mutex_lock(&p->lock);
		/* After a failure the workers may be gone: an item counted now would wait for ever. */
		if (!p->full_stop)
			p->filled++;
		pthread_cond_signal(&p->work);
		pthread_mutex_unlock(&p->lock);
	}
	return ST_OK;
}

static void stop(struct pipeline *p)
{
	pthread_mutex_lock(&p->lock);
	p->full_stop = true;
	pthread_cond_broadcast(&p->work);
	pthread_cond_broadcast(&p->ready);
	pthread_mutex_unlock(&p->lock);
}

static enum status run_threads(struct pipeline *p, unsigned workers, struct err *e)
{
	struct worker worker[PIPELINE_WORKERS_MAX];
	pthread_t drain;
	unsigned started = 0;
	enum status st = ST_OK;
	int error = pthread_create(&drain, NULL, drain_thread, p);

	if (error)
		return err_from_errno(e, ST_SYSTEM, error, "cannot start a thread");
	for (; started < workers && !error; started++) {
		worker[started] = (struct worker){ .p = p, .number = started };
		error = pthread_create(&worker[started].thread, NULL, work_thread,
				       &worker[started]);
		if (error)
			break;
	}
	/* With fewer workers than asked for it takes longer, but it works. */
	if (started)
		st = fill_all(p, e);
	else
		st = err_from_errno(e, ST_SYSTEM, error, "cannot start a thread");
	stop(p);
	while (started--)
		pthread_join(worker[started].thread, NULL);
	pthread_join(drain, NULL);
	if (p->st) {
		if (e)
			*e = p->err;
		st = p->st;
	}
	return st;
}

enum status pipeline_run(const struct pipeline_ops *ops, void *arg, void *const items[],
			 size_t n_items, unsigned workers, struct err *e)
{
	struct pipeline p = {
		.ops = ops,
		.arg = arg,
		.n_slots = n_items,
		.lock = PTHREAD_MUTEX_INITIALIZER,
		.room = PTHREAD_COND_INITIALIZER,
		.work = PTHREAD_COND_INITIALIZER,
		.ready = PTHREAD_COND_INITIALIZER,
	};
	enum status st;

	p.slots = calloc(n_items, sizeof(*p.slots));
	if (!p.slots)
		return err_nomem(e);
	for (size_t i = 0; i < n_items; i++)
		p.slots[i].item = items[i];
	st = run_threads(&p, MAX(1, MIN(workers, PIPELINE_WORKERS_MAX)), e);
	free(p.slots);
	return st;
}
