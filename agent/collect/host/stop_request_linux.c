/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/collect/host/stop_request.h"

#include <stddef.h>

const char *stop_request_listen(void)
{
	return NULL;
}

enum status stop_request_send(const char *lock, const char *name, uint64_t pid, struct err *e)
{
	struct lock_holder holder;
	enum status st = lock_file_look(lock, &holder, e);

	if (st)
		return st;
	if (holder.lives && !holder.pid)
		return err_set(e, ST_NO_PRIVILEGE,
			       "the acquisition runs in another PID namespace: stop it there");
	return lock_file_signal(lock, pid, e);
}
