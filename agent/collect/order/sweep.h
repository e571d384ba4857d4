/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Once over the map in order of address, leaving out pages or taking nothing but them. And how a
 * pass over memory stops: what every order does about a signal and a dead source.
 */
#ifndef RAMSEAL_AGENT_COLLECT_ORDER_SWEEP_H
#define RAMSEAL_AGENT_COLLECT_ORDER_SWEEP_H

#include "agent/collect/order/memory.h"
#include "agent/collect/order/read_cost.h"
#include "agent/shared/paging/walk.h"

/* Zero-initialise but for the first four. */
struct sweep {
	struct drv *source;
	struct memory_result *result;
	const struct range_list *ranges;
	/* Are shown what was read; or NULL. */
	struct root_watch *watch;
	struct candidates *candidates;
	/* Only pages that are in the set (`inside`), or only those that are not. NULL: all. */
	const struct walk_set *set;
	bool inside;
	size_t range;          /* the one that is being read */
	uint64_t page;         /* the next one in it, in pages from its start */
	uint32_t skip;         /* enum skip_reason: why nothing is read any more; 0: it is */
	struct read_cost cost; /* of the source */
	bool unreadable;       /* a page was: nothing is read twice to save a request */
	bool later;            /* pieces are cut here, and read by sweep_read_later() */
};

/* From the start again, with another set. What stopped it stays. */
void sweep_restart(struct sweep *s, const struct walk_set *set, bool inside);

/* The next piece, or ST_END. */
enum status sweep_next(struct sweep *s, struct stream_piece *p);

/*
 * Reads an extent, whose address and length are set, as `reader` (DRV_BESIDE: as the only one) to
 * where its pages lie in the piece, and shows them. A source that dies stops the sweep.
 */
void sweep_fill(struct sweep *s, struct stream_piece *p, size_t at, struct rsz_extent *x,
		unsigned reader);

/*
 * Reads a piece that sweep_next() has cut, as `reader` of several who do the same. The source is
 * info.parallel.
 */
void sweep_read_later(struct sweep *s, struct stream_piece *p, unsigned reader);

/* From now on pages are named as skipped, so that the container says what it does not hold. */
void sweep_stop(struct sweep *s, enum status why, uint32_t reason, const struct err *e);

/* Stops it if a signal came. True if it is stopped. */
bool sweep_stopped(struct sweep *s);

/*
 * Whether workers may read a sweep's pieces: one thread beside the one that compresses is more than
 * one that does both.
 */
bool sweep_reads_beside(const struct memory_plan *plan);

#endif
