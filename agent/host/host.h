/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is known of the machine and of ourselves, for the manifest. Everything is read defensively:
 * what is absent, malformed or too long is left out, never guessed. host_linux.c and
 * host_windows.c know how; the names of the members are the same on both.
 */
#ifndef RAMSEAL_AGENT_HOST_HOST_H
#define RAMSEAL_AGENT_HOST_HOST_H

#include <jansson.h>

#include "formats/base/err.h"

/*
 * An object of objects: "host", "os", "cpu", "memory", "security", "clocks", "process", "tool".
 * What they hold is written where it is put: host.c and host_linux.c. The caller owns it. ST_NOMEM
 * is the only failure.
 */
enum status host_describe(int argc, char *const *argv, json_t **ret, struct err *e);

/* The node name, for file names and headlines; HOST_NAME_NONE if it has none. */
#define HOST_NAME_SIZE 256
#define HOST_NAME_NONE "unnamed"
void host_name(char ret[static HOST_NAME_SIZE]);

/*
 * What to call a result of this machine: "<host>-<UTC time>" and the suffix, for free(); NULL: no
 * memory.
 */
char *host_output_path(const char *suffix);

/*
 * Where the kernel that runs was loaded from, for free(); NULL if that helps nobody, or is not
 * known.
 */
char *host_kernel_file(void);

/* The build of the Windows that runs; 0: it is none, or does not tell. */
uint32_t host_windows_build(void);

/* CPUs that this process may run on; at least 1. */
unsigned host_cpus(void);

/* The command line as a list of texts; NULL if out of memory. */
json_t *host_arguments_json(int argc, char *const *argv);

/* Of this process. */
uint64_t host_pid(void);

/*
 * What was read and written so far, by all means: files, pipes, sockets, devices, the memory that
 * a source gives. Linux: /proc/self/io (Documentation/filesystems/proc.rst, 3.3, of Linux 6.1);
 * Windows: IO_COUNTERS of GetProcessIoCounters(). UINT64_MAX: the system does not tell.
 */
struct host_io {
	uint64_t read_calls, read_bytes;
	uint64_t write_calls, write_bytes;
	uint64_t other_calls, other_bytes; /* Windows: what neither reads nor writes */
	uint64_t disk_read_bytes;          /* Linux: of them, what reached a block device */
	uint64_t disk_write_bytes;
};

/* What we cost the machine so far, for the final summary. */
struct host_usage {
	uint64_t user_ns;   /* CPU time of all threads in user mode */
	uint64_t system_ns; /* and in the kernel */
	uint64_t peak_rss;  /* bytes */
	struct host_io io;
};

void host_usage(struct host_usage *ret);
/* {"user_ns":, "system_ns":, "peak_rss":, "io": {…, what is known}}; NULL if out of memory. */
json_t *host_usage_json(void);

/* Where our own pages are: {"mappings":, "mapped_bytes":, "rss":, "peak_rss":}; or NULL. */
json_t *host_footprint_json(void);

#endif
