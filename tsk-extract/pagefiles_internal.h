/* SPDX-License-Identifier: Apache-2.0 */
/* Between pagefiles.c and the systems' halves. */
#ifndef RAMSEAL_TSK_EXTRACT_PAGEFILES_INTERNAL_H
#define RAMSEAL_TSK_EXTRACT_PAGEFILES_INTERNAL_H

#include "tsk-extract/pagefiles.h"

/* Appends an entry of which only the path is filled in. *ret is valid until the next one. */
enum status pagefile_list__add(struct pagefile_list *l, const char *path, struct pagefile **ret,
			       struct err *e);

#endif
