/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/collect/receive/receiver.h"

#include <pthread.h>
#include <string.h>

#include "agent/shared/program/clock.h"
#include "agent/shared/program/interrupt.h"
#include "agent/shared/program/log.h"

/* Callers that have not shown a key yet, or are told that there is no room, beside the senders. */
#define CALLERS_MORE 16

/* A connection that moves nothing for so long is broken. */
#define STALL_MS     30000

/* How often it is looked whether to stop. */
#define STEP_MS      200

struct caller {
	struct receiver *receiver;
	pthread_t thread;
	bool used;        /* there is a thread to be joined */
	atomic_bool over; /* it has nothing more to do */
	atomic_bool evicted;
	net_socket socket;
	char address[SOCKET_ADDRESS_MAX];
};

struct receiver {
	const struct receiver_options *options;
	struct store *store;
	atomic_bool stop;
	struct caller *callers;
	size_t n_callers;
	pthread_mutex_t lock; /* of these: */
	uint64_t told_ns;     /* when a caller that failed was last logged */
	unsigned untold;      /* and how many were not, since */
};

static bool must_stop(void *arg)
{
	const struct caller *c = arg;

	return interrupted() || atomic_load(&c->receiver->stop) || atomic_load(&c->evicted);
}

/* Anybody can call, as often as he likes: that must not fill what we log to. */
static void tell_caller(struct caller *c, const struct err *e)
{
	struct receiver *r = c->receiver;
	const uint64_t now = clock__mono_ns();
	unsigned untold = 0;
	bool tell;

	pthread_mutex_lock(&r->lock);
	tell = !r->told_ns || now - r->told_ns > NS_PER_SECOND;
	if (tell) {
		untold = r->untold;
		r->untold = 0;
		r->told_ns = now;
	} else {
		r->untold++;
	}
	pthread_mutex_unlock(&r->lock);
	if (untold)
		log_warning("receive-callers", "%u other callers failed like this", untold);
	if (tell)
		log_warning("receive-caller", "%s: %s", c->address, e->message);
}

static void serve(struct caller *c)
{
	const struct receiver_options *o = c->receiver->options;
	const struct link_options how = { .stall_ms = STALL_MS, .stop = must_stop, .arg = c };
	char pin[UPLOAD_PEER_SIZE];
	struct link *l = NULL;
	struct err e = ERR_INIT;
	bool welcome = false;

	if (o->accept(o->arg, c->socket, &how, &l, pin, &welcome, &e)) {
		tell_caller(c, &e);
		return;
	}
	if (!welcome) {
		err_set(&e, ST_NO_PRIVILEGE, "shows a key that it was not told of: %s", pin);
		tell_caller(c, &e);
	}
	session_run(l,
		    &(struct session_options){ .store = c->receiver->store,
					       .peer = { .pin = pin, .address = c->address },
					       .unwelcome = !welcome,
					       .idle_s = o->idle_s },
		    &c->evicted);
}

static void *caller_thread(void *arg)
{
	struct caller *c = arg;

	serve(c);
	atomic_store(&c->over, true);
	return NULL;
}

static void join_those_that_are_over(struct receiver *r, bool all)
{
	for (size_t i = 0; i < r->n_callers; i++) {
		struct caller *c = &r->callers[i];

		if (!c->used || !(all || atomic_load(&c->over)))
			continue;
		pthread_join(c->thread, NULL);
		c->used = false;
	}
}

static struct caller *free_place(struct receiver *r)
{
	for (size_t i = 0; i < r->n_callers; i++)
		if (!r->callers[i].used)
			return &r->callers[i];
	return NULL;
}

/* Whoever finds no place is hung up on, and tries again. */
static void take_caller(struct receiver *r, net_socket s, const char *address)
{
	struct caller *c;

	join_those_that_are_over(r, false);
	c = free_place(r);
	if (!c) {
		socket_close(s);
		return;
	}
	c->receiver = r;
	c->socket = s;
	atomic_store(&c->over, false);
	atomic_store(&c->evicted, false);
	snprintf(c->address, sizeof(c->address), "%s", address);
	c->used = !pthread_create(&c->thread, NULL, caller_thread, c);
	if (!c->used)
		socket_close(s);
}

static enum status accept_some(struct receiver *r, net_socket listening, struct err *e)
{
	char address[SOCKET_ADDRESS_MAX];
	net_socket s;
	enum status st = socket_wait(listening, SOCKET_READABLE, STEP_MS, e);

	if (!st)
		st = socket_accept(listening, &s, address, e);
	if (!st)
		take_caller(r, s, address);
	if (st == ST_OUTPUT) {
		/* Out of descriptors, as a rule: those who are there go on, and some will end. */
		log_warning("receive-caller", "%s", e->message);
		join_those_that_are_over(r, false);
		socket_wait(listening, SOCKET_WRITABLE, STEP_MS, NULL);
	}
	return st == ST_END || st == ST_OUTPUT ? ST_OK : st;
}

static enum status run(struct receiver *r, struct err *e)
{
	const struct receiver_options *o = r->options;
	char address[SOCKET_ADDRESS_MAX];
	net_socket listening;
	enum status st = socket_listen(o->listen, &listening, e);
	bool busy;

	if (st)
		return st;
	socket_local(listening, address);
	o->ready(o->arg, address);
	while (!st && !interrupted() && !(o->once && store_completed(r->store)))
		st = accept_some(r, listening, e);
	socket_close(listening);
	busy = !o->once && store_under_way(r->store);
	/* Who was given an answer still takes it: only those who send are told to stop. */
	atomic_store(&r->stop, true);
	join_those_that_are_over(r, true);
	if (!st && interrupted() && busy)
		st = err_set(e, ST_INTERRUPTED,
			     "uploads were under way; they go on when it runs again");
	return st;
}

enum status receiver_run(const struct receiver_options *o, struct err *e)
{
	struct receiver r = { .options = o, .n_callers = o->store.max_senders + CALLERS_MORE };
	enum status st;

	r.callers = calloc(r.n_callers, sizeof(*r.callers));
	if (!r.callers)
		return err_nomem(e);
	pthread_mutex_init(&r.lock, NULL);
	st = store_open(&o->store, &r.store, e);
	if (!st)
		st = run(&r, e);
	store_close(r.store);
	pthread_mutex_destroy(&r.lock);
	free(r.callers);
	return st;
}
