/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What happens to a machine's memory while it is read: RAM is added and removed (hot-plug,
 * virtio-mem, Hyper-V), and pages are given back to the hypervisor, go offline or are poisoned. The
 * system is asked before and after. RAM that was added can then be acquired; other changes are only
 * reported.
 */
#ifndef RAMSEAL_AGENT_COLLECT_ACQUIRE_CHANGES_H
#define RAMSEAL_AGENT_COLLECT_ACQUIRE_CHANGES_H

#include <jansson.h>

#include "agent/collect/order/memory.h"

/* How many times added memory is acquired before we stop asking for more. */
#define CHANGES_ROUNDS 4

/* Zero-initialise. */
struct memory_changes {
	struct drv_maps now; /* as last reported */
	struct drv_withheld before;
	/* Since then: pages that must no longer be read, and pages that may be read again. */
	struct range_list withheld, returned;
	/* Changes to the source's first map since it was opened. */
	struct range_list added, removed;
	struct range_list acquired; /* of what was added */
	struct range_list missing;  /* the rest of it, which was not read */
	/* The source opened again, each time with the memory added so far. */
	struct drv *again[CHANGES_ROUNDS];
	size_t n_again;
};

void memory_changes_deinit(struct memory_changes *c);

/* Before anything is read; logs how much must not be read. */
enum status changes_begin(struct memory_changes *c, struct drv *d, struct err *e);

/* Asks for the maps again: sets `now`, `added`, `removed` and `missing`. */
enum status changes_sample(struct memory_changes *c, struct drv *d, struct err *e);

/*
 * The same, and acquires what is missing into the plan's stream (this sets the plan's `source`,
 * `ranges` and `order`) until no more memory is added. The source is reopened by its `spec`,
 * because it learns of new memory only then. If that fails, or the acquisition was stopped, the
 * memory stays missing.
 */
enum status changes_acquire(struct memory_changes *c, struct drv *d, const char *spec,
			    const struct memory_plan *plan, struct memory_result *ret,
			    struct err *e);

/* Everything to be acquired: the source's first map and what was added to it. */
enum status changes_ranges(const struct memory_changes *c, const struct drv *d,
			   struct range_list *ret, struct err *e);

/* The source that knows the most memory: `d`, or the last of `again`. */
struct drv *changes_source(const struct memory_changes *c, struct drv *d);

/* At the end: which pages are withheld now, and a line of log for each kind of change. */
enum status changes_end(struct memory_changes *c, struct drv *d, struct err *e);

/* ST_UNREADABLE if memory that was added during the acquisition is missing. */
enum status changes_outcome(const struct memory_changes *c, struct err *e);

/* As manifest_parts(), of the source and of `again`. */
json_t *changes_parts_json(const struct memory_changes *c, const struct drv *d);

/*
 * {"known":, "offline": [...], "poisoned": [...], "holes_known":, "holes": [...], "untold_pages":},
 * as it was at the beginning.
 */
json_t *changes_withheld_json(const struct memory_changes *c);

/*
 * {"added": [...], "missing": [...], "removed": [...], "withheld": [...], "returned": [...]},
 * NULL: nothing.
 */
json_t *changes_json(const struct memory_changes *c);

#endif
