/* SPDX-License-Identifier: Apache-2.0 */
/* What the Linux side can choose (enum setting). */
#ifndef WINPMEM_KERNEL_NT_VARIABLES_H
#define WINPMEM_KERNEL_NT_VARIABLES_H

#include "kernel.h"

ntstatus variable_set(uint64_t setting, uint64_t value);

/* What KeQueryActiveProcessors() returns, NtBuildNumber, and the length of the module list. */
extern uint64_t nt_processors;
extern uint32_t NtBuildNumber;
extern uint64_t nt_modules;
/* IoCreateDeviceSecure() is an export. */
extern bool nt_has_secure_device;
/* A service may return above PASSIVE_LEVEL. */
extern bool nt_is_lenient;

#endif
