/* SPDX-License-Identifier: Apache-2.0 */
/* What acquire and driver share. Windows only. */
#ifndef RAMSEAL_AGENT_COLLECT_HOST_DRIVER_WINDOWS_H
#define RAMSEAL_AGENT_COLLECT_HOST_DRIVER_WINDOWS_H

#include "agent/collect/host/driver.h"
#include "driver-interface/winpmem_service.h"

/* As driver_session_json(). */
json_t *driver_service_json(const struct winpmem_service *s);

#endif
