/* SPDX-License-Identifier: Apache-2.0 */
/* The order of preference on Windows. "file", "raw" and "sim" are never automatic. */
#include "driver-interface/winpmem.h"

const char *drv__lacks(void)
{
	return NULL; /* the driver's own message says what to do */
}

const struct drv_ops *const drv_table[] = {
	&winpmem_ops, &winpmem_physical_ops, &winpmem_iospace_ops, &file_ops, &raw_ops, &sim_ops,
	NULL,
};
