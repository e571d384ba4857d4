/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How much of this machine's CPU time and memory we may use, by our control groups or, on Windows,
 * our job. self_cpus() says which CPUs. Limits above the root of a cgroup namespace or of a bind
 * mount cannot be seen.
 */
#ifndef RAMSEAL_AGENT_COLLECT_HOST_LIMITS_H
#define RAMSEAL_AGENT_COLLECT_HOST_LIMITS_H

#include <jansson.h>
#include <stdint.h>

#define LIMIT_NONE UINT64_MAX

/* Zero-initialise. */
struct host_limits {
	uint64_t cpu_milli; /* thousandths of a CPU; 0: no limit */
	uint64_t memory;    /* bytes; the lowest limit, or LIMIT_NONE */
	/*
	 * What may still be used, under the limit that leaves the least; page cache counts as
	 * unused, because the kernel takes it back. Or LIMIT_NONE.
	 */
	uint64_t memory_left;
	char *cpu_from; /* the file that says so; NULL: no limit, or no file. Owned */
	char *memory_from;
};

/* A limit that cannot be read is ignored. */
void host_limits(struct host_limits *ret);
void host_limits_deinit(struct host_limits *l);

/*
 * The number of CPUs worth a thread: those that we may run on, or fewer if their time is limited.
 */
unsigned host_limits_cpus(const struct host_limits *l);

/* {"cpus":, "cpu_time":, "cpu_from":, "memory":, ...}: formats/MANIFEST.md, "limits". */
json_t *host_limits_json(const struct host_limits *l);

#endif
