/* SPDX-License-Identifier: Apache-2.0 */
/* ramseal heap --leaks: busy blocks that nothing refers to, in groups. */
#ifndef RAMSEAL_AGENT_COMMANDS_HEAP_LEAKS_H
#define RAMSEAL_AGENT_COMMANDS_HEAP_LEAKS_H

#include "agent/commands/heap_blocks.h"

/* `l` is all busy blocks, sorted; `lost`: bytes of heaps in which blocks may be that are not. */
enum status heap_leaks(struct block_printer *p, const struct process_session *s,
		       const struct block_list *l, uint64_t lost, struct err *e);

#endif
