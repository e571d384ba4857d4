/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Heaps of the main process that go on while the machine is read (`heap_writes`): blocks are
 * allocated and freed, chunks split and merged, lists and bitmaps rewritten. Each such step is
 * there at once, in all the pages that it changes; between two steps the reader may read any. What
 * the page file has of a page is kept as it was when the page was written there.
 *
 * `heap_log=FILE` is the account of it, a line for each step:
 *
 *	NS,PID,INDEX,alloc,ADDRESS,REQUESTED,KIND    NS since it was opened; KIND as inside.h
 *	NS,PID,INDEX,free,ADDRESS,REQUESTED,KIND
 *	NS,PID,INDEX,stopped,0x0,0,                  it would need a segment, and stands still
 */
#ifndef RAMSEAL_AGENT_SIMULATOR_LIVE_H
#define RAMSEAL_AGENT_SIMULATOR_LIVE_H

#include "agent/simulator/heap.h"
#include "agent/simulator/machine.h"

/* Takes `b`, whose heap is the main process's, whatever it returns. False: no memory. */
bool sim__live_add(struct machine *m, uint32_t index, struct sim_heap_builder *b);
void sim__live_deinit(struct machine *m);

/* A tick: what is due happens. */
void sim__live_run(struct machine *m);
/* The page goes to this slot: its bytes of now stay there. Without memory that counts as failed. */
void sim__live_keep(struct machine *m, uint32_t slot, const struct frame *content);
/* What the slot has had since. NULL: what the page has. */
const uint8_t *sim__live_kept(const struct machine *m, unsigned file, uint32_t index);

#endif
