/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the heaps of a process. */
#ifndef RAMSEAL_AGENT_EXAMINE_HEAP_HEAP_LISTS_H
#define RAMSEAL_AGENT_EXAMINE_HEAP_HEAP_LISTS_H

#include "agent/examine/heap/base/heap_internal.h"

/* Adds the heaps that the process's lists name, and those at the start of private ranges. */
enum status heap__find_listed(struct heaps *h, struct err *e);

#endif
