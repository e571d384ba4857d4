/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The VADs of a process: a balanced tree of blocks of the kernel's pool, tagged "VadS" (short),
 * "Vad " or "Vadl".
 *
 * Nodes and roots: JPCERTCC/Windows-Symbol-Tables 11ad856 and volatilityfoundation/volatility
 * 328a178 (_MMVAD_SHORT, _MMVAD, _MM_AVL_TABLE of 7 SP1; _RTL_BALANCED_NODE of 10).
 */
#ifndef RAMSEAL_AGENT_SIMULATOR_VADS_H
#define RAMSEAL_AGENT_SIMULATOR_VADS_H

#include "agent/simulator/sections.h"

/* MMVAD_FLAGS.Protection */
enum sim_protection { SIM_R = 1, SIM_RX = 3, SIM_RW = 4, SIM_RWX = 6, SIM_RWXC = 7 };

struct sim_vad {
	uint64_t first, last; /* virtual pages */
	enum sim_protection protection;
	uint32_t charge;                   /* pages that count as committed */
	bool commit;                       /* committed as a whole */
	const struct sim_section *section; /* NULL: private */
	uint32_t from;                     /* the section's page that `first` shows */
	bool heap;                         /* a heap's */

	uint64_t node; /* sim__vads_put() sets its address */
	uint8_t *bytes;
};

struct sim_vads {
	struct sim_vad *at;
	size_t count, room;
};

/* False: no memory. The caller must avoid overlaps. */
bool sim__vads_add(struct sim_vads *v, const struct sim_vad *vad);
bool sim__vads_overlap(const struct sim_vads *v, uint64_t first, uint64_t last);
/* Sorts them and writes tree and root. `eprocess`: its address; `bytes`: its bytes. */
bool sim__vads_put(struct sim_vads *v, struct sim_pools *pools, uint64_t eprocess, uint8_t *bytes);
void sim__vads_deinit(struct sim_vads *v);

#endif
