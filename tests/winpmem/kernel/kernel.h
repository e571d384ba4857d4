/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A small kernel that plays Windows to one driver at a time. QEMU starts it; then it loads the
 * driver, and does with it what a Linux process asks (../protocol.h). Every file includes this one.
 *
 *	boot.S main.c            start-up
 *	cpu.c traps.S trap.c     the processor and its exceptions
 *	frames.c paging.c        page frames and page tables
 *	pool.c thread.c          pool and threads
 *	image.c ntoskrnl.c       the driver's PE file, and this kernel's
 *	unwind.c seh.c           structured exception handling
 *	gate.c gate.S            the gate for the driver's calls into the kernel
 *	nt_*.c                   the functions that it calls, by area
 *	io.c requests.c          the I/O manager
 *	vbs.c vbs.S              a hypervisor below all that, which hides pages
 *	bugcheck.c transport.c   what the Linux side gets to see
 */
#ifndef WINPMEM_KERNEL_KERNEL_H
#define WINPMEM_KERNEL_KERNEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Everything is linked into one image, so -fPIE needs no table of addresses. */
#pragma GCC visibility push(hidden)

#include "../protocol.h"
#include "layout.h"
#include "nt.h"

#define ARRAY_SIZE(a)     (sizeof(a) / sizeof((a)[0]))
#define MIN(a, b)         ((a) < (b) ? (a) : (b))
#define ROUND_UP(x, unit) (((x) + (unit) - 1) / (unit) * (unit))
#define PAGE_OF(address)  ((uint64_t)(address) & ~(uint64_t)(PAGE_SIZE - 1))
#define PAGE_OFFSET(a)    ((uint64_t)(a) & (PAGE_SIZE - 1))

/* kernel.ld */
extern struct mailbox mailbox;
extern uint8_t kernel_start[], kernel_end[], nt_image[], text_start[], text_end[];

/* string.c; gcc calls these on its own */
void *memcpy(void *to, const void *from, size_t len);
void *memset(void *to, int byte, size_t len);
void *memmove(void *to, const void *from, size_t len);
int memcmp(const void *a, const void *b, size_t len);
size_t strlen(const char *s);
int strcmp(const char *a, const char *b);

/* --- format.c --- */

/* How long a "long" is, which depends on who wrote the format. */
enum long_is { LONG_32, LONG_64 };

/*
 * printf() into `to`. `args` are 8-byte slots, which is what Microsoft's va_list points at. Cuts
 * what does not fit, always ends with a 0, and returns the length without it.
 */
size_t format(char *to, size_t room, const char *fmt, const uint64_t *args, enum long_is longs);

/* --- transport.c --- */

/* Adds a line to the log in the mailbox. */
void NTAPI say(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* The same for something that Driver Verifier would stop Windows for. It is counted. */
void NTAPI complain(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void log_text(const char *text, size_t len);

/* --- bugcheck.c --- */

#define IRQL_NOT_LESS_OR_EQUAL         0x0a
#define MEMORY_MANAGEMENT              0x1a
#define KMODE_EXCEPTION_NOT_HANDLED    0x1e
#define SYSTEM_SERVICE_EXCEPTION       0x3b
#define MULTIPLE_IRP_COMPLETE          0x44
#define IRQL_GT_ZERO_AT_SYSTEM_SERVICE 0x4a
#define PAGE_FAULT_IN_NONPAGED_AREA    0x50
#define SYSTEM_THREAD_EXCEPTION        0x7e
#define UNEXPECTED_KERNEL_MODE_TRAP    0x7f
#define INVALID_KERNEL_HANDLE          0x93
#define MACHINE_CHECK_EXCEPTION        0x9c
#define BAD_POOL_CALLER                0xc2
/* Not one of Windows': something happened that this kernel does not know how to play. */
#define HOST_CANNOT                    0xffff0001

/* The registers when something went wrong. */
struct context;

/* Records what happened, tells the Linux side, and halts for good. `at` may be NULL. */
_Noreturn void bug_check(const struct context *at, uint32_t code, uint64_t p1, uint64_t p2,
			 uint64_t p3, uint64_t p4);

#endif
