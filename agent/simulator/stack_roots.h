/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Blocks that only threads lead to: from their stacks (above Rsp), from registers that a system
 * call saves in its trap frame (Rbx, Rdi, Rsi), and from the kernel's stack, on which functions of
 * the kernel save R12 to R15.
 */
#ifndef RAMSEAL_AGENT_SIMULATOR_STACK_ROOTS_H
#define RAMSEAL_AGENT_SIMULATOR_STACK_ROOTS_H

#include "agent/simulator/making.h"

/*
 * Leaves so many of a heap's roots to the process's threads, and tells of them. How many it were:
 * as many as threads have room for.
 */
size_t sim__stack_roots_put(struct sim_making *x, uint32_t heap, const uint64_t *roots,
			    size_t count);

#endif
