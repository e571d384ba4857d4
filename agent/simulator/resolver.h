/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The process of "Forensic analysis of Windows user space applications through heap allocations"
 * (Cohen, 2015): the svchost.exe that resolves names for Windows 7 SP1. It has 12 heaps with 3,286
 * pages, of which 457 are valid, 144 in transition, 431 in the page file, and 2,254 of zeros; the
 * addresses of two heaps, and of the allocations that lead from the cache's hash table to a name,
 * are the paper's. What else is in the heaps, and how they share the pages, it does not say.
 */
#ifndef RAMSEAL_AGENT_SIMULATOR_RESOLVER_H
#define RAMSEAL_AGENT_SIMULATOR_RESOLVER_H

#include "agent/simulator/making.h"

#define SIM_RESOLVER_HEAPS      12

/* Pages of these heaps, by what they are; the others are not committed, or were never touched. */
#define SIM_RESOLVER_PAGES      3286
#define SIM_RESOLVER_VALID      457
#define SIM_RESOLVER_TRANSITION 144
#define SIM_RESOLVER_PAGED      431
#define SIM_RESOLVER_ANY        0xff

enum status sim__resolver_make(struct sim_making *x, struct err *e);
/*
 * What each page of the process's regions is, once these are all there: an enum populate each, in
 * the order of their numbers, or SIM_RESOLVER_ANY where it is as anybody's. For free(); NULL: no
 * memory, or the heaps are not such that the paper's numbers can be had.
 */
uint8_t *sim__resolver_states(const struct sim_process *p, const struct sim_vads *v,
			      uint64_t *random);

#endif
