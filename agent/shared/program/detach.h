/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Continues after our starter is gone: a channel that gives up after 30 seconds, a shell that is
 * closed, a session that ends.
 *
 * A separate process does the work from the start, so nothing is opened twice, and there is no
 * fork() in a process with threads. Until it is ready, the first process waits and forwards its
 * messages: warnings, and the reason for a failure. Then it prints one JSON object and ends.
 * detach.c has what both systems share: the pipe between the two. It carries the new process's
 * stderr, then a NUL and the object in one line; if it ends without these, the process failed with
 * its exit code.
 */
#ifndef RAMSEAL_AGENT_SHARED_PROGRAM_DETACH_H
#define RAMSEAL_AGENT_SHARED_PROGRAM_DETACH_H

#include <jansson.h>
#include <stdbool.h>

#include "formats/base/err.h"

/* The longest object, with its line feed, that a channel that keeps 2 KB of output does not cut. */
#define DETACH_LINE_MAX 2000

/*
 * Call once, before the first thread and before anything is opened or read that only the new
 * process needs. In the new process *ret_here becomes true, and it goes on. In the original process
 * it becomes false once the new one is ready and its object was printed: return. If the new one
 * fails earlier, this ends the process with the same exit code.
 *
 * A request to stop meanwhile (SIGINT, SIGTERM; not on Windows) is forwarded. If the first process
 * is killed, the new one continues.
 *
 * Linux: a session of its own, SIGHUP ignored; folder, umask, limits, environment, cgroup and
 * descriptors are the same. Windows: the same command line and environment, no console, outside the
 * job if that allows it; of the handles only stdin, if it is a file or a pipe.
 */
enum status detach_begin(bool *ret_here, struct err *e);

/*
 * The new process is ready: from now on it has no standard streams and no inherited descriptors.
 * `doc` is consumed. ST_USAGE if it does not fit in DETACH_LINE_MAX; then nothing was sent. It is
 * not a failure if nobody is listening any more.
 */
enum status detach_ready(json_t *doc, struct err *e);

/* The same without a document: the first process ends silently. */
void detach_ready_silently(void);

/* False: the new process cannot be given a descriptor by its number (fd:N). */
bool detach_passes_descriptors(void);

/* True if our process will end with a job that it could not leave. Never on Linux. */
bool detach_is_held(void);

#endif
