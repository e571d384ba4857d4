/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/shared/program/self.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "agent/shared/program/clock.h"
#include "agent/shared/program/proc_file.h"

static uint64_t timeval_ns(struct timeval tv)
{
	return (uint64_t)tv.tv_sec * NS_PER_SECOND + (uint64_t)tv.tv_usec * 1000;
}

/* A line's number; UINT64_MAX if it is not there. */
static uint64_t counter_of(const char *text, const char *key)
{
	json_t *value = text ? proc_file_text(text, key, ':') : NULL;
	const char *decimal = json_string_value(value);
	const uint64_t ret = decimal ? strtoull(decimal, NULL, 10) : UINT64_MAX;

	json_decref(value);
	return ret;
}

static void put_io(struct self_io *ret)
{
	_cleanup_free_ char *io = proc_file_read("/proc/self/io", NULL);

	*ret = (struct self_io){
		.read_calls = counter_of(io, "syscr"),
		.read_bytes = counter_of(io, "rchar"),
		.write_calls = counter_of(io, "syscw"),
		.write_bytes = counter_of(io, "wchar"),
		.other_calls = UINT64_MAX,
		.other_bytes = UINT64_MAX,
		.disk_read_bytes = counter_of(io, "read_bytes"),
		.disk_write_bytes = counter_of(io, "write_bytes"),
	};
}

uint64_t self_pid(void)
{
	return (uint64_t)getpid();
}

void self_usage(struct self_usage *ret)
{
	_cleanup_free_ char *status = proc_file_read("/proc/self/status", NULL);
	json_t *peak = proc_file_kib(status, "VmHWM");
	struct rusage r = { 0 };

	put_io(&ret->io);
	getrusage(RUSAGE_SELF, &r);
	ret->user_ns = timeval_ns(r.ru_utime);
	ret->system_ns = timeval_ns(r.ru_stime);
	/* ru_maxrss survives exec(), so that it may be the shell's that started us. */
	ret->peak_rss = peak ? (uint64_t)json_integer_value(peak) : (uint64_t)r.ru_maxrss * 1024;
	json_decref(peak);
}

json_t *self_footprint_json(void)
{
	_cleanup_free_ char *maps = proc_file_read("/proc/self/maps", NULL);
	_cleanup_free_ char *status = proc_file_read("/proc/self/status", NULL);
	json_t *object = json_object();
	uint64_t bytes = 0;
	int mappings = 0;

	for (const char *line = maps; line && *line; line += *line == '\n') {
		unsigned long long first, end;

		if (sscanf(line, "%llx-%llx", &first, &end) == 2 && end > first) {
			mappings++;
			bytes += end - first;
		}
		line += strcspn(line, "\n");
	}
	if (mappings) {
		json_object_set_new(object, "mappings", json_integer(mappings));
		json_object_set_new(object, "mapped_bytes", json_integer((json_int_t)bytes));
	}
	json_object_set_new(object, "rss", proc_file_kib(status, "VmRSS"));
	json_object_set_new(object, "peak_rss", proc_file_kib(status, "VmHWM"));
	return object;
}

unsigned self_cpus(void)
{
	cpu_set_t set;

	if (sched_getaffinity(0, sizeof(set), &set) || CPU_COUNT(&set) < 1)
		return 1;
	return (unsigned)CPU_COUNT(&set);
}
