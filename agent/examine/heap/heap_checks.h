/* SPDX-License-Identifier: Apache-2.0 */
/* Compares a heap's own counters with its blocks, and says how much of it could not be read. */
#ifndef RAMSEAL_AGENT_EXAMINE_HEAP_HEAP_CHECKS_H
#define RAMSEAL_AGENT_EXAMINE_HEAP_HEAP_CHECKS_H

#include "agent/examine/heap/heap.h"

/* One of the heap's counters, and the sum over the blocks that were walked. */
struct heap_check {
	const char *name;
	bool has;                 /* the heap has this counter, and it was read */
	uint64_t counted, walked; /* bytes */
};

#define HEAP_CHECKS 3

void heap_checks(const struct heap_info *i, const struct heap_stats *s,
		 struct heap_check ret[static HEAP_CHECKS]);

/* A sentence for the user; NULL: nothing was found. */
const char *heap_finding(const struct heaps *h, const struct heap_info *i);

/* Bytes that may hold blocks which the walk did not report. */
uint64_t heap_stats_lost(const struct heap_stats *s);

/* True if, as far as the walk can know, nothing of the heap is lost. */
bool heap_is_had(const struct heap_info *i, const struct heap_stats *s);

#endif
