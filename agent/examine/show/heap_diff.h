/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ramseal heap --diff: which busy blocks of a process came and went between two containers of one
 * host.
 *
 * The text is in the format in which Microsoft's UMDH compares two logs (MicrosoftDocs,
 * windows-driver-docs, "Using UMDH to Find a User-Mode Memory Leak"): hexadecimal lines of `+ BYTES
 * (NEW - OLD) COUNT allocs BackTraceID`, then the lines with the number of blocks, the stack, and
 * finally `Total increase == BYTES`.
 */
#ifndef RAMSEAL_AGENT_EXAMINE_SHOW_HEAP_DIFF_H
#define RAMSEAL_AGENT_EXAMINE_SHOW_HEAP_DIFF_H

#include "agent/examine/show/process_session.h"

/*
 * ST_INPUT: not the same process, or not known to be the same. ST_UNREADABLE: some heaps could not
 * be read in full; the rest is printed.
 */
enum status heap_diff(const struct process_session *old, const struct process_session *later,
		      bool json, struct err *e);

#endif
