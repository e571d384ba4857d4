/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which callers are heard while more call than can be: random early drop, a limit for each source,
 * and penalties, as OpenSSH has them (sshd_config(5): MaxStartups, PerSourceMaxStartups,
 * PerSourcePenalties). Two things differ, because OpenSSH leaves everybody outside while somebody
 * holds all places, and everybody behind the address of an offender:
 *
 * - Who comes is heard, and who has kept us waiting makes way: those with a penalty first, then
 *   those of the source that has most, the oldest first. A sender needs its place for an instant.
 * - A penalty closes no door: who has one makes way before all others, however short it waited.
 *   Else malware without any rights could keep its own host from being acquired.
 *
 * No I/O, no clock and no lock: one thread at a time.
 */
#ifndef RAMSEAL_AGENT_COLLECT_RECEIVE_ADMISSION_H
#define RAMSEAL_AGENT_COLLECT_RECEIVE_ADMISSION_H

#include <stdbool.h>

#include "agent/collect/wire/socket.h"

/* Callers that have not said a byte yet cost a descriptor, and no thread. */
#define ADMISSION_SILENT_MOST 128

/* Beyond `full`, for callers from known addresses alone; and so many of one make way for nobody. */
#define ADMISSION_KEPT        4

struct admission_options {
	/*
	 * From `start` handshakes on, one that takes long makes way with a probability of `rate`
	 * percent, which grows to 100 at `full`; more than that there never are.
	 */
	unsigned start, rate, full;
	unsigned per_source;              /* handshakes; 0: no limit */
	unsigned penalty_s;               /* the longest penalty; 0: none is given */
	const struct socket_range *known; /* addresses that have no penalties, and kept places */
	size_t n_known;
	uint32_t (*draw)(void *arg); /* any number; NULL: the system's */
	void *arg;
};

enum guest_stage {
	GUEST_SILENT,   /* connected, and has not said a byte */
	GUEST_STARTING, /* until it has an upload, or is gone; and when it has one no more */
	GUEST_SEATED,   /* has an upload */
	GUEST_LEAVING,  /* was told to make way */
};

struct source;

/* One caller; the memory is the caller's, the content ours. */
struct guest {
	struct guest *next;
	struct source *source;
	enum guest_stage stage;
	uint64_t since_ns; /* it has that stage */
};

/* What a caller did wrong when it went. */
enum offence {
	OFFENCE_NONE,
	OFFENCE_NOISE,   /* no TLS, or hung up in the middle of a handshake */
	OFFENCE_KEY,     /* a key that is not to send */
	OFFENCE_DAWDLED, /* it took longer than it may */
};

struct admission;

enum status admission_create(const struct admission_options *o, struct admission **ret,
			     struct err *e);
void admission_destroy(struct admission *a); /* NULL is fine; no guest may be left */

/* `address` as socket_accept() gives it. Returns who makes way for it, GUEST_LEAVING; or NULL. */
struct guest *admission_come(struct admission *a, struct guest *g, const char *address,
			     uint64_t now_ns);

/* It says something. False: there is no place for it. *ret_leaves: who makes way; or NULL. */
bool admission_start(struct admission *a, struct guest *g, uint64_t now_ns,
		     struct guest **ret_leaves);

/* It has a key that may send: its source is known from now on, for an hour. */
void admission_welcome(struct admission *a, struct guest *g, uint64_t now_ns);
/* So is this one, of an upload that broke off. */
void admission_expect(struct admission *a, const char *address, uint64_t now_ns);

/* It has an upload; and has none any more, but is still there. */
void admission_seat(struct admission *a, struct guest *g, uint64_t now_ns);
void admission_unseat(struct admission *a, struct guest *g, uint64_t now_ns);

void admission_go(struct admission *a, struct guest *g, enum offence what, uint64_t now_ns);

/* The oldest that has not said a byte; NULL: there is none. */
struct guest *admission_oldest_silent(const struct admission *a);

#endif
