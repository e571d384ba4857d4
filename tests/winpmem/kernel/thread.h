/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Threads that carry out requests, each on a stack as large as Windows' kernel stacks. A thread
 * runs until it ends or waits. So two requests interleave at a known point and nowhere else, and a
 * wait that nobody can end is noticed at once.
 */
#ifndef WINPMEM_KERNEL_THREAD_H
#define WINPMEM_KERNEL_THREAD_H

#include "cpu.h"
#include "gate.h"

#define GATE_DEPTH  24
#define THREADS_MAX 6
#define STACK_SIZE  0x6000 /* KERNEL_STACK_SIZE of x64 */

/* KWAIT_BLOCK, as far as the list goes */
struct wait_block {
	struct list_entry list;
	struct thread *thread;
};

enum thread_state { THREAD_FREE, THREAD_READY, THREAD_RUNNING, THREAD_WAITING };

struct thread {
	struct gate_frame *top; /* the next free one */
	uint64_t rsp;           /* while it does not run */
	struct gate_frame frames[GATE_DEPTH];

	enum thread_state state;
	unsigned irql;
	uint64_t cr3;
	struct wait_block wait;
	const void *waits_for;
	uint64_t affinity;
	uint64_t stack_limit, stack_top;

	/* What it has to do, and where its answer goes. */
	const struct machine_request *request;
	struct machine_reply *reply;

	uint8_t fx[512] __attribute__((aligned(16)));
};

void threads_init(void);
struct thread *thread_current(void);

/*
 * Carries out a request on a thread of its own, and runs every other thread that becomes ready.
 * Returns when none is left that can run; reply->done says whether the request has ended.
 */
void thread_run(const struct machine_request *request, struct machine_reply *reply);

/* The same from within a request, which goes on afterwards. */
void thread_run_meanwhile(const struct machine_request *request, struct machine_reply *reply);

/* KeWaitForSingleObject() and KeSetEvent(), as far as mutexes need them. */
void event_wait(struct kevent *event);
void event_set(struct kevent *event);

#endif
