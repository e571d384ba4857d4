/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The same processes from two sides: the kernel's list as it lies in memory, and what the operating
 * system tells whoever asks. Where a live machine's two lists differ, one of them was tampered
 * with, or the memory is not this machine's.
 */
#ifndef RAMSEAL_AGENT_COLLECT_HOST_PROCESS_NAMES_H
#define RAMSEAL_AGENT_COLLECT_HOST_PROCESS_NAMES_H

#include <jansson.h>

#include "agent/shared/kernel/discover.h"

struct host_process {
	uint32_t pid;
	char *name; /* as the system tells it: bytes on Linux, UTF-8 on Windows */
};

/* Zero-initialise. */
struct host_processes {
	struct host_process *at; /* sorted by PID, each PID once */
	size_t count, room;
};

/*
 * What this system tells: /proc on Linux, NtQuerySystemInformation(SystemProcessInformation) on
 * Windows (process_names_*.c). Without PID 0, which the idle thread has and only some lists have.
 * ST_NOMEM; ST_SYSTEM if the system does not tell.
 */
enum status host_processes(struct host_processes *ret, struct err *e);
/*
 * Whether this process sees a part of the system's processes only: those of its PID namespace. On
 * Linux the first one has a number of its own (include/linux/proc_ns.h, PROC_PID_INIT_INO), which
 * /proc/self/ns/pid names; `link` is that, or what a test puts in its place.
 */
#define HOST_PID_NAMESPACE "/proc/self/ns/pid"
bool host_in_pid_namespace(const char *link);
/* Makes room for one, and copies its name. The list is sorted once all are there. */
enum status host_processes_add(struct host_processes *l, uint32_t pid, const char *name,
			       struct err *e);
void host_processes_sort(struct host_processes *l);
void host_processes_deinit(struct host_processes *l);

/*
 * Processes come and go: what the system told just before the kernel's list was read, and just
 * after, is asked of both, and so is the kernel's list when it was read once more, if it was.
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
 * "name":}]}. NULL if memory ran out.
 *
 * A PID is only the kernel's if the system told of it neither before nor after. It is only the
 * system's if that told of it before and after. A process is renamed if the system had one name for
 * it before and after, and the kernel another. Each of these must be so in `again`, too: a process
 * may have started and ended between two questions, and a list that is read while processes end can
 * lead past others. A kernel's list that is not whole agrees with nothing.
 */
json_t *process_names_json(const struct process_views *v);

/* How many there are in those three lists together. */
size_t process_names_differences(const json_t *doc);

/*
 * Whether these are one name: kernels keep its beginning only (Linux 15 bytes of comm, but its
 * /proc says more of its own threads; Windows 14 of ImageFileName, and of each character the low
 * byte).
 */
bool process_names_match(enum discover_os os, const char *kernel, const char *system);

#endif
