/* SPDX-License-Identifier: Apache-2.0 */
/*
 * All uploads of a receiver: who may go on with which, the quotas, and the log. Any thread.
 */
#ifndef RAMSEAL_AGENT_COLLECT_RECEIVE_STORE_H
#define RAMSEAL_AGENT_COLLECT_RECEIVE_STORE_H

#include "agent/collect/receive/upload.h"

struct store;

struct store_options {
	const char *dir;      /* where files go; must be there */
	const char *log;      /* NULL: "witness.jsonl" in it */
	uint64_t max_size;    /* bytes of one upload; 0: no limit */
	uint64_t max_total;   /* of all whose files are in the folder, and the log; 0: no limit */
	unsigned max_senders; /* that have an upload at the same time */
	unsigned quiet_s; /* who sends nothing for so long makes way if they are all there; 0: 30 */
	const struct disk *disk; /* NULL: system_disk */
};

/*
 * Reads the log, completes what a receiver that died had logged but not named, and removes what it
 * left without a byte. ST_OUTPUT also if another receiver has the log.
 */
enum status store_open(const struct store_options *o, struct store **ret, struct err *e);
void store_close(struct store *s); /* no session may be left; NULL is fine */

const char *store_log(const struct store *s);
uint64_t store_max_size(const struct store *s); /* UINT64_MAX: no limit */
/* Calls `fn` for each upload that broke off: with the address that it began from. */
void store_expected(struct store *s, void (*fn)(void *arg, const char *address), void *arg);
/* How many uploads have become complete since it was opened; how many are under way now. */
unsigned store_completed(struct store *s);
unsigned store_under_way(struct store *s);

/* Who asks: for the log, and to tell keys apart. */
struct store_peer {
	const char *pin;
	const char *address;
};

/*
 * The upload that the HELLO names, a new one if there is none. Another session of the same key that
 * has it is told to go (*evicted becomes true there), and is waited for. ST_OUTPUT, and *why is for
 * the sender. The upload is the session's until store_release().
 */
enum status store_claim(struct store *s, const struct frame_hello *hello,
			const struct store_peer *peer, atomic_bool *evicted, struct upload **ret,
			struct frame_refused *why);

/* Says so in the log if it is not complete, and has grown. One without a byte is forgotten. */
void store_release(struct store *s, struct upload *u, const struct store_peer *peer);

/*
 * Appends within the quotas; the first bytes of an upload make its files, and a line in the log.
 * ST_OUTPUT, with *why.
 */
enum status store_append(struct store *s, struct upload *u, const struct frame_data *d,
			 const struct store_peer *peer, struct frame_refused *why);

/* Logs it, and gives it its name: u->complete. ST_OUTPUT, with *why. */
enum status store_complete(struct store *s, struct upload *u, const struct frame_end *end,
			   const struct checked *found, const struct store_peer *peer,
			   struct frame_refused *why);

#endif
