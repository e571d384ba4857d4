/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What happens at the gate, and the table of all exports behind it.
 */
#include "gate.h"

#include "cpu.h"
#include "gate_offsets.h"
#include "thread.h"

#define SAME(type, member, offset)                                                                 \
	_Static_assert(offsetof(struct type, member) == (offset), #type "." #member)

SAME(thread, top, THREAD_TOP);
SAME(thread, rsp, THREAD_RSP);
SAME(gate_frame, rip, FRAME_RIP);
SAME(gate_frame, rsp, FRAME_RSP);
SAME(gate_frame, rbx, FRAME_RBX);
SAME(gate_frame, r12, FRAME_R12);
SAME(gate_frame, r15, FRAME_R15);
SAME(gate_frame, arg, FRAME_ARG);
SAME(gate_frame, number, FRAME_NUMBER);
SAME(kpcr, current_thread, KPCR_THREAD);
_Static_assert(sizeof(struct gate_frame) == FRAME_SIZE, "gate_frame");
_Static_assert(GATE_STUBS == EXPORTS_MAX, "a stub for each export");

extern const uint8_t gate_stubs[];

const void *NTAPI gate_enter(struct gate_frame *f);
uint64_t NTAPI gate_leave(uint64_t result);

static const struct export *const areas[] = {
	seh_exports,        nt_ke_exports,  nt_ex_exports, nt_mm_exports,
	nt_section_exports, nt_zw_exports,  nt_ob_exports, nt_se_exports,
	nt_rtl_exports,     nt_wdf_exports, io_exports,
};

static const struct export *exports[EXPORTS_MAX];
static unsigned count;

static bool tracing;
static uint64_t trigger_after, fail_after;

/* When time was last charged, and how many calls into the driver are nested. */
static uint64_t last_tick;
static unsigned driver_depth;

void exports_init(void)
{
	for (size_t a = 0; a < ARRAY_SIZE(areas); a++)
		for (const struct export *e = areas[a]; e->name; e++) {
			if (count == EXPORTS_MAX)
				bug_check(NULL, HOST_CANNOT, count, 0, 0, 0);
			memcpy(mailbox.exports[count].name, e->name,
			       MIN(strlen(e->name), sizeof(mailbox.exports[0].name) - 1));
			exports[count++] = e;
		}
}

const struct export *export_at(uint64_t number)
{
	return exports[number];
}

unsigned exports_count(void)
{
	return count;
}

const void *export_address(const char *name)
{
	for (unsigned i = 0; i < count; i++)
		if (!strcmp(exports[i]->name, name))
			return exports[i]->variable ? exports[i]->address
						    : gate_stubs + i * GATE_STUB_SIZE;
	return NULL;
}

/* --- time --- */

static void charge(uint64_t *to)
{
	const uint64_t now = ticks();

	*to += now - last_tick;
	last_tick = now;
}

void gate_driver_begins(void)
{
	if (driver_depth++)
		charge(&mailbox.counters.kernel_ticks);
	else
		last_tick = ticks();
}

void gate_driver_ends(void)
{
	charge(&mailbox.counters.driver_ticks);
	driver_depth--;
}

/* --- what can be made to happen --- */

void allocation_fail_at(uint64_t n)
{
	fail_after = n;
	mailbox.counters.allocations = 0;
	mailbox.counters.failed = 0;
}

bool allocation_fails(void)
{
	const struct gate_frame *const f = gate_top();

	mailbox.counters.allocations++;
	if (!fail_after || --fail_after)
		return false;
	mailbox.counters.failed = f ? f->number : EXPORTS_MAX;
	say("out of memory: %s", f ? exports[f->number]->name : "the I/O manager");
	return true;
}

void gate_set_trace(bool on)
{
	tracing = on;
}

void gate_set_trigger(uint64_t nth)
{
	trigger_after = nth;
}

static void run_other_at(const char *name)
{
	if (!trigger_after || strcmp(name, mailbox.trigger) || --trigger_after)
		return;
	say("meanwhile, at %s:", name);
	thread_run_meanwhile(&mailbox.other, &mailbox.other_reply);
	say("and on");
}

/* --- the gate --- */

struct gate_frame *gate_top(void)
{
	struct thread *const t = thread_current();

	return t && t->top > t->frames ? t->top - 1 : NULL;
}

void gate_unwind(uint64_t rsp)
{
	struct thread *const t = thread_current();

	while (t->top > t->frames && t->top[-1].rsp <= rsp)
		t->top--;
	charge(&mailbox.counters.kernel_ticks);
}

const void *NTAPI gate_enter(struct gate_frame *f)
{
	const struct export *const e = exports[f->number];
	struct thread *const t = thread_current();

	charge(&mailbox.counters.driver_ticks);
	if (t->top == t->frames + GATE_DEPTH)
		bug_check(NULL, HOST_CANNOT, GATE_DEPTH, 0, 0, 0);
	mailbox.exports[f->number].calls++;
	if (tracing)
		say("%s(%lx, %lx, %lx, %lx)", e->name, f->arg[0], f->arg[1], f->arg[2], f->arg[3]);
	run_other_at(e->name);
	return e->address;
}

uint64_t NTAPI gate_leave(uint64_t result)
{
	struct gate_frame *const f = --thread_current()->top;

	if (tracing)
		say("  = %lx", result);
	charge(&mailbox.counters.kernel_ticks);
	return f->rip;
}
