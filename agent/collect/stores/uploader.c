/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/collect/stores/uploader_internal.h"

#include <time.h>

#include "agent/collect/stores/upload_state.h"
#include "agent/collect/wire/private_file.h"
#include "agent/shared/program/clock.h"
#include "agent/shared/program/interrupt.h"
#include "agent/shared/program/log.h"
#include "agent/shared/program/timed_cond.h"

/* How long a pause goes on before it is looked whether somebody wants to stop. */
#define PAUSE_STEP (NS_PER_SECOND / 5)

/* Not that of a simulated machine: the network is real. */
uint64_t uploader__now(const struct uploader *u)
{
	return u->o.time ? u->o.time->now(u->o.time->arg) : clock__mono_ns();
}

static bool is_abandoned(struct uploader *u)
{
	bool ret;

	pthread_mutex_lock(&u->lock);
	ret = u->asked == UPLOADER_ABANDONS;
	pthread_mutex_unlock(&u->lock);
	return ret;
}

void uploader__pause(struct uploader *u, uint64_t ns)
{
	const bool hurried = interrupted(), abandoned = is_abandoned(u);

	if (u->o.time) {
		u->o.time->pause(u->o.time->arg, ns);
		return;
	}
	while (ns && hurried == interrupted() && abandoned == is_abandoned(u)) {
		const uint64_t part = MIN(ns, PAUSE_STEP);

		nanosleep(&(const struct timespec){ .tv_nsec = (long)part }, NULL);
		ns -= part;
	}
}

/*
 * Beginning
 */

/*
 * Nobody wants to wait an hour to learn that a name was mistyped. But for one who is full it is
 * worth to wait.
 */
static void set_first_patience(struct uploader *u)
{
	u->patience_s = u->remote->answered ? u->o.patience_s
					    : MIN(u->o.patience_s, (unsigned)PATIENCE_SHORT_S);
}

static struct remote_result ask_begin(struct uploader *u, struct err *e)
{
	struct remote_result r;

	if (interrupted()) {
		interrupt_status(e);
		return (struct remote_result){ .end = REMOTE_NEVER };
	}
	r = u->remote->ops->begin(u->remote, e);
	set_first_patience(u);
	return r;
}

static enum status begin_remote(struct uploader *u, struct err *e)
{
	set_first_patience(u);
	if (uploader__insist(u, ask_begin, e)) {
		u->patience_s = u->o.patience_s;
		return ST_OK;
	}
	return interrupted() ? ST_INTERRUPTED : err_add(e, ST_OUTPUT, "%s", u->remote->shown);
}

static enum status write_resume_state(struct uploader *u, struct err *e)
{
	if (!u->o.state_path)
		return ST_OK;
	return upload_state_write(u->remote, u->o.state_path, &u->state_path, e);
}

static enum status start_thread(struct uploader *u, struct err *e)
{
	const int error = pthread_create(&u->thread, NULL, uploader__run, u);

	u->has_thread = !error;
	return error ? err_from_errno(e, ST_SYSTEM, error, "a thread for the upload") : ST_OK;
}

static enum status begin_upload_thread(struct uploader *u, struct err *e)
{
	enum status st = begin_remote(u, e);

	if (st)
		return st;
	if (u->o.began)
		*u->o.began = true;
	st = spool_create(u->o.spool, u->remote->piece_size, u->o.spool_dir, u->o.spool_dir_max,
			  &u->spool, e);
	if (!st)
		st = write_resume_state(u, e);
	if (!st)
		st = start_thread(u, e);
	if (st)
		u->remote->ops->abandon(u->remote, &(struct err){ 0 });
	else
		u->stats.memory = spool_memory(u->spool);
	return st;
}

static void remove_state(struct uploader *u)
{
	if (u->state_path)
		private_file_remove(u->state_path);
	free(u->state_path);
	u->state_path = NULL;
}

enum status uploader_create(struct remote *r, const struct uploader_options *o,
			    struct uploader **ret, struct err *e)
{
	struct uploader *u = calloc(1, sizeof(*u));
	enum status st;

	if (!u) {
		remote_destroy(r);
		return err_nomem(e);
	}
	u->remote = r;
	u->o = *o;
	u->o.spool = o->spool ? o->spool : SPOOL_DEFAULT;
	u->o.patience_s = o->patience_s ? o->patience_s : PATIENCE_DEFAULT_S;
	pthread_mutex_init(&u->lock, NULL);
	u->clock = timed_cond_init(&u->changed);
	st = begin_upload_thread(u, e);
	if (st) {
		remove_state(u);
		uploader_destroy(u);
	} else {
		*ret = u;
	}
	return st;
}

/*
 * Going on where another has ended
 */

static struct remote_result ask_resume(struct uploader *u, struct err *e)
{
	return u->remote->ops->resume(u->remote, u->state, &u->has, e);
}

static struct remote_result ask_end(struct uploader *u, struct err *e)
{
	if (!u->has)
		return u->remote->ops->abandon(u->remote, e);
	return u->remote->ops->finish(u->remote, u->has, false, e);
}

enum status uploader_complete(struct remote *r, const json_t *state,
			      const struct uploader_time *time, uint64_t *ret, struct err *e)
{
	struct uploader u = { .remote = r,
			      .o.time = time,
			      .patience_s = PATIENCE_SHORT_S,
			      .state = state,
			      .lock = PTHREAD_MUTEX_INITIALIZER };

	if (!r->ops->resume)
		return err_set(e, ST_USAGE, "%s: %s", r->shown,
			       r->ops->whole ? "does not keep incomplete uploads: upload it again"
					     : "completes incomplete uploads by itself");
	if (!uploader__insist(&u, ask_resume, e) || !uploader__insist(&u, ask_end, e))
		return err_add(e, u.refused ? u.refused : ST_OUTPUT, "%s", r->shown);
	*ret = u.has;
	return u.has ? uploader__lock(&u, e) : ST_OK;
}

static struct remote_result ask_whole(struct uploader *u, struct err *e)
{
	struct remote_result r;

	if (interrupted()) {
		interrupt_status(e);
		return (struct remote_result){ .end = REMOTE_NEVER };
	}
	r = u->remote->ops->whole(u->remote, u->from, e);
	u->patience_s = u->remote->answered ? PATIENCE_DEFAULT_S : PATIENCE_SHORT_S;
	return r;
}

enum status uploader_whole(struct remote *r, struct blob *from, const struct uploader_time *time,
			   struct err *e)
{
	struct uploader u = { .remote = r,
			      .o.time = time,
			      .patience_s = PATIENCE_SHORT_S,
			      .from = from,
			      .lock = PTHREAD_MUTEX_INITIALIZER };

	if (uploader__insist(&u, ask_whole, e))
		return ST_OK;
	return interrupted() ? ST_INTERRUPTED : err_add(e, ST_OUTPUT, "%s", r->shown);
}

/*
 * Writing
 */

/* Under the lock. Waits until something can be written; ST_OUTPUT if nothing can be any more. */
static enum status wait_room(struct uploader *u, struct err *e)
{
	uint64_t begin;

	if (!u->ended && spool_room(u->spool))
		return ST_OK;
	begin = uploader__now(u);
	while (!u->ended && !spool_room(u->spool))
		pthread_cond_wait(&u->changed, &u->lock);
	u->stats.waits++;
	u->stats.waited_ns += uploader__now(u) - begin;
	if (!u->ended)
		return ST_OK;
	if (e)
		*e = u->why;
	return ST_OUTPUT;
}

enum status uploader_write(struct uploader *u, const void *p, size_t len, struct err *e)
{
	const uint8_t *from = p;
	enum status st = ST_OK;

	while (len && !st) {
		const size_t n = spool_write(u->spool, from, len);
		uint64_t waiting;

		from += n;
		len -= n;
		pthread_mutex_lock(&u->lock);
		waiting = spool_end(u->spool) - spool_begin(u->spool);
		u->stats.spooled_most = MAX(u->stats.spooled_most, waiting);
		pthread_cond_broadcast(&u->changed);
		if (len || u->ended)
			st = wait_room(u, e);
		pthread_mutex_unlock(&u->lock);
	}
	return st;
}

/*
 * Ending
 */

static void join_upload_thread(struct uploader *u, int asked, bool sealed)
{
	if (!u->has_thread)
		return;
	pthread_mutex_lock(&u->lock);
	u->sealed = sealed;
	u->asked = asked;
	pthread_cond_broadcast(&u->changed);
	pthread_mutex_unlock(&u->lock);
	pthread_join(u->thread, NULL);
	u->has_thread = false;
	if (u->end != UPLOAD_OPEN)
		remove_state(u);
}

enum status uploader_finish(struct uploader *u, bool sealed, struct err *e)
{
	join_upload_thread(u, UPLOADER_FINISHES, sealed);
	if (u->st && e)
		*e = u->why;
	return u->st;
}

enum status uploader_locked(const struct uploader *u, struct err *e)
{
	if (u->lock_st && e)
		*e = u->lock_why;
	return u->lock_st;
}

json_t *uploader_lock_json(const struct uploader *u)
{
	return object_lock_json(&u->remote->lock);
}

void uploader_abandon(struct uploader *u)
{
	join_upload_thread(u, UPLOADER_ABANDONS, false);
}

void uploader_stats(struct uploader *u, struct uploader_stats *ret)
{
	pthread_mutex_lock(&u->lock);
	*ret = u->stats;
	pthread_mutex_unlock(&u->lock);
}

double uploader_backlog(struct uploader *u)
{
	const uint64_t begin = spool_begin(u->spool); /* first: it does not overtake the end */
	const uint64_t waiting = spool_end(u->spool) - begin;
	const uint64_t most = spool_memory(u->spool) - u->remote->piece_size;

	return waiting < most ? (double)waiting / (double)most : 1;
}

enum uploader_end uploader_end(struct uploader *u)
{
	return u->end;
}

char *uploader_how_to_finish(const struct uploader *u)
{
	char *ret;
	int n = -1;

	if (u->state_path)
		n = asprintf(&ret, "'ramseal upload --finish %s'", u->state_path);
	else if (u->remote->ops->resume)
		n = asprintf(&ret, "'ramseal upload --finish' with this address");
	return n < 0 ? NULL : ret;
}

const char *uploader_shown(const struct uploader *u)
{
	return u->remote->shown;
}

void uploader_destroy(struct uploader *u)
{
	if (!u)
		return;
	join_upload_thread(u, UPLOADER_FINISHES, false);
	spool_destroy(u->spool);
	remote_destroy(u->remote);
	free(u->state_path);
	pthread_cond_destroy(&u->changed);
	pthread_mutex_destroy(&u->lock);
	free(u);
}
