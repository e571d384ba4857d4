/* SPDX-License-Identifier: Apache-2.0 */
/* ramseal heap --dns: records of the DNS resolver's cache. */
#ifndef RAMSEAL_AGENT_COMMANDS_HEAP_DNS_H
#define RAMSEAL_AGENT_COMMANDS_HEAP_DNS_H

#include "agent/commands/heap_blocks.h"
#include "agent/heap/block_list.h"

/* Blocks of `l`, which has the free ones, that begin with a record, and what refers to them. */
enum status heap_dns(struct block_printer *p, const struct block_list *l, struct err *e);

#endif
