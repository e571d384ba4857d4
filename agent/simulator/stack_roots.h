/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Blocks that only threads refer to: in their stacks (above Rsp), in registers that a system call
 * saves in its trap frame (Rbx, Rdi, Rsi), and on the kernel's stack, where kernel functions save
 * R12 to R15.
 */
#ifndef RAMSEAL_AGENT_SIMULATOR_STACK_ROOTS_H
#define RAMSEAL_AGENT_SIMULATOR_STACK_ROOTS_H

#include "agent/simulator/making.h"

/*
 * Moves up to `count` of a heap's roots to the process's threads, and writes the account. Returns
 * how many: as many as the threads have room for.
 */
size_t sim__stack_roots_put(struct sim_making *x, uint32_t heap, const uint64_t *roots,
			    size_t count);

#endif
