/* SPDX-License-Identifier: Apache-2.0 */
/* A tree of files as a mounted file system: what the kernel asks, through libfuse. */
#ifndef RAMSEAL_AGENT_EXAMINE_MOUNT_SERVE_H
#define RAMSEAL_AGENT_EXAMINE_MOUNT_SERVE_H

#include "agent/examine/mount/tree.h"

struct serve_options {
	const char *folder; /* absolute */
	const char *what;   /* what df(1) and /proc/mounts call it */
	uint64_t wall;      /* time of all files, ns since 1970 */
};

struct server;

/* ST_OUTPUT if it cannot be mounted there. All borrowed until serve_end(). */
enum status serve_begin(const struct serve_options *o, struct node *root, struct server **ret,
			struct err *e);

/* Answers on several threads, until it is unmounted or somebody asks to stop. */
enum status serve_run(struct server *s, struct err *e);

/* Unmounts it, if it still is. Who has a file open can keep it open, but reads nothing more. */
void serve_end(struct server *s);

#endif
