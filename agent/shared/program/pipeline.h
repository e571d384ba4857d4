/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One thread that fills items, N that work on them, one that drains them in the order in which they
 * were filled; over a fixed set of items. Acquisition (read, compress, write), verification (read,
 * decompress, count) and export (find, decompress, write) are all this shape.
 */
#ifndef RAMSEAL_AGENT_SHARED_PROGRAM_PIPELINE_H
#define RAMSEAL_AGENT_SHARED_PROGRAM_PIPELINE_H

#include "agent/shared/program/share.h"
#include "formats/base/err.h"

#define PIPELINE_WORKERS_MAX SHARE_THREADS_MAX

/* What --threads asks for; 0: it was not given. */
unsigned pipeline_threads(uint64_t asked);

struct pipeline_ops {
	/*
	 * Makes `item` ready, on the caller's thread, so that sources which want to be read from
	 * one thread always are. ST_END: there is no more. Another status ends the run too, after
	 * everything that was filled before has been drained.
	 */
	enum status (*fill)(void *arg, void *item, struct err *e);
	/* On any of the workers' threads; `worker` tells which (0 .. workers - 1). */
	enum status (*work)(void *arg, unsigned worker, void *item, struct err *e);
	/*
	 * On one thread, in the order of fill(). A failure here, or of work() on this item, ends
	 * the run at this item: nothing after it is drained.
	 */
	enum status (*drain)(void *arg, void *item, struct err *e);
};

/*
 * Who fills, if not the caller's thread: run() is as fn(arg, e), but may return before it: then fn
 * has stopped for ever, inside of fill(), and the item that it was filling must stay. fn returns
 * when all that was filled has been drained, or never will be.
 */
struct pipeline_filler {
	enum status (*run)(const void *with, enum status (*fn)(void *arg, struct err *e), void *arg,
			   struct err *e);
	const void *with;
};

/*
 * `worker` has stopped for ever, inside of work(): for who watches over it, in run(), whose `arg`
 * this is. The run ends at that item, as if work() had failed with `st`, and the item must stay.
 */
void pipeline_lose(void *arg, unsigned worker, enum status st, const struct err *why);

/* Items enough to keep everyone busy: one being filled, one being drained, one per worker. */
static inline size_t pipeline_items(unsigned workers)
{
	return workers + 2;
}

/*
 * Runs until fill() has no more or something fails; the first failure in the order of the items
 * is returned (a failure of fill() comes after all items). `items` are the caller's, each reused
 * many times. Where the system gives no threads, the caller's does it all.
 */
enum status pipeline_run(const struct pipeline_ops *ops, void *arg, void *const items[],
			 size_t n_items, unsigned workers, struct err *e);

/* The same; a filler without run() is the caller's thread. */
enum status pipeline_run_with(const struct pipeline_ops *ops, struct pipeline_filler filler,
			      void *arg, void *const items[], size_t n_items, unsigned workers,
			      struct err *e);

#endif
