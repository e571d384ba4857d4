/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a running Windows must tell before its memory driver is loaded or read: how many levels its
 * page tables have, whether a secure kernel runs below it, where its own kernel and its RAM are. No
 * word of Windows in here (nt_windows.c has that), so that a fake can play every release.
 */
#ifndef RAMSEAL_DRIVER_INTERFACE_NT_H
#define RAMSEAL_DRIVER_INTERFACE_NT_H

#include "formats/base/nt_answers.h"

struct nt {
	const struct nt_ops *ops;
};

/* Of the processor, by CPUID, and of what Windows makes of it. */
struct nt_cpu {
	bool can_la57;         /* CPUID 7, ECX bit 16 (SDM vol. 2) */
	unsigned phys_bits;    /* CPUID 0x80000008, EAX bits 0 to 7; 0: not told */
	uint64_t highest_user; /* GetSystemInfo(), lpMaximumApplicationAddress */
};

struct nt_ops {
	/*
	 * NtQuerySystemInformation(): an NTSTATUS. *ret_len: bytes that came, or that are wanted
	 * where there was too little room. Addresses inside of `buf` are those of this program.
	 */
	uint32_t (*query)(struct nt *nt, enum nt_class class, void *buf, size_t len,
			  size_t *ret_len);
	/*
	 * Enables SeProfileSingleProcessPrivilege, which class 79 wants, and SeDebugPrivilege,
	 * without which 24H2 tells no addresses of the kernel. `on` false makes both what they were
	 * before.
	 */
	void (*privileges)(struct nt *nt, bool on);
	void (*cpu)(struct nt *nt, struct nt_cpu *ret);
};

/* This Windows (nt_windows.c). */
struct nt *nt_here(void);

enum nt_tells { NT_NO, NT_YES, NT_UNKNOWN };

/*
 * Do page tables have five levels? The processor must be able to, and Windows must have taken it
 * up: by more than 47 bits of addresses for programs, or by its kernel, which is a file of its own
 * then, ntkrla57.exe. NT_UNKNOWN: it may be, and Windows does not tell its kernel.
 */
enum nt_tells nt_five_levels(struct nt *nt);

/*
 * Does a secure kernel run (VBS), which keeps pages from this one? Before Windows 10 there is none:
 * class 165 is unknown there. NT_UNKNOWN: another error.
 */
enum nt_tells nt_secure_kernel(struct nt *nt);

/* The kernel's module. False: Windows does not tell. */
bool nt_kernel(struct nt *nt, struct nt_kernel *ret);

/*
 * Appends RAM as the memory manager has it now, with what was added since the boot and without what
 * was taken away. ST_NO_SOURCE if Windows does not tell, ST_CORRUPT if that makes no sense.
 */
enum status nt_ranges(struct nt *nt, struct range_list *ret, struct err *e);

/* Bits that a physical address has here; 52 if the processor does not tell, or more. */
unsigned nt_phys_bits(struct nt *nt);

#endif
