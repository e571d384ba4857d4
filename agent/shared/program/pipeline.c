/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/shared/program/pipeline.h"

#include <pthread.h>
#include <stdbool.h>

#include "agent/shared/program/self.h"
#include "agent/shared/program/share.h"
#include "formats/base/defs.h"

/*
 * Items are numbered as they are filled; item n lives in slot n % n_slots. Always
 * drained <= taken <= filled <= drained + n_slots.
 */
struct pipeline_slot {
	void *item;
	bool done; /* worked on, ready to be drained */
	enum status st;
	struct err err;
};

struct pipeline {
	const struct pipeline_ops *ops;
	struct pipeline_filler filler;
	void *arg;
	struct pipeline_slot *slots;
	size_t n_slots;

	pthread_mutex_t lock; /* guards everything below, and slot->done */
	pthread_cond_t room;  /* a slot was drained, or the run failed */
	pthread_cond_t work;  /* an item was filled, or no more will be */
	pthread_cond_t ready; /* an item was worked on, or no more will be */
	uint64_t filled;
	uint64_t taken;
	uint64_t drained;
	bool full_stop; /* no more items will be filled */
	unsigned started, n_lost;
	struct {
		uint64_t item; /* that it works on */
		bool lost;     /* in it */
	} workers[PIPELINE_WORKERS_MAX];
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
	struct share_meter meter;

	share_join(SHARE_COMPRESSING);
	share_meter_begin(&meter, SHARE_COMPRESSING);
	pthread_mutex_lock(&p->lock);
	for (;;) {
		struct pipeline_slot *s;

		while (p->taken == p->filled && !p->full_stop)
			pthread_cond_wait(&p->work, &p->lock);
		if (p->taken == p->filled)
			break;
		p->workers[w->number].item = p->taken;
		s = &p->slots[p->taken++ % p->n_slots];
		pthread_mutex_unlock(&p->lock);
		s->st = p->ops->work(p->arg, w->number, s->item, &s->err);
		pthread_mutex_lock(&p->lock);
		s->done = true;
		pthread_cond_signal(&p->ready);
		pthread_mutex_unlock(&p->lock);
		share_give_way(&meter);
		pthread_mutex_lock(&p->lock);
	}
	pthread_mutex_unlock(&p->lock);
	share_meter_end(&meter);
	return NULL;
}

/* The first failure of the drain ends the run: whoever fills, learns it from p->st. */
static void fail_pipeline(struct pipeline *p, enum status st, const struct err *why)
{
	p->st = st;
	p->err = *why;
	p->full_stop = true;
	pthread_cond_broadcast(&p->work);
}

void pipeline_lose(void *arg, unsigned worker, enum status st, const struct err *why)
{
	struct pipeline *p = arg;
	struct pipeline_slot *s;

	pthread_mutex_lock(&p->lock);
	s = &p->slots[p->workers[worker].item % p->n_slots];
	p->workers[worker].lost = true;
	p->n_lost++;
	s->st = st;
	s->err = *why;
	s->done = true;
	pthread_cond_broadcast(&p->ready);
	pthread_cond_broadcast(&p->room);
	pthread_mutex_unlock(&p->lock);
}

/* Items that nobody has taken are nobody's then. */
static bool nobody_works(const struct pipeline *p)
{
	return p->n_lost && p->n_lost == p->started;
}

/* Whether the next item to be drained is still being worked on, or filled. */
static bool must_wait(const struct pipeline *p, const struct pipeline_slot *next)
{
	if (p->drained == p->filled)
		return !p->full_stop;
	return !next->done && !(nobody_works(p) && p->drained >= p->taken);
}

static void *drain_thread(void *arg)
{
	struct pipeline *p = arg;
	struct share_meter meter;

	share_join(SHARE_WRITING);
	share_meter_begin(&meter, SHARE_WRITING);
	pthread_mutex_lock(&p->lock);
	for (;;) {
		struct pipeline_slot *s = &p->slots[p->drained % p->n_slots];

		while (must_wait(p, s))
			pthread_cond_wait(&p->ready, &p->lock);
		if (p->drained == p->filled || !s->done)
			break;
		s->done = false;
		if (!p->st) {
			enum status st = s->st;

			pthread_mutex_unlock(&p->lock);
			if (!st)
				st = p->ops->drain(p->arg, s->item, &s->err);
			share_give_way(&meter);
			pthread_mutex_lock(&p->lock);
			if (st)
				fail_pipeline(p, st, &s->err);
		}
		p->drained++;
		pthread_cond_signal(&p->room);
	}
	pthread_mutex_unlock(&p->lock);
	share_meter_end(&meter);
	return NULL;
}

/* The next free slot, or NULL once the drain has failed. */
static struct pipeline_slot *wait_for_room(struct pipeline *p)
{
	struct pipeline_slot *s;

	pthread_mutex_lock(&p->lock);
	while (p->filled - p->drained == p->n_slots && !p->st)
		pthread_cond_wait(&p->room, &p->lock);
	s = p->st ? NULL : &p->slots[p->filled % p->n_slots];
	pthread_mutex_unlock(&p->lock);
	return s;
}

static enum status fill_items(struct pipeline *p, struct share_meter *meter, struct err *e)
{
	struct pipeline_slot *s;

	while ((s = wait_for_room(p))) {
		const enum status st = p->ops->fill(p->arg, s->item, e);

		if (st)
			return st == ST_END ? ST_OK : st;
		s->st = ST_OK;
		s->err.message[0] = '\0';
		pthread_mutex_lock(&p->lock);
		/*
		 * After a failure the workers may be gone: an item counted now would wait for ever.
		 */
		if (!p->full_stop)
			p->filled++;
		pthread_cond_signal(&p->work);
		pthread_mutex_unlock(&p->lock);
		share_give_way(meter);
	}
	return ST_OK;
}

/* Workers may read, and are watched over as long as this has not returned. */
static void wait_for_the_rest(struct pipeline *p)
{
	pthread_mutex_lock(&p->lock);
	while (p->drained < p->filled && !(nobody_works(p) && p->drained >= p->taken))
		pthread_cond_wait(&p->room, &p->lock);
	pthread_mutex_unlock(&p->lock);
}

/* Whoever fills keeps his priority, and gives way between two items only. */
static enum status fill_as_reader(void *arg, struct err *e)
{
	struct share_meter meter;
	enum status st;

	share_meter_begin(&meter, SHARE_READING);
	st = fill_items(arg, &meter, e);
	share_meter_end(&meter);
	wait_for_the_rest(arg);
	return st;
}

static void stop_pipeline(struct pipeline *p)
{
	pthread_mutex_lock(&p->lock);
	p->full_stop = true;
	pthread_cond_broadcast(&p->work);
	pthread_cond_broadcast(&p->ready);
	pthread_mutex_unlock(&p->lock);
}

/*
 * How many workers were started: perhaps none. With fewer than asked for it takes longer, no more.
 */
static unsigned start_workers(struct pipeline *p, struct worker *worker, unsigned workers)
{
	unsigned started = 0;

	for (; started < workers; started++) {
		worker[started] = (struct worker){ .p = p, .number = started };
		if (pthread_create(&worker[started].thread, NULL, work_thread, &worker[started]))
			break;
	}
	return started;
}

static void end_workers(struct pipeline *p, const struct worker *worker)
{
	for (unsigned i = 0; i < p->started; i++) {
		bool lost;

		pthread_mutex_lock(&p->lock);
		lost = p->workers[i].lost;
		pthread_mutex_unlock(&p->lock);
		if (lost)
			pthread_detach(worker[i].thread);
		else
			pthread_join(worker[i].thread, NULL);
	}
}

/* False, and nothing was done, if the threads that it takes cannot be started. */
static bool run_threads(struct pipeline *p, unsigned workers, enum status *ret, struct err *e)
{
	struct worker worker[PIPELINE_WORKERS_MAX];
	pthread_t drain;
	bool ran;

	if (pthread_create(&drain, NULL, drain_thread, p))
		return false;
	p->started = start_workers(p, worker, workers);
	ran = p->started;
	if (ran)
		*ret = p->filler.run ? p->filler.run(p->filler.with, fill_as_reader, p, e)
				     : fill_as_reader(p, e);
	stop_pipeline(p);
	end_workers(p, worker);
	pthread_join(drain, NULL);
	if (ran && p->st) {
		if (e)
			*e = p->err;
		*ret = p->st;
	}
	return ran;
}

/* One item after the other on this thread: slow, but a result. */
static enum status run_alone(const struct pipeline *p, struct err *e)
{
	void *const item = p->slots[0].item;
	enum status st;

	do {
		st = p->ops->fill(p->arg, item, e);
		if (st)
			return st == ST_END ? ST_OK : st;
		st = p->ops->work(p->arg, 0, item, e);
		if (!st)
			st = p->ops->drain(p->arg, item, e);
	} while (!st);
	return st;
}

enum status pipeline_run(const struct pipeline_ops *ops, void *arg, void *const items[],
			 size_t n_items, unsigned workers, struct err *e)
{
	return pipeline_run_with(ops, (struct pipeline_filler){ 0 }, arg, items, n_items, workers,
				 e);
}

enum status pipeline_run_with(const struct pipeline_ops *ops, struct pipeline_filler filler,
			      void *arg, void *const items[], size_t n_items, unsigned workers,
			      struct err *e)
{
	struct pipeline p = {
		.ops = ops,
		.filler = filler,
		.arg = arg,
		.n_slots = n_items,
		.lock = PTHREAD_MUTEX_INITIALIZER,
		.room = PTHREAD_COND_INITIALIZER,
		.work = PTHREAD_COND_INITIALIZER,
		.ready = PTHREAD_COND_INITIALIZER,
	};
	enum status st = ST_OK;

	p.slots = calloc(n_items, sizeof(*p.slots));
	if (!p.slots)
		return err_nomem(e);
	for (size_t i = 0; i < n_items; i++)
		p.slots[i].item = items[i];
	if (!run_threads(&p, MAX(1, MIN(workers, PIPELINE_WORKERS_MAX)), &st, e))
		st = run_alone(&p, e);
	free(p.slots);
	return st;
}

unsigned pipeline_threads(uint64_t asked)
{
	if (asked)
		return (unsigned)MIN(asked, PIPELINE_WORKERS_MAX);
	return share_threads(self_cpus(), share_is_nice());
}
