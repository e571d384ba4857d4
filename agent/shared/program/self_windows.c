/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/shared/program/self.h"

#include <string.h>

#include "agent/shared/program/json.h"
#include "formats/base/win32.h"

#include <psapi.h>

static uint64_t filetime_ns(FILETIME t)
{
	return ((uint64_t)t.dwHighDateTime << 32 | t.dwLowDateTime) * 100;
}

static bool memory_counters(PROCESS_MEMORY_COUNTERS *ret)
{
	*ret = (PROCESS_MEMORY_COUNTERS){ .cb = sizeof(*ret) };
	return K32GetProcessMemoryInfo(GetCurrentProcess(), ret, sizeof(*ret));
}

static void put_io(struct self_io *ret)
{
	IO_COUNTERS c;

	memset(ret, 0xff, sizeof(*ret));
	if (!GetProcessIoCounters(GetCurrentProcess(), &c))
		return;
	ret->read_calls = c.ReadOperationCount;
	ret->read_bytes = c.ReadTransferCount;
	ret->write_calls = c.WriteOperationCount;
	ret->write_bytes = c.WriteTransferCount;
	ret->other_calls = c.OtherOperationCount;
	ret->other_bytes = c.OtherTransferCount;
}

uint64_t self_pid(void)
{
	return GetCurrentProcessId();
}

void self_usage(struct self_usage *ret)
{
	FILETIME created, ended, kernel, user;
	PROCESS_MEMORY_COUNTERS memory;

	*ret = (struct self_usage){ 0 };
	put_io(&ret->io);
	if (GetProcessTimes(GetCurrentProcess(), &created, &ended, &kernel, &user)) {
		ret->user_ns = filetime_ns(user);
		ret->system_ns = filetime_ns(kernel);
	}
	if (memory_counters(&memory))
		ret->peak_rss = memory.PeakWorkingSetSize;
}

json_t *self_footprint_json(void)
{
	json_t *object = json_object();
	PROCESS_MEMORY_COUNTERS memory;
	MEMORY_BASIC_INFORMATION m;
	const uint8_t *at = NULL;
	uint64_t mapped = 0;
	int mappings = 0;

	while (VirtualQuery(at, &m, sizeof(m)) && m.RegionSize) {
		if (m.State == MEM_COMMIT) {
			mappings++;
			mapped += m.RegionSize;
		}
		at = (const uint8_t *)m.BaseAddress + m.RegionSize;
	}
	if (mappings) {
		json_object_set_new(object, "mappings", json_integer(mappings));
		json_object_set_new(object, "mapped_bytes", json_u64(mapped));
	}
	if (memory_counters(&memory)) {
		json_object_set_new(object, "rss", json_u64(memory.WorkingSetSize));
		json_object_set_new(object, "peak_rss", json_u64(memory.PeakWorkingSetSize));
	}
	return object;
}

unsigned self_cpus(void)
{
	DWORD_PTR ours = 0, all = 0;
	int n = 0;

	if (GetProcessAffinityMask(GetCurrentProcess(), &ours, &all))
		n = __builtin_popcountll(ours);
	/* 0: the process has threads in several processor groups, which none of ours is. */
	return n > 0 ? (unsigned)n : 1;
}
