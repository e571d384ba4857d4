/* SPDX-License-Identifier: Apache-2.0 */
/* SystemProcessInformation, class 5 of NtQuerySystemInformation() (winternl.h; Microsoft Learn). */
#include "agent/host/process_names.h"

#include <string.h>

#include "formats/base/bytes.h"
#include "formats/base/win32.h"

#include <winternl.h>

#define PROCESS_CLASS 5
/* Its entries have one of 80 bytes for each thread, too. */
#define ANSWER_MAX    ((ULONG)64 << 20)

/* The name lies in the same buffer; what does not is none. For free(). */
static char *name_in(const uint8_t *list, ULONG size, const UNICODE_STRING *s)
{
	const uint8_t *at = (const uint8_t *)s->Buffer;
	_cleanup_free_ wchar_t *wide = NULL;

	if (!s->Length || at < list || !range_fits((uint64_t)(at - list), s->Length, size))
		return strdup("");
	wide = calloc(s->Length / sizeof(*wide) + 1, sizeof(*wide));
	if (!wide)
		return NULL;
	memcpy(wide, at, s->Length / sizeof(*wide) * sizeof(*wide));
	return win32_utf8(wide);
}

static enum status add_entry(struct host_processes *l, const uint8_t *list, ULONG size,
			     const SYSTEM_PROCESS_INFORMATION *p, struct err *e)
{
	const uint64_t pid = (uint64_t)(uintptr_t)p->UniqueProcessId;
	_cleanup_free_ char *name = NULL;

	if (!pid || pid > UINT32_MAX)
		return ST_OK;
	name = name_in(list, size, &p->ImageName);
	return name ? host_processes_add(l, (uint32_t)pid, name, e) : err_nomem(e);
}

enum status host_processes(struct host_processes *ret, struct err *e)
{
	ULONG size = 0;
	_cleanup_free_ uint8_t *list = win32_query_system(PROCESS_CLASS, ANSWER_MAX, &size);
	SYSTEM_PROCESS_INFORMATION p;
	enum status st = ST_OK;
	ULONG at = 0;

	if (!list)
		return err_set(e, ST_SYSTEM, "Windows does not tell its processes");
	while (!st && range_fits(at, sizeof(p), size)) {
		memcpy(&p, list + at, sizeof(p));
		st = add_entry(ret, list, size, &p, e);
		if (!p.NextEntryOffset || p.NextEntryOffset > size - at)
			break;
		at += p.NextEntryOffset;
	}
	host_processes_sort(ret);
	return st;
}
