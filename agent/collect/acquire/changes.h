/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What becomes of a machine's memory while it is read: RAM is added and taken away (hot-plug,
 * virtio-mem, Hyper-V), pages are given back to the hypervisor, go offline, or are poisoned. The
 * system is asked before and after; what was added can be acquired then, and the rest is told.
 */
#ifndef RAMSEAL_AGENT_COLLECT_ACQUIRE_CHANGES_H
#define RAMSEAL_AGENT_COLLECT_ACQUIRE_CHANGES_H

#include <jansson.h>

#include "agent/collect/order/memory.h"

/* How often memory that was added is acquired, and asked for again. */
#define CHANGES_ROUNDS 4

/* Zero-initialise. */
struct memory_changes {
	struct drv_maps now; /* as they were told last */
	struct drv_withheld before;
	/* Since then: pages that may not be read any more, and pages that may again. */
	struct range_list withheld, returned;
	/* Of the source's first map, since it was opened. */
	struct range_list added, removed;
	struct range_list acquired; /* of what was added */
	struct range_list missing;  /* the rest of it, which was not read */
	/* The source opened again, which knows what was added: the last one most. */
	struct drv *again[CHANGES_ROUNDS];
	size_t n_again;
};

void memory_changes_deinit(struct memory_changes *c);

/* Before anything is read; logs how much must not be. */
enum status changes_begin(struct memory_changes *c, struct drv *d, struct err *e);

/* Asks for the maps again: sets `now`, `added`, `removed` and `missing`. */
enum status changes_sample(struct memory_changes *c, struct drv *d, struct err *e);

/*
 * The same, and acquires what is missing into the plan's stream (`source`, `ranges` and `order` of
 * the plan are set here), until nothing is added any more. The source is opened anew, by its
 * `spec`, because only then it knows of the new memory; where that cannot be done, or the
 * acquisition has been stopped, it stays missing.
 */
enum status changes_acquire(struct memory_changes *c, struct drv *d, const char *spec,
			    const struct memory_plan *plan, struct memory_result *ret,
			    struct err *e);

/* All that was to be acquired: the source's first map, and what was added to it. */
enum status changes_ranges(const struct memory_changes *c, const struct drv *d,
			   struct range_list *ret, struct err *e);

/* The source that knows most of the memory there is: `d`, or the last of `again`. */
struct drv *changes_source(const struct memory_changes *c, struct drv *d);

/* At the end: which pages are withheld now, and a line of log for each kind of change. */
enum status changes_end(struct memory_changes *c, struct drv *d, struct err *e);

/* ST_UNREADABLE if memory is missing that was added meanwhile. */
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
