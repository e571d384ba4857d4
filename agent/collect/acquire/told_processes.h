/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The running system's own list of processes, compared with the one in its kernel's memory. The
 * system is asked just before that is read, and just after, because processes come and go.
 */
#ifndef RAMSEAL_AGENT_COLLECT_ACQUIRE_TOLD_PROCESSES_H
#define RAMSEAL_AGENT_COLLECT_ACQUIRE_TOLD_PROCESSES_H

#include "agent/collect/host/process_names.h"
#include "driver-interface/source.h"

struct told_processes {
	struct host_processes before, after;
	enum status st; /* not ST_OK: the system has no answer, or is not the one that is read */
};

void told_before(struct told_processes *t, const struct drv_info *source);
void told_after(struct told_processes *t);
void told_deinit(struct told_processes *t);

/*
 * process_names_json(), with a warning if the lists differ; then the kernel's is read once more.
 * *ret stays NULL if there is nothing to compare. ST_NOMEM.
 */
enum status told_compare(const struct told_processes *t, struct drv *source,
			 const struct discovery *found, json_t **ret, struct err *e);

#endif
