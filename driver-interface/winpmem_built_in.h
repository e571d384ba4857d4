/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The driver from driver-interface/drivers/ at build time; build/embed makes the file. The size is
 * 0 if there was none.
 */
#ifndef RAMSEAL_DRIVER_INTERFACE_WINPMEM_BUILT_IN_H
#define RAMSEAL_DRIVER_INTERFACE_WINPMEM_BUILT_IN_H

#include <stddef.h>
#include <stdint.h>

extern const uint8_t winpmem_built_in[];
extern const size_t winpmem_built_in_size;

#endif
