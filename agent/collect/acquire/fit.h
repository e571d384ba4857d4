/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What an acquisition takes, cut to what it is allowed (collect/host/limits.h): threads, memory for
 * the link, and its place behind the machine's own work (shared/program/share.h).
 */
#ifndef RAMSEAL_AGENT_COLLECT_ACQUIRE_FIT_H
#define RAMSEAL_AGENT_COLLECT_ACQUIRE_FIT_H

#include <stdbool.h>

#include "agent/collect/host/limits.h"
#include "formats/base/err.h"

struct fit {
	/* What is wanted */
	int level;        /* zstd's, or RSZ_LEVEL_STORE */
	uint64_t ram;     /* bytes that are to be acquired; the guided order keeps bits of them */
	uint64_t spool;   /* bytes of memory for what the link has not taken; 0: there is no link */
	unsigned threads; /* that compress; at least 1 */
	bool force;       /* go on even if it is too little */
};

/* What the whole process takes then, in bytes: an estimate from above, as measured. */
uint64_t fit_need(const struct fit *f);

/*
 * Takes from the spool all but SPOOL_LEAST, and threads, until it fits into what is left under the
 * limits. `less` is one line about that, or empty. ST_NOMEM if nothing fits; not with `force`.
 */
#define SPOOL_LEAST ((uint64_t)16 << 20)
enum status fit_memory(struct fit *f, const struct host_limits *l, struct err *less, struct err *e);

/* True, and one line, if less CPU time than all of our CPUs' is allowed. */
bool fit_tell_cpu(const struct host_limits *l, struct err *ret);

#endif
