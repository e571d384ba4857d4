/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Crash dumps of 64-bit Windows, as WinDbg, MemProcFS and volatility3 open them: a header of 8 KiB,
 * and pages back to back. Type 5 has a bitmap of the pages it holds, so its readers know which are
 * missing. Type 1 has a list of at most 42 runs.
 *
 * Microsoft documents only the structures that it embeds. Layout: _DUMP_HEADER64 and
 * _SUMMARY_DUMP64 as in kdmp-parser (0vercl0k/kdmp-parser, src/lib/kdmp-parser-structs.h, fdbb9ef),
 * volatility3 (volatilityfoundation/volatility3, framework/symbols/windows/crash64.json and
 * crash_common.json, a1961401) and QEMU (qemu/qemu, include/qemu/win_dump_defs.h, a64b4e17), which
 * agree; CONTEXT and EXCEPTION_RECORD64 are winnt.h's.
 *
 *	0x0000	header; what is not set reads "PAGE", as Windows leaves it
 *	0x2000	type 1: the pages of run 0, run 1, ...
 *	0x2000	type 5: "FDMPDUMP"; at 0x2020 the offset of the first page, 0x2028 how many
 *		there are, 0x2030 bits in the bitmap, 0x2038 the bitmap: bit n for page
 *		frame n; then pages
 */
#ifndef RAMSEAL_FORMATS_DMP_H
#define RAMSEAL_FORMATS_DMP_H

#include "formats/image/image.h"

#define DMP_HEADER_SIZE      0x2000
#define DMP_BITMAP           0x2038

/* Microsoft's buffer for the list of runs has 700 bytes: 16, and 16 for each. */
#define DMP_RUNS_MAX         42

/*
 * A bitmap of 2 GiB, which is written as it is made. Windows Server 2022 and 2025 have a limit of
 * 48 TB on machines with four levels of page tables.
 */
#define DMP_END_MAX          (UINT64_C(64) << 40)

/*
 * LeechCore, under MemProcFS, takes no more than 16 MiB before the first page (ufrisk/LeechCore,
 * leechcore/device_file.c, 47ead5b7): so much memory has its bits there.
 */
#define DMP_LEECHCORE_MAX    (UINT64_C(512) << 30)

/* CONTEXT of x64 (winnt.h), and what of it matters here. */
#define DMP_CONTEXT_SIZE     1232
#define DMP_CONTEXT_FLAGS    0x30
#define DMP_CONTEXT_MXCSR    0x34
#define DMP_CONTEXT_SEGMENTS 0x38 /* Cs, Ds, Es, Fs, Gs, Ss: 16 bits each */
#define DMP_CONTEXT_MXCSR_2  0x118
#define DMP_CONTEXT_AMD64    UINT32_C(0x100000)
#define DMP_CONTEXT_ALL      UINT32_C(0x10001f) /* with segments and debug registers */

/* The six of them in a kernel (ufrisk/MemProcFS, vmm/modules/m_vfsroot.c, 17dcf57c). */
extern const uint8_t dmp_segments[12];

/*
 * Bytes that a debugger needs to be different from memory. Applied only if the memory is still what
 * it was when the patch was made; then `done` is set.
 */
#define DMP_PATCH_MAX   2048
#define DMP_PATCHES_MAX 8

struct dmp_patch {
	const char *what; /* static */
	uint64_t address; /* physical; all of it lies in one page */
	size_t length;    /* 1 .. DMP_PATCH_MAX */
	uint8_t original[DMP_PATCH_MAX];
	uint8_t bytes[DMP_PATCH_MAX];
	bool done;
};

/* What the header says about the machine. 0 and NULL: not known. */
struct dmp_kernel {
	uint64_t dtb;                                    /* physical; the kernel's */
	uint64_t kdbg, pfn_database, modules, processes; /* virtual */
	uint32_t build;
	uint32_t processors;
	bool has_times;       /* from KUSER_SHARED_DATA, like the two below */
	uint64_t system_time; /* FILETIME */
	uint64_t up_time;     /* 100 ns */
	uint32_t product_type, suite_mask;
	const uint8_t *context; /* DMP_CONTEXT_SIZE bytes */
	/*
	 * Type 5: the parts of the spec's ranges whose pages are there, tidy. NULL: not known
	 * before they are read. Then pages without content are removed from the bitmap at the end
	 * if the sink can rewrite it, and filled otherwise.
	 */
	const struct range_list *present;
	struct dmp_patch *patches; /* writers set `done` */
	size_t n_patches;
};

/* spec->own of both is a struct dmp_kernel, or NULL. */
extern const struct image_format dmp_format, dmp_full_format;

/* Applies the patch if it is in the page at `address` and finds the original bytes there. */
bool dmp_patch_apply(const struct dmp_patch *p, uint64_t address, uint8_t page[static PAGE_SIZE]);
/* Applies all that fit and sets `done`; true if anything was changed. */
bool dmp_patch_page(struct dmp_patch *at, size_t count, uint64_t address,
		    uint8_t page[static PAGE_SIZE]);

#endif
