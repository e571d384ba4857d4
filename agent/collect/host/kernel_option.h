/* SPDX-License-Identifier: Apache-2.0 */
/* How the running kernel was configured, where its own memory does not say. */
#ifndef RAMSEAL_AGENT_COLLECT_HOST_KERNEL_OPTION_H
#define RAMSEAL_AGENT_COLLECT_HOST_KERNEL_OPTION_H

#include "agent/shared/paging/pte.h"

/*
 * CONFIG_DEVICE_PRIVATE of the running Linux, which has this version (601 for 6.1; 0: unknown).
 * *ret_by: the file that says so, a static text; set unless the answer is OPTION_UNTOLD.
 */
enum pte_option host_device_private(uint32_t version, const char **ret_by);

#endif
