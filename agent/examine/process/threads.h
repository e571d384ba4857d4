/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The threads of a process: what the kernel keeps about each (ETHREAD, in a ring that begins in the
 * EPROCESS), and what the thread keeps itself (TEB). The layout is found by trying: in the right
 * one each thread names the process and its PID.
 */
#ifndef RAMSEAL_AGENT_EXAMINE_PROCESS_THREADS_H
#define RAMSEAL_AGENT_EXAMINE_PROCESS_THREADS_H

#include "agent/examine/virtual/memory_view.h"
#include "agent/shared/kernel/processes.h"
#include "formats/base/err.h"

/* More than any real process has; a longer ring is not a ring. */
#define THREADS_MAX 65536

struct thread {
	uint64_t object; /* virtual address of its ETHREAD */
	uint64_t tid;
	uint64_t start; /* Win32StartAddress */
	uint64_t teb;   /* 0: it has none, like the kernel's threads */
	uint64_t kernel_stack,
		kernel_base;              /* KernelStack and StackBase: what is used lies between */
	bool has_stack;                   /* the TEB could be read, and is this thread's. Then: */
	uint64_t stack_limit, stack_base; /* of user mode: committed, so far */
	uint64_t narrow_limit, narrow_base; /* of a WoW64 process, from its TEB32; else 0 */
	bool has_frame;    /* the trap frame of the way into the kernel could be read. Then: */
	uint64_t rip, rsp; /* of user mode */
};

struct threads {
	const char *layout; /* whose layout of ETHREAD fits; NULL: none of the known ones */
	struct thread *at;  /* in the order of the ring */
	size_t count, room;
	enum list_end end;
	bool none; /* .end is LIST_NOT_FOUND: the head of every layout tried is empty */
};

/* The offsets of a version. An ETHREAD begins with a KTHREAD. */
struct kthread_layout {
	uint16_t stack_base, kernel_stack, trap_frame, teb, process;
};

struct ethread_layout {
	const char *name;
	uint16_t head; /* EPROCESS.ThreadListHead */
	uint16_t cid;  /* Cid: the process's and the thread's, 8 bytes each */
	uint16_t start;
	uint16_t link; /* ThreadListEntry */
	struct kthread_layout k;
};

struct threads_plan {
	const struct memory_view *memory; /* with the kernel's half */
	/* A layout from symbols, tried before the known ones; or NULL. */
	const struct ethread_layout *layout;
	uint64_t eprocess;
	uint32_t pid;
	bool wow64;
};

/* Fails only with ST_NOMEM; free `ret` in any case. */
enum status threads_find(const struct threads_plan *plan, struct threads *ret, struct err *e);
void threads_deinit(struct threads *t);

#endif
