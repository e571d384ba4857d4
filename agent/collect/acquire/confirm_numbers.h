/* SPDX-License-Identifier: Apache-2.0 */
/* The numbers of page files, once the kernel's own table of them has been seen. */
#ifndef RAMSEAL_AGENT_COLLECT_ACQUIRE_CONFIRM_NUMBERS_H
#define RAMSEAL_AGENT_COLLECT_ACQUIRE_CONFIRM_NUMBERS_H

#include "agent/shared/kernel/paging_files.h"
#include "tsk-extract/pagefiles.h"

/*
 * Files whose path is in the table get its number, which is then certain. Any other file that was
 * assumed to have such a number loses it. Nothing changes if the table was not found.
 */
void confirm_numbers(struct pagefile_list *l, const struct paging_files *table);

#endif
