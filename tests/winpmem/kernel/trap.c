/* SPDX-License-Identifier: Apache-2.0 */
/* What Windows makes of a processor exception: something that the driver may catch, or the end. */
#include "cpu.h"
#include "gate.h"
#include "image.h"
#include "paging.h"
#include "seh.h"

void trap(struct context *frame);

static void interrupt_done(void)
{
	out_byte(0x20, 0x20);
}

static bool is_write(const struct context *c)
{
	return c->error & PAGE_FAULT_WRITE;
}

/* The exception record for it; false if Windows makes none. */
static bool describe(const struct context *c, struct exception_record *ret)
{
	*ret = (struct exception_record){ .address = c->rip };
	switch (c->vector) {
	case TRAP_DIVIDE:
		ret->code = STATUS_INTEGER_DIVIDE_BY_ZERO;
		return true;
	case TRAP_BREAKPOINT:
		ret->code = STATUS_BREAKPOINT;
		return true;
	case TRAP_INVALID:
		ret->code = STATUS_ILLEGAL_INSTRUCTION;
		return true;
	case TRAP_GENERAL:
		/* KiGeneralProtectionFault(): an access violation at an unknown address. */
		ret->code = STATUS_ACCESS_VIOLATION;
		ret->parameters = 2;
		ret->parameter[1] = UINT64_MAX;
		return true;
	case TRAP_PAGE:
		ret->code = STATUS_ACCESS_VIOLATION;
		ret->parameters = 2;
		ret->parameter[0] = is_write(c);
		ret->parameter[1] = read_cr2();
		return true;
	default:
		return false;
	}
}

/*
 * Page faults that no handler gets to see. Above APC_LEVEL there must be none. An unmapped address
 * of the kernel stops Windows with bug check 0x50, even inside a `__try`.
 */
static void judge_page_fault(const struct context *c)
{
	const uint64_t address = read_cr2();

	if (irql() > APC_LEVEL)
		bug_check(c, IRQL_NOT_LESS_OR_EQUAL, address, irql(), is_write(c), c->rip);
	if (address >> 63)
		bug_check(c, PAGE_FAULT_IN_NONPAGED_AREA, address, is_write(c), c->rip, c->error);
}

/* The kernel function that the driver called raises instead of going on. */
static void raise_from_export(struct context *frame, uint32_t code)
{
	frame->rip = (uint64_t)seh_raise_from_export;
	frame->rdi = code;
	frame->rsp = (frame->rsp & ~(uint64_t)15) - 8;
}

void trap(struct context *frame)
{
	struct context c;
	struct exception_record record;

	if (frame->vector >= TRAPS) {
		interrupt_done();
		return;
	}
	memcpy(&c, frame, TRAP_FRAME_SIZE);
	save_fx(&c);
	if (frame->vector == TRAP_PAGE)
		judge_page_fault(&c);
	if (frame->vector == TRAP_MACHINE)
		bug_check(&c, MACHINE_CHECK_EXCEPTION, 0, 0, 0, 0);
	if (!describe(&c, &record))
		bug_check(&c, UNEXPECTED_KERNEL_MODE_TRAP, c.vector, c.error, c.rip, read_cr2());
	if (image_contains(c.rip))
		seh_dispatch(&record, &c);
	if (!gate_top())
		bug_check(&c, HOST_CANNOT, c.vector, c.error, c.rip, read_cr2());
	raise_from_export(frame, record.code);
}
