/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/collect/receive/receiver.h"

#include <pthread.h>
#include <string.h>

#include "agent/shared/program/clock.h"
#include "agent/shared/program/interrupt.h"
#include "agent/shared/program/log.h"

/* Who was told to make way does so at once, but not always in the same instant. */
#define LEAVING_MORE  64

/* A connection that moves nothing for so long is broken. */
#define STALL_MS      30000

/* Who has connected says something within this time. */
#define SILENCE_MS    10000

/* How often it is looked whether to stop. */
#define STEP_MS       200

/* So many are taken before somebody else is looked at. */
#define ACCEPT_MOST   64

/* How TLS begins: the type of a record, "handshake" (RFC 8446, 5.1). */
#define TLS_HANDSHAKE 22

struct caller {
	struct guest guest; /* first */
	struct receiver *receiver;
	bool used;
	bool has_thread; /* from its first byte on; to be joined */
	pthread_t thread;
	atomic_bool over;    /* it has nothing more to do */
	atomic_bool evicted; /* somebody else has its upload */
	atomic_bool dropped; /* it makes way */
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
	struct admission *admission;
	uint64_t told_ns; /* when a caller that failed was last logged */
	unsigned untold;  /* and how many were not, since */
};

static bool must_stop(void *arg)
{
	const struct caller *c = arg;

	return interrupted() || atomic_load(&c->receiver->stop) || atomic_load(&c->evicted) ||
	       atomic_load(&c->dropped);
}

/* Anybody can call, as often as he likes: that must not fill what we log to. */
static void tell_caller(struct receiver *r, const char *address, const char *what)
{
	const uint64_t now = clock__mono_ns();
	unsigned untold = 0;
	bool now_told;

	pthread_mutex_lock(&r->lock);
	now_told = !r->told_ns || now - r->told_ns > NS_PER_SECOND;
	if (now_told) {
		untold = r->untold;
		r->untold = 0;
		r->told_ns = now;
	} else {
		r->untold++;
	}
	pthread_mutex_unlock(&r->lock);
	if (untold)
		log_warning("receive-callers", "%u other connections failed in this way", untold);
	if (now_told)
		log_warning("receive-caller", "%s: %s", address, what);
}

static void release_guest(struct receiver *r, struct guest *g, enum offence what)
{
	pthread_mutex_lock(&r->lock);
	admission_go(r->admission, g, what, clock__mono_ns());
	pthread_mutex_unlock(&r->lock);
}

/*
 * Threads
 */

static void take_seat(void *arg, bool is)
{
	struct caller *c = arg;

	pthread_mutex_lock(&c->receiver->lock);
	if (is)
		admission_seat(c->receiver->admission, &c->guest, clock__mono_ns());
	else
		admission_unseat(c->receiver->admission, &c->guest, clock__mono_ns());
	pthread_mutex_unlock(&c->receiver->lock);
}

/* There is no connection. */
static enum offence judge_failed(struct caller *c, enum status st, uint64_t began_ns,
				 const struct err *e)
{
	if (atomic_load(&c->dropped)) {
		tell_caller(c->receiver, c->address, "took too long, and made way for others");
		return OFFENCE_NOISE;
	}
	if (st == ST_INTERRUPTED || st == ST_NOMEM)
		return OFFENCE_NONE;
	tell_caller(c->receiver, c->address, e->message);
	return clock__mono_ns() - began_ns < SILENCE_MS * (NS_PER_SECOND / 1000) ? OFFENCE_NOISE
										 : OFFENCE_DAWDLED;
}

static enum offence talk(struct caller *c, struct link *l, const char *pin, bool welcome)
{
	struct receiver *r = c->receiver;
	struct err e = ERR_INIT;
	enum status st;

	if (welcome) {
		pthread_mutex_lock(&r->lock);
		admission_welcome(r->admission, &c->guest, clock__mono_ns());
		pthread_mutex_unlock(&r->lock);
	} else {
		err_set(&e, ST_NO_PRIVILEGE, "has a key that --sender does not name: %s", pin);
		tell_caller(r, c->address, e.message);
	}
	st = session_run(l,
			 &(struct session_options){ .store = r->store,
						    .peer = { .pin = pin, .address = c->address },
						    .unwelcome = !welcome,
						    .idle_s = r->options->idle_s,
						    .seated = take_seat,
						    .arg = c,
						    .dropped = &c->dropped },
			 &c->evicted);
	if (!welcome)
		return OFFENCE_KEY;
	return st == ST_END ? OFFENCE_DAWDLED : OFFENCE_NONE;
}

static enum offence serve_caller(struct caller *c)
{
	const struct receiver_options *o = c->receiver->options;
	const struct link_options how = { .stall_ms = STALL_MS, .stop = must_stop, .arg = c };
	char pin[UPLOAD_PEER_SIZE];
	struct link *l = NULL;
	struct err e = ERR_INIT;
	bool welcome = false;
	const uint64_t began_ns = clock__mono_ns();
	const enum status st = o->accept(o->arg, c->socket, &how, &l, pin, &welcome, &e);

	return st ? judge_failed(c, st, began_ns, &e) : talk(c, l, pin, welcome);
}

static void *caller_thread(void *arg)
{
	struct caller *c = arg;

	release_guest(c->receiver, &c->guest, serve_caller(c));
	atomic_store(&c->over, true);
	return NULL;
}

static void join_those_that_are_over(struct receiver *r, bool all)
{
	for (size_t i = 0; i < r->n_callers; i++) {
		struct caller *c = &r->callers[i];

		if (!c->has_thread || !(all || atomic_load(&c->over)))
			continue;
		pthread_join(c->thread, NULL);
		c->used = c->has_thread = false;
	}
}

/*
 * Those who have said nothing yet: of the thread that listens
 */

static void hang_up(struct caller *c, enum offence what)
{
	socket_close(c->socket);
	c->used = false;
	release_guest(c->receiver, &c->guest, what);
}

/*
 * An alert in front of all TLS says that it is not for a lack of keys (PROTOCOL.md, section 1). A
 * close resets a connection on which something was not read, and with it goes what was written.
 */
static void turn_away(struct caller *c, enum offence what)
{
	static const uint8_t busy[] = LINK_BUSY;
	uint8_t dropped[4096];
	size_t done = sizeof(dropped);

	for (unsigned i = 0; i < 4 && done == sizeof(dropped); i++)
		if (socket_read(c->socket, dropped, sizeof(dropped), &done, NULL))
			break;
	(void)!socket_write(c->socket, busy, sizeof(busy), &done, NULL);
	socket_end(c->socket);
	tell_caller(c->receiver, c->address, "finds no place");
	hang_up(c, what);
}

/* Who makes way: at once, if nothing was said, or as soon as its thread notices. */
static void drop_guest(struct guest *g)
{
	struct caller *c = (struct caller *)g;

	if (c && !c->has_thread)
		turn_away(c, OFFENCE_NONE);
	else if (c)
		atomic_store(&c->dropped, true);
}

/* Whoever finds no place is hung up on, and tries again. */
static void begin_caller(struct caller *c)
{
	struct receiver *r = c->receiver;
	struct guest *leaves;
	bool has_place;

	pthread_mutex_lock(&r->lock);
	has_place = admission_start(r->admission, &c->guest, clock__mono_ns(), &leaves);
	/* A guest is in the list until its thread has ended. */
	if (leaves)
		drop_guest(leaves);
	pthread_mutex_unlock(&r->lock);
	if (has_place)
		c->has_thread = !pthread_create(&c->thread, NULL, caller_thread, c);
	if (!c->has_thread)
		turn_away(c, OFFENCE_NONE);
}

/* It says something, or has gone. */
static void hear(struct caller *c)
{
	uint8_t first = 0;
	bool there;

	if (socket_peek(c->socket, &first, &there, NULL)) {
		hang_up(c, OFFENCE_NOISE);
	} else if (there && first == TLS_HANDSHAKE) {
		begin_caller(c);
	} else if (there) {
		tell_caller(c->receiver, c->address, "speaks no TLS");
		hang_up(c, OFFENCE_NOISE);
	}
}

static struct caller *free_place(struct receiver *r)
{
	join_those_that_are_over(r, false);
	for (size_t i = 0; i < r->n_callers; i++)
		if (!r->callers[i].used)
			return &r->callers[i];
	return NULL;
}

static void take_caller(struct receiver *r, net_socket s, const char *address)
{
	struct caller *c = free_place(r);
	struct guest *leaves;

	if (!c) {
		socket_close(s);
		return;
	}
	c->receiver = r;
	c->socket = s;
	c->used = true;
	atomic_store(&c->over, false);
	atomic_store(&c->evicted, false);
	atomic_store(&c->dropped, false);
	snprintf(c->address, sizeof(c->address), "%s", address);
	pthread_mutex_lock(&r->lock);
	leaves = admission_come(r->admission, &c->guest, address, clock__mono_ns());
	pthread_mutex_unlock(&r->lock);
	drop_guest(leaves);
}

static void drop_those_who_stay_silent(struct receiver *r)
{
	const uint64_t now = clock__mono_ns();
	struct guest *g;

	for (;;) {
		pthread_mutex_lock(&r->lock);
		g = admission_oldest_silent(r->admission);
		pthread_mutex_unlock(&r->lock);
		if (!g || now - g->since_ns < SILENCE_MS * (NS_PER_SECOND / 1000))
			break;
		hang_up((struct caller *)g, OFFENCE_DAWDLED);
	}
}

/* Out of descriptors or memory, as a rule: those who are there go on, and some will end. */
static void wait_for_better(struct receiver *r, net_socket listening, const struct err *e)
{
	log_warning("receive-caller", "%s", e->message);
	join_those_that_are_over(r, false);
	socket_wait(listening, SOCKET_WRITABLE, STEP_MS, NULL);
}

static enum status accept_some(struct receiver *r, net_socket listening, struct err *e)
{
	char address[SOCKET_ADDRESS_MAX];
	enum status st = ST_OK;
	net_socket s;

	for (unsigned i = 0; i < ACCEPT_MOST && !st; i++) {
		st = socket_accept(listening, &s, address, e);
		if (!st)
			take_caller(r, s, address);
	}
	return st;
}

/* Until somebody calls, or says something. */
static void listen_to_all(struct receiver *r, net_socket listening)
{
	struct err e = ERR_INIT;
	struct caller *who[ADMISSION_SILENT_MOST + 2];
	net_socket sockets[ARRAY_SIZE(who)] = { listening };
	bool ready[ARRAY_SIZE(who)];
	enum status st;
	size_t n = 1;

	for (size_t i = 0; i < r->n_callers && n < ARRAY_SIZE(who); i++) {
		struct caller *c = &r->callers[i];

		if (c->used && !c->has_thread) {
			who[n] = c;
			sockets[n++] = c->socket;
		}
	}
	st = socket_wait_any(sockets, n, STEP_MS, ready, &e);
	for (size_t i = 1; i < n && !st; i++)
		if (ready[i] && who[i]->used && !who[i]->has_thread)
			hear(who[i]);
	if (!st && ready[0])
		st = accept_some(r, listening, &e);
	drop_those_who_stay_silent(r);
	if (st && st != ST_END)
		wait_for_better(r, listening, &e);
}

static void drop_all_silent(struct receiver *r)
{
	for (size_t i = 0; i < r->n_callers; i++)
		if (r->callers[i].used && !r->callers[i].has_thread)
			hang_up(&r->callers[i], OFFENCE_NONE);
}

static enum status accept_until_stopped(struct receiver *r, net_socket listening, struct err *e)
{
	const struct receiver_options *o = r->options;
	char address[SOCKET_ADDRESS_MAX];
	bool busy;

	socket_local(listening, address);
	o->ready(o->arg, address);
	while (!interrupted() && !(o->once && store_completed(r->store)))
		listen_to_all(r, listening);
	socket_close(listening);
	drop_all_silent(r);
	busy = !o->once && store_under_way(r->store);
	/* Who was given an answer still takes it: only those who send are told to stop. */
	atomic_store(&r->stop, true);
	join_those_that_are_over(r, true);
	if (interrupted() && busy)
		return err_set(e, ST_INTERRUPTED,
			       "uploads were in progress; they resume when it runs again");
	return ST_OK;
}

static void expect(void *arg, const char *address)
{
	struct receiver *r = arg;

	admission_expect(r->admission, address, clock__mono_ns());
}

/* It listens before it reads its log, however long that is: callers wait meanwhile. */
static enum status open_and_run(struct receiver *r, struct err *e)
{
	const struct receiver_options *o = r->options;
	net_socket listening;
	enum status st = socket_listen(o->listen, &listening, e);

	if (st)
		return st;
	st = store_open(&o->store, &r->store, e);
	if (st) {
		socket_close(listening);
		return st;
	}
	store_expected(r->store, expect, r);
	st = accept_until_stopped(r, listening, e);
	store_close(r->store);
	return st;
}

enum status receiver_run(const struct receiver_options *o, struct err *e)
{
	struct receiver r = {
		.options = o,
		.n_callers = ADMISSION_SILENT_MOST + o->store.max_senders + o->admission.full +
			     ADMISSION_KEPT + LEAVING_MORE,
	};
	enum status st;

	r.callers = calloc(r.n_callers, sizeof(*r.callers));
	if (!r.callers)
		return err_nomem(e);
	pthread_mutex_init(&r.lock, NULL);
	st = admission_create(&o->admission, &r.admission, e);
	if (!st)
		st = open_and_run(&r, e);
	admission_destroy(r.admission);
	pthread_mutex_destroy(&r.lock);
	free(r.callers);
	return st;
}
