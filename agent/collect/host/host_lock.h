/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Allows one acquisition of this machine's own memory at a time: host_lock_linux.c (a lock on
 * host.lock in state_folder(), which is in memory) and host_lock_windows.c (a named kernel object
 * that exists as long as its process). Neither leaves anything on a disk. Other mount namespaces
 * and other users do not see it.
 */
#ifndef RAMSEAL_AGENT_COLLECT_HOST_HOST_LOCK_H
#define RAMSEAL_AGENT_COLLECT_HOST_HOST_LOCK_H

#include "formats/base/err.h"

struct host_lock;

/*
 * `state`: our state file, to be shown to a second acquisition; or NULL. ST_RUNNING, with what is
 * known about the holder; ST_OUTPUT if there is no place for such a lock; ST_NO_PRIVILEGE if the
 * holder is not an administrator (Windows).
 */
enum status host_lock_take(const char *state, struct host_lock **ret, struct err *e);
/* Only looks and creates nothing: ST_OK or ST_RUNNING. ST_OK if it cannot tell. */
enum status host_lock_look(struct err *e);
void host_lock_release(struct host_lock *l); /* NULL is fine */

#endif
