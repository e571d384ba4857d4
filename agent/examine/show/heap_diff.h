/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ramseal heap --diff: what of a process's busy blocks came and went between two containers of one
 * host.
 *
 * The text is that of a comparison of two logs by Microsoft's UMDH (MicrosoftDocs,
 * windows-driver-docs, "Using UMDH to Find a User-Mode Memory Leak"): hexadecimal lines of
 * `+ BYTES (NEW - OLD) COUNT allocs BackTraceID`, then those of the number of blocks, the stack,
 * and at last `Total increase == BYTES`.
 */
#ifndef RAMSEAL_AGENT_EXAMINE_SHOW_HEAP_DIFF_H
#define RAMSEAL_AGENT_EXAMINE_SHOW_HEAP_DIFF_H

#include "agent/examine/show/process_session.h"

/*
 * ST_INPUT: not the same process, or not known to be. ST_UNREADABLE: not all of the heaps of both
 * could be read; what could is printed.
 */
enum status heap_diff(const struct process_session *old, const struct process_session *later,
		      bool json, struct err *e);

#endif
