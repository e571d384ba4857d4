/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/examine/process/threads.h"

#include <stdlib.h>

#include "formats/base/array.h"
#include "formats/base/page.h"

/*
 * ETHREAD's own members, in order of build; ThreadListHead is EPROCESS's. Out of Microsoft's public
 * symbols, as volatilityfoundation/volatility 328a178 (volatility/plugins/overlays/windows) has
 * them for 7600 to 17134, volatility3's symbol tables (JPCERTCC/Windows-Symbol-Tables 11ad856) for
 * 7601 to 22000, and Rickebo/ntoskrnlib 0a72996 for 26100. 7 SP1 has those of 7 until an update
 * between its first release and 7601.23418; 16299 and 17134 have 17763's.
 */
#define KTHREAD_7 { 0x278, 0x38, 0x1d8, 0xb8, 0x210 }
#define KTHREAD_8 { 0x38, 0x58, 0x90, 0xf0, 0x220 }

static const struct ethread_layout layouts[] = {
	{ "7", 0x308, 0x3b0, 0x410, 0x420, KTHREAD_7 },
	{ "7-sp1", 0x308, 0x3b8, 0x418, 0x428, KTHREAD_7 },
	{ "8", 0x470, 0x398, 0x3f0, 0x400, KTHREAD_8 },
	{ "8.1", 0x470, 0x620, 0x678, 0x688, KTHREAD_8 },
	{ "10-10240", 0x480, 0x628, 0x680, 0x690, KTHREAD_8 },
	{ "10-10586", 0x488, 0x628, 0x680, 0x690, KTHREAD_8 },
	{ "10-14393", 0x488, 0x630, 0x688, 0x698, KTHREAD_8 },
	{ "10-15063", 0x488, 0x638, 0x690, 0x6a0, KTHREAD_8 },
	{ "10-17763", 0x488, 0x638, 0x690, 0x6a8, KTHREAD_8 },
	{ "10-18362", 0x488, 0x648, 0x6a0, 0x6b8, KTHREAD_8 },
	{ "10-19041", 0x5e0, 0x478, 0x4d0, 0x4e8, KTHREAD_8 },
	{ "11-22000", 0x5e0, 0x4c8, 0x520, 0x538, KTHREAD_8 },
	{ "11-26100", 0x370, 0x508, 0x560, 0x578, KTHREAD_8 },
};

/* KTRAP_FRAME, the same in all of them. */
#define FRAME_RIP    0x168
#define FRAME_CS     0x170
#define FRAME_RSP    0x180

/* TEB and TEB32 (winsiderss/systeminformer 103cc43, phnt/include/ntpebteb.h). */
#define TEB_BASE     0x8
#define TEB_LIMIT    0x10
#define TEB_SELF     0x30
#define TEB32_BASE   0x4
#define TEB32_LIMIT  0x8
#define TEB32_SELF   0x18
/* Where WoW64 puts a thread's TEB32 (wow64.dll: the 64-bit one takes two pages). */
#define TEB32_BEHIND 0x2000

#define RPL          3 /* of CS: user mode */

static bool is_thread_pointer(uint64_t va)
{
	return va >> 63 && va % 8 == 0;
}

static void read_stack(const struct threads_plan *plan, struct thread *t)
{
	const struct memory_view *m = plan->memory;
	const uint64_t narrow = t->teb + TEB32_BEHIND;
	uint64_t self, base, limit;

	if (!t->teb || !view_u64(m, t->teb + TEB_SELF, &self) || self != t->teb ||
	    !view_u64(m, t->teb + TEB_BASE, &base) || !view_u64(m, t->teb + TEB_LIMIT, &limit) ||
	    limit >= base || base >> 63)
		return;
	t->has_stack = true;
	t->stack_base = base;
	t->stack_limit = limit;
	if (plan->wow64 && view_pointer(m, narrow + TEB32_SELF, false, &self) && self == narrow &&
	    view_pointer(m, narrow + TEB32_BASE, false, &base) &&
	    view_pointer(m, narrow + TEB32_LIMIT, false, &limit) && limit < base) {
		t->narrow_base = base;
		t->narrow_limit = limit;
	}
}

static void read_frame(const struct threads_plan *plan, uint64_t frame, struct thread *t)
{
	const struct memory_view *m = plan->memory;
	uint16_t cs;

	t->has_frame = is_thread_pointer(frame) && view_u16(m, frame + FRAME_CS, &cs) &&
		       (cs & RPL) == RPL && view_u64(m, frame + FRAME_RIP, &t->rip) &&
		       view_u64(m, frame + FRAME_RSP, &t->rsp);
	if (!t->has_frame)
		t->rip = t->rsp = 0;
}

/* False: it is no thread of this process in this layout, or its memory can't be had. */
static bool read_ethread(const struct threads_plan *plan, const struct ethread_layout *l,
			 uint64_t object, struct thread *ret)
{
	const struct memory_view *m = plan->memory;
	uint64_t process, pid, frame;

	*ret = (struct thread){ .object = object };
	if (!view_u64(m, object + l->k.process, &process) || process != plan->eprocess ||
	    !view_u64(m, object + l->cid, &pid) || pid != plan->pid ||
	    !view_u64(m, object + l->cid + 8, &ret->tid) ||
	    !view_u64(m, object + l->start, &ret->start) ||
	    !view_u64(m, object + l->k.teb, &ret->teb) || ret->teb >> 63 ||
	    !view_u64(m, object + l->k.kernel_stack, &ret->kernel_stack) ||
	    !view_u64(m, object + l->k.stack_base, &ret->kernel_base) ||
	    !view_u64(m, object + l->k.trap_frame, &frame))
		return false;
	read_frame(plan, frame, ret);
	read_stack(plan, ret);
	return true;
}

static enum status add_thread(struct threads *t, const struct thread *of, struct err *e)
{
	if (!ARRAY_ROOM(t->at, t->count, t->room))
		return err_nomem(e);
	t->at[t->count++] = *of;
	return ST_OK;
}

/* From the ring's head on; what is in `ret` is of this layout alone. */
static enum status follow_thread_ring(const struct threads_plan *plan,
				      const struct ethread_layout *l, struct threads *ret,
				      struct err *e)
{
	const struct memory_view *m = plan->memory;
	const uint64_t head = plan->eprocess + l->head;
	uint64_t at, next, back = head, said;

	ret->end = LIST_NOT_FOUND;
	if (!view_u64(m, head, &at) || !is_thread_pointer(at) || at == head)
		return ST_OK;
	while (at != head) {
		struct thread one;
		enum status st;

		ret->end = LIST_TOO_LONG;
		if (ret->count == THREADS_MAX)
			return ST_OK;
		ret->end = LIST_UNREADABLE;
		if (!is_thread_pointer(at) || !view_u64(m, at, &next) ||
		    !view_u64(m, at + 8, &said))
			return ST_OK;
		ret->end = LIST_TORN;
		if (said != back || !read_ethread(plan, l, at - l->link, &one))
			return ST_OK;
		st = add_thread(ret, &one, e);
		if (st)
			return st;
		back = at;
		at = next;
	}
	ret->end = LIST_CLOSED;
	return ST_OK;
}

/* More threads are more witnesses; a ring that closes is the best one. */
static bool is_better_ring(const struct threads *a, const struct threads *b)
{
	if ((a->end == LIST_CLOSED) != (b->end == LIST_CLOSED))
		return a->end == LIST_CLOSED;
	return a->count > b->count;
}

static enum status try_layout(const struct threads_plan *plan, const struct ethread_layout *l,
			      struct threads *ret, struct err *e)
{
	struct threads found = { 0 };
	const enum status st = follow_thread_ring(plan, l, &found, e);

	if (st || !found.count || !is_better_ring(&found, ret)) {
		threads_deinit(&found);
		return st;
	}
	found.layout = l->name;
	threads_deinit(ret);
	*ret = found;
	return ST_OK;
}

/* Never set up, or a ring of nobody. */
static bool is_empty(const struct threads_plan *plan, const struct ethread_layout *l)
{
	const uint64_t head = plan->eprocess + l->head;
	uint64_t next, back;

	return view_u64(plan->memory, head, &next) && view_u64(plan->memory, head + 8, &back) &&
	       next == back && (!next || next == head);
}

enum status threads_find(const struct threads_plan *plan, struct threads *ret, struct err *e)
{
	bool none = !plan->layout || is_empty(plan, plan->layout);
	enum status st = ST_OK;

	*ret = (struct threads){ 0 };
	if (plan->layout)
		st = try_layout(plan, plan->layout, ret, e);
	for (size_t i = 0; i < ARRAY_SIZE(layouts) && !st; i++)
		st = try_layout(plan, &layouts[i], ret, e);
	for (size_t i = 0; i < ARRAY_SIZE(layouts) && none; i++)
		none = is_empty(plan, &layouts[i]);
	ret->none = none && !ret->count;
	return st;
}

void threads_deinit(struct threads *t)
{
	free(t->at);
	*t = (struct threads){ 0 };
}
