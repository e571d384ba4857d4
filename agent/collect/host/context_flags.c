/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/collect/host/context_flags.h"

#include <inttypes.h>

/* "GFlags Flag Table" and "Global Flag Reference", Debugging Tools for Windows, Microsoft Learn. */
const struct context_flag context_global_flags[] = {
	{ 0x00000001, "soe: stop on exception" },
	{ 0x00000002, "sls: show loader snaps" },
	{ 0x00000004, "dic: debug initial command" },
	{ 0x00000008, "shg: stop on hung GUI" },
	{ 0x00000010, "htc: heap tail checking" },
	{ 0x00000020, "hfc: heap free checking" },
	{ 0x00000040, "hpc: heap parameter checking" },
	{ 0x00000080, "hvc: heap validation on call" },
	{ 0x00000100, "vrf: application verifier" },
	{ 0x00000200, "silent process exit monitoring" },
	{ 0x00000400, "ptg: pool tagging" },
	{ 0x00000800, "htg: heap tagging" },
	{ 0x00001000, "ust: user-mode stack trace database" },
	{ 0x00002000, "kst: kernel-mode stack trace database" },
	{ 0x00004000, "otl: list of objects for each type" },
	{ 0x00008000, "htd: heap tagging by DLL" },
	{ 0x00010000, "dse: no stack extension" },
	{ 0x00020000, "d32: debugging of the Win32 subsystem" },
	{ 0x00040000, "ksl: loading of kernel debugger symbols" },
	{ 0x00080000, "dps: no paging of kernel stacks" },
	{ 0x00100000, "scb: system critical breaks" },
	{ 0x00200000, "dhc: no heap coalescing on free" },
	{ 0x00400000, "ece: close exception" },
	{ 0x00800000, "eel: exception logging" },
	{ 0x01000000, "eot: object handle type tagging" },
	{ 0x02000000, "hpa: page heap" },
	{ 0x04000000, "dwl: debug Winlogon" },
	{ 0x08000000, "ddp: DbgPrint output buffered" },
	{ 0x10000000, "cse: early critical section events" },
	{ 0x20000000, "ltd: DLLs loaded top-down" },
	{ 0x40000000, "bhd: bad handles detection" },
	{ 0x80000000, "dpd: no protected DLL verification" },
	{ 0, NULL },
};

/* 1 inspects heaps for leaks when the process ends; with bit 1 a breakpoint follows. */
const struct context_flag context_shutdown_flags[] = {
	{ 1, "leak check at exit" },
	{ 2, "leak check at exit with a breakpoint" },
	{ 0, NULL },
};

/*
 * CODEINTEGRITY_OPTION_..., NtQuerySystemInformation(), "SYSTEM_CODEINTEGRITY_INFORMATION",
 * Microsoft Learn; the last two are in phnt's ntexapi.h alone (System Informer, 103cc43).
 */
const struct context_flag context_code_integrity[] = {
	{ CODE_INTEGRITY_ENABLED, "enabled" },
	{ CODE_INTEGRITY_TEST_SIGN, "test signing" },
	{ CODE_INTEGRITY_UMCI, "user mode" },
	{ CODE_INTEGRITY_UMCI_AUDIT, "user mode, audit only" },
	{ 0x0010, "user mode, exclusion paths" },
	{ 0x0020, "test build" },
	{ 0x0040, "pre-production build" },
	{ 0x0080, "kernel debugger attached" },
	{ 0x0100, "flight build" },
	{ 0x0200, "flight signing" },
	{ CODE_INTEGRITY_HVCI, "memory integrity" },
	{ CODE_INTEGRITY_HVCI_AUDIT, "memory integrity, audit only" },
	{ 0x1000, "memory integrity, strict" },
	{ 0x2000, "isolated user mode" },
	{ CODE_INTEGRITY_WHQL, "WHQL enforcement" },
	{ CODE_INTEGRITY_WHQL_AUDIT, "WHQL enforcement, audit only" },
	{ 0, NULL },
};

json_t *context_flag_names(uint64_t value, const struct context_flag *flags)
{
	json_t *list = json_array();

	for (; list && flags->bit; flags++) {
		if (value & flags->bit)
			json_array_append_new(list, json_string(flags->name));
		value &= ~(uint64_t)flags->bit;
	}
	if (list && value)
		json_array_append_new(list, json_sprintf("0x%" PRIx64, value));
	return list;
}
