/* SPDX-License-Identifier: Apache-2.0 */
/* Bug checks. */
#include "cpu.h"
#include "gate.h"
#include "image.h"
#include "io.h"
#include "seh.h"
#include "transport.h"

/* The return addresses in the driver. */
static void write_trace(const struct context *from)
{
	struct machine_bugcheck *const b = &mailbox.bugcheck;
	struct context c = *from;

	for (b->depth = 0; b->depth < ARRAY_SIZE(b->trace) && image_contains(c.rip);) {
		b->trace[b->depth++] = c.rip;
		if (!unwind_frame(&c, NULL))
			break;
	}
}

_Noreturn void bug_check(const struct context *at, uint32_t code, uint64_t p1, uint64_t p2,
			 uint64_t p3, uint64_t p4)
{
	struct machine_bugcheck *const b = &mailbox.bugcheck;
	const struct gate_frame *const call = gate_top();

	/* A fault in here is no news. */
	if (mailbox.state == MACHINE_STOPPED)
		for (;;)
			__asm__ volatile("cli\n\thlt");
	mailbox.state = MACHINE_STOPPED;
	b->code = code;
	b->parameter[0] = p1;
	b->parameter[1] = p2;
	b->parameter[2] = p3;
	b->parameter[3] = p4;
	b->address = read_cr2();
	b->image = driver_now.image.base;
	b->rip = at ? at->rip : call ? call->rip : 0;
	b->rsp = at ? at->rsp : call ? call->rsp : 0;
	say("*** STOP: 0x%08x (%016lx, %016lx, %016lx, %016lx) at %016lx", code, p1, p2, p3, p4,
	    b->rip);
	if (call)
		say("*** the last call into the kernel: %s(%lx, %lx, %lx, %lx) from %lx",
		    export_at(call->number)->name, call->arg[0], call->arg[1], call->arg[2],
		    call->arg[3], call->rip);
	/* In a kernel function the trace begins where the driver called it. */
	if (at && image_contains(at->rip))
		write_trace(at);
	else if (call)
		write_trace(
			&(struct context){ .rip = call->rip, .rsp = call->rsp, .rbp = call->rbp });
	transport_ring();
	for (;;)
		__asm__ volatile("cli\n\thlt");
}
