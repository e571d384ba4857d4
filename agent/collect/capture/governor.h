/* SPDX-License-Identifier: Apache-2.0 */
/*
 * --level auto: compress as hard as costs no time. Reading, compressing and writing run side by
 * side; the slowest of them sets the pace. Where that is the output, better compression makes less
 * of it; where it is the compressor, a lower level lets the source run. A source that sets the pace
 * itself is left alone: more compression would only take the machine's CPUs.
 *
 * Behind a spool, writes take no time until it is full, and then as long as a piece of it takes to
 * be sent: what waits in it says earlier, and more steadily, what the link is like.
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
	double write;    /* or of the spool what is full, if that is more */
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

/* From any worker: so much time went into compressing one chunk. */
void governor_compressed(struct governor *g, uint64_t ns);

/*
 * From the one thread that writes, after each chunk; ends the window when it is due. `backlog`:
 * how full a spool behind the write is, 0 to 1; 0: there is none.
 */
void governor_wrote(struct governor *g, uint64_t ns, double backlog, uint64_t now);

static inline int governor_level(struct governor *g)
{
	return atomic_load_explicit(&g->level, memory_order_relaxed);
}

#endif
