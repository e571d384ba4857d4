/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The kernel's pools, while the machine is built: what is taken from them never moves and is never
 * given back. Each block has a POOL_HEADER of 16 bytes in front of it, with the tag 12 bytes before
 * the block (JPCERTCC/Windows-Symbol-Tables 11ad856: _POOL_HEADER), and lies in one page.
 */
#ifndef RAMSEAL_AGENT_SIMULATOR_POOL_H
#define RAMSEAL_AGENT_SIMULATOR_POOL_H

#include "agent/simulator/machine.h"

/* Nonpaged blocks lie in frames from the beginning, paged ones in regions of System's. */
enum sim_pool { POOL_NONPAGED, POOL_PAGED, POOLS };

struct sim_pools {
	struct machine *m;
	uint64_t next[POOLS];
	uint64_t mapped;  /* nonpaged: up to here there are frames */
	uint8_t **blocks; /* paged */
	size_t n_blocks, room;
	uint64_t volume; /* where the volume's parameters are (sections.c); 0: nowhere yet */
};

void sim__pools_init(struct sim_pools *p, struct machine *m);
/*
 * A zeroed block and where it is, behind its header. The bytes are where they are until the machine
 * is gone, or of a paged block, until somebody pages it out. NULL: no memory, or above 4080 bytes.
 */
uint8_t *sim__pool_take(struct sim_pools *p, enum sim_pool kind, size_t size, const char tag[4],
			uint64_t *va);
/* What was taken becomes regions of System's. In any case to be followed by deinit. */
enum status sim__pools_finish(struct sim_pools *p, struct err *e);
void sim__pools_deinit(struct sim_pools *p);

#endif
