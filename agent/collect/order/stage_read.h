/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads what a group of tables names. Where the source allows it, several do so at once, so
 * that one thread's copying does not hold up all that compress. Each extent keeps a time of its
 * own, from the first of its reads to the last.
 */
#ifndef RAMSEAL_AGENT_COLLECT_ORDER_STAGE_READ_H
#define RAMSEAL_AGENT_COLLECT_ORDER_STAGE_READ_H

#include "agent/collect/order/stage.h"
#include "agent/collect/order/sweep.h"

struct stage_readers;

/*
 * For `plan`. NULL: one thread reads, because the source wants that, there are too few processors,
 * or there is no memory for more.
 */
struct stage_readers *stage_readers_create(const struct memory_plan *plan);
void stage_readers_destroy(struct stage_readers *r); /* NULL is fine */

/*
 * Fills all extents of the stage from `extent` on, whose pages lie behind the first `page`. Of each
 * extent, address, length and pass are set. A source that dies stops the sweep, and the rest is
 * skipped.
 */
void stage_read(struct stage_readers *r, struct sweep *s, struct stage *stage, size_t extent,
		size_t page);

#endif
