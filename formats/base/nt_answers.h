/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What NtQuerySystemInformation() and RtlGetVersion() answer on x64, as bytes. Only Windows code
 * asks (win32.h, and driver-interface/nt.h where the answer decides about a driver); the answers
 * are parsed here, so those of every release can be tested on any system.
 *
 * An answer may be longer than the structure known here, because releases add fields at its end;
 * those are ignored. It may be shorter: a function returns false if it lacks what it needs. Nothing
 * outside the answer is ever read.
 *
 * Source of the layouts, unless one is named: phnt (github.com/winsiderss/phnt), ntexapi.h and
 * ntldr.h.
 */
#ifndef RAMSEAL_BASE_NT_ANSWERS_H
#define RAMSEAL_BASE_NT_ANSWERS_H

#include <stdbool.h>

#include "formats/base/range.h"

/* SYSTEM_INFORMATION_CLASS, and the first release that has it. */
enum nt_class {
	NT_PROCESSES = 5,        /* SystemProcessInformation */
	NT_MODULES = 11,         /* SystemModuleInformation */
	NT_PAGE_FILES = 18,      /* SystemPageFileInformation */
	NT_HANDLES = 64,         /* SystemExtendedHandleInformation; XP */
	NT_SUPERFETCH = 79,      /* SystemSuperfetchInformation; Vista */
	NT_BOOT = 90,            /* SystemBootEnvironmentInformation; Vista */
	NT_CODE_INTEGRITY = 103, /* SystemCodeIntegrityInformation; Windows 7 */
	NT_ISOLATION = 165,      /* SystemIsolatedUserModeInformation; 10 1507 */
	NT_KVA_SHADOW =
		196, /* SystemKernelVaShadowInformation; 10 1803, and patches of January 2018 */
};

/* NTSTATUS values (ntstatus.h) of such calls. */
#define NT_SUCCESS_STATUS       UINT32_C(0)
#define NT_NOT_IMPLEMENTED      UINT32_C(0xc0000002)
#define NT_INVALID_INFO_CLASS   UINT32_C(0xc0000003)
#define NT_INFO_LENGTH_MISMATCH UINT32_C(0xc0000004)
#define NT_BUFFER_TOO_SMALL     UINT32_C(0xc0000023)

/*
 * A UNICODE_STRING inside an answer: UTF-16 without a terminating zero. NULL: none, or outside the
 * answer.
 */
struct nt_text {
	const uint8_t *at;
	size_t len; /* bytes */
};

/*
 * An answer with several entries. `address`: where it was when Windows filled it, for its pointers.
 */
struct nt_list {
	const uint8_t *at;
	size_t len;
	uint64_t address;
	size_t next; /* begin with 0 */
};

struct nt_list nt_list_over(const void *answer, size_t len);

/* SYSTEM_PROCESS_INFORMATION. */
struct nt_process {
	uint64_t pid;
	struct nt_text name;
};

/* The next entry; false after the last, and at an incomplete one. */
bool nt_process_next(struct nt_list *l, struct nt_process *ret);

/* SYSTEM_PAGEFILE_INFORMATION, which is also the front of SYSTEM_PAGEFILE_INFORMATION_EX. */
struct nt_page_file {
	uint32_t total, in_use, peak; /* pages */
	struct nt_text name;          /* may be empty */
};

/*
 * Also false at an entry whose name is outside the answer: it could be any file, and later ones
 * could have any number.
 */
bool nt_page_file_next(struct nt_list *l, struct nt_page_file *ret);

/* SYSTEM_HANDLE_TABLE_ENTRY_INFO_EX: a handle of some process. */
struct nt_handle {
	uint64_t pid, value;
	uint32_t access; /* granted to it: an ACCESS_MASK */
	uint16_t type;   /* index of its object's type: this boot's numbers */
};

/* Their list. `next` counts bytes of the answer; the first call skips its header. */
bool nt_handle_next(struct nt_list *l, struct nt_handle *ret);

/* RTL_PROCESS_MODULES: the first module, which is the kernel. */
struct nt_kernel {
	uint64_t base; /* 0: not told (24H2 requires SeDebugPrivilege) */
	uint32_t size;
	char path[256];
};

bool nt_kernel_read(const void *answer, size_t len, struct nt_kernel *ret);

/*
 * PF_MEMORY_RANGE_INFO_V1 and _V2 (phnt, ntpfapi.h), the answer to SuperfetchMemoryRangesQuery.
 * Ranges are appended as they come. ST_CORRUPT if they make no sense: none, cut short, empty ones,
 * or page numbers beyond physical addresses.
 */
#define NT_SUPERFETCH_VERSION 45
#define NT_SUPERFETCH_MAGIC   UINT32_C(0x6B756843) /* "Chuk" */
#define NT_SUPERFETCH_RANGES  17                   /* SuperfetchMemoryRangesQuery */
#define NT_SUPERFETCH_SIZE    32                   /* of SUPERFETCH_INFORMATION */

enum status nt_ranges_read(const void *answer, size_t len, struct range_list *ret, struct err *e);

/* SYSTEM_BOOT_ENVIRONMENT_INFORMATION: 20 bytes on Vista and 7, 32 later. */
#define NT_BOOT_SIZE  32
#define NT_BOOT_FRONT 20

struct nt_boot {
	uint8_t id[16];    /* GUID of the boot entry */
	uint32_t firmware; /* FIRMWARE_TYPE (winnt.h): 1 is BIOS, 2 UEFI */
};

bool nt_boot_read(const void *answer, size_t len, struct nt_boot *ret);

/* SYSTEM_CODEINTEGRITY_INFORMATION: its options (Microsoft Learn, NtQuerySystemInformation()). */
#define NT_CODE_INTEGRITY_SIZE 8

bool nt_code_integrity_read(const void *answer, size_t len, uint32_t *ret_options);

/*
 * SYSTEM_ISOLATED_USER_MODE_INFORMATION: two bytes of flags in front, the first one in bits 0 to 7.
 * agent/collect/host/system_answers.h names them all.
 */
#define NT_ISOLATION_SIZE 16
#define NT_SECURE_KERNEL  0x0001 /* SecureKernelRunning */

bool nt_isolation_read(const void *answer, size_t len, uint32_t *ret_flags);

/* SYSTEM_KERNEL_VA_SHADOW_INFORMATION. */
#define NT_KVA_SHADOW_SIZE 4

struct nt_kva_shadow {
	bool on;                  /* KvaShadowEnabled: processes have two roots */
	bool told;                /* the fields from here on are set: since July 2018 */
	unsigned invalid_pte_bit; /* InvalidPteBit: the mask of page tables is this bit; 0: none */
	uint32_t flags;           /* all of it */
};

bool nt_kva_shadow_read(const void *answer, size_t len, struct nt_kva_shadow *ret);

/* OSVERSIONINFOEXW, as RtlGetVersion() fills it. */
struct nt_version {
	uint32_t major, minor, build;
};

bool nt_version_read(const void *answer, size_t len, struct nt_version *ret);

#endif
