/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The stack trace database of a process (gflags +ust; page heap has one, too): who allocated which
 * block. Its head and entries follow ntdll's type records (_STACK_TRACE_DATABASE,
 * _RTL_STACK_TRACE_ENTRY: Rickebo/ntoskrnlib 0a72996, Win11/ntdll), which agree from 7 to 11.
 *
 * The depth of a trace is in one of two places. Entries for +ust have it in the four bytes that the
 * records call Index ("Leak checking", 2010, for Vista and 7; shanepowell/DbgHelpUtils c62b5a8,
 * ust_address_stack_trace.cpp, for 10); entries for page heap have it in Depth (the same source).
 */
#ifndef RAMSEAL_AGENT_SIMULATOR_TRACES_H
#define RAMSEAL_AGENT_SIMULATOR_TRACES_H

#include "agent/simulator/making.h"

/*
 * Makes the database and writes the account of its entries, which become x->traces and belong to
 * `x`. ST_USAGE: no room.
 */
enum status sim__traces_make(struct sim_making *x, bool page_heap, struct err *e);
/* Writes the account of one entry and its return addresses. */
void sim__traces_tell(const struct sim_making *x, uint64_t entry, const uint64_t *frames,
		      uint32_t depth);

#endif
