/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finding the address spaces of a source. The search runs on the thread that reads the source,
 * because any read can hang.
 */
#ifndef RAMSEAL_AGENT_COLLECT_ACQUIRE_TABLES_SEARCH_H
#define RAMSEAL_AGENT_COLLECT_ACQUIRE_TABLES_SEARCH_H

#include "agent/collect/capture/reading.h"
#include "agent/shared/kernel/candidates.h"
#include "agent/shared/kernel/discover.h"

/* What is known beforehand; the rest of struct discover_hints comes from the source. */
struct tables_search {
	const struct discovery *earlier;
	const struct root_watch *watch;
	const struct candidates *candidates;
	uint64_t pages; /* search_pages of discover.h */
};

/* What a search and the pass after it may cost together. */
struct walk_budget tables_budget(void);

/*
 * `reading` may be NULL. If a read is given up (drv_is_abandoned()), *budget and *ret are left as
 * they were.
 */
enum status tables_search(const struct reading *reading, struct drv *source,
			  struct tables_search by, struct walk_budget *budget,
			  struct discovery *ret, struct err *e);

/*
 * Finds the address spaces of the same machine again, for code that reads memory through its page
 * tables. ST_NOMEM. `ret` is zero-initialised, and freed by the caller in any case.
 */
enum status tables_find_again(struct drv *source, const struct discovery *earlier,
			      struct discovery *ret, struct err *e);

/*
 * Prepares a scan for roots while the memory is read. False if `before` has no kernel whose roots
 * could be recognised.
 */
bool tables_watch(const struct reading *reading, const struct discovery *before,
		  struct root_watch *ret);

#endif
