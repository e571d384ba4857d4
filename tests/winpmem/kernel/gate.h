/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every call of the driver into the kernel passes here (gate.S), and is counted, timed, logged if
 * the Linux side wants it, and used to let something else happen at just that moment.
 */
#ifndef WINPMEM_KERNEL_GATE_H
#define WINPMEM_KERNEL_GATE_H

#include "kernel.h"

/* The caller of one such call: where it goes on, and its registers that must be kept. */
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

#define EXPORT(function)                                                                           \
	{                                                                                          \
#function, (const void *)(function), false                                         \
	}
#define EXPORT_VARIABLE(variable)                                                                  \
	{                                                                                          \
#variable, &(variable), true                                                       \
	}

/* By area; each ends with an empty one. */
extern const struct export nt_ke_exports[], nt_ex_exports[], nt_mm_exports[], nt_section_exports[],
	nt_zw_exports[], nt_ob_exports[], nt_se_exports[], nt_rtl_exports[], nt_wdf_exports[],
	io_exports[], seh_exports[];

void exports_init(void);

/* What an import of that name is to contain; NULL if there is none. */
const void *export_address(const char *name);

/* The function or variable itself, by its number. */
const struct export *export_at(uint64_t number);
unsigned exports_count(void);

/*
 * Whether the allocation that the caller is about to make shall fail. Everything that may run out
 * of something asks this first (SET_FAIL_AT).
 */
bool allocation_fails(void);
void allocation_fail_at(uint64_t n);

void gate_set_trace(bool on);
void gate_set_trigger(uint64_t nth);

/* The frame of the innermost call of this thread that has not returned, or NULL. */
struct gate_frame *gate_top(void);

/* Forgets the calls that a caught exception has cut off: those made from below `rsp`. */
void gate_unwind(uint64_t rsp);

/* Around each call into the driver, for machine_counters.driver_ticks. */
void gate_driver_begins(void);
void gate_driver_ends(void);

#endif
