/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The paging files that a running Windows' kernel lists: SystemPageFileInformation, class 18 of
 * NtQuerySystemInformation(). Nothing of Windows is called here, so that answers of any length and any
 * content can be tried anywhere.
 *
 * Each entry is _SYSTEM_PAGEFILE_INFORMATION of phnt's ntexapi.h (System Informer, 103cc43), on x64:
 *
 *	 0  u32  NextEntryOffset, from the entry's own beginning; 0: this is the last
 *	 4  u32  TotalSize, 8 TotalInUse, 12 PeakUsage: in pages
 *	16  u16  length of PageFileName in bytes, 18 u16 room, 24 u64 its address in the asker's memory
 */
#ifndef RAMSEAL_TSK_EXTRACT_KERNEL_PAGEFILES_H
#define RAMSEAL_TSK_EXTRACT_KERNEL_PAGEFILES_H

#include <stdbool.h>

#include "tsk-extract/pagefiles.h"

struct kernel_pagefile {
	char *name;             /* UTF-8, as the kernel has it: "\??\C:\pagefile.sys"; free() it */
	uint32_t total, in_use; /* pages */
};

/* Where reading an answer has come to. */
struct kernel_pagefiles {
	const uint8_t *list;
	size_t size;
	uint64_t base;   /* the address that `list` had when the kernel wrote it */
	size_t at;       /* of the next entry; SIZE_MAX: there is none */
	size_t nameless; /* entries without a name so far: the compression store is no file */
};

struct kernel_pagefiles kernel_pagefiles_begin(const void *list, size_t size, uint64_t base);

/*
 * The next entry that has a name. False at the end, and at what is cut short or leads outside of the
 * answer; ST_NOMEM in *ret_st ends it too.
 */
bool kernel_pagefiles_next(struct kernel_pagefiles *k, struct kernel_pagefile *ret,
			   enum status *ret_st);

/*
 * How sure the place in the list, nameless entries left out, is the number that page tables use. One
 * file can only be number 0: known. That several stand in the order of their numbers is nowhere written
 * down: assumed, until the kernel's own structures are seen (agent/paging/paging_files.h).
 */
enum number_origin kernel_pagefiles_origin(struct kernel_pagefiles k);

#endif
