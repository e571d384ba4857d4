/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who asked for a block: the return addresses that Windows keeps of each allocation of a process
 * with the flag +ust ("create user mode stack trace database", gflags). A block has them in itself,
 * or the address of an entry of the database; which, its extended header tells (heap.h: .trace).
 *
 * An entry is believed if all its return addresses lie in executable memory. Nothing of the
 * database around it is needed, so it does not matter which version's that is.
 *
 * _RTL_STACK_TRACE_ENTRY is of the public symbols of 7 SP1's ntdll (volatilityfoundation/volatility
 * 328a178, win7_sp1_x64_vtypes.py and win7_sp1_x86_vtypes.py). Where it keeps the number of its
 * addresses differs: Depth in that record, and what that record calls Index on 10
 * (shanepowell/DbgHelpUtils c62b5a8, ust_address_stack_trace.cpp).
 */
#ifndef RAMSEAL_AGENT_EXAMINE_HEAP_BASE_STACK_TRACE_H
#define RAMSEAL_AGENT_EXAMINE_HEAP_BASE_STACK_TRACE_H

#include "agent/examine/virtual/memory_view.h"
#include "formats/base/range.h"

#define STACK_TRACE_FRAMES_MAX 32 /* _RTL_STACK_TRACE_ENTRY.BackTrace has so many */

struct stack_trace {
	uint32_t count;
	uint64_t at[STACK_TRACE_FRAMES_MAX]; /* return addresses, the innermost first */
};

/*
 * `at` and `frames` are those of struct heap_allocation, `code` executable memory of the process,
 * tidy. False: that cannot be had, or is no trace.
 */
bool stack_trace_read(const struct memory_view *m, const struct range_list *code, bool wide,
		      uint64_t at, uint16_t frames, struct stack_trace *ret);

#endif
