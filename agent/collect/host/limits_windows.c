/* SPDX-License-Identifier: Apache-2.0 */
/* Of the job that we run in, if any: QueryInformationJobObject() without a handle. */
#include "agent/collect/host/limits.h"

#include "formats/base/defs.h"
#include "formats/base/win32.h"

static void take_memory(struct host_limits *l)
{
	JOBOBJECT_EXTENDED_LIMIT_INFORMATION x = { 0 };
	const DWORD *flags = &x.BasicLimitInformation.LimitFlags;

	if (!QueryInformationJobObject(NULL, JobObjectExtendedLimitInformation, &x, sizeof(x),
				       NULL))
		return;
	if (*flags & JOB_OBJECT_LIMIT_PROCESS_MEMORY)
		l->memory = x.ProcessMemoryLimit;
	if (*flags & JOB_OBJECT_LIMIT_JOB_MEMORY)
		l->memory = MIN(l->memory, (uint64_t)x.JobMemoryLimit);
	/* How much of it is committed now, nobody tells: of all processes the peak, at most. */
	l->memory_left = l->memory;
}

/* CpuRate: hundredths of a percent of all CPUs' time (JOBOBJECT_CPU_RATE_CONTROL_INFORMATION). */
static void take_cpu(struct host_limits *l)
{
	const DWORD hard =
		JOB_OBJECT_CPU_RATE_CONTROL_ENABLE | JOB_OBJECT_CPU_RATE_CONTROL_HARD_CAP;
	JOBOBJECT_CPU_RATE_CONTROL_INFORMATION x = { 0 };
	SYSTEM_INFO system;

	if (!QueryInformationJobObject(NULL, JobObjectCpuRateControlInformation, &x, sizeof(x),
				       NULL) ||
	    (x.ControlFlags & hard) != hard)
		return;
	GetSystemInfo(&system);
	l->cpu_milli = MAX(1, (uint64_t)x.CpuRate * system.dwNumberOfProcessors / 10);
}

void host_limits(struct host_limits *ret)
{
	*ret = (struct host_limits){ .memory = LIMIT_NONE, .memory_left = LIMIT_NONE };
	take_memory(ret);
	take_cpu(ret);
}
