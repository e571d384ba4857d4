/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How one process asks an acquisition to stop and seal: stop_request_linux.c (SIGTERM, through
 * lock_file.h) and stop_request_windows.c (an event). Neither can reach another process than the
 * one that holds the lock.
 */
#ifndef RAMSEAL_AGENT_COLLECT_HOST_STOP_REQUEST_H
#define RAMSEAL_AGENT_COLLECT_HOST_STOP_REQUEST_H

#include "agent/collect/host/lock_file.h"

/*
 * From now on this process can be asked, until it ends. Returns what the state has to say for that
 * (static), or NULL if nothing is needed or nothing can be done.
 */
const char *stop_request_listen(void);

/*
 * Asks the process that holds the lock at `lock`: what it said is `name` (or NULL) and `pid`.
 * ST_DIED: it has ended. ST_NO_PRIVILEGE; ST_INPUT if it cannot be asked.
 */
enum status stop_request_send(const char *lock, const char *name, uint64_t pid, struct err *e);

#endif
