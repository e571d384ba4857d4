/* SPDX-License-Identifier: Apache-2.0 */
/* The segment heap, as heap.c uses it. Its own files include segment_internal.h. */
#ifndef RAMSEAL_AGENT_EXAMINE_HEAP_SEGMENT_SEGMENT_H
#define RAMSEAL_AGENT_EXAMINE_HEAP_SEGMENT_SEGMENT_H

#include "agent/examine/heap/base/heap_internal.h"

/*
 * Finds the segments and keys of segment heaps. May add heaps whose first page is missing.
 * ST_NOMEM.
 */
enum status heap__find_segment_heaps(struct heaps *h, struct err *e);
void heap__drop_segment_heaps(struct heaps *h);
/* Adds the ranges of the segments of the heap at `heap`, or of all heaps if 0. ST_NOMEM. */
enum status heap__add_segment_areas(const struct heaps *h, uint64_t heap, struct range_list *ret,
				    struct err *e);
enum status heap__walk_segment_heap(struct heap_walk *w);

#endif
