/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Between whoever writes a container and a remote: a bounded spool, and one thread that empties it.
 * write() blocks while the spool is full, and that is all the writer learns of a slow link; what
 * was waited is counted. A piece that fails is sent again, the same bytes, with full jitter from
 * 0.5 s to 60 s, or as the other end says, for `patience_s`.
 */
#ifndef RAMSEAL_AGENT_NETWORK_UPLOADER_H
#define RAMSEAL_AGENT_NETWORK_UPLOADER_H

#include "agent/network/remote.h"

#define SPOOL_DEFAULT ((size_t)64 << 20)

struct uploader_options {
	size_t spool;           /* bytes of memory; at least two pieces are kept, see begin */
	const char *spool_dir;  /* NULL: none; else what does not fit into memory goes there */
	uint64_t spool_dir_max; /* bytes */
	uint64_t bytes_per_s;   /* --bwlimit; 0: no limit */
	unsigned patience_s;    /* without any progress, then it is given up; 0: 3600 */
	const char *state_path; /* where remote_ops.state() goes, mode 0600; NULL: nowhere */
};

struct uploader;

struct uploader_stats {
	uint64_t sent, acknowledged; /* bytes; `sent` counts what went out twice, too */
	uint64_t waited_ns;          /* that write() waited */
	uint64_t retries;
	uint64_t spooled_most;       /* bytes that waited in memory and on disk at one time */
};

/* Begins the remote, which is owned from now on, also after a failure. */
enum status uploader_create(struct remote *r, const struct uploader_options *o,
			    struct uploader **ret, struct err *e);

/* In order, from one thread at a time. ST_OUTPUT when the link is given up: the last word. */
enum status uploader_write(struct uploader *u, const void *p, size_t len, struct err *e);

/* Blocks until so many bytes can be written without blocking (at most what the spool has). */
enum status uploader_wait_room(struct uploader *u, size_t len, struct err *e);

/* All of it is sent, and completed there. `sealed`: remote_ops.finish(). */
enum status uploader_finish(struct uploader *u, bool sealed, struct err *e);
enum status uploader_abandon(struct uploader *u, struct err *e);

void uploader_stats(struct uploader *u, struct uploader_stats *ret);
void uploader_destroy(struct uploader *u); /* NULL is fine; what was sent stays as it is */

#endif
