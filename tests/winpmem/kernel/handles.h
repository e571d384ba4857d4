/* SPDX-License-Identifier: Apache-2.0 */
/* Kernel handles of sections, keys and devices. */
#ifndef WINPMEM_KERNEL_HANDLES_H
#define WINPMEM_KERNEL_HANDLES_H

#include "kernel.h"

enum handle_type { HANDLE_NONE, HANDLE_SECTION, HANDLE_KEY, HANDLE_DEVICE };

/* 0 if there is no room. */
uint64_t handle_make(enum handle_type type, uint64_t value);

/* false if it is no handle of that type. */
bool handle_get(uint64_t handle, enum handle_type type, uint64_t *ret);

#endif
