/* SPDX-License-Identifier: Apache-2.0 */
/* Page files that the memory's source itself provides: those of a simulated machine. */
#ifndef RAMSEAL_AGENT_COLLECT_ACQUIRE_SOURCE_FILES_H
#define RAMSEAL_AGENT_COLLECT_ACQUIRE_SOURCE_FILES_H

#include "driver-interface/drv.h"
#include "tsk-extract/pagefiles.h"

bool source_has_files(struct drv *d);

/* Appends them, with their numbers. The source is borrowed for as long as the list lives. */
enum status source_files_find(struct drv *d, struct pagefile_list *ret, struct err *e);

#endif
