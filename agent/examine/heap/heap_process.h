/* SPDX-License-Identifier: Apache-2.0 */
/* Opens the heaps of an open process. */
#ifndef RAMSEAL_AGENT_EXAMINE_HEAP_HEAP_PROCESS_H
#define RAMSEAL_AGENT_EXAMINE_HEAP_HEAP_PROCESS_H

#include "agent/examine/heap/heap.h"
#include "agent/examine/process/process.h"

/*
 * `m` is the process's memory. Adds its private writable memory to `ranges`. Both must outlive
 * *ret, up to heaps_close(). ST_NOMEM.
 */
enum status heaps_of_process(const struct opened_process *p, const struct memory_view *m,
			     struct range_list *ranges, struct heaps **ret, struct err *e);

#endif
