/* SPDX-License-Identifier: Apache-2.0 */
/* Of the memory manager, what others than the driver need too. */
#ifndef WINPMEM_KERNEL_MEMORY_H
#define WINPMEM_KERNEL_MEMORY_H

#include "kernel.h"

/* An MDL for a user's buffer, locked; NULL if it cannot be had. */
struct mdl *mdl_make(uint64_t va, uint32_t len, enum processor_mode mode);
void mdl_free(struct mdl *m);

/*
 * What MmGetPhysicalMemoryRanges() tells: `count` ranges at a user's address, or the machine's
 * own.
 */
ntstatus memory_set_ranges(uint64_t va, uint64_t count);

/* What MmMapIoSpace() does with RAM: enum iospace. */
void memory_set_iospace(uint64_t policy);

/* Pages that neither views nor MmMapIoSpace() map. */
ntstatus memory_refuse(uint64_t pfn, uint64_t count, bool on);
bool memory_is_refused(uint64_t pfn);

#endif
