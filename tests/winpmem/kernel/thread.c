/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Threads, and what they wait for.
 */
#include "thread.h"

#include "paging.h"
#include "requests.h"

void thread_switch(struct thread *from, struct thread *to);
void thread_start(void);
_Noreturn void thread_main(struct thread *t);

/* The first belongs to kernel_main(), which hands out the requests. */
static struct thread threads[THREADS_MAX];

struct thread *thread_current(void)
{
	return kpcr.current_thread;
}

static void reset(struct thread *t)
{
	uint64_t *stack = (uint64_t *)t->stack_top;

	/* What thread_switch() pops: six registers, rbx last, and its return address. */
	*--stack = (uint64_t)thread_start;
	*--stack = (uint64_t)t;
	for (int i = 0; i < 5; i++)
		*--stack = 0;
	t->rsp = (uint64_t)stack;
	t->top = t->frames;
	t->irql = PASSIVE_LEVEL;
	t->affinity = 0;
	t->waits_for = NULL;
}

void threads_init(void)
{
	struct thread *const first = &threads[0];

	__asm__ volatile("fxsave (%0)" ::"r"(first->fx) : "memory");
	for (unsigned i = 1; i < THREADS_MAX; i++) {
		struct thread *const t = &threads[i];

		/* Below each stack is an unmapped page. */
		t->stack_limit = STACKS_VA + i * (STACK_SIZE + PAGE_SIZE) + PAGE_SIZE;
		t->stack_top = t->stack_limit + STACK_SIZE;
		map_new(t->stack_limit, STACK_SIZE / PAGE_SIZE, MAP_WRITE);
		memcpy(t->fx, first->fx, sizeof(t->fx));
	}
	first->state = THREAD_RUNNING;
	first->top = first->frames;
	kpcr.current_thread = first;
}

static void switch_to(struct thread *to)
{
	struct thread *const from = thread_current();

	from->irql = irql();
	from->cr3 = read_cr3();
	__asm__ volatile("fxsave (%0)" ::"r"(from->fx) : "memory");
	kpcr.current_thread = to;
	to->state = THREAD_RUNNING;
	/* The first thread needs nothing that is not in every address space. */
	if (to != &threads[0] && to->cr3 != from->cr3)
		write_cr3(to->cr3);
	thread_switch(from, to);
	__asm__ volatile("fxrstor (%0)" ::"r"(from->fx) : "memory");
	set_irql(from->irql);
}

_Noreturn void thread_main(struct thread *t)
{
	set_irql(PASSIVE_LEVEL);
	request_run(t->request, t->reply);
	t->reply->done = 1;
	t->state = THREAD_FREE;
	switch_to(&threads[0]);
	__builtin_unreachable();
}

static struct thread *find(enum thread_state state)
{
	for (unsigned i = 1; i < THREADS_MAX; i++)
		if (threads[i].state == state)
			return &threads[i];
	return NULL;
}

static struct thread *prepare(const struct machine_request *request, struct machine_reply *reply)
{
	struct thread *const t = find(THREAD_FREE);

	if (!t)
		bug_check(NULL, HOST_CANNOT, THREADS_MAX, 0, 0, 0);
	reset(t);
	t->request = request;
	t->reply = reply;
	t->cr3 = request_cr3(request);
	t->state = THREAD_READY;
	return t;
}

void thread_run(const struct machine_request *request, struct machine_reply *reply)
{
	struct thread *t = prepare(request, reply);

	do
		switch_to(t);
	while ((t = find(THREAD_READY)));
	threads[0].state = THREAD_RUNNING;
}

/* The caller stays ready, so the first thread picks it up again later. */
void thread_run_meanwhile(const struct machine_request *request, struct machine_reply *reply)
{
	struct thread *const me = thread_current(), *const other = prepare(request, reply);

	me->state = THREAD_READY;
	switch_to(other);
}

/*
 * The wait list is in the event, in the driver's memory. As in Windows it is used at DISPATCH_LEVEL
 * and trusted: in an event that was never initialised its pointers are wild.
 */
void event_wait(struct kevent *event)
{
	struct thread *const me = thread_current();
	const unsigned level = irql();
	struct list_entry *last;

	set_irql(DISPATCH_LEVEL);
	if (event->signal_state > 0) {
		if (event->type)
			event->signal_state = 0;
		set_irql(level);
		return;
	}
	me->wait.thread = me;
	last = event->wait_list.blink;
	me->wait.list = (struct list_entry){ .flink = &event->wait_list, .blink = last };
	last->flink = &me->wait.list;
	event->wait_list.blink = &me->wait.list;
	set_irql(level);
	me->waits_for = event;
	me->state = THREAD_WAITING;
	switch_to(&threads[0]);
	me->waits_for = NULL;
}

/* Releases one waiter. Only if there is none does the event become signalled. */
void event_set(struct kevent *event)
{
	const unsigned level = irql();
	struct list_entry *const first = event->wait_list.flink;

	set_irql(DISPATCH_LEVEL);
	if (first == &event->wait_list) {
		event->signal_state = 1;
	} else {
		((struct wait_block *)first)->thread->state = THREAD_READY;
		event->wait_list.flink = first->flink;
		first->flink->blink = &event->wait_list;
	}
	set_irql(level);
}
