/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/collect/host/stop_request.h"

#include <stdio.h>
#include <string.h>

#include "agent/shared/program/interrupt.h"
#include "agent/shared/program/random.h"
#include "formats/base/win32.h"

/* In every session alike; only who may write to it can set it, and its name is no secret. */
#define PREFIX "Global\\ramseal-stop-"

static char name[sizeof(PREFIX) + 32];
static HANDLE event;

static DWORD WINAPI wait_for_it(void *arg)
{
	if (WaitForSingleObject(event, INFINITE) == WAIT_OBJECT_0)
		interrupt_ask("ramseal stop");
	return 0;
}

/* The event exists as long as we do, and so nobody else can be meant. */
const char *stop_request_listen(void)
{
	SECURITY_ATTRIBUTES attributes;
	_cleanup_free_ wchar_t *wide = NULL;
	uint64_t draw[2];
	HANDLE thread;

	if (event)
		return name;
	if (!random_bytes(draw, sizeof(draw), NULL)) {
		snprintf(name, sizeof(name), PREFIX "%016llx%016llx", (unsigned long long)draw[0],
			 (unsigned long long)draw[1]);
		wide = win32_wide(name);
	}
	if (!wide || !win32_private_begin(&attributes))
		return NULL;
	event = CreateEventW(&attributes, TRUE, FALSE, wide);
	win32_private_end(&attributes);
	if (!event)
		return NULL;
	thread = CreateThread(NULL, 0, wait_for_it, NULL, 0, NULL);
	if (thread)
		CloseHandle(thread);
	return thread ? name : NULL;
}

enum status stop_request_send(const char *lock, const char *told, uint64_t pid, struct err *e)
{
	_cleanup_free_ wchar_t *wide = NULL;
	_cleanup_handle_ HANDLE h = NULL;
	DWORD failed;

	/* The state says it, and could say anything: only events of ours are touched. */
	if (!told || strncmp(told, PREFIX, strlen(PREFIX)) != 0)
		return err_set(e, ST_INPUT, "the acquisition cannot be asked to stop");
	wide = win32_wide(told);
	if (!wide)
		return err_nomem(e);
	h = OpenEventW(EVENT_MODIFY_STATE, FALSE, wide);
	failed = GetLastError();
	if (!h && failed == ERROR_FILE_NOT_FOUND)
		return err_set(e, ST_DIED, "it has ended");
	if (!h || !SetEvent(h))
		return err_from_win32(e, ST_NO_PRIVILEGE, failed, "the acquisition");
	return ST_OK;
}
