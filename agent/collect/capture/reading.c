/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/collect/capture/reading.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>

#include "agent/shared/program/clock.h"
#include "agent/shared/program/interrupt.h"
#include "agent/shared/program/log.h"
#include "agent/shared/program/timed_cond.h"

/* Shared by who reads and who waits; where a read is given up, it stays. */
struct watched_call {
	enum status (*fn)(void *arg, struct err *e);
	void *arg;
	void *pipeline; /* whose workers read, too; NULL: nobody else reads */
	enum status st;
	struct err err;
	struct drv_watch opening; /* without a source: over all of it */
	pthread_mutex_t lock;     /* guards `done` */
	pthread_cond_t ended;
	clockid_t clock; /* that it waits by */
	bool done;
};

/* The read that was under way at the last step, and for how many steps by then. */
struct patience {
	uint64_t number;
	unsigned steps;
};

static void *watched_thread(void *arg)
{
	struct watched_call *run = arg;

	watch_begin(&run->opening, 0, 0);
	run->st = run->fn(run->arg, &run->err);
	watch_end(&run->opening);
	pthread_mutex_lock(&run->lock);
	run->done = true;
	pthread_cond_signal(&run->ended);
	pthread_mutex_unlock(&run->lock);
	return NULL;
}

static bool is_done(struct watched_call *run)
{
	bool done;

	pthread_mutex_lock(&run->lock);
	done = run->done;
	pthread_mutex_unlock(&run->lock);
	return done;
}

/* Until it is done, or a second is over. True: done. */
static bool wait_a_step(struct watched_call *run, const struct reading *r)
{
	struct timespec until;
	int error = 0;
	bool done;

	if (r->step) {
		r->step(r->with);
		return is_done(run);
	}
	until = timed_cond_until(run->clock, NS_PER_SECOND);
	pthread_mutex_lock(&run->lock);
	while (!run->done && error != ETIMEDOUT)
		error = pthread_cond_timedwait(&run->ended, &run->lock, &until);
	done = run->done;
	pthread_mutex_unlock(&run->lock);
	return done;
}

static void warn_of_hanging(const struct err *e)
{
	log_warning("source-hangs",
		    "%s; ramseal may not be able to exit before the system restarts", e->message);
}

/* True if the read that is under way was so for too long. */
static bool is_too_long(const struct reading *r, struct patience *p, struct drv_request q)
{
	const unsigned limit = interrupted() ? MIN(r->limit_s, READING_INTERRUPT_S) : r->limit_s;

	p->steps = q.number && q.number == p->number ? p->steps + 1 : 0;
	p->number = q.number;
	return p->steps >= limit;
}

static void err_of_read(const struct reading *r, struct drv_request q, unsigned steps,
			struct err *e)
{
	err_set(e, ST_SOURCE_FAILED,
		"%s: a read of %zu bytes at 0x%" PRIx64
		" did not return within %u seconds and was abandoned",
		r->source->info.path, q.len, q.addr, steps);
}

/* The same of each worker that reads; *lost says why, once one was given up. */
static void give_up_beside(struct watched_call *run, const struct reading *r,
			   struct patience at[static PIPELINE_WORKERS_MAX], struct err *lost)
{
	for (unsigned i = 0; i < PIPELINE_WORKERS_MAX; i++) {
		const struct drv_request q = drv_reading_beside(r->source, i);

		if (!is_too_long(r, &at[i], q) || !drv_abandon_beside(r->source, i, q.number))
			continue;
		if (!lost->message[0]) {
			err_of_read(r, q, at[i].steps, lost);
			warn_of_hanging(lost);
		}
		pipeline_lose(run->pipeline, i, ST_SOURCE_FAILED, lost);
	}
}

/* True if it was given up now. */
static bool give_up(struct watched_call *run, const struct reading *r, struct patience *p,
		    struct err *e)
{
	const struct drv_request q = r->source ? drv_reading(r->source) : watch_now(&run->opening);

	if (!is_too_long(r, p, q) || !(r->source ? drv_abandon(r->source, q.number)
						 : watch_abandon(&run->opening, q.number)))
		return false;
	if (r->source)
		err_of_read(r, q, p->steps, e);
	else
		err_set(e, ST_SOURCE_FAILED,
			"the source could not be opened within %u seconds and was abandoned",
			p->steps);
	warn_of_hanging(e);
	return true;
}

/* ST_SOURCE_FAILED: given up, and `run` with it. */
static enum status wait_for_watched(struct watched_call *run, const struct reading *r,
				    pthread_t thread, struct err *e)
{
	struct patience p = { 0 }, beside[PIPELINE_WORKERS_MAX] = { 0 };
	struct err lost = ERR_INIT;
	enum status st;

	while (!wait_a_step(run, r)) {
		if (run->pipeline && r->source)
			give_up_beside(run, r, beside, &lost);
		if (!give_up(run, r, &p, e))
			continue;
		pthread_detach(thread);
		return ST_SOURCE_FAILED;
	}
	pthread_join(thread, NULL);
	st = run->st;
	if (e)
		*e = run->err;
	if (lost.message[0]) {
		st = ST_SOURCE_FAILED;
		*e = lost;
	}
	pthread_cond_destroy(&run->ended);
	pthread_mutex_destroy(&run->lock);
	free(run);
	return st;
}

static enum status run_watched(const struct reading *r, enum status (*fn)(void *arg, struct err *e),
			       void *arg, void *pipeline, struct err *e)
{
	struct watched_call *run = r->limit_s && !(r->source && r->source->info.simulated)
					   ? calloc(1, sizeof(*run))
					   : NULL;
	pthread_t thread;
	struct err own = ERR_INIT;

	if (!run)
		return fn(arg, e);
	run->clock = timed_cond_init(&run->ended);
	pthread_mutex_init(&run->lock, NULL);
	run->fn = fn;
	run->arg = arg;
	run->pipeline = pipeline;
	run->err = own;
	if (pthread_create(&thread, NULL, watched_thread, run)) {
		free(run);
		return fn(arg, e);
	}
	return wait_for_watched(run, r, thread, e ? e : &own);
}

enum status reading_run(const struct reading *r, enum status (*fn)(void *arg, struct err *e),
			void *arg, struct err *e)
{
	return run_watched(r, fn, arg, NULL, e);
}

static enum status run_filling(const void *with, enum status (*fn)(void *arg, struct err *e),
			       void *arg, struct err *e)
{
	return run_watched(with, fn, arg, arg, e);
}

struct pipeline_filler reading_filler(const struct reading *r)
{
	return (struct pipeline_filler){ .run = r ? run_filling : NULL, .with = r };
}
