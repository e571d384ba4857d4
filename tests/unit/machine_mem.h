/* SPDX-License-Identifier: Apache-2.0 */
/* A generated machine as a physmem. Freeze it after the last new page. */
#ifndef RAMSEAL_TESTS_UNIT_MACHINE_MEM_H
#define RAMSEAL_TESTS_UNIT_MACHINE_MEM_H

#include <stdlib.h>

#include "agent/shared/paging/physmem.h"
#include "tests/gen/machine.h"

struct machine_mem {
	struct physmem_pieces pieces;
	struct physmem_piece *at;
	struct range_list ranges;
};

/* RAM is [0, last]; what the machine does not have of it is unreadable. */
static inline struct physmem *machine_mem_init(struct machine_mem *mem, const struct machine *m,
					       uint64_t last)
{
	*mem = (struct machine_mem){ .at = calloc(m->count + 1, sizeof(*mem->at)) };
	for (size_t i = 0; i < m->count; i++)
		mem->at[i] = (struct physmem_piece){ m->pages[i].pa, m->pages[i].bytes };
	if (range_list_add(&mem->ranges, 0, last, NULL))
		abort();
	physmem_pieces_init(&mem->pieces, mem->at, m->count, &mem->ranges);
	return &mem->pieces.mem;
}

static inline void machine_mem_deinit(struct machine_mem *mem)
{
	free(mem->at);
	range_list_deinit(&mem->ranges);
}

#endif
