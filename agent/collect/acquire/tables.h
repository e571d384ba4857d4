/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The page-table pass: stores every page-table page of every address space, raw, each with the time
 * at which it was read. Passes before and after the memory show what changed in between.
 */
#ifndef RAMSEAL_AGENT_COLLECT_ACQUIRE_TABLES_H
#define RAMSEAL_AGENT_COLLECT_ACQUIRE_TABLES_H

#include <jansson.h>

#include "agent/collect/acquire/displaced.h"
#include "agent/collect/acquire/outside.h"
#include "agent/collect/capture/stream_pass.h"
#include "agent/shared/kernel/discover.h"
#include "agent/shared/kernel/layout.h"
#include "agent/shared/kernel/prints.h"
#include "agent/shared/kernel/candidates.h"

struct tables_plan {
	struct drv *source;
	bool keep_pages;                 /* the result has them in `pages` */
	bool keep_prints;                /* and what their entries were in `prints` */
	const struct discovery *earlier; /* of the first pass, for the second; or NULL */
	/* From the memory read in between, for the second pass: one of these, or NULL. */
	const struct root_watch *watch;
	const struct candidates *candidates;
	uint64_t search_pages; /* as in discover.h */
	/*
	 * What is known about the machine apart from its tables, to find the layout of entries;
	 * NULL: the layout is not wanted.
	 */
	const struct pte_facts *facts;
	enum rsz_kind kind;        /* RSZ_KIND_TABLES_BEFORE or _AFTER */
	struct stream_plan stream; /* without feed, stream, label and total */
};

/* Zero-initialise. */
struct tables_result {
	struct discovery found;
	/* Linux: CONFIG_DEVICE_PRIVATE, and where that is from (a static text). */
	enum pte_option device_private;
	const char *device_private_by;
	/* process_names_json(); NULL: not live, or there is nothing to compare. */
	json_t *processes;
	struct outside outside;     /* of an image */
	struct displaced displaced; /* of a raw one in which no tables were found */
	struct stream_result stream;
	struct walk_counts counts;
	uint64_t tables;            /* table pages stored */
	struct walk_set pages;      /* where they are; empty unless they were to be kept */
	struct table_prints prints; /* empty unless they were to be kept */
	/* How to read entries, if that was wanted; layout.found says whether it is known. */
	struct entry_reader entries;
	struct layout_choice layout;
	bool cut; /* the budget ran out: some tables are missing */
	uint64_t
		start; /* monotonic ns: before the search for address spaces, after the last page */
	uint64_t end;
};

/*
 * Finds the address spaces, stores their tables in a stream of their own and writes a line about
 * both into the manifest. If no tables are found, that is logged and is ST_OK: the memory matters
 * more. ST_OUTPUT, ST_NOMEM, ST_INTERRUPTED otherwise.
 */
enum status tables_acquire(const struct tables_plan *plan, struct tables_result *ret,
			   struct err *e);
void tables_result_deinit(struct tables_result *r);

/*
 * For an image, whose tables need not be stored: finds the address spaces as tables_acquire() does,
 * then reports them in the manifest and the log. Of the plan's stream and times, only the sealer is
 * used.
 */
enum status tables_find(const struct tables_plan *plan, struct tables_result *ret, struct err *e);
enum status tables_tell(const struct tables_plan *plan, struct tables_result *r, struct err *e);

#endif
