/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Decides which callers are served when there are too many: random early drop, a limit per source,
 * and penalties, as in OpenSSH (sshd_config(5): MaxStartups, PerSourceMaxStartups,
 * PerSourcePenalties). Two things differ, because OpenSSH locks everybody out while somebody holds
 * all places, and everybody who shares an offender's address:
 *
 * - New callers are served, and those who have kept us waiting make way: first those with a
 *   penalty, then those of the source with the most callers, the oldest first. An honest sender
 *   needs its place only for an instant.
 * - A penalty does not lock anyone out: a caller that has one makes way before all others, however
 *   short its wait. Otherwise unprivileged malware could keep its own host from being acquired.
 *
 * No I/O, no clock and no lock: one thread at a time.
 */
#ifndef RAMSEAL_AGENT_COLLECT_RECEIVE_ADMISSION_H
#define RAMSEAL_AGENT_COLLECT_RECEIVE_ADMISSION_H

#include <stdbool.h>

#include "agent/collect/wire/socket.h"

/* Callers that have not sent a byte yet cost a descriptor but no thread. */
#define ADMISSION_SILENT_MOST 128

/*
 * Places beyond `full` for callers from known addresses; this many from one address never make way.
 */
#define ADMISSION_KEPT        4

struct admission_options {
	/*
	 * From `start` handshakes on, a slow one makes way with a probability of `rate` percent,
	 * which grows to 100 at `full`, the maximum.
	 */
	unsigned start, rate, full;
	unsigned per_source;              /* handshakes; 0: no limit */
	unsigned penalty_s;               /* the longest penalty; 0: none is given */
	const struct socket_range *known; /* addresses without penalties and with reserved places */
	size_t n_known;
	uint32_t (*draw)(void *arg); /* a random number; NULL: the system's */
	void *arg;
};

enum guest_stage {
	GUEST_SILENT,   /* connected, has not sent a byte */
	GUEST_STARTING, /* in the handshake, or after its upload has ended */
	GUEST_SEATED,   /* has an upload */
	GUEST_LEAVING,  /* told to make way */
};

struct source;

/* One caller; the memory is the caller's, the content ours. */
struct guest {
	struct guest *next;
	struct source *source;
	enum guest_stage stage;
	uint64_t since_ns; /* start of its stage */
};

/* What a departing caller did wrong. */
enum offence {
	OFFENCE_NONE,
	OFFENCE_NOISE,   /* no TLS, or hung up in the middle of a handshake */
	OFFENCE_KEY,     /* a key that may not send */
	OFFENCE_DAWDLED, /* it took too long */
};

struct admission;

enum status admission_create(const struct admission_options *o, struct admission **ret,
			     struct err *e);
void admission_destroy(struct admission *a); /* NULL is fine; no guest may be left */

/*
 * `address` as socket_accept() gives it. Returns the guest that makes way for it, GUEST_LEAVING; or
 * NULL.
 */
struct guest *admission_come(struct admission *a, struct guest *g, const char *address,
			     uint64_t now_ns);

/*
 * It has sent something. False: there is no place for it. *ret_leaves: the guest that makes way; or
 * NULL.
 */
bool admission_start(struct admission *a, struct guest *g, uint64_t now_ns,
		     struct guest **ret_leaves);

/* It has a key that may send: its address is known from now on, for an hour. */
void admission_welcome(struct admission *a, struct guest *g, uint64_t now_ns);
/* This address, of an interrupted upload, is known too. */
void admission_expect(struct admission *a, const char *address, uint64_t now_ns);

/* It has an upload; it no longer has one but is still connected. */
void admission_seat(struct admission *a, struct guest *g, uint64_t now_ns);
void admission_unseat(struct admission *a, struct guest *g, uint64_t now_ns);

void admission_go(struct admission *a, struct guest *g, enum offence what, uint64_t now_ns);

/* The oldest that has not sent a byte; NULL: none. */
struct guest *admission_oldest_silent(const struct admission *a);

#endif
