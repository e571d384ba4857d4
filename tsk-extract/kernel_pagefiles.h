/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The paging files that a running Windows' kernel lists: SystemPageFileInformation (nt_answers.h).
 * Nothing of Windows is called here, so that answers of any length and any content can be tried
 * anywhere.
 */
#ifndef RAMSEAL_TSK_EXTRACT_KERNEL_PAGEFILES_H
#define RAMSEAL_TSK_EXTRACT_KERNEL_PAGEFILES_H

#include <stdbool.h>

#include "formats/base/nt_answers.h"
#include "tsk-extract/pagefiles.h"

struct kernel_pagefile {
	char *name;             /* UTF-8, as the kernel has it: "\??\C:\pagefile.sys"; free() it */
	uint32_t total, in_use; /* pages */
};

/* Where reading an answer has come to. */
struct kernel_pagefiles {
	struct nt_list list;
	size_t nameless; /* entries without a name so far: the compression store is no file */
};

/* `base`: the address that `list` had when the kernel wrote it. */
struct kernel_pagefiles kernel_pagefiles_begin(const void *list, size_t size, uint64_t base);

/*
 * The next entry that has a name. False at the end, and at what is cut short or leads outside of
 * the answer; ST_NOMEM in *ret_st ends it too.
 */
bool kernel_pagefiles_next(struct kernel_pagefiles *k, struct kernel_pagefile *ret,
			   enum status *ret_st);

/*
 * How sure the place in the list, nameless entries left out, is the number that page tables use.
 * One file can only be number 0: known. That several stand in the order of their numbers is nowhere
 * written down: assumed, until the kernel's own structures are seen
 * (agent/shared/kernel/paging_files.h).
 */
enum number_origin kernel_pagefiles_origin(struct kernel_pagefiles k);

#endif
