/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The order in which memory is read. Each order reads every page of the map at least once; they
 * differ in the time between a page-table entry and the frame that it refers to.
 *
 * An order is a feed of pieces (stream_pass.h). Most are one or two sweeps over the map; `guided`
 * walks the page tables.
 */
#ifndef RAMSEAL_AGENT_COLLECT_ORDER_ORDER_H
#define RAMSEAL_AGENT_COLLECT_ORDER_ORDER_H

#include "agent/collect/order/memory.h"

struct order {
	const char *name;
	const char *summary; /* one line for --help */
	/* It needs to know which pages are page tables, from the pass before the memory. */
	bool wants_tables;
	/* It needs the address spaces from the same pass. */
	bool wants_spaces;
	/* It reads slots of page files after the tables that refer to them: memory_plan.slots. */
	bool takes_slots;
	/* *ret is for close(). `plan` and `result` are borrowed until then. */
	enum status (*open)(const struct memory_plan *plan, struct memory_result *result,
			    struct stream_feed **ret, struct err *e);
	void (*close)(struct stream_feed *f); /* NULL is fine */
};

/* Ended by NULL. */
extern const struct order *const orders[];

const struct order *order_find(const char *name); /* NULL: there is none */

/* The default, with and without address spaces. */
const struct order *order_default(bool spaces);

extern const struct order linear_order, tables_first_order, tables_last_order, guided_order;

#endif
