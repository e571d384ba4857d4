/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One acquisition of this machine's own memory at a time: host_lock_linux.c (a lock on host.lock in
 * state_folder(), which is in memory) and host_lock_windows.c (an object of the kernel's that has a
 * name, and exists as long as its process). Neither leaves anything on a disk. It is not seen from
 * other mount namespaces, nor by other users.
 */
#ifndef RAMSEAL_AGENT_COLLECT_HOST_HOST_LOCK_H
#define RAMSEAL_AGENT_COLLECT_HOST_HOST_LOCK_H

#include "formats/base/err.h"

struct host_lock;

/*
 * `state`: where others see how far we are, for those who come second; or NULL. ST_RUNNING, and
 * what is known of the one who has it; ST_OUTPUT if there is no place for such a lock;
 * ST_NO_PRIVILEGE if somebody has it who is no administrator (Windows).
 */
enum status host_lock_take(const char *state, struct host_lock **ret, struct err *e);
/* Without taking it, or making anything: ST_OK or ST_RUNNING. What cannot be known is no reason. */
enum status host_lock_look(struct err *e);
void host_lock_release(struct host_lock *l); /* NULL is fine */

#endif
