/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/collect/host/host_lock.h"

#include <stdlib.h>

#include "formats/base/win32.h"

/* In all sessions alike. */
#define NAME L"Global\\ramseal-acquisition"

struct host_lock {
	HANDLE event; /* nobody waits for it: that it exists is all */
};

/*
 * Any user may make an object of that name, and could keep every acquisition away with it. Elevated
 * processes make theirs as the administrators.
 */
static bool is_trusted_event(HANDLE event)
{
	union {
		SECURITY_DESCRIPTOR descriptor;
		uint8_t bytes[256];
	} d;
	DWORD size;

	return GetKernelObjectSecurity(event, OWNER_SECURITY_INFORMATION, &d, sizeof(d), &size) &&
	       win32_owner_is_trusted(&d);
}

static enum status err_running(struct err *e)
{
	return err_set(e, ST_RUNNING, "another acquisition is running on this machine");
}

enum status host_lock_take(const char *state, struct host_lock **ret, struct err *e)
{
	SECURITY_ATTRIBUTES attributes;
	struct host_lock *l = malloc(sizeof(*l));
	enum status st = ST_OK;
	DWORD failed;

	*ret = NULL;
	if (!l)
		return err_nomem(e);
	l->event = win32_private_begin(&attributes) ? CreateEventW(&attributes, TRUE, FALSE, NAME)
						    : NULL;
	failed = GetLastError();
	win32_private_end(&attributes);
	if (l->event && failed != ERROR_ALREADY_EXISTS) {
		*ret = l;
		return ST_OK;
	}
	/* The administrators may open each other's. */
	if (l->event && is_trusted_event(l->event))
		st = err_running(e);
	else if (l->event || failed == ERROR_ACCESS_DENIED)
		st = err_set(e, ST_NO_PRIVILEGE, "another user holds the lock");
	else
		st = err_from_win32(e, ST_OUTPUT, failed, "the lock of the host");
	host_lock_release(l);
	return st;
}

enum status host_lock_look(struct err *e)
{
	_cleanup_handle_ HANDLE event = OpenEventW(READ_CONTROL, FALSE, NAME);

	return event && is_trusted_event(event) ? err_running(e) : ST_OK;
}

void host_lock_release(struct host_lock *l)
{
	if (!l)
		return;
	cleanup_handle(&l->event);
	free(l);
}
