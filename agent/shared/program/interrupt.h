/* SPDX-License-Identifier: Apache-2.0 */
/*
 * SIGINT, SIGTERM and SIGHUP (on Windows: Ctrl-C, a closed console, logoff) ask us to stop: loops
 * poll interrupted() and seal what they have. The second SIGINT ends the program at once, by the
 * signal itself. SIGPIPE is ignored: a reader that goes away is a failed write, ST_OUTPUT. SIGUSR1,
 * which people know from dd(1), asks how far it is; progress.c answers. Windows has no such signal.
 */
#ifndef RAMSEAL_AGENT_SHARED_PROGRAM_INTERRUPT_H
#define RAMSEAL_AGENT_SHARED_PROGRAM_INTERRUPT_H

#include <stdbool.h>

#include "formats/base/err.h"

/* Once, before the first thread is started. A SIGHUP that was ignored (nohup) stays ignored. */
void interrupt_init(void);

/*
 * Asks to stop, as a signal does; `name` is static, and what interrupt_name() gives. False:
 * somebody asked before, whose name stays. From any thread, and from a signal's handler.
 */
bool interrupt_ask(const char *name);

/* Forgets the request, for whatever runs afterwards, such as the next test. */
void interrupt_forget(void);

/* True from the first request on. Cheap; from any thread. */
bool interrupted(void);

/* "SIGINT", "SIGTERM", "SIGHUP", "Ctrl-C", "logoff" …; or NULL while interrupted() is false. */
const char *interrupt_name(void);

/* ST_INTERRUPTED, and what it was. */
static inline enum status interrupt_status(struct err *e)
{
	return err_set(e, ST_INTERRUPTED, "interrupted by %s", interrupt_name());
}

#endif
