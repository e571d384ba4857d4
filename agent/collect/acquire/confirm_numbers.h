/* SPDX-License-Identifier: Apache-2.0 */
/* The numbers of page files, once the kernel's own table of them has been seen. */
#ifndef RAMSEAL_AGENT_COLLECT_ACQUIRE_CONFIRM_NUMBERS_H
#define RAMSEAL_AGENT_COLLECT_ACQUIRE_CONFIRM_NUMBERS_H

#include "agent/shared/kernel/paging_files.h"
#include "tsk-extract/pagefiles.h"

/*
 * Those whose path the table has get its number, and that is known then. Another file that was
 * assumed to have such a number has none any more. Nothing changes if the table was not found.
 */
void confirm_numbers(struct pagefile_list *l, const struct paging_files *table);

#endif
