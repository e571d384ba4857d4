/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/host/host_lock.h"

#include <stdlib.h>

#include "formats/base/win32.h"

/* In all sessions alike. */
#define NAME L"Global\\ramseal-acquisition"

struct host_lock {
	HANDLE event; /* nobody waits for it: that it exists is all */
};

enum status host_lock_take(const char *state, struct host_lock **ret, struct err *e)
{
	SECURITY_ATTRIBUTES attributes = {
		.nLength = sizeof(attributes),
		.lpSecurityDescriptor = win32_private_descriptor(),
	};
	struct host_lock *l = malloc(sizeof(*l));
	DWORD failed;

	*ret = NULL;
	if (!l) {
		LocalFree(attributes.lpSecurityDescriptor);
		return err_nomem(e);
	}
	l->event = CreateEventW(&attributes, TRUE, FALSE, NAME);
	failed = GetLastError();
	LocalFree(attributes.lpSecurityDescriptor);
	if (l->event && failed != ERROR_ALREADY_EXISTS) {
		*ret = l;
		return ST_OK;
	}
	host_lock_release(l);
	/* Another user's may not even be opened. */
	if (failed == ERROR_ALREADY_EXISTS || failed == ERROR_ACCESS_DENIED)
		return err_set(e, ST_RUNNING, "another acquisition is running on this machine");
	return err_from_win32(e, ST_OUTPUT, failed, "the lock of the host");
}

void host_lock_release(struct host_lock *l)
{
	if (!l)
		return;
	cleanup_handle(&l->event);
	free(l);
}
