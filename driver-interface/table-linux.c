/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The order of preference: first what the kernel itself offers and knows best, then a module
 * without a known hazard, then /dev/mem, which leaves a trace where it is refused. What follows is
 * not automatic: modules with a hazard (each file says which), and what is no machine that runs.
 */
#include "driver-interface/source.h"

const struct drv_ops *const drv_system_table[] = {
	&kcore_ops, &crash_ops, &devmem_ops,     &linpmem_ops,    &pmem_ops,
	&file_ops,  &raw_ops,   &lime_pages_ops, &lime_bytes_ops, NULL,
};
