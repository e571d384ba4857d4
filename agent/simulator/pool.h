/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The kernel's pools, while the machine is built; blocks never move and are never freed. Before
 * each block is a POOL_HEADER of 16 bytes, whose tag is 12 bytes before the block
 * (JPCERTCC/Windows-Symbol-Tables 11ad856: _POOL_HEADER). A block lies in one page.
 */
#ifndef RAMSEAL_AGENT_SIMULATOR_POOL_H
#define RAMSEAL_AGENT_SIMULATOR_POOL_H

#include "agent/simulator/machine.h"

/* Nonpaged blocks lie in frames from the start, paged ones in System's regions. */
enum sim_pool { POOL_NONPAGED, POOL_PAGED, POOLS };

struct sim_pools {
	struct machine *m;
	uint64_t next[POOLS];
	uint64_t mapped;  /* end of the frames of the nonpaged pool */
	uint8_t **blocks; /* paged */
	size_t n_blocks, room;
	uint64_t volume; /* address of the volume's parameters (sections.c); 0: not made yet */
};

void sim__pools_init(struct sim_pools *p, struct machine *m);
/*
 * Takes a zeroed block; *va is its address, after its header. The bytes stay valid until the
 * machine is freed or, for a paged block, until it is paged out. NULL: no memory, or above 4080
 * bytes.
 */
uint8_t *sim__pool_take(struct sim_pools *p, enum sim_pool kind, size_t size, const char tag[4],
			uint64_t *va);
/* Turns the paged blocks into System's regions. Call deinit even after an error. */
enum status sim__pools_finish(struct sim_pools *p, struct err *e);
void sim__pools_deinit(struct sim_pools *p);

#endif
