/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Between whoever writes a container and a remote: a bounded spool, and one thread that empties it.
 * write() blocks while the spool is full, and that is all the writer learns of a slow link; what
 * was waited is counted. What fails is asked again, the same bytes, with full jitter from 0.5 s to
 * 60 s, or as the other end says, for `patience_s`.
 *
 * It never aborts. When the link is given up, what has arrived without a gap is completed; if not
 * even that can be done, `ramseal upload --finish` can do it later.
 */
#ifndef RAMSEAL_AGENT_COLLECT_STORES_UPLOADER_H
#define RAMSEAL_AGENT_COLLECT_STORES_UPLOADER_H

#include <stdbool.h>

#include "agent/collect/stores/remote.h"

#define SPOOL_DEFAULT      ((size_t)64 << 20)
#define PATIENCE_DEFAULT_S 3600
#define PATIENCE_SHORT_S   60 /* so long the first exchange may fail, and what is asked at an end */
/*
 * Behind a signal: so long without progress it is tried to send the rest, and nothing is begun any
 * more after so long. One request may then still run into its own limit of 30 s. systemd kills
 * after 90 s (DefaultTimeoutStopSec).
 */
#define HURRY_S            40
#define HURRY_END_S        55
#define CHECKPOINT_EVERY_S 60

/* What a test replaces, so that it need not wait. */
struct uploader_time {
	uint64_t (*now)(void *arg); /* nanoseconds, never going back */
	void (*pause)(void *arg, uint64_t ns);
	uint32_t (*draw)(void *arg); /* any number */
	void *arg;
};

struct uploader_options {
	size_t spool;           /* bytes of memory; at least two pieces are kept */
	const char *spool_dir;  /* NULL: none; else what does not fit into memory goes there */
	uint64_t spool_dir_max; /* bytes */
	unsigned patience_s;    /* with failures alone, then it is given up; 0: the default */
	/*
	 * Where remote_ops.state() goes, mode 0600, until all has arrived; NULL: nowhere, because
	 * nothing is to be written on the machine that nobody asked for. If
	 * something has that name it is "PATH.2", "PATH.3", ...
	 */
	const char *state_path;
	/* Its lines of the log are shown, but are no part of the container. */
	bool log_apart;
	/* Becomes true after a successful first exchange, before anything is sent; or NULL. */
	_Atomic bool *began;
	/* When a signal was noticed by who waits for the other end; 0: none was; or NULL. */
	const _Atomic uint64_t *signalled;
	const struct uploader_time *time; /* NULL: the system's */
};

struct uploader;

struct uploader_stats {
	uint64_t sent, acknowledged; /* bytes; `sent` counts what went out twice, too */
	uint64_t waited_ns;          /* that write() waited */
	uint64_t waits;              /* how often */
	uint64_t retries;
	uint64_t spooled_most; /* bytes that waited in memory and on disk at one time */
	size_t memory;         /* bytes of the spool */
};

/* What the other end has under its name. */
enum uploader_end {
	UPLOAD_OPEN,     /* pieces: nothing was completed */
	UPLOAD_COMPLETE, /* all, as uploader_finish() said */
	UPLOAD_SHORT,    /* the link was given up: what had arrived until then */
	UPLOAD_NOTHING,
};

/*
 * Begins the remote, which is owned from now on, also after a failure. ST_OUTPUT, ST_NOMEM, and
 * ST_INTERRUPTED.
 */
enum status uploader_create(struct remote *r, const struct uploader_options *o,
			    struct uploader **ret, struct err *e);

/*
 * What an earlier run began and did not end: resume() with `state`, which may be NULL, and then
 * completes the bytes that are there without a gap; *ret: so many. Of nothing, nothing is left.
 * `r` is the caller's. *ret is not 0 after a failure where all is complete, but not locked.
 */
enum status uploader_complete(struct remote *r, const json_t *state,
			      const struct uploader_time *time, uint64_t *ret, struct err *e);

/* remote_ops.whole(), with patience. `r` is the caller's. */
enum status uploader_whole(struct remote *r, struct blob *from, const struct uploader_time *time,
			   struct err *e);

/* In order, from one thread at a time. ST_OUTPUT when the link is given up: the last word. */
enum status uploader_write(struct uploader *u, const void *p, size_t len, struct err *e);

/* All of it is sent, and completed there. `sealed`: remote_ops.finish(). Asked again: the same. */
enum status uploader_finish(struct uploader *u, bool sealed, struct err *e);
/* After that: ST_OUTPUT if what is complete there is not locked, though that was asked for. */
enum status uploader_locked(const struct uploader *u, struct err *e);
/* Nothing of it stays, as far as the other end lets us. */
void uploader_abandon(struct uploader *u);

void uploader_stats(struct uploader *u, struct uploader_stats *ret);
/*
 * How much of the spool in memory the link is behind, from 0 to 1. At 1, or nearly, the next write
 * waits, or goes to disk. The one piece that always waits to be complete does not count.
 */
double uploader_backlog(struct uploader *u);
/* After one of these two. */
enum uploader_end uploader_end(struct uploader *u);
const char *uploader_shown(const struct uploader *u); /* remote.shown */
json_t *uploader_lock_json(const struct uploader *u); /* object_lock_json() of remote.lock */

/* The command that completes what a killed run leaves, for free(); NULL: there is none. */
char *uploader_how_to_finish(const struct uploader *u);

/* Without one of these two before it, this is uploader_finish(not sealed). NULL is fine. */
void uploader_destroy(struct uploader *u);

#endif
