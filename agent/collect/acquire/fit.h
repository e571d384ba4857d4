/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fits an acquisition into what it is allowed (collect/host/limits.h): threads and memory for the
 * link. shared/program/share.h has its priority.
 */
#ifndef RAMSEAL_AGENT_COLLECT_ACQUIRE_FIT_H
#define RAMSEAL_AGENT_COLLECT_ACQUIRE_FIT_H

#include <stdbool.h>

#include "agent/collect/host/limits.h"
#include "formats/base/err.h"

struct fit {
	/* What is wanted */
	int level;        /* zstd's, or RSZ_LEVEL_STORE */
	uint64_t ram;     /* bytes to be acquired; the guided order keeps bitmaps of them */
	uint64_t spool;   /* bytes of memory for unsent data; 0: there is no link */
	unsigned threads; /* for compression; at least 1 */
	bool force;       /* go on even if that is not enough */
};

/* An upper bound for the memory of the whole process, in bytes, from measurements. */
uint64_t fit_need(const struct fit *f);

/*
 * Reduces the spool, down to SPOOL_LEAST, and then the threads, until the process fits into its
 * limits. `less` is one line about that, or empty. ST_NOMEM if nothing fits, unless `force` is set.
 */
#define SPOOL_LEAST ((uint64_t)16 << 20)
enum status fit_memory(struct fit *f, const struct host_limits *l, struct err *less, struct err *e);

/* True, with one line of text, if we are allowed less CPU time than our CPUs have. */
bool fit_tell_cpu(const struct host_limits *l, struct err *ret);

#endif
