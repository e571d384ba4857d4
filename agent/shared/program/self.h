/* SPDX-License-Identifier: Apache-2.0 */
/* Our own process: its PID, its CPUs, and the resources that it has used so far. */
#ifndef RAMSEAL_AGENT_SHARED_PROGRAM_SELF_H
#define RAMSEAL_AGENT_SHARED_PROGRAM_SELF_H

#include <jansson.h>
#include <stdint.h>

/* CPUs that this process may run on; at least 1. */
unsigned self_cpus(void);

uint64_t self_pid(void);

/*
 * What was read and written so far in any way: files, pipes, sockets, devices, the memory of a
 * source. Linux: /proc/self/io (Documentation/filesystems/proc.rst, 3.3, of Linux 6.1); Windows:
 * IO_COUNTERS of GetProcessIoCounters(). UINT64_MAX: the system does not say.
 */
struct self_io {
	uint64_t read_calls, read_bytes;
	uint64_t write_calls, write_bytes;
	uint64_t other_calls, other_bytes; /* Windows: what neither reads nor writes */
	uint64_t disk_read_bytes;          /* Linux: of them, what reached a block device */
	uint64_t disk_write_bytes;
};

/* The resources that we have used so far, for the final summary. */
struct self_usage {
	uint64_t user_ns;   /* CPU time of all threads in user mode */
	uint64_t system_ns; /* and in the kernel */
	uint64_t peak_rss;  /* bytes */
	struct self_io io;
};

void self_usage(struct self_usage *ret);
/* {"user_ns":, "system_ns":, "peak_rss":, "io": {…, what is known}}; NULL if out of memory. */
json_t *self_usage_json(void);

/* Where our own pages are: {"mappings":, "mapped_bytes":, "rss":, "peak_rss":}; or NULL. */
json_t *self_footprint_json(void);

#endif
