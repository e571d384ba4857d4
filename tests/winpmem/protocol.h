/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How a Linux process talks to the kernel in kernel/. They share a mailbox in the machine's RAM,
 * which QEMU keeps in a file (memory-backend-file, share=on). A byte over the serial port, in
 * either direction, says "look at the mailbox". Between its byte and ours the machine is halted.
 *
 * Buffers live in the machine's RAM too: they are pages of a make-believe user process, and
 * requests name them by their virtual address in it, as a program would. machine.py and client.c
 * are the Linux side.
 */
#ifndef WINPMEM_PROTOCOL_H
#define WINPMEM_PROTOCOL_H

#include <stdint.h>

/* Where the kernel's image is loaded; the mailbox is its first pages (kernel.ld). */
#define MAILBOX_PHYS  0x200000
#define MAILBOX_MAGIC 0x3168646d656d7077u /* "wpmemdh1" */

enum machine_state {
	MACHINE_BOOTING,
	MACHINE_READY,
	MACHINE_BUSY,
	MACHINE_STOPPED, /* a bug check: there will be no more answers */
};

enum op {
	/*
	 * Loads the driver whose file lies in the buffers, and runs its DriverEntry(). First the
	 * `patch_len` bytes at `patch_rva` are replaced by those at `patch`; 0 bytes leave it
	 * alone. arg: offset in the buffers, length, patch_rva, patch (an offset too), patch_len.
	 * value: image base and size.
	 */
	OP_LOAD = 1,
	OP_UNLOAD, /* what the service control manager asks for */
	OP_OPEN,   /* arg: access (FILE_READ_DATA 1, FILE_WRITE_DATA 2). value: handle */
	OP_CLOSE,  /* arg: handle */
	OP_IOCTL,  /* arg: handle, code, in, in_len, out, out_len */
	OP_READ,   /* arg: handle, buffer, length, offset. value: enum read_path */
	OP_SET,    /* arg: enum setting, value */
	OP_RANGES, /* of MmGetPhysicalMemoryRanges(). arg: address of {base, bytes}[], count */
	OP_HIDE,   /* arg: enum hiding, first page number, count, 0 or 1 */
};

/* A bit each. */
enum read_path { READ_FAST = 1, READ_IRP = 2 };

enum hiding {
	HIDE_FROM_READS, /* secure memory: it can be mapped, but not read (boot option "vbs") */
	HIDE_FROM_MAPS,  /* ZwMapViewOfSection() and MmMapIoSpace() refuse */
};

enum setting {
	SET_FAIL_AT,    /* the n-th allocation from now fails, once; 0: none */
	SET_JUNK,       /* what new pool is filled with, 8 bytes repeated */
	SET_IOSPACE,    /* enum iospace */
	SET_SECURE,     /* the kernel itself exports IoCreateDeviceSecure() */
	SET_MODULES,    /* how many modules ZwQuerySystemInformation() lists */
	SET_BUILD,      /* NtBuildNumber */
	SET_PROCESSORS, /* KeQueryActiveProcessors() */
	SET_TRACE,      /* every call of the driver into the kernel is logged */
	SET_TRIGGER,    /* `other` runs at the n-th call of trigger[] from now; 0: it does not */
	SET_VBS_EVENT,  /* the vector that a read of secure memory raises: 13 or 18 */
	SET_LENIENT,    /* do not check the IRQL when a system service returns */
	SET_FAR,        /* the kernel's PE headers are not found below NtBuildNumber */
};

/* What MmMapIoSpace() does for RAM that nobody has locked. */
enum iospace {
	IOSPACE_MAPS,
	IOSPACE_STOPS, /* bug check 0x1A, 0x1233: documented for current Windows */
	IOSPACE_NULL,  /* seen under a hypervisor: WinPmem #11 */
};

struct machine_request {
	uint64_t op;
	uint64_t arg[8];
};

struct machine_reply {
	uint64_t status;      /* NTSTATUS, as the system service returns it */
	uint64_t information; /* of the I/O status block, as the caller finds it */
	uint64_t value[4];
	uint64_t hung; /* the request waits for something that will never happen */
	uint64_t done; /* it ran to its end */
};

/* What the driver holds at the moment, and what it has done. */
struct machine_counters {
	uint64_t pool_blocks, pool_bytes; /* not counting the I/O manager's own */
	uint64_t pages_locked;            /* by MDLs */
	uint64_t system_ptes;             /* pages mapped by MDLs and MmMapIoSpace() */
	uint64_t views;                   /* of sections */
	uint64_t handles;                 /* of sections and keys */
	uint64_t devices, links;
	uint64_t image_pages;
	uint64_t frames;      /* in use altogether */
	uint64_t allocations; /* that could have failed since the last SET_FAIL_AT */
	uint64_t failed;      /* the export whose allocation did fail */
	uint64_t complaints;  /* things that Driver Verifier would object to; the log has them */
	uint64_t keys_created, values_set;
	uint64_t mapped_above_passive; /* ZwMapViewOfSection() at a forbidden IRQL */
	uint64_t affinity;             /* of the thread that asked; 0: not set */
	uint64_t driver_ticks;         /* TSC in the driver's own code, since it was loaded */
	uint64_t kernel_ticks;         /* and in what it calls */
	uint64_t request_ticks;        /* of all requests, these included */
};

struct machine_bugcheck {
	uint64_t code;
	uint64_t parameter[4];
	uint64_t rip, rsp, address; /* where it happened; `address` is CR2 */
	uint64_t image;             /* where the driver is */
	uint64_t depth;
	uint64_t trace[16]; /* return addresses, innermost first */
};

#define EXPORTS_MAX 128

struct machine_export {
	char name[48];
	uint64_t calls;
};

#define RANGES_MAX 64

struct machine_range {
	uint64_t base, bytes;
};

#define LOG_SIZE (1 << 17)

struct mailbox {
	uint64_t magic;
	uint64_t size; /* of this structure */
	uint64_t state;
	struct machine_request request, other;
	struct machine_reply reply, other_reply;
	char trigger[48]; /* the name of an export */

	/* What the machine is. */
	uint64_t ram_count;
	struct machine_range ram[RANGES_MAX]; /* as the firmware tells it, whole pages */
	uint64_t system_first, system_bytes;  /* RAM that the kernel uses; the rest never changes */
	uint64_t user_phys, user_va, user_bytes;
	uint64_t user_read_only; /* a page that the process may only read */
	uint64_t cr3_system, cr3_user, levels;
	uint64_t vbs;

	struct machine_counters counters;
	struct machine_bugcheck bugcheck;
	struct machine_export exports[EXPORTS_MAX];
	uint64_t log_len; /* bytes written so far; the log wraps around */
	char log[LOG_SIZE];
};

#endif
