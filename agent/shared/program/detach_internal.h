/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by detach.c and its system-specific halves, detach_linux.c and detach_windows.c. */
#ifndef RAMSEAL_AGENT_SHARED_PROGRAM_DETACH_INTERNAL_H
#define RAMSEAL_AGENT_SHARED_PROGRAM_DETACH_INTERNAL_H

#include "agent/shared/program/detach.h"

/*
 * Starts the process that does the work. In the old process *ret_pipe is the end to read from; in
 * the new one it is -1, and stderr goes to the other end.
 */
enum status detach__start(int *ret_pipe, struct err *e);

/* True if there is something to read, or the end was reached; false after half a second. */
bool detach__wait(int pipe);

/* In the old process: asks the new one to stop, as by a signal. */
void detach__stop(void);

/* Waits for the new process to end. ST_DIED, with the reason, if it was killed. */
enum status detach__end(int *ret_code, struct err *e);

/* In the new process: closes the standard streams and everything inherited. */
void detach__let_go(void);

#endif
