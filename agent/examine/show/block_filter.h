/* SPDX-License-Identifier: Apache-2.0 */
/* Which blocks `ramseal heap --allocations` lists: by size, by heap or addresses, by content. */
#ifndef RAMSEAL_AGENT_EXAMINE_SHOW_BLOCK_FILTER_H
#define RAMSEAL_AGENT_EXAMINE_SHOW_BLOCK_FILTER_H

#include "agent/examine/show/heap_session.h"
#include "agent/shared/program/cli.h"

/* Where a block has to begin: in a heap, by its number or its address, or between addresses. */
struct block_place {
	bool is_heap;
	uint64_t first, last; /* a heap's number or address is .first */
};

struct block_sizes {
	uint64_t min, max;
};

struct block_filter {
	struct block_place in;
	struct block_sizes sizes;
	bool has_text;
	bool by_place, by_size; /* set by block_filter_begin() */
};

/* For CLI_GROUP(…, struct block_filter). */
extern const struct option_group block_filter_group;

/* ST_INPUT: the process has no such heap. */
enum status block_filter_begin(struct block_filter *f, const struct cli *cli,
			       const struct heap_session *s, struct err *e);

/* By all but the content. */
bool block_filter_takes(const struct block_filter *f, const struct heap_session *s,
			const struct heap_allocation *a);

#endif
