/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Connects the writer of a container with a remote: a bounded spool, and one thread that empties
 * it. write() blocks while the spool is full, which is all that the writer notices of a slow link;
 * the time is counted. A failed request is retried with the same bytes, with full jitter from 0.5 s
 * to 60 s, or as the other end says, for `patience_s`.
 *
 * It never aborts an upload. If the link is given up, what has arrived without a gap is completed;
 * if even that is impossible, `ramseal upload --finish` can do it later.
 */
#ifndef RAMSEAL_AGENT_COLLECT_STORES_UPLOADER_H
#define RAMSEAL_AGENT_COLLECT_STORES_UPLOADER_H

#include <stdbool.h>

#include "agent/collect/stores/remote.h"

#define SPOOL_DEFAULT      ((size_t)64 << 20)
#define PATIENCE_DEFAULT_S 3600
#define PATIENCE_SHORT_S   60 /* the limit for retries of the first exchange and at the end */
/*
 * After a signal: how long to keep sending the rest without progress, and after how long no request
 * is started. One request may then still run into its own limit of 30 s. systemd kills after 90 s
 * (DefaultTimeoutStopSec).
 */
#define HURRY_S            40
#define HURRY_END_S        55
#define CHECKPOINT_EVERY_S 60

/* Replaced by tests, so that they need not wait. */
struct uploader_time {
	uint64_t (*now)(void *arg); /* nanoseconds, never going back */
	void (*pause)(void *arg, uint64_t ns);
	uint32_t (*draw)(void *arg); /* any number */
	void *arg;
};

struct uploader_options {
	size_t spool;           /* bytes of memory; at least two pieces are kept */
	const char *spool_dir;  /* for what does not fit into memory; NULL: none */
	uint64_t spool_dir_max; /* bytes */
	unsigned patience_s;    /* how long to retry before giving up; 0: the default */
	/*
	 * The file for remote_ops.state(), mode 0600, until everything has arrived; NULL: none,
	 * because nothing is written to the machine unasked. If the name is taken, it is "PATH.2",
	 * "PATH.3", ...
	 */
	const char *state_path;
	/* Its log lines are shown, but are not stored in the container. */
	bool log_apart;
	/* Becomes true after a successful first exchange, before anything is sent; or NULL. */
	_Atomic bool *began;
	/* When a signal was noticed while waiting for the other end; 0: none; or NULL. */
	const _Atomic uint64_t *signalled;
	const struct uploader_time *time; /* NULL: the system's */
};

struct uploader;

struct uploader_stats {
	uint64_t sent, acknowledged; /* bytes; `sent` also counts what was sent twice */
	uint64_t waited_ns;          /* time that write() waited */
	uint64_t waits;              /* how often */
	uint64_t retries;
	uint64_t spooled_most; /* the most bytes in memory and on disk at one time */
	size_t memory;         /* bytes of the spool */
};

/* What exists under the name at the other end. */
enum uploader_end {
	UPLOAD_OPEN,     /* pieces; nothing was completed */
	UPLOAD_COMPLETE, /* everything, as for uploader_finish() */
	UPLOAD_SHORT,    /* what had arrived before the link was given up */
	UPLOAD_NOTHING,
};

/*
 * Begins the upload to the remote, which it owns from now on, even after a failure. ST_OUTPUT,
 * ST_NOMEM, ST_INTERRUPTED.
 */
enum status uploader_create(struct remote *r, const struct uploader_options *o,
			    struct uploader **ret, struct err *e);

/*
 * Finishes an upload of an earlier run: calls resume() with `state`, which may be NULL, and
 * completes the bytes up to the first gap; *ret is their number. If there are none, removes the
 * upload. `r` stays the caller's. After a failure, *ret is not 0 if the object is complete but not
 * locked.
 */
enum status uploader_complete(struct remote *r, const json_t *state,
			      const struct uploader_time *time, uint64_t *ret, struct err *e);

/* remote_ops.whole() with retries. `r` stays the caller's. */
enum status uploader_whole(struct remote *r, struct blob *from, const struct uploader_time *time,
			   struct err *e);

/* In order, from one thread at a time. ST_OUTPUT if the link was given up, which is final. */
enum status uploader_write(struct uploader *u, const void *p, size_t len, struct err *e);

/*
 * Sends everything and completes it. `sealed`: as in remote_ops.finish(). Calling it again gives
 * the same result.
 */
enum status uploader_finish(struct uploader *u, bool sealed, struct err *e);
/* After that: ST_OUTPUT if the complete object is not locked although that was requested. */
enum status uploader_locked(const struct uploader *u, struct err *e);
/* Removes everything, as far as the other end allows. */
void uploader_abandon(struct uploader *u);

void uploader_stats(struct uploader *u, struct uploader_stats *ret);
/*
 * How full the spool in memory is, from 0 to 1. At nearly 1, the next write waits or goes to disk.
 * The incomplete last piece does not count.
 */
double uploader_backlog(struct uploader *u);
/* After one of these two. */
enum uploader_end uploader_end(struct uploader *u);
const char *uploader_shown(const struct uploader *u); /* remote.shown */
json_t *uploader_lock_json(const struct uploader *u); /* object_lock_json() of remote.lock */

/* The command that completes what a killed run leaves behind, for free(); or NULL. */
char *uploader_how_to_finish(const struct uploader *u);

/* If neither of these was called, this is uploader_finish(not sealed). NULL is fine. */
void uploader_destroy(struct uploader *u);

#endif
