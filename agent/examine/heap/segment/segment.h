/* SPDX-License-Identifier: Apache-2.0 */
/* The segment heap, for the face of all kinds. Its own files have segment_internal.h. */
#ifndef RAMSEAL_AGENT_EXAMINE_HEAP_SEGMENT_SEGMENT_H
#define RAMSEAL_AGENT_EXAMINE_HEAP_SEGMENT_SEGMENT_H

#include "agent/examine/heap/base/heap_internal.h"

/*
 * Segment heaps' segments and keys. Heaps can be added, whose first page is missing. ST_NOMEM.
 */
enum status heap__find_segment_heaps(struct heaps *h, struct err *e);
void heap__drop_segment_heaps(struct heaps *h);
/* Adds where those segments lie: of the heap at `heap`, or of all for 0. ST_NOMEM. */
enum status heap__add_segment_areas(const struct heaps *h, uint64_t heap, struct range_list *ret,
				    struct err *e);
enum status heap__walk_segment_heap(struct heap_walk *w);

#endif
