/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The order of preference: drivers made for this first, then what every kernel has. "file", "raw"
 * and "sim" are never automatic.
 */
#include "driver-interface/source.h"

const struct drv_ops *const drv_table[] = {
	&linpmem_ops, &pmem_ops, &crash_ops, &kcore_ops, &devmem_ops,
	&file_ops,    &raw_ops,  &sim_ops,   NULL,
};
