/* SPDX-License-Identifier: Apache-2.0 */
/* Between detach.c and the system's half of it, detach_linux.c or detach_windows.c. */
#ifndef RAMSEAL_AGENT_SHARED_PROGRAM_DETACH_INTERNAL_H
#define RAMSEAL_AGENT_SHARED_PROGRAM_DETACH_INTERNAL_H

#include "agent/shared/program/detach.h"

/*
 * Starts the process that is to do the work. In the old one *ret_pipe is where it is heard; in the
 * new one *ret_pipe is -1, and its stderr goes there.
 */
enum status detach__start(int *ret_pipe, struct err *e);

/* True if there is something to read, or the end; false after half a second without. */
bool detach__wait(int pipe);

/* In the old one: has the new one stop, as by a signal. */
void detach__stop(void);

/* Waits for the end of the new one. ST_DIED, and how, if it was killed. */
enum status detach__end(int *ret_code, struct err *e);

/* In the new one: no standard streams and nothing inherited any more. */
void detach__let_go(void);

#endif
