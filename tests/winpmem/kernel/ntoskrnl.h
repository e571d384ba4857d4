/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WINPMEM_KERNEL_NTOSKRNL_H
#define WINPMEM_KERNEL_NTOSKRNL_H

/*
 * Writes headers and an export table in front of this kernel, which make it a PE image. WinPmem 1.x
 * searches downwards from NtBuildNumber for them, and looks up four functions by name.
 */
void ntoskrnl_init(void);

#endif
