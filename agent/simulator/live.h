/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Heaps of the main process that change while the machine is read (`heap_writes`): blocks are
 * allocated and freed, chunks split and merged, lists and bitmaps rewritten. A step changes all its
 * pages at once; between two steps the reader may read any page. The page file keeps each page as
 * it was when it was written there.
 *
 * `heap_log=FILE` records each step on a line:
 *
 *	NS,PID,INDEX,alloc,ADDRESS,REQUESTED,KIND    NS since it was opened; KIND as inside.h
 *	NS,PID,INDEX,free,ADDRESS,REQUESTED,KIND
 *	NS,PID,INDEX,stopped,0x0,0,                  it needs a segment, and changes no more
 */
#ifndef RAMSEAL_AGENT_SIMULATOR_LIVE_H
#define RAMSEAL_AGENT_SIMULATOR_LIVE_H

#include "agent/simulator/heap.h"
#include "agent/simulator/machine.h"

/* Takes ownership of `b`, a heap of the main process, even on failure. False: no memory. */
bool sim__live_add(struct machine *m, uint32_t index, struct sim_heap_builder *b);
void sim__live_deinit(struct machine *m);

/* On each tick: does what is due. */
void sim__live_run(struct machine *m);
/* Keeps the page's present bytes for the slot it is written to. Counts a failure without memory. */
void sim__live_keep(struct machine *m, uint32_t slot, const struct frame *content);
/* The bytes kept for the slot. NULL: those of the page. */
const uint8_t *sim__live_kept(const struct machine *m, unsigned file, uint32_t index);

#endif
