/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WINPMEM_KERNEL_NTOSKRNL_H
#define WINPMEM_KERNEL_NTOSKRNL_H

/*
 * Writes the headers and the export table that make this kernel's image a PE file in memory.
 * WinPmem 1.x walks down from NtBuildNumber to them and takes four functions out of the table.
 */
void ntoskrnl_init(void);

#endif
