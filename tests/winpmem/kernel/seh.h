/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Structured exception handling: how x64 Windows gets from a fault to the right `__except`.
 * UNWIND_INFO, its operations, the language handler's arguments and DISPATCHER_CONTEXT are
 * described in Microsoft's "x64 exception handling"
 * (learn.microsoft.com/cpp/build/exception-handling-x64) and declared in winnt.h.
 */
#ifndef WINPMEM_KERNEL_SEH_H
#define WINPMEM_KERNEL_SEH_H

#include "cpu.h"
#include "image.h"

#define EXCEPTION_NONCONTINUABLE 0x1
#define EXCEPTION_UNWINDING      0x2
#define EXCEPTION_TARGET_UNWIND  0x20

struct exception_record {
	uint32_t code, flags;
	struct exception_record *nested;
	uint64_t address;
	uint32_t parameters, pad;
	uint64_t parameter[15];
};

/* CONTEXT of winnt.h, with the general registers only: more than these drivers' filters read. */
struct nt_context {
	uint8_t opaque[0x78];
	uint64_t rax, rcx, rdx, rbx, rsp, rbp, rsi, rdi, r8, r9, r10, r11, r12, r13, r14, r15, rip;
	uint8_t opaque2[0x4d0 - 0x100];
};

_Static_assert(offsetof(struct nt_context, rip) == 0xf8, "CONTEXT.Rip");

struct exception_pointers {
	struct exception_record *record;
	struct nt_context *context;
};

struct runtime_function {
	uint32_t begin, end, unwind;
};

/* DISPATCHER_CONTEXT */
struct dispatcher_context {
	uint64_t control_pc, image_base;
	struct runtime_function *function;
	uint64_t establisher_frame, target_ip;
	struct nt_context *context;
	void *language_handler;
	const void *handler_data;
	void *history;
	uint32_t scope_index, fill;
};

enum disposition { CONTINUE_EXECUTION, CONTINUE_SEARCH };

typedef int(NTAPI *language_handler)(struct exception_record *, uint64_t frame, struct nt_context *,
				     struct dispatcher_context *);

/* --- unwind.c --- */

/* The exception handler of one stack frame. */
struct frame_handler {
	language_handler handler; /* NULL: nothing */
	const void *data;
	bool on_exception, on_unwind;
	struct runtime_function *function;
	uint64_t establisher; /* rsp after the prologue, or what the frame register points at */
};

/*
 * Turns the context of a function into that of its caller, as it will be after the return. `ret`
 * may be NULL. false if the unwind information makes no sense.
 */
bool unwind_frame(struct context *c, struct frame_handler *ret);

/* --- seh.c --- */

/*
 * Resumes in the `__except` block that takes the exception; `c` is the context in the driver where
 * it was raised. If none takes it, Windows stops.
 */
_Noreturn void seh_dispatch(struct exception_record *record, const struct context *c);

/* ExRaiseStatus() from a kernel function that the driver has called. */
_Noreturn void seh_raise_from_export(uint32_t code);

#endif
