/* SPDX-License-Identifier: Apache-2.0 */
/* What the numbers of one heap say against each other, and how much of it could not be had. */
#ifndef RAMSEAL_AGENT_EXAMINE_HEAP_HEAP_CHECKS_H
#define RAMSEAL_AGENT_EXAMINE_HEAP_HEAP_CHECKS_H

#include "agent/examine/heap/heap.h"

/* A counter of the heap's own, and what its blocks come to. */
struct heap_check {
	const char *name;
	bool has;                 /* the heap has that counter, and it was read */
	uint64_t counted, walked; /* bytes */
};

#define HEAP_CHECKS 3

void heap_checks(const struct heap_info *i, const struct heap_stats *s,
		 struct heap_check ret[static HEAP_CHECKS]);

/* For people; NULL: nothing. */
const char *heap_finding(const struct heaps *h, const struct heap_info *i);

/* Bytes in which blocks may be that no walk told. */
uint64_t heap_stats_lost(const struct heap_stats *s);

/* Nothing of it is lost, as far as a walk can know. */
bool heap_is_had(const struct heap_info *i, const struct heap_stats *s);

#endif
