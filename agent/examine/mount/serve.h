/* SPDX-License-Identifier: Apache-2.0 */
/* A tree of files as a mounted file system: answers the kernel's requests through libfuse. */
#ifndef RAMSEAL_AGENT_EXAMINE_MOUNT_SERVE_H
#define RAMSEAL_AGENT_EXAMINE_MOUNT_SERVE_H

#include "agent/examine/mount/tree.h"

struct serve_options {
	const char *folder; /* absolute */
	const char *what;   /* what df(1) and /proc/mounts call it */
	uint64_t wall;      /* the time stamp of all files, ns since 1970 */
};

struct server;

/* ST_OUTPUT if it cannot be mounted there. All arguments are borrowed until serve_end(). */
enum status serve_begin(const struct serve_options *o, struct node *root, struct server **ret,
			struct err *e);

/* Answers on several threads until it is unmounted or asked to stop. */
enum status serve_run(struct server *s, struct err *e);

/* Unmounts it if it is still mounted. Open files stay open, but cannot be read any more. */
void serve_end(struct server *s);

#endif
