/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every call from the driver into the kernel goes through a gate (gate.S). There it is counted and
 * timed, logged on request, and may trigger another request at just that moment.
 */
#ifndef WINPMEM_KERNEL_GATE_H
#define WINPMEM_KERNEL_GATE_H

#include "kernel.h"

/*
 * The driver's side of one such call: where it resumes, and the registers to be preserved for it.
 */
struct gate_frame {
	uint64_t rip, rsp;
	uint64_t rbx, rbp, rsi, rdi, r12, r13, r14, r15;
	uint64_t arg[4];
	uint64_t number; /* of the export */
};

/* One function or variable of ntoskrnl.exe or WDFLDR.SYS. */
struct export
{
	const char *name;
	const void *address;
	bool variable;
};

#define EXPORT(function)          { #function, (const void *)(function), false }
#define EXPORT_VARIABLE(variable) { #variable, &(variable), true }

/* One table for each area, ended by an empty entry. */
extern const struct export nt_ke_exports[], nt_ex_exports[], nt_mm_exports[], nt_section_exports[],
	nt_zw_exports[], nt_ob_exports[], nt_se_exports[], nt_rtl_exports[], nt_wdf_exports[],
	io_exports[], seh_exports[];

void exports_init(void);

/* What to put into a driver's import table under that name; NULL if nobody has it. */
const void *export_address(const char *name);

/* The export with that number. */
const struct export *export_at(uint64_t number);
unsigned exports_count(void);

/*
 * Whether the allocation that the caller is about to make is to fail (SET_FAIL_AT). Everything that
 * can run out of a resource asks this first.
 */
bool allocation_fails(void);
void allocation_fail_at(uint64_t n);

void gate_set_trace(bool on);
void gate_set_trigger(uint64_t nth);

/* This thread's innermost call that has not returned yet, or NULL. */
struct gate_frame *gate_top(void);

/* Drops the calls that a caught exception has cut short: those made with the stack below `rsp`. */
void gate_unwind(uint64_t rsp);

/* To be put around each call into the driver, for machine_counters.driver_ticks. */
void gate_driver_begins(void);
void gate_driver_ends(void);

#endif
