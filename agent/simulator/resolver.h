/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The process of "Forensic analysis of Windows user space applications through heap allocations"
 * (Cohen, 2015): the svchost.exe with the DNS resolver of Windows 7 SP1. Its 12 heaps have 3,286
 * pages: 457 valid, 144 in transition, 431 in the page file, 2,254 of zeros. The addresses of two
 * heaps, and of the allocations from the cache's hash table to a name, are the paper's. The paper
 * does not say what else the heaps hold, or how they share the pages.
 */
#ifndef RAMSEAL_AGENT_SIMULATOR_RESOLVER_H
#define RAMSEAL_AGENT_SIMULATOR_RESOLVER_H

#include "agent/simulator/making.h"

#define SIM_RESOLVER_HEAPS      12

/* Pages of these heaps by state; the others are uncommitted or were never touched. */
#define SIM_RESOLVER_PAGES      3286
#define SIM_RESOLVER_VALID      457
#define SIM_RESOLVER_TRANSITION 144
#define SIM_RESOLVER_PAGED      431
#define SIM_RESOLVER_ANY        0xff

enum status sim__resolver_make(struct sim_making *x, struct err *e);
/*
 * The state of each page of the process's regions, in order of number: an enum populate, or
 * SIM_RESOLVER_ANY where the general rules decide. Call when all regions exist. The caller frees
 * it. NULL: no memory, or the heaps do not allow the paper's numbers.
 */
uint8_t *sim__resolver_states(const struct sim_process *p, const struct sim_vads *v,
			      uint64_t *random);

#endif
