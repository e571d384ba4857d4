/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CM_RESOURCE_LIST, the form in which Windows keeps hardware resources in its registry. RAM is in
 * HKLM\HARDWARE\RESOURCEMAP\System Resources\Physical Memory, value ".Translated", as the kernel
 * wrote it when it started; x64 layout (wdm.h, CM_PARTIAL_RESOURCE_DESCRIPTOR).
 */
#ifndef RAMSEAL_DRIVER_INTERFACE_RESOURCE_LIST_H
#define RAMSEAL_DRIVER_INTERFACE_RESOURCE_LIST_H

#include "formats/base/range.h"

#define RESOURCE_LIST_KEY   "HARDWARE\\RESOURCEMAP\\System Resources\\Physical Memory"
#define RESOURCE_LIST_VALUE ".Translated"

/*
 * Appends every memory descriptor, including large ones, as listed: not tidy. Descriptors that are
 * empty or reach past 2^64 are left out. ST_CORRUPT if the list is cut short; what comes before the
 * cut is then appended. ST_NO_SOURCE if there is no memory in it.
 */
enum status resource_list_parse(const void *p, size_t len, struct range_list *ret, struct err *e);

#endif
