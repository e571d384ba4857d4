/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What we are allowed of this machine's CPUs and memory: of the control groups that we are in, on
 * Windows of the job. Which CPUs, self_cpus() tells. All of it as far as it can be seen: limits
 * above the root of a cgroup namespace, or of a bind mount, cannot.
 */
#ifndef RAMSEAL_AGENT_COLLECT_HOST_LIMITS_H
#define RAMSEAL_AGENT_COLLECT_HOST_LIMITS_H

#include <jansson.h>
#include <stdint.h>

#define LIMIT_NONE UINT64_MAX

/* Zero-initialise. */
struct host_limits {
	uint64_t cpu_milli;   /* thousandths of a CPU; 0: no limit */
	uint64_t memory;      /* bytes; the lowest limit, or LIMIT_NONE */
	uint64_t memory_left; /* under the one that leaves least: what may be taken still. Page
			       * cache counts as left: the kernel takes it back. LIMIT_NONE */
	char *cpu_from;       /* the file that says so; NULL: no limit, or no file. Owned */
	char *memory_from;
};

/* What cannot be read limits nothing. */
void host_limits(struct host_limits *ret);
void host_limits_deinit(struct host_limits *l);

/* The CPUs that are worth a thread: those that we may run on, or fewer if their time is limited. */
unsigned host_limits_cpus(const struct host_limits *l);

/* {"cpus":, "cpu_time":, "cpu_from":, "memory":, ...}: formats/MANIFEST.md, "limits". */
json_t *host_limits_json(const struct host_limits *l);

#endif
