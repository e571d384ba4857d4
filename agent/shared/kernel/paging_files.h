/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Windows' own table of its paging files, in the kernel's memory: which number belongs to which
 * file, and which of them is the compression store, a paging file without a file. The numbers are
 * what page-table entries name (PageFileLow).
 */
#ifndef RAMSEAL_AGENT_SHARED_KERNEL_PAGING_FILES_H
#define RAMSEAL_AGENT_SHARED_KERNEL_PAGING_FILES_H

#include "agent/shared/paging/walk.h"

struct windows_kernel;

/* PagingFile[16] of _MI_VISIBLE_PARTITION; PageFileLow has 4 bits */
#define PAGING_FILES_MAX     16
#define PAGING_FILE_NAME_MAX 264 /* MAX_PATH and the prefix "\??\" */

struct paging_file {
	char name
		[PAGING_FILE_NAME_MAX]; /* "\??\C:\pagefile.sys"; what is not ASCII is "?"; or "" */
	bool store;                     /* VirtualStorePagefile: the compression store */
	bool apps;                      /* WsSwapPagefile: the swap file of store apps */
	uint64_t pages;                 /* Size */
};

struct paging_files {
	struct paging_file at[PAGING_FILES_MAX]; /* by their numbers */
	size_t count;                            /* 0: the table was not found */
	const char *layout;                      /* which versions' structures they have */
	uint64_t va;                             /* of the _MI_VISIBLE_PARTITION */
};

/*
 * Looks for the table in the writable part of the kernel's image. It is believed only if everything
 * in it agrees, the number in each structure with its place among them; false, and `ret` is zero,
 * if nothing does, or if two places do.
 */
bool paging_files_find(const struct virt *v, const struct windows_kernel *k,
		       struct paging_files *ret);

/* The number of the compression store; -1: it has none, or the table was not found. */
int paging_files_store(const struct paging_files *f);

#endif
