/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How one process asks an acquisition to stop and seal: stop_request_linux.c (SIGTERM, through
 * lock_file.h) and stop_request_windows.c (an event). Neither can reach any process but the one
 * that holds the lock.
 */
#ifndef RAMSEAL_AGENT_COLLECT_HOST_STOP_REQUEST_H
#define RAMSEAL_AGENT_COLLECT_HOST_STOP_REQUEST_H

#include "agent/collect/host/lock_file.h"

/*
 * From now on this process can be asked. Returns what the state file must say for that (static), or
 * NULL if nothing is needed or it is not possible.
 */
const char *stop_request_listen(void);

/*
 * Asks the process that holds the lock at `lock`. `name` (or NULL) and `pid` are from its state
 * file. ST_DIED: it has ended. ST_NO_PRIVILEGE; ST_INPUT if it cannot be asked.
 */
enum status stop_request_send(const char *lock, const char *name, uint64_t pid, struct err *e);

#endif
