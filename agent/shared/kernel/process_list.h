/* SPDX-License-Identifier: Apache-2.0 */
/* Walks a doubly linked ring of processes, which both kernels have. */
#ifndef RAMSEAL_AGENT_SHARED_KERNEL_PROCESS_LIST_H
#define RAMSEAL_AGENT_SHARED_KERNEL_PROCESS_LIST_H

#include "agent/shared/kernel/processes.h"

/* What a link of the ring leads to. */
enum link_kind { LINK_PROCESS, LINK_HEAD, LINK_BAD };

struct process_ring {
	const struct virt *v;
	uint64_t start; /* address of the first link: {next, previous} */
	enum link_kind (*read)(const struct process_ring *r, uint64_t link, struct process *ret);
	const void *offsets;
	const void *kernel;
};

enum status paging__follow_ring(const struct process_ring *r, struct process_list *ret,
				struct err *e);

/* Can this be a pointer to a kernel structure: a canonical address of the upper half? */
bool paging__is_pointer(const struct virt *v, uint64_t va);

/* Copies a name of at most PROCESS_NAME_MAX - 1 bytes up to its NUL. */
void paging__set_name(struct process *p, const uint8_t *bytes);

#endif
