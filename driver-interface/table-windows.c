/* SPDX-License-Identifier: Apache-2.0 */
/* The order of preference on Windows. Images are never automatic. */
#include "driver-interface/winpmem.h"

const char *drv__lacks(void)
{
	return NULL; /* the driver's own message says what to do */
}

/* The one device is every source's, and has no name that could be looked up without opening it. */
bool drv_is_there(const struct drv_ops *ops)
{
	return false;
}

bool drv_kcore_is_masked(const char *path)
{
	return false;
}

const struct drv_ops *const drv_system_table[] = {
	&winpmem_ops, &winpmem_physical_ops, &winpmem_iospace_ops, &file_ops,
	&raw_ops,     &lime_pages_ops,       &lime_bytes_ops,      NULL,
};
