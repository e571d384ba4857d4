/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The address space of a process as a drawing: a lane for each kind of range, addresses from left
 * to right, and in each block where its pages are.
 */
#ifndef RAMSEAL_AGENT_EXAMINE_REPORT_PROCESS_PROCESS_MAP_H
#define RAMSEAL_AGENT_EXAMINE_REPORT_PROCESS_PROCESS_MAP_H

#include "agent/examine/report/kit/svg.h"
#include "agent/examine/report/process/process_run.h"

/*
 * The most columns, in as many rows as they need: nobody can tell more apart, and the page stays
 * small. If a process has more ranges, neighbours share a column.
 */
#define MAP_COLUMNS_WIDE   400
#define MAP_COLUMNS_NARROW 120

/* How many neighbours share a column; 1: each has its own. */
size_t map_fold(const struct report_process *r, enum svg_form form);

void map_draw(struct doc *d, const struct report_process *r, enum svg_form form);

/* The states' names for readers, in the order of enum pages_state. */
const char *map_state_text(enum pages_state s);

/* "457 valid, 144 in transition"; states without pages are left out. */
void map_put_states(struct doc *d, const struct pages_counts *c);

#endif
