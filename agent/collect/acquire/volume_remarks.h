/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What was found on a disk's volumes while searching for page files, and what could not be
 * searched.
 */
#ifndef RAMSEAL_AGENT_COLLECT_ACQUIRE_VOLUME_REMARKS_H
#define RAMSEAL_AGENT_COLLECT_ACQUIRE_VOLUME_REMARKS_H

#include <jansson.h>

#include "tsk-extract/pagefiles.h"

/* Logs all of them. Returns how many volumes may hold page files that are not in the list. */
size_t volume_remarks_tell(const struct pagefile_list *l);

/* [{"offset":, "kind":, "looked_into":, "page_files_may_be_missing":, "text":}, …] */
json_t *volume_remarks_json(const struct pagefile_list *l);

/* "BitLocker, locked, at sector 2048: …" */
void volume_remark_text(const struct volume_remark *r, char *ret, size_t size);

#endif
