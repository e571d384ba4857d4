/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One thread fills items, N threads work on them, and one drains them in the order in which they
 * were filled, over a fixed set of items. Acquisition (read, compress, write), verification (read,
 * decompress, count) and export (find, decompress, write) all have this shape.
 */
#ifndef RAMSEAL_AGENT_SHARED_PROGRAM_PIPELINE_H
#define RAMSEAL_AGENT_SHARED_PROGRAM_PIPELINE_H

#include "agent/shared/program/share.h"
#include "formats/base/err.h"

#define PIPELINE_WORKERS_MAX SHARE_THREADS_MAX

/* The value of --threads; 0: not given. */
unsigned pipeline_threads(uint64_t asked);

struct pipeline_ops {
	/*
	 * Fills `item` on the caller's thread, so that sources are always read from one thread.
	 * ST_END: there is no more. Any other status also ends the run, after all earlier items
	 * were drained.
	 */
	enum status (*fill)(void *arg, void *item, struct err *e);
	/* On any worker's thread; `worker` is its number (0 .. workers - 1). */
	enum status (*work)(void *arg, unsigned worker, void *item, struct err *e);
	/*
	 * On one thread, in the order of fill(). A failure here, or of work() on this item, ends
	 * the run at this item: nothing after it is drained.
	 */
	enum status (*drain)(void *arg, void *item, struct err *e);
};

/*
 * Runs fill() on another thread: run() works like fn(arg, e), but may return before it: then fn has
 * stopped forever inside fill(), and its item must stay. fn returns when all filled items have been
 * drained, or never will be.
 */
struct pipeline_filler {
	enum status (*run)(const void *with, enum status (*fn)(void *arg, struct err *e), void *arg,
			   struct err *e);
	const void *with;
};

/*
 * Reports that `worker` has stopped forever inside work(): for its watchdog in run(), whose `arg`
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
