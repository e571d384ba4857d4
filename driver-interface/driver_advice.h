/* SPDX-License-Identifier: Apache-2.0 */
/* What to do when Windows does not load a driver. */
#ifndef RAMSEAL_DRIVER_INTERFACE_DRIVER_ADVICE_H
#define RAMSEAL_DRIVER_INTERFACE_DRIVER_ADVICE_H

#include <stdint.h>

/*
 * One sentence for an error number of OpenSCManager(), CreateService() or StartService(), or for an
 * NTSTATUS, without a full stop. NULL: there is no advice for it. Static.
 */
const char *driver_advice(uint32_t error);

#endif
