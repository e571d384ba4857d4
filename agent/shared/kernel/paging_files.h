/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Windows's own table of its paging files, in the kernel's memory: the numbers of the files, and
 * which of them is the compression store, a paging file without a file. Page-table entries refer to
 * these numbers (PageFileLow).
 */
#ifndef RAMSEAL_AGENT_SHARED_KERNEL_PAGING_FILES_H
#define RAMSEAL_AGENT_SHARED_KERNEL_PAGING_FILES_H

#include "agent/shared/paging/walk.h"

struct windows_kernel;

/* PagingFile[16] of _MI_VISIBLE_PARTITION; PageFileLow has 4 bits */
#define PAGING_FILES_MAX     16
#define PAGING_FILE_NAME_MAX 264 /* MAX_PATH and the prefix "\??\" */

struct paging_file {
	char name[PAGING_FILE_NAME_MAX]; /* "\??\C:\pagefile.sys", "?" for non-ASCII; or "" */
	bool store;                      /* VirtualStorePagefile: the compression store */
	bool apps;                       /* WsSwapPagefile: the swap file of store apps */
	uint64_t pages;                  /* Size */
};

struct paging_files {
	struct paging_file at[PAGING_FILES_MAX]; /* by their numbers */
	size_t count;                            /* 0: the table was not found */
	const char *layout;                      /* the versions with these structures */
	uint64_t va;                             /* of the _MI_VISIBLE_PARTITION */
};

/*
 * Searches the writable part of the kernel's image for the table. It is accepted only if everything
 * in it agrees, such as the number in each structure with its place; false, with `ret` zero, if
 * there is no such table or more than one.
 */
bool paging_files_find(const struct virt *v, const struct windows_kernel *k,
		       struct paging_files *ret);

/* The number of the compression store; -1: there is none, or the table was not found. */
int paging_files_store(const struct paging_files *f);

#endif
