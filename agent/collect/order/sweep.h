/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads the map once in order of address, without the pages of a set or only those. Also how a pass
 * over memory stops: what every order does on a signal or when the source fails.
 */
#ifndef RAMSEAL_AGENT_COLLECT_ORDER_SWEEP_H
#define RAMSEAL_AGENT_COLLECT_ORDER_SWEEP_H

#include "agent/collect/order/memory.h"
#include "agent/collect/order/read_cost.h"
#include "agent/shared/paging/walk.h"

/* Zero-initialise except the first four. */
struct sweep {
	struct drv *source;
	struct memory_result *result;
	const struct range_list *ranges;
	/* These see every page that is read; or NULL. */
	struct root_watch *watch;
	struct candidates *candidates;
	/* Only pages in the set (`inside`), or only pages not in it. NULL: all. */
	const struct walk_set *set;
	bool inside;
	size_t range;          /* the one being read */
	uint64_t page;         /* the next one in it, in pages from its start */
	uint32_t skip;         /* enum skip_reason: why reading has stopped; 0: it has not */
	struct read_cost cost; /* of the source */
	bool unreadable;       /* a page was unreadable: no gaps are read along any more */
	bool later;            /* pieces are cut here, and read by sweep_read_later() */
};

/* Starts over with another set. If it was stopped, it stays stopped. */
void sweep_restart(struct sweep *s, const struct walk_set *set, bool inside);

/* The next piece, or ST_END. */
enum status sweep_next(struct sweep *s, struct stream_piece *p);

/*
 * Reads an extent, whose address and length are set, as `reader` (DRV_BESIDE: as the only one) to
 * where its pages lie in the piece, and shows them. A source that dies stops the sweep.
 */
void sweep_fill(struct sweep *s, struct stream_piece *p, size_t at, struct rsz_extent *x,
		unsigned reader);

/* Reads a piece cut by sweep_next(), as one of several readers. The source is info.parallel. */
void sweep_read_later(struct sweep *s, struct stream_piece *p, unsigned reader);

/* From now on pages are recorded as skipped, so the container says what it lacks. */
void sweep_stop(struct sweep *s, enum status why, uint32_t reason, const struct err *e);

/* Stops it after a signal. True if it is stopped. */
bool sweep_stopped(struct sweep *s);

/* May workers read a sweep's pieces? Not if there is only one: a reader beside it is faster. */
bool sweep_reads_beside(const struct memory_plan *plan);

#endif
