/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The paging files that a running Windows' kernel lists: SystemPageFileInformation (nt_answers.h).
 * It does not call Windows, so answers of any length and content can be tested anywhere.
 */
#ifndef RAMSEAL_TSK_EXTRACT_KERNEL_PAGEFILES_H
#define RAMSEAL_TSK_EXTRACT_KERNEL_PAGEFILES_H

#include <stdbool.h>

#include "formats/base/nt_answers.h"
#include "tsk-extract/pagefiles.h"

struct kernel_pagefile {
	char *name;             /* UTF-8, as from the kernel: "\??\C:\pagefile.sys"; free() it */
	uint32_t total, in_use; /* pages */
};

/* The position in an answer. */
struct kernel_pagefiles {
	struct nt_list list;
	size_t nameless; /* entries without a name so far: the compression store is not a file */
};

/* `base`: the address that `list` had when the kernel wrote it. */
struct kernel_pagefiles kernel_pagefiles_begin(const void *list, size_t size, uint64_t base);

/*
 * The next entry with a name. False at the end, and at an entry that is cut short or leads outside
 * the answer; ST_NOMEM in *ret_st ends it too.
 */
bool kernel_pagefiles_next(struct kernel_pagefiles *k, struct kernel_pagefile *ret,
			   enum status *ret_st);

/*
 * How certain it is that the place in the list, without nameless entries, is the number in page
 * tables. A single file can only be number 0: known. That several are in order of their numbers is
 * not documented: assumed, until the kernel's own structures are seen
 * (agent/shared/kernel/paging_files.h).
 */
enum number_origin kernel_pagefiles_origin(struct kernel_pagefiles k);

#endif
