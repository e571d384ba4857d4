/* SPDX-License-Identifier: Apache-2.0 */
/*
 * --level auto: compress as hard as possible without losing time. Reading, compressing and writing
 * run concurrently; the slowest of them sets the pace. If that is the output, better compression
 * leaves less to write; if it is the compressor, a lower level lets the source run. If it is the
 * source, the level stays: more compression would only use the machine's CPUs.
 *
 * With a spool, writes take no time until it is full, and then as long as sending a piece of it
 * takes. How full it is shows the speed of the link earlier and more steadily.
 *
 * All of it in real time, which is what compressing and sending take of a simulated machine, too.
 */
#ifndef RAMSEAL_AGENT_COLLECT_CAPTURE_GOVERNOR_H
#define RAMSEAL_AGENT_COLLECT_CAPTURE_GOVERNOR_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* A window of this length is long enough to see a disk's cache fill, and short enough to matter. */
#define GOVERNOR_WINDOW_NS UINT64_C(250000000)

/* What a window looked like: the shares of its time in which each stage was at work, 0 to 1. */
struct governor_load {
	double compress; /* of all workers, on average */
	double write;    /* or how full the spool is, if that is more */
};

/* The next level after one window at `level`. */
int governor_next(int level, struct governor_load load);

struct governor {
	atomic_int level; /* what workers use now; any thread may read it */
	unsigned workers;
	bool fixed;
	atomic_ullong compress_ns; /* this window's */
	uint64_t write_ns;
	uint64_t begin_ns; /* of this window */
	unsigned changes;
};

/* `fixed`: the level never moves. */
void governor_init(struct governor *g, int level, bool fixed, unsigned workers, uint64_t now);

/* From any worker: the time it took to compress one chunk. */
void governor_compressed(struct governor *g, uint64_t ns);

/*
 * From the writing thread, after each chunk; ends the window when it is due. `backlog`: how full
 * the spool is, 0 to 1; 0 if there is none.
 */
void governor_wrote(struct governor *g, uint64_t ns, double backlog, uint64_t now);

static inline int governor_level(struct governor *g)
{
	return atomic_load_explicit(&g->level, memory_order_relaxed);
}

#endif
