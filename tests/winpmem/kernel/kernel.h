/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A kernel that is Windows' to one driver at a time: it starts in QEMU, loads the driver, and
 * does for it what a Linux process asks (../protocol.h). This header is what all its files need.
 *
 *	boot.S traps.S cpu.c     the processor
 *	frames.c paging.c        memory as the processor sees it
 *	pool.c thread.c          memory and threads as the driver sees them
 *	image.c unwind.c seh.c   the driver's file, and its exceptions
 *	gate.c gate.S            where the driver calls into the kernel, and what is noted there
 *	nt_*.c                   what it calls, by area; exports.c has the table
 *	io.c                     what an I/O manager does: IRPs, fast I/O, loading and unloading
 *	vbs.c                    a hypervisor below all that, which keeps pages for itself
 *	transport.c main.c       the Linux side
 */
#ifndef WINPMEM_KERNEL_KERNEL_H
#define WINPMEM_KERNEL_KERNEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Everything is linked into one image: no address is looked up in a table (-fPIE). */
#pragma GCC visibility push(hidden)

#include "../protocol.h"
#include "layout.h"
#include "nt.h"

#define ARRAY_SIZE(a)     (sizeof(a) / sizeof((a)[0]))
#define MIN(a, b)         ((a) < (b) ? (a) : (b))
#define ROUND_UP(x, unit) (((x) + (unit)-1) / (unit) * (unit))
#define PAGE_OF(address)  ((uint64_t)(address) & ~(uint64_t)(PAGE_SIZE - 1))
#define PAGE_OFFSET(a)    ((uint64_t)(a) & (PAGE_SIZE - 1))

/* kernel.ld */
extern struct mailbox mailbox;
extern uint8_t kernel_start[], kernel_end[], nt_image[], text_start[], text_end[];

/* gcc calls these by itself; string.c */
void *memcpy(void *to, const void *from, size_t len);
void *memset(void *to, int byte, size_t len);
void *memmove(void *to, const void *from, size_t len);
int memcmp(const void *a, const void *b, size_t len);
size_t strlen(const char *s);
int strcmp(const char *a, const char *b);

/* --- format.c --- */

/* How long what "%lx" prints is: it depends on who wrote the format. */
enum long_is { LONG_32, LONG_64 };

/*
 * printf() into `to`; `args` are 8-byte slots, as Microsoft's va_list is. Returns the length
 * without the final 0, which is always there; what does not fit is left out.
 */
size_t format(char *to, size_t room, const char *fmt, const uint64_t *args, enum long_is longs);

/* --- transport.c --- */

/* One line of the log in the mailbox; the line feed is added. */
void NTAPI say(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* The same for what Driver Verifier would have stopped Windows for. Counted. */
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
/* Not Windows': this kernel has met something that it does not know how to play. */
#define HOST_CANNOT                    0xffff0001

/* Where the machine stood when something went wrong. */
struct context;

/* Writes down what happened, tells the Linux side, and stands still for good. `at` may be NULL. */
_Noreturn void bug_check(const struct context *at, uint32_t code, uint64_t p1, uint64_t p2,
			 uint64_t p3, uint64_t p4);

#endif
