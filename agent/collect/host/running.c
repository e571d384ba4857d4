/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/collect/host/running.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/collect/host/host_lock.h"
#include "agent/collect/host/lock_file.h"
#include "agent/collect/host/state_file.h"
#include "agent/collect/host/stop_request.h"
#include "agent/shared/program/clock.h"
#include "agent/shared/program/interrupt.h"
#include "agent/shared/program/json.h"
#include "agent/shared/program/log.h"
#include "agent/shared/program/progress.h"
#include "agent/shared/program/timed_cond.h"

/* What a person who asks again and again sees move, and nobody feels. */
#define INTERVAL_NS    (3 * NS_PER_SECOND)
/* A place that nobody chose and that is on the system's disk is written at each of so many. */
#define DISK_INTERVALS 10
/* For so long at most it is waited for: a share that hangs must not keep anybody from sealing. */
#define PATIENCE_NS    (2 * NS_PER_SECOND)

#define STATE_NAME     "acquire.json"
#define LOCK_SUFFIX    ".lock"

struct running {
	char *path; /* of the state; NULL: it has none */
	struct lock_file *state_lock;
	struct host_lock *host_lock;

	pthread_t thread;
	bool has_thread;
	bool complained;      /* that it cannot be written; of whoever writes */
	unsigned intervals;   /* from one write of progress alone to the next */
	pthread_mutex_t lock; /* of what follows */
	pthread_cond_t changed;
	clockid_t clock;
	bool ends;
	bool stopping; /* the file says so, if there is a reason to */
	json_t *state;
	uint64_t told, written; /* versions of it */
	bool stuck;             /* the last write has not come back */
};

/* Such a lock is never simulated, and neither is its time. */
static void put_state_time(json_t *o, const char *key)
{
	char time[CLOCK_RFC3339_SIZE];

	clock_rfc3339(clock__wall_ns(), time);
	json_object_set_new(o, key, json_string(time));
}

static void put_state_progress(json_t *state)
{
	char label[PROGRESS_LABEL_MAX];
	struct progress_numbers n;

	if (!progress_now(&n, label)) {
		json_object_del(state, "progress");
		return;
	}
	json_object_set_new(
		state, "progress",
		json_fields(JSON_FIELDS(field_text("label", label), field_u64("bytes", n.done),
					n.total ? field_u64("total_bytes", n.total)
						: field_json("total_bytes", NULL),
					field_u64("bytes_per_second", n.rate),
					field_u64("unreadable_pages", n.unreadable))));
}

/* Under the lock; for free(), or NULL. */
static char *running_state_text(struct running *r)
{
	put_state_time(r->state, "updated");
	put_state_progress(r->state);
	r->stopping = interrupted();
	if (r->stopping)
		json_object_set_new(r->state, "stopping", json_string(interrupt_name()));
	return json_dumped(r->state, 0);
}

/* Not under the lock. That it fails must not end an acquisition that has begun. */
static void write_running_state(struct running *r, const char *text)
{
	struct err e = ERR_INIT;

	if (!text || !state_file_write(r->path, text, &e) || r->complained)
		return;
	r->complained = true;
	log_warning("state-not-written", "the state file for `ramseal status`: %s", e.message);
}

/* Under the lock, which is free while the file is written. */
static void write_version(struct running *r)
{
	const uint64_t version = r->told;
	char *text = running_state_text(r);

	pthread_mutex_unlock(&r->lock);
	write_running_state(r, text);
	free(text);
	pthread_mutex_lock(&r->lock);
	r->written = version;
	r->stuck = false;
	pthread_cond_broadcast(&r->changed);
}

static void *keep_writing(void *arg)
{
	struct running *r = arg;
	unsigned passed = 0;

	pthread_mutex_lock(&r->lock);
	while (!r->ends || r->written < r->told) {
		const struct timespec until = timed_cond_until(r->clock, INTERVAL_NS);

		if (r->written == r->told)
			pthread_cond_timedwait(&r->changed, &r->lock, &until);
		if (r->written == r->told &&
		    (r->ends || (++passed < r->intervals && r->stopping == interrupted())))
			continue;
		write_version(r);
		passed = 0;
	}
	pthread_mutex_unlock(&r->lock);
	return NULL;
}

/* Under the lock: what was told is in the file, or the file does not answer. */
static void have_written(struct running *r)
{
	const struct timespec until = timed_cond_until(r->clock, PATIENCE_NS);
	const uint64_t version = ++r->told;

	if (!r->path)
		return;
	if (!r->has_thread) {
		write_version(r);
		return;
	}
	pthread_cond_broadcast(&r->changed);
	while (!r->stuck && r->written < version)
		r->stuck = pthread_cond_timedwait(&r->changed, &r->lock, &until) != 0 &&
			   r->written < version;
}

static char *join_path(const char *front, const char *separator, const char *end)
{
	char *ret;

	return asprintf(&ret, "%s%s%s", front, separator, end) < 0 ? NULL : ret;
}

static char *lock_of(const char *state)
{
	return join_path(state, LOCK_SUFFIX, "");
}

/*
 * Where the lock of the host has no place an acquisition goes on without: a read-only /run is no
 * reason not to acquire, nor is anybody who made an object of that name.
 */
static enum status take_host(const struct running_plan *p, struct running *r, struct err *e)
{
	struct err why = ERR_INIT;
	const enum status st = host_lock_take(r->path, &r->host_lock, &why);

	if (st == ST_RUNNING && !p->allow_second)
		return err_set(e, st, "%.400s; --allow-second starts a second one", why.message);
	if (st == ST_NO_PRIVILEGE)
		log_warning("host-lock-taken",
			    "cannot check for other acquisitions of this machine: %s", why.message);
	else if (st && st != ST_RUNNING)
		log_debug("no-host-lock", "cannot lock this machine against other acquisitions: %s",
			  why.message);
	return ST_OK;
}

/* Where the state is to be; NULL in *ret if there is no such place, and none is needed. */
static enum status choose_path(const struct running_plan *p, char **ret, struct err *e)
{
	_cleanup_free_ char *folder = NULL;
	struct err why = ERR_INIT;
	enum status st;

	*ret = NULL;
	if (p->state)
		return state_full_path(p->state, ret, e);
	if (!p->needed && !state_folder_is_memory())
		return ST_OK;
	st = state_folder(true, &folder, &why);
	if (st && p->needed)
		return err_set(e, st, "%.400s; use --state for another state file", why.message);
	if (st)
		return ST_OK;
	*ret = join_path(folder, STATE_SEPARATOR, STATE_NAME);
	return *ret ? ST_OK : err_nomem(e);
}

void running_seen_deinit(struct running_seen *s)
{
	json_decref(s->state);
	*s = (struct running_seen){ .state = NULL };
}

static enum status read_state(const char *path, struct running_seen *s, struct err *e)
{
	const json_t *code, *schema;
	enum status st;

	running_seen_deinit(s);
	st = state_file_read(path, &s->state, e);
	if (st)
		return st;
	schema = json_object_get(s->state, "schema");
	if (!json_is_string(schema) || strcmp(json_string_value(schema), JSON_SCHEMA("state")) != 0)
		return err_set(e, ST_INPUT, "%s: is not a state file", path);
	s->pid = (uint64_t)json_integer_value(json_object_get(s->state, "pid"));
	code = json_object_get(s->state, "exit_code");
	s->how = RUNNING_DIED;
	if (!json_is_integer(code))
		return ST_OK;
	s->exit_code = (int)json_integer_value(code);
	if (s->exit_code < 0 || s->exit_code > 255)
		return err_set(e, ST_INPUT, "%s: unknown exit code", path);
	s->how = RUNNING_ENDED;
	return ST_OK;
}

/* Nobody's evidence, who wrote --state for --statement. */
static enum status check_replaced(const char *path, struct err *e)
{
	struct running_seen was = { .state = NULL };
	enum status st = ST_OK;

	if (state_file_is_there(path) && read_state(path, &was, NULL))
		st = err_set(e, ST_OUTPUT,
			     "%s: exists and is not a state file; --state overwrites nothing else",
			     path);
	running_seen_deinit(&was);
	return st;
}

static enum status lock_state_file(const struct running_plan *p, struct running *r, struct err *e)
{
	_cleanup_free_ char *lock = lock_of(r->path);
	struct err why = ERR_INIT;
	enum status st = check_replaced(r->path, &why);

	if (!st)
		st = lock ? lock_file_take(lock, r->path, &r->state_lock, &why) : err_nomem(&why);

	if (!st)
		return ST_OK;
	if (st == ST_RUNNING && p->needed)
		return err_set(
			e, st,
			"%s belongs to a running acquisition; use --state for another state file",
			r->path);
	if (p->needed)
		return err_set(e, st, "%s", why.message);
	log_debug("no-state", "`ramseal status` will not show this acquisition: %s", why.message);
	free(r->path);
	r->path = NULL;
	return ST_OK;
}

static enum status take_locks(const struct running_plan *p, struct running *r, struct err *e)
{
	enum status st = choose_path(p, &r->path, e);

	if (!st && p->host)
		st = take_host(p, r, e);
	if (!st && r->path)
		st = lock_state_file(p, r, e);
	return st;
}

static enum status begin_state(struct running *r, struct err *e)
{
	const char *stop = stop_request_listen();

	r->state = json_fields(
		JSON_FIELDS(FIELD_SCHEMA("state"), field_u64("pid", (uint64_t)getpid()),
			    field_text("begin", NULL), field_text("updated", NULL),
			    field_text("phase", "opening"), field_text("output", NULL)));
	if (!r->state)
		return err_nomem(e);
	put_state_time(r->state, "begin");
	if (stop)
		json_object_set_new(r->state, "stop", json_string(stop));
	r->clock = timed_cond_init(&r->changed);
	pthread_mutex_init(&r->lock, NULL);
	if (r->path) {
		pthread_mutex_lock(&r->lock);
		write_version(r);
		pthread_mutex_unlock(&r->lock);
	}
	r->has_thread = r->path && !pthread_create(&r->thread, NULL, keep_writing, r);
	return ST_OK;
}

/* The host's first: whoever sees that the other is free can begin at once. */
static void running_destroy(struct running *r)
{
	host_lock_release(r->host_lock);
	lock_file_release(r->state_lock);
	json_decref(r->state);
	free(r->path);
	free(r);
}

enum status running_begin(const struct running_plan *p, struct running **ret, struct err *e)
{
	struct running *r;
	enum status st;

	*ret = NULL;
	if (!p->needed && !p->host)
		return ST_OK;
	r = calloc(1, sizeof(*r));
	if (!r)
		return err_nomem(e);
	r->intervals = p->state || state_folder_is_memory() ? 1 : DISK_INTERVALS;
	st = take_locks(p, r, e);
	if (!st)
		st = begin_state(r, e);
	if (st) {
		running_destroy(r);
		return st;
	}
	*ret = r;
	return ST_OK;
}

const char *running_state_path(const struct running *r)
{
	return r ? r->path : NULL;
}

void running_tell(struct running *r, const char *key, const char *text)
{
	if (!r)
		return;
	pthread_mutex_lock(&r->lock);
	json_object_set_new(r->state, key, json_text(text));
	have_written(r);
	pthread_mutex_unlock(&r->lock);
}

void running_end(struct running *r, enum status st, const struct err *why)
{
	const enum exit_code code = status_exit_code(st);
	bool stuck;

	if (!r)
		return;
	pthread_mutex_lock(&r->lock);
	json_object_set_new(r->state, "phase", json_string("ended"));
	put_state_time(r->state, "end");
	json_object_set_new(r->state, "exit_code", json_integer(code));
	json_object_set_new(r->state, "outcome", json_string(exit_code_text(code)));
	json_object_set_new(r->state, "error", st ? json_text(why->message) : json_null());
	r->ends = true;
	have_written(r);
	stuck = r->stuck;
	pthread_mutex_unlock(&r->lock);
	if (stuck) /* its thread has it still, and the process is about to end */
		return;
	if (r->has_thread)
		pthread_join(r->thread, NULL);
	pthread_cond_destroy(&r->changed);
	pthread_mutex_destroy(&r->lock);
	running_destroy(r);
}

/*
 * Those who look
 */

static enum status default_path(char **ret, struct err *e)
{
	_cleanup_free_ char *folder = NULL;
	enum status st = state_folder(false, &folder, e);

	if (st)
		return err_add(e, ST_INPUT, "no place for a state file");
	*ret = join_path(folder, STATE_SEPARATOR, STATE_NAME);
	return *ret ? ST_OK : err_nomem(e);
}

/*
 * The lock first: if it is free, the state has been said to the end. Then once more, since the next
 * one may have begun in between, whose state is not that of one who died.
 */
static enum status read_running_state(const char *path, const char *lock, struct running_seen *s,
				      struct err *e)
{
	struct lock_holder before, after;
	enum status st = lock_file_look(lock, &before, e);

	if (!st)
		st = read_state(path, s, e);
	if (!st)
		st = lock_file_look(lock, &after, e);
	if (st || (!before.lives && (!after.lives || s->how == RUNNING_ENDED)))
		return st;
	s->how = RUNNING_RUNS;
	if (after.pid)
		s->pid = after.pid;
	return ST_OK;
}

enum status running_look(const char *path, char **ret_path, struct running_seen *ret, struct err *e)
{
	_cleanup_free_ char *own = NULL, *lock = NULL;
	enum status st = ST_OK;

	*ret = (struct running_seen){ .state = NULL };
	if (!path) {
		st = default_path(&own, e);
		path = own;
	}
	if (st)
		return st;
	lock = lock_of(path);
	st = lock ? read_running_state(path, lock, ret, e) : err_nomem(e);
	if (st)
		running_seen_deinit(ret);
	if (!st && ret_path) {
		*ret_path = strdup(path);
		st = *ret_path ? ST_OK : err_nomem(e);
	}
	return st;
}

enum status running_ask_to_stop(const char *path, const struct running_seen *s, struct err *e)
{
	_cleanup_free_ char *lock = lock_of(path);

	if (!lock)
		return err_nomem(e);
	return stop_request_send(lock, json_string_value(json_object_get(s->state, "stop")), s->pid,
				 e);
}
