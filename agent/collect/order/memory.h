/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The memory pass: every range of a source, in the order that was asked for
 * (collect/order/order.h), into a container.
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
	const struct range_list *ranges; /* what of its first map is read; NULL: all of it */
	const struct order *order;       /* NULL: linear */
	/* Where page tables are, for orders that use it; NULL: unknown. */
	const struct walk_set *table_pages;
	const struct discovery *spaces; /* the owners of page tables; NULL: unknown */
	/* What its tables' entries were then; NULL: unknown, and nothing is captured again. */
	const struct table_prints *prints;
	uint64_t again_max; /* pages to capture again for that at most; 0: what is usual */
	/* Reads page files for an order that goes by the tables; NULL: they have their own time. */
	struct slots *slots;
	/* Finds spaces that are new since `earlier`; NULL: no second search. */
	enum status (*find_again)(struct drv *source, const struct discovery *earlier,
				  struct discovery *ret, struct err *e);
	/* Are shown every page that was read; or NULL. */
	struct root_watch *watch;
	struct candidates *candidates;
	struct stream_plan stream; /* without feed, label and total */
};

/* Zero-initialise. */
struct memory_result {
	struct stream_result stream;
	/* Of a guided order: */
	uint64_t guided_pages;   /* captured right behind an entry that names them */
	uint64_t retaken_pages;  /* captured again, because an entry had changed that names them */
	uint64_t not_retaken;    /* were to be, but the limit was reached */
	uint64_t tables_changed; /* tables that named another frame when they were read again */
	uint64_t tables_unsettled; /* and kept changing until the last reading */
	/*
	 * ST_OK, ST_SOURCE_FAILED or ST_INTERRUPTED: why pages are skipped. The container holds
	 * their states all the same, and can be closed.
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
 * Reads every range of the source's first map, or those of the plan. A result that holds another
 * pass's is added to. ST_OK also when it was stopped (see the result), and
 * after a read was abandoned: then the stream has no record of pages that were not reached;
 * otherwise ST_OUTPUT or ST_NOMEM, and the container ends with the last whole chunk.
 */
enum status memory_acquire(const struct memory_plan *plan, struct memory_result *ret,
			   struct err *e);

#endif
