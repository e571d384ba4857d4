/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The stack trace database of a process (gflags +ust; page heap has one, too): who asked for which
 * block. Its head and entries are those of ntdll's type records (_STACK_TRACE_DATABASE,
 * _RTL_STACK_TRACE_ENTRY: Rickebo/ntoskrnlib 0a72996, Win11/ntdll), which agree from 7 to 11.
 *
 * How deep a trace is, is told in two ways. Entries that blocks of +ust lead to have it in the four
 * bytes where others have Index ("Leak checking", 2010, of Vista and 7; shanepowell/DbgHelpUtils
 * c62b5a8, ust_address_stack_trace.cpp, of 10); those of page heap have it in Depth (the same).
 */
#ifndef RAMSEAL_AGENT_SIMULATOR_TRACES_H
#define RAMSEAL_AGENT_SIMULATOR_TRACES_H

#include "agent/simulator/making.h"

/*
 * Makes the database, and tells of its entries. They are x->traces from then on, which belong to
 * `x`. ST_USAGE: no room.
 */
enum status sim__traces_make(struct sim_making *x, bool page_heap, struct err *e);
/* For the account: an entry, and its return addresses. */
void sim__traces_tell(const struct sim_making *x, uint64_t entry, const uint64_t *frames,
		      uint32_t depth);

#endif
