/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What must be known about a running Windows before a memory driver is loaded or read: the levels
 * of its page tables, whether a secure kernel runs below it, and where its kernel and its RAM are.
 * No Windows API in here (nt_windows.c has that), so that a fake can play every release.
 */
#ifndef RAMSEAL_DRIVER_INTERFACE_NT_H
#define RAMSEAL_DRIVER_INTERFACE_NT_H

#include "formats/base/nt_answers.h"

struct nt {
	const struct nt_ops *ops;
};

/* Facts about the processor, and how Windows uses it. */
struct nt_cpu {
	bool can_la57;         /* CPUID 7, ECX bit 16 (SDM vol. 2) */
	unsigned phys_bits;    /* CPUID 0x80000008, EAX bits 0 to 7; 0: not told */
	uint64_t highest_user; /* GetSystemInfo(), lpMaximumApplicationAddress */
};

struct nt_ops {
	/*
	 * NtQuerySystemInformation(): an NTSTATUS. *ret_len: the bytes returned, or needed if `buf`
	 * is too small. Addresses inside `buf` are this program's.
	 */
	uint32_t (*query)(struct nt *nt, enum nt_class class, void *buf, size_t len,
			  size_t *ret_len);
	/*
	 * Enables SeProfileSingleProcessPrivilege, which class 79 needs, and SeDebugPrivilege,
	 * without which 24H2 reveals no kernel addresses. `on` false restores both.
	 */
	void (*privileges)(struct nt *nt, bool on);
	void (*cpu)(struct nt *nt, struct nt_cpu *ret);
};

/* This Windows (nt_windows.c). */
struct nt *nt_here(void);

enum nt_tells { NT_NO, NT_YES, NT_UNKNOWN };

/*
 * Do page tables have five levels? The processor must support it and Windows must use it: programs
 * then have more than 47 address bits, or the kernel is a different file, ntkrla57.exe. NT_UNKNOWN:
 * possible, but Windows does not reveal its kernel.
 */
enum nt_tells nt_five_levels(struct nt *nt);

/*
 * Does a secure kernel (VBS) run, which withholds pages from this one? Before Windows 10 there is
 * none: class 165 is unknown there. NT_UNKNOWN: another error.
 */
enum nt_tells nt_secure_kernel(struct nt *nt);

/* The kernel's module. False: Windows does not reveal it. */
bool nt_kernel(struct nt *nt, struct nt_kernel *ret);

/*
 * Appends RAM as the memory manager sees it now, with what was added and without what was removed
 * since boot. ST_NO_SOURCE if Windows gives no answer, ST_CORRUPT if it makes no sense.
 */
enum status nt_ranges(struct nt *nt, struct range_list *ret, struct err *e);

/* The bits of a physical address on this processor; 52 if it says more or nothing. */
unsigned nt_phys_bits(struct nt *nt);

#endif
