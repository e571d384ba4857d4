/* SPDX-License-Identifier: Apache-2.0 */
/* The sources of a ramseal for Linux whose memory is that of the machine of kernel/. */
#include "driver-interface/winpmem.h"

static const struct drv_ops *const winpmem_only[] = {
	&winpmem_ops,
	&winpmem_physical_ops,
	&winpmem_iospace_ops,
	NULL,
};

/* Before main(), which is ramseal's own. */
__attribute__((constructor)) static void put_table(void)
{
	drv_table = winpmem_only;
}
