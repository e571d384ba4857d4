/* SPDX-License-Identifier: Apache-2.0 */
/* Following a doubly linked ring of processes; both kernels have the same kind. */
#ifndef RAMSEAL_AGENT_SHARED_KERNEL_PROCESS_LIST_H
#define RAMSEAL_AGENT_SHARED_KERNEL_PROCESS_LIST_H

#include "agent/shared/kernel/processes.h"

/* What was found at a link of the ring. */
enum link_kind { LINK_PROCESS, LINK_HEAD, LINK_BAD };

struct process_ring {
	const struct virt *v;
	uint64_t start; /* address of the link where the ring is entered: {next, previous} */
	enum link_kind (*read)(const struct process_ring *r, uint64_t link, struct process *ret);
	const void *offsets;
	const void *kernel;
};

enum status paging__follow_ring(const struct process_ring *r, struct process_list *ret,
				struct err *e);

/* A canonical address of the upper half that a pointer to a structure can have. */
bool paging__is_pointer(const struct virt *v, uint64_t va);

/* Copies a name of at most PROCESS_NAME_MAX - 1 bytes up to its NUL. */
void paging__set_name(struct process *p, const uint8_t *bytes);

#endif
