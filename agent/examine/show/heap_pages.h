/* SPDX-License-Identifier: Apache-2.0 */
/* ramseal heap --pages: where the pages of each heap are. */
#ifndef RAMSEAL_AGENT_EXAMINE_SHOW_HEAP_PAGES_H
#define RAMSEAL_AGENT_EXAMINE_SHOW_HEAP_PAGES_H

#include "agent/examine/show/process_session.h"

/* ST_UNREADABLE: heaps, or parts of some, could not be read. */
enum status heap_pages(const struct process_session *s, bool json, struct err *e);

#endif
