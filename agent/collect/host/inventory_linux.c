/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/collect/host/inventory.h"

void host_inventory(json_t *facts)
{
}
