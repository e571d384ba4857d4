/* SPDX-License-Identifier: Apache-2.0 */
/* All uploads of a receiver: who may continue which, the quotas, and the log. Any thread. */
#ifndef RAMSEAL_AGENT_COLLECT_RECEIVE_STORE_H
#define RAMSEAL_AGENT_COLLECT_RECEIVE_STORE_H

#include "agent/collect/receive/upload.h"

struct store;

struct store_options {
	const char *dir;      /* the folder for files, which must exist */
	const char *log;      /* NULL: "witness.jsonl" in it */
	uint64_t max_size;    /* bytes of one upload; 0: no limit */
	uint64_t max_total;   /* of all files in the folder, and the log; 0: no limit */
	unsigned max_senders; /* senders with an upload at the same time */
	unsigned quiet_s;     /* a sender that was silent for this long can lose its seat; 0: 30 */
	const struct disk *disk; /* NULL: system_disk */
};

/*
 * Reads the log, names files that a killed receiver had logged as complete, and removes its empty
 * files. ST_OUTPUT, also if another receiver uses the log.
 */
enum status store_open(const struct store_options *o, struct store **ret, struct err *e);
void store_close(struct store *s); /* no session may still run; NULL is fine */

const char *store_log(const struct store *s);
uint64_t store_max_size(const struct store *s); /* UINT64_MAX: no limit */
/* Calls `fn` for each interrupted upload, with the address that it began from. */
void store_expected(struct store *s, void (*fn)(void *arg, const char *address), void *arg);
/* How many uploads were completed since it was opened; how many are running now. */
unsigned store_completed(struct store *s);
unsigned store_under_way(struct store *s);

/* The sender: for the log, and to distinguish keys. */
struct store_peer {
	const char *pin;
	const char *address;
};

/*
 * The upload that the HELLO names, or a new one. If another session of the same key owns it, that
 * is told to go (its *evicted becomes true), and we wait for it. ST_OUTPUT, with *why for the
 * sender. The session owns the upload until store_release().
 */
enum status store_claim(struct store *s, const struct frame_hello *hello,
			const struct store_peer *peer, atomic_bool *evicted, struct upload **ret,
			struct frame_refused *why);

/* Logs it as interrupted if it is incomplete and has grown. An empty one is forgotten. */
void store_release(struct store *s, struct upload *u, const struct store_peer *peer);

/*
 * Appends within the quotas; the first bytes of an upload create its files and a line in the log.
 * ST_OUTPUT, with *why.
 */
enum status store_append(struct store *s, struct upload *u, const struct frame_data *d,
			 const struct store_peer *peer, struct frame_refused *why);

/* Logs it as complete and names its file: u->complete. ST_OUTPUT, with *why. */
enum status store_complete(struct store *s, struct upload *u, const struct frame_end *end,
			   const struct checked *found, const struct store_peer *peer,
			   struct frame_refused *why);

#endif
