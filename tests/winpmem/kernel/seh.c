/* SPDX-License-Identifier: Apache-2.0 */
/*
 * RtlDispatchException() and RtlUnwindEx(), and the language handler that every `__try` of these
 * drivers refers to.
 */
#include "seh.h"

#include "gate.h"
#include "thread.h"

/* What a filter answers: to go on as if nothing had happened, to look further, to take it. */
#define EXCEPTION_CONTINUE_EXECUTION (-1)
#define EXCEPTION_EXECUTE_HANDLER    1

/* SCOPE_TABLE, the data of __C_specific_handler() */
struct scope_table {
	uint32_t count;
	struct {
		uint32_t begin, end;
		uint32_t handler; /* a filter, 1 for "always", or a termination handler */
		uint32_t target;  /* the `__except` block; 0: this is a `__finally` */
	} record[];
};

/* What such an entry calls. */
typedef int(NTAPI *filter)(struct exception_pointers *, uint64_t frame);
typedef void(NTAPI *termination)(bool abnormal, uint64_t frame);

static void to_nt(const struct context *c, struct nt_context *ret)
{
	memset(ret, 0, sizeof(*ret));
	ret->rax = c->rax;
	ret->rcx = c->rcx;
	ret->rdx = c->rdx;
	ret->rbx = c->rbx;
	ret->rsp = c->rsp;
	ret->rbp = c->rbp;
	ret->rsi = c->rsi;
	ret->rdi = c->rdi;
	memcpy(&ret->r8, &c->r8, 8 * sizeof(uint64_t));
	ret->rip = c->rip;
}

/* Nobody takes it: bug check 0x3B in a system call, 0x7E in a system thread. */
_Noreturn static void nobody_took_it(const struct exception_record *r, const struct context *c)
{
	if (thread_current()->request && thread_current()->request->op == OP_LOAD)
		bug_check(c, SYSTEM_THREAD_EXCEPTION, r->code, r->address, r->parameter[1], 0);
	bug_check(c, SYSTEM_SERVICE_EXCEPTION, r->code, r->address, r->parameter[1], 0);
}

/*
 * Asks the handler of the frame that `c` is in. In the search phase *target_ip becomes the
 * `__except` block that takes the exception, if it is in this frame; in the unwind phase it is that
 * block.
 */
static int ask_handler(const struct frame_handler *h, struct exception_record *record,
		       const struct context *c, uint64_t *target_ip)
{
	struct nt_context nt;
	struct dispatcher_context d = {
		.control_pc = c->rip,
		.image_base = image_at(c->rip)->base,
		.function = h->function,
		.establisher_frame = h->establisher,
		.target_ip = *target_ip,
		.context = &nt,
		.handler_data = h->data,
	};
	int answer;

	to_nt(c, &nt);
	answer = h->handler(record, h->establisher, &nt, &d);
	*target_ip = d.target_ip;
	return answer;
}

/* Runs every `__finally` on the way up to the frame that takes the exception, and resumes there. */
_Noreturn static void unwind_to(uint64_t frame, uint64_t ip, struct exception_record *record,
				const struct context *start)
{
	struct context c = *start, caller;
	struct frame_handler h;

	record->flags |= EXCEPTION_UNWINDING;
	for (;;) {
		caller = c;
		unwind_frame(&caller, &h);
		if (h.establisher == frame)
			record->flags |= EXCEPTION_TARGET_UNWIND;
		if (h.handler && h.on_unwind)
			ask_handler(&h, record, &c, &ip);
		if (h.establisher == frame)
			break;
		c = caller;
	}
	gate_unwind(c.rsp);
	c.rip = ip;
	c.rax = record->code;
	context_restore(&c);
}

_Noreturn void seh_dispatch(struct exception_record *record, const struct context *start)
{
	struct context c = *start, caller;
	struct frame_handler h;

	for (; image_contains(c.rip); c = caller) {
		uint64_t target = 0;

		caller = c;
		if (!unwind_frame(&caller, &h))
			break;
		if (!h.handler || !h.on_exception)
			continue;
		if (ask_handler(&h, record, &c, &target) == CONTINUE_EXECUTION)
			context_restore(start);
		if (target)
			unwind_to(h.establisher, target, record, start);
	}
	nobody_took_it(record, start);
}

_Noreturn void seh_raise_from_export(uint32_t code)
{
	const struct gate_frame *const f = gate_top();
	struct context c = {
		.rbx = f->rbx,
		.rbp = f->rbp,
		.rsi = f->rsi,
		.rdi = f->rdi,
		.r12 = f->r12,
		.r13 = f->r13,
		.r14 = f->r14,
		.r15 = f->r15,
		.rip = f->rip,
		.rsp = f->rsp,
		.cs = CODE_SELECTOR,
		.ss = DATA_SELECTOR,
		.rflags = 0x2,
	};
	struct exception_record record = { .code = code, .address = f->rip };

	/* The kernel never uses SSE registers, so they still are as the driver left them. */
	save_fx(&c);
	gate_unwind(f->rsp);
	seh_dispatch(&record, &c);
}

/* --- what the driver imports --- */

/*
 * The search phase: the innermost `__try` whose filter wants the exception. Where the real one
 * calls RtlUnwind(), this one leaves the unwinding to seh_dispatch().
 */
static int search_scopes(struct exception_record *record, uint64_t frame,
			 struct nt_context *context, struct dispatcher_context *d)
{
	const struct scope_table *const t = d->handler_data;
	const uint64_t at = d->control_pc - d->image_base;

	for (uint32_t i = 0; i < t->count; i++) {
		struct exception_pointers p = { record, context };
		int answer = EXCEPTION_EXECUTE_HANDLER;

		if (at < t->record[i].begin || at >= t->record[i].end || !t->record[i].target)
			continue;
		if (t->record[i].handler != 1)
			answer = ((filter)(d->image_base + t->record[i].handler))(&p, frame);
		if (answer <= EXCEPTION_CONTINUE_EXECUTION)
			return CONTINUE_EXECUTION;
		if (answer >= EXCEPTION_EXECUTE_HANDLER) {
			d->target_ip = d->image_base + t->record[i].target;
			return CONTINUE_SEARCH;
		}
	}
	return CONTINUE_SEARCH;
}

/* The unwind phase: every `__finally` that is left. */
static void run_terminations(const struct exception_record *record, uint64_t frame,
			     const struct dispatcher_context *d)
{
	const struct scope_table *const t = d->handler_data;
	const uint64_t at = d->control_pc - d->image_base;
	const uint64_t to = d->target_ip - d->image_base;

	for (uint32_t i = 0; i < t->count; i++) {
		if (at < t->record[i].begin || at >= t->record[i].end)
			continue;
		/* A scope that also encloses the target is not left. */
		if (record->flags & EXCEPTION_TARGET_UNWIND && to >= t->record[i].begin &&
		    to < t->record[i].end)
			return;
		if (!t->record[i].target)
			((termination)(d->image_base + t->record[i].handler))(true, frame);
		else if (record->flags & EXCEPTION_TARGET_UNWIND && to == t->record[i].target)
			return;
	}
}

static int NTAPI __C_specific_handler(struct exception_record *record, uint64_t frame,
				      struct nt_context *context, struct dispatcher_context *d)
{
	if (!(record->flags & EXCEPTION_UNWINDING))
		return search_scopes(record, frame, context, d);
	run_terminations(record, frame, d);
	return CONTINUE_SEARCH;
}

static void NTAPI ExRaiseStatus(ntstatus status)
{
	seh_raise_from_export(status);
}

const struct export seh_exports[] = {
	EXPORT(__C_specific_handler),
	EXPORT(ExRaiseStatus),
	{ 0 },
};
