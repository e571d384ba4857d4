/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Going on without whoever started us: a channel that gives up after 30 seconds, a shell that is
 * closed, a session that ends.
 *
 * The work is done by a process of its own from the start, so that nothing is opened twice, and no
 * fork() happens in a process that has threads. Until that is ready, the first one waits and passes
 * on what it says: warnings, and the line that tells why it failed. Then it prints one JSON object
 * and ends. detach.c is what both systems share: what goes through the pipe between the two. That
 * is the new process's stderr, then a NUL and the object in one line; its end without these means
 * that the process failed, with the exit code that it then has.
 */
#ifndef RAMSEAL_AGENT_SHARED_PROGRAM_DETACH_H
#define RAMSEAL_AGENT_SHARED_PROGRAM_DETACH_H

#include <jansson.h>
#include <stdbool.h>

#include "formats/base/err.h"

/* What a channel that keeps 2 KB of the output does not cut: the object with its line feed. */
#define DETACH_LINE_MAX 2000

/*
 * Once, before the first thread and before anything is opened or read that only the new process is
 * to have. In that one *ret_here becomes true: it goes on. In the one that was started by
 * somebody it becomes false, when the new one is ready and its object was printed: return. If the
 * new one fails before, this does not return, but ends the process with the same exit code.
 *
 * A request to stop meanwhile (SIGINT, SIGTERM; on Windows it cannot be) is passed on. If the first
 * process is killed, the new one goes on all the same.
 *
 * Linux: a session of its own, SIGHUP ignored; folder, umask, limits, environment, cgroup and
 * descriptors are the same. Windows: the same command line and environment, no console, out of
 * the job if that allows it; of the handles it has stdin alone, and that only if it is a file or a
 * pipe.
 */
enum status detach_begin(bool *ret_here, struct err *e);

/*
 * The new process is ready: from now on it has no standard streams, nor any descriptor that it was
 * born with. `doc` is consumed. ST_USAGE if it does not fit in DETACH_LINE_MAX; then nothing was
 * sent. It is no failure if nobody is listening any more.
 */
enum status detach_ready(json_t *doc, struct err *e);

/* The same without a document: the first process ends silently. */
void detach_ready_silently(void);

/* False: the new process cannot be given a descriptor by its number (fd:N). */
bool detach_passes_descriptors(void);

/* Of the process that we are: it ends with a job that it could not leave. Never true on Linux. */
bool detach_is_held(void);

#endif
