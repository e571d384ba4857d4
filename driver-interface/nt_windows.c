/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nt.h, of the Windows that this runs on.
 */
#include "driver-interface/nt.h"

#include <cpuid.h>

#include "formats/base/win32.h"

/* SE_PROF_SINGLE_PROCESS_PRIVILEGE and SE_DEBUG_PRIVILEGE (wdm.h): the same on every Windows. */
static const DWORD wanted[] = { 13, 20 };

struct nt_windows {
	struct nt nt;
	unsigned depth; /* a question may ask another one */
	/* What was not enabled before, to be made so again. */
	DWORD raised[ARRAY_SIZE(wanted)];
	size_t n_raised;
};

static uint32_t query_nt(struct nt *nt, enum nt_class class, void *buf, size_t len, size_t *ret_len)
{
	LONG(WINAPI * ask)
	(int, void *, ULONG, ULONG *) = (LONG(WINAPI *)(int, void *, ULONG, ULONG *))(
		void (*)(void))win32_function(L"ntdll.dll", "NtQuerySystemInformation");
	ULONG got = 0;
	LONG status;

	if (!ask)
		return NT_NOT_IMPLEMENTED;
	status = ask((int)class, buf, (ULONG)len, &got);
	*ret_len = got;
	return (uint32_t)status;
}

/*
 * True if it was changed by this. AdjustTokenPrivileges() tells of what was as asked for: nothing.
 */
static bool set_privilege(HANDLE token, DWORD which, bool on)
{
	TOKEN_PRIVILEGES to = {
		.PrivilegeCount = 1,
		.Privileges[0] = { .Luid.LowPart = which,
				   .Attributes = on ? SE_PRIVILEGE_ENABLED : 0 },
	};
	TOKEN_PRIVILEGES before = { 0 };
	DWORD len = sizeof(before);

	return AdjustTokenPrivileges(token, FALSE, &to, sizeof(before), &before, &len) &&
	       GetLastError() == ERROR_SUCCESS && before.PrivilegeCount == 1 &&
	       !(before.Privileges[0].Attributes & SE_PRIVILEGE_ENABLED);
}

static void privileges(struct nt *nt, bool on)
{
	struct nt_windows *w = (struct nt_windows *)nt;
	_cleanup_handle_ HANDLE token = NULL;

	if (on ? w->depth++ : --w->depth)
		return;
	if (!OpenProcessToken(GetCurrentProcess(), TOKEN_ADJUST_PRIVILEGES | TOKEN_QUERY, &token))
		return;
	for (size_t i = 0; on && i < ARRAY_SIZE(wanted); i++)
		if (set_privilege(token, wanted[i], true))
			w->raised[w->n_raised++] = wanted[i];
	while (!on && w->n_raised)
		set_privilege(token, w->raised[--w->n_raised], false);
}

static void read_cpu_facts(struct nt *nt, struct nt_cpu *ret)
{
	unsigned a, b, c, d;
	SYSTEM_INFO system;

	*ret = (struct nt_cpu){ 0 };
	if (__get_cpuid_count(7, 0, &a, &b, &c, &d))
		ret->can_la57 = c >> 16 & 1;
	if (__get_cpuid(0x80000008, &a, &b, &c, &d))
		ret->phys_bits = a & 0xff;
	GetSystemInfo(&system);
	ret->highest_user = (uint64_t)(uintptr_t)system.lpMaximumApplicationAddress;
}

static const struct nt_ops ops = { .query = query_nt,
				   .privileges = privileges,
				   .cpu = read_cpu_facts };

struct nt *nt_here(void)
{
	static struct nt_windows here = { .nt.ops = &ops };

	return &here.nt;
}
