/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WINPMEM_KERNEL_NTOSKRNL_H
#define WINPMEM_KERNEL_NTOSKRNL_H

#include "kernel.h"

/*
 * Writes headers and an export table in front of this kernel, which make it a PE image. WinPmem 1.x
 * searches downwards from NtBuildNumber for them, and looks up four functions by name.
 */
void ntoskrnl_init(void);

/*
 * Whether that search finds them. It gives up after 8 MiB, and newer kernels are larger than that.
 */
void ntoskrnl_show(bool on);

#endif
