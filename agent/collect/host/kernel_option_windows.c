/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/collect/host/kernel_option.h"

enum pte_option host_device_private(uint32_t version, const char **ret_by)
{
	(void)version;
	(void)ret_by;
	return OPTION_UNTOLD;
}
