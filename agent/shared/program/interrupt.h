/* SPDX-License-Identifier: Apache-2.0 */
/*
 * SIGINT, SIGTERM and SIGHUP (on Windows: Ctrl-C, a closed console, logoff) ask us to stop: loops
 * poll interrupted() and seal what they have. The second SIGINT ends the program at once, by the
 * signal itself. SIGPIPE is ignored: a reader that goes away is a failed write, ST_OUTPUT. SIGUSR1,
 * known from dd(1), asks for the progress; progress.c answers. Windows has no such signal.
 */
#ifndef RAMSEAL_AGENT_SHARED_PROGRAM_INTERRUPT_H
#define RAMSEAL_AGENT_SHARED_PROGRAM_INTERRUPT_H

#include <stdbool.h>

#include "formats/base/err.h"

/* Call once, before the first thread. A SIGHUP that was ignored (nohup) stays ignored. */
void interrupt_init(void);

/*
 * Asks to stop, as a signal does; `name` is static, and returned by interrupt_name(). False: an
 * earlier request keeps its name. From any thread and from signal handlers.
 */
bool interrupt_ask(const char *name);

/* Clears the request, for example for the next test. */
void interrupt_forget(void);

/* True from the first request on. Cheap; from any thread. */
bool interrupted(void);

/* "SIGINT", "SIGTERM", "SIGHUP", "Ctrl-C", "logoff" …; or NULL while interrupted() is false. */
const char *interrupt_name(void);

/* ST_INTERRUPTED, with its name. */
static inline enum status interrupt_status(struct err *e)
{
	return err_set(e, ST_INTERRUPTED, "interrupted by %s", interrupt_name());
}

#endif
