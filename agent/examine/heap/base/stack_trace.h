/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who allocated a block: the return addresses that Windows keeps for each allocation of a process
 * with the flag +ust ("create user mode stack trace database", gflags). A block holds them itself,
 * or the address of a database entry; its extended header says which (heap_facts.h: .trace).
 *
 * An entry is trusted if all its return addresses lie in executable memory. The rest of the
 * database is not needed, so its version does not matter.
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

#define STACK_TRACE_FRAMES_MAX 32 /* length of _RTL_STACK_TRACE_ENTRY.BackTrace */

struct stack_trace {
	uint32_t count;
	uint64_t at[STACK_TRACE_FRAMES_MAX]; /* return addresses, innermost first */
};

/*
 * `at` and `frames` come from struct heap_allocation; `code` is the process's executable memory,
 * tidy. False: it cannot be read, or is not a trace.
 */
bool stack_trace_read(const struct memory_view *m, const struct range_list *code, bool wide,
		      uint64_t at, uint16_t frames, struct stack_trace *ret);

#endif
