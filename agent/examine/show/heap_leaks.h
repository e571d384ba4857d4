/* SPDX-License-Identifier: Apache-2.0 */
/* ramseal heap --leaks: busy blocks that nothing points to, in groups. */
#ifndef RAMSEAL_AGENT_EXAMINE_SHOW_HEAP_LEAKS_H
#define RAMSEAL_AGENT_EXAMINE_SHOW_HEAP_LEAKS_H

#include "agent/examine/report/process/process_blocks.h"
#include "agent/examine/show/heap_session.h"

/* `l` holds all busy blocks. */
enum status heap_leaks(const struct heap_session *s, const struct block_list *l, bool json,
		       struct err *e);

/* What a report on the process says of them. */
enum status heap_leaks_report(const struct process_session *p, struct report_leaks *ret,
			      struct err *e);

#endif
