/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The same processes from two sides: the kernel's list in memory, and what the operating system
 * reports. If the two lists of a live machine differ, one of them was tampered with, or the memory
 * is not this machine's.
 */
#ifndef RAMSEAL_AGENT_COLLECT_HOST_PROCESS_NAMES_H
#define RAMSEAL_AGENT_COLLECT_HOST_PROCESS_NAMES_H

#include <jansson.h>

#include "agent/shared/kernel/discover.h"

struct host_process {
	uint32_t pid;
	char *name; /* as the system reports it: bytes on Linux, UTF-8 on Windows */
};

/* Zero-initialise. */
struct host_processes {
	struct host_process *at; /* sorted by PID, each PID once */
	size_t count, room;
};

/*
 * The system's list: /proc on Linux, NtQuerySystemInformation(SystemProcessInformation) on Windows
 * (process_names_*.c). Without PID 0, the idle thread, which only some lists have. ST_NOMEM;
 * ST_SYSTEM if the system gives no list.
 */
enum status host_processes(struct host_processes *ret, struct err *e);
/*
 * Does this process see only the processes of its own PID namespace? On Linux the initial namespace
 * has a fixed number (include/linux/proc_ns.h, PROC_PID_INIT_INO), which /proc/self/ns/pid names;
 * `link` is that path, or a test's.
 */
#define HOST_PID_NAMESPACE "/proc/self/ns/pid"
bool host_in_pid_namespace(const char *link);
/* Adds one and copies its name. Sort the list once all are added. */
enum status host_processes_add(struct host_processes *l, uint32_t pid, const char *name,
			       struct err *e);
void host_processes_sort(struct host_processes *l);
void host_processes_deinit(struct host_processes *l);

/*
 * Processes come and go, so the comparison uses the system's list from just before and from just
 * after the kernel's list was read, and a second reading of the kernel's list if there was one.
 */
struct process_views {
	enum discover_os os; /* whose names kernels cut, and how */
	const struct process_list *kernel;
	const struct process_list *again; /* later than `after`; or NULL */
	const struct host_processes *before, *after;
};

/*
 * {"kernel": how many, "system": how many, "agree":, "kernel_only": [{"pid":, "name":}],
 * "system_only": [the same], "renamed": [{"pid":, "kernel":, "system":}], "system_list": [{"pid":,
 * "name":}]}. NULL if out of memory.
 *
 * A PID is only the kernel's if the system listed it neither before nor after. It is only the
 * system's if the system listed it both times. A process is renamed if the system used one name
 * both times and the kernel another. Each of these must also hold in `again`: a process may start
 * and end between two questions, and a list that is read while processes end can miss others. An
 * incomplete kernel's list agrees with nothing.
 */
json_t *process_names_json(const struct process_views *v);

/* How many entries those three lists have together. */
size_t process_names_differences(const json_t *doc);

/*
 * Are these the same name? Kernels keep only its beginning (Linux: 15 bytes of comm, though /proc
 * shows more for kernel threads; Windows: 14 characters of ImageFileName, and only the low byte of
 * each).
 */
bool process_names_match(enum discover_os os, const char *kernel, const char *system);

#endif
