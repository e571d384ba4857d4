/* SPDX-License-Identifier: Apache-2.0 */
/* ramseal heap --dns: what the DNS resolver's cache holds. */
#ifndef RAMSEAL_AGENT_EXAMINE_SHOW_HEAP_DNS_H
#define RAMSEAL_AGENT_EXAMINE_SHOW_HEAP_DNS_H

#include "agent/examine/heap/block_list.h"
#include "agent/examine/show/heap_blocks.h"

/* Prints records, and names that have none, from the blocks of `l`, which includes free ones. */
enum status heap_dns(struct block_printer *p, const struct block_list *l, struct err *e);

#endif
