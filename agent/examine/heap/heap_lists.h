/* SPDX-License-Identifier: Apache-2.0 */
/* Which heaps there are. */
#ifndef RAMSEAL_AGENT_EXAMINE_HEAP_HEAP_LISTS_H
#define RAMSEAL_AGENT_EXAMINE_HEAP_HEAP_LISTS_H

#include "agent/examine/heap/base/heap_internal.h"

/* The heaps that the process's lists name, and those that private ranges begin with. */
enum status heap__find_listed(struct heaps *h, struct err *e);

#endif
