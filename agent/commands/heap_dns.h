/* SPDX-License-Identifier: Apache-2.0 */
/* ramseal heap --dns: records of the DNS resolver's cache. */
#ifndef RAMSEAL_AGENT_COMMANDS_HEAP_DNS_H
#define RAMSEAL_AGENT_COMMANDS_HEAP_DNS_H

#include "agent/commands/heap_blocks.h"

/* Blocks that begin with a record. For struct heap_visitor; `context` is a list with a printer. */
struct dns_list {
	struct block_printer *printer;
	struct heap_allocation *at;
	size_t count, room;
};

enum status dns_list_take(void *context, const struct heap_allocation *a, struct err *e);
void dns_list_deinit(struct dns_list *l);

enum status dns_list_print(const struct dns_list *l, const struct process_session *s,
			   struct err *e);

#endif
