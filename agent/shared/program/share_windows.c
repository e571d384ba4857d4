/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/shared/program/share.h"

#include "agent/shared/program/json.h"
#include "formats/base/win32.h"

/* Two steps are all that is left between idle and normal (SetThreadPriority()). */
#define LOWEST_FROM SHARE_NICE

/* Windows 10 has names (SetThreadDescription()), and nothing that shows them by itself. */
void share__name(enum share_role role)
{
	(void)role;
}

void share__step_back(enum share_role role, unsigned nice)
{
	const int to = nice < LOWEST_FROM ? THREAD_PRIORITY_BELOW_NORMAL : THREAD_PRIORITY_LOWEST;

	(void)role;
	if (GetThreadPriority(GetCurrentThread()) > to)
		SetThreadPriority(GetCurrentThread(), to);
}

/* Nobody calls it: share__span() tells nothing. */
void share__step_forward(void)
{
	SetThreadPriority(GetCurrentThread(), THREAD_PRIORITY_NORMAL);
}

/* Reads of a volume have the priority of their thread, which is one that must not be held up. */
void share_disk(bool waits)
{
	(void)waits;
}

json_t *share__thread_json(void)
{
	return json_fields(JSON_FIELDS(field_i64("priority", GetThreadPriority(GetCurrentThread())),
				       field_u64("class", GetPriorityClass(GetCurrentProcess()))));
}

/* Windows ends nobody: it refuses to commit memory. */
void share__offer_first(void)
{
}

json_t *share__offered_json(void)
{
	return json_null();
}

/* Priorities count across the whole system: there is nothing to make up for. */
bool share__span(struct share_meter *m, struct share_span *ret)
{
	(void)m;
	(void)ret;
	return false;
}

bool share__busy(struct share_busy *ret)
{
	(void)ret;
	return false;
}

void share_meter_end(struct share_meter *m)
{
	(void)m;
}

void share__sleep_ns(uint64_t ns)
{
	Sleep((DWORD)(ns / 1000000));
}
