/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Virtualization-based security, from a driver's point of view: a hypervisor below Windows that
 * keeps some pages of RAM to itself. Page tables may map them, but whoever reads them gets an
 * exception.
 *
 * It uses AMD's SVM with nested paging, which QEMU emulates. This kernel and the driver become its
 * guest.
 */
#ifndef WINPMEM_KERNEL_VBS_H
#define WINPMEM_KERNEL_VBS_H

#include "kernel.h"

/* Makes this kernel a guest. false if the processor has no SVM. */
bool vbs_enter(void);

/* Hides pages, or returns them. STATUS_INVALID_DEVICE_REQUEST without a hypervisor. */
ntstatus vbs_hide(uint64_t pfn, uint64_t count, bool on);

/* What a read of a hidden page raises: TRAP_GENERAL or TRAP_MACHINE. */
void vbs_set_event(uint64_t vector);

#endif
