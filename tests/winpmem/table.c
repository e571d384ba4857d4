/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The sources of a ramseal for Linux whose memory is that of the machine of kernel/, in the place
 * of driver-interface/table-linux.c.
 */
#include "driver-interface/winpmem.h"

const struct drv_ops *const drv_table[] = {
	&winpmem_ops,
	&winpmem_physical_ops,
	&winpmem_iospace_ops,
	NULL,
};
