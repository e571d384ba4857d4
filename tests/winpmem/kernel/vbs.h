/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Virtualization-based security, as a driver meets it: a hypervisor below Windows that keeps
 * pages of RAM for itself. Any page table may name them; reading them raises an exception at
 * whoever reads.
 *
 * The hypervisor is AMD's SVM with nested paging, which QEMU plays without a real one: this
 * kernel, with the driver, goes on as its guest.
 */
#ifndef WINPMEM_KERNEL_VBS_H
#define WINPMEM_KERNEL_VBS_H

#include "kernel.h"

/* From here on the kernel is a guest. false if the processor cannot. */
bool vbs_enter(void);

/* Hides pages, or gives them back. STATUS_INVALID_DEVICE_REQUEST without a hypervisor. */
ntstatus vbs_hide(uint64_t pfn, uint64_t count, bool on);

/* Which exception: TRAP_GENERAL or TRAP_MACHINE. */
void vbs_set_event(uint64_t vector);

#endif
