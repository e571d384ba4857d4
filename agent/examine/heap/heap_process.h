/* SPDX-License-Identifier: Apache-2.0 */
/* The heaps of a process that is open. */
#ifndef RAMSEAL_AGENT_EXAMINE_HEAP_HEAP_PROCESS_H
#define RAMSEAL_AGENT_EXAMINE_HEAP_HEAP_PROCESS_H

#include "agent/examine/heap/heap.h"
#include "agent/examine/process/process.h"

/*
 * `m` is of the process; it and `ranges`, to which its private memory that was made to be written
 * is added, stay until heaps_close(). ST_NOMEM.
 */
enum status heaps_of_process(const struct opened_process *p, const struct memory_view *m,
			     struct range_list *ranges, struct heaps **ret, struct err *e);

#endif
