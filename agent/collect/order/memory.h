/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The memory pass: reads every range of a source into a container, in a given order
 * (collect/order/order.h).
 */
#ifndef RAMSEAL_AGENT_COLLECT_ORDER_MEMORY_H
#define RAMSEAL_AGENT_COLLECT_ORDER_MEMORY_H

#include "agent/collect/capture/stream_pass.h"
#include "agent/shared/paging/roots.h"
#include "driver-interface/drv.h"

struct candidates;
struct discovery;
struct order;
struct slots;
struct table_prints;

struct memory_plan {
	struct drv *source;
	const struct range_list *ranges; /* the part of its first map to read; NULL: all of it */
	const struct order *order;       /* NULL: linear */
	/* Where page tables are, for orders that use it; NULL: unknown. */
	const struct walk_set *table_pages;
	const struct discovery *spaces; /* the owners of page tables; NULL: unknown */
	/* What its tables' entries were then; NULL: not known, so nothing is captured again. */
	const struct table_prints *prints;
	uint64_t again_max; /* the most pages to capture again for that; 0: the default */
	/* Reads page files in an order that follows the tables; NULL: they are read separately. */
	struct slots *slots;
	/* Finds spaces that are new since `earlier`; NULL: no second search. */
	enum status (*find_again)(struct drv *source, const struct discovery *earlier,
				  struct discovery *ret, struct err *e);
	/* These see every page that is read; or NULL. */
	struct root_watch *watch;
	struct candidates *candidates;
	struct stream_plan stream; /* without feed, label and total */
};

/* Zero-initialise. */
struct memory_result {
	struct stream_result stream;
	/* Of a guided order: */
	uint64_t guided_pages;     /* captured right after an entry that refers to them */
	uint64_t retaken_pages;    /* captured again because an entry for them had changed */
	uint64_t not_retaken;      /* not captured again, because the limit was reached */
	uint64_t tables_changed;   /* tables that referred to another frame when read again */
	uint64_t tables_unsettled; /* those that kept changing until the last reading */
	/*
	 * ST_OK, ST_SOURCE_FAILED or ST_INTERRUPTED: why pages are skipped. The container still has
	 * their states and can be closed.
	 */
	enum status stopped;
	struct err why;
};

/* What is read: the plan's ranges, or the source's first map. */
static inline const struct range_list *memory_ranges(const struct memory_plan *plan)
{
	return plan->ranges ? plan->ranges : &plan->source->info.maps[0].ranges;
}

void memory_result_deinit(struct memory_result *r);

/*
 * Reads every range of the source's first map, or those of the plan. Adds to the result, which may
 * be from an earlier pass. ST_OK even if it was stopped (see the result), or if a read was
 * abandoned: then the stream has no record of pages that were not reached. Otherwise ST_OUTPUT or
 * ST_NOMEM, and the container ends with the last whole chunk.
 */
enum status memory_acquire(const struct memory_plan *plan, struct memory_result *ret,
			   struct err *e);

#endif
