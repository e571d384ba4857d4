/* SPDX-License-Identifier: Apache-2.0 */
/* ramseal heap without further options: the heaps, what is in them, and whether the sums agree. */
#ifndef RAMSEAL_AGENT_EXAMINE_SHOW_HEAP_LIST_H
#define RAMSEAL_AGENT_EXAMINE_SHOW_HEAP_LIST_H

#include "agent/examine/show/heap_session.h"

enum status heap_list(struct heap_session *r, bool json, struct err *e);

#endif
