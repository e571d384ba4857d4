/* SPDX-License-Identifier: Apache-2.0 */
/* What the rest of this kernel needs of the memory manager. */
#ifndef WINPMEM_KERNEL_MEMORY_H
#define WINPMEM_KERNEL_MEMORY_H

#include "kernel.h"

/* A locked MDL for a user's buffer, or NULL. */
struct mdl *mdl_make(uint64_t va, uint32_t len, enum processor_mode mode);
void mdl_free(struct mdl *m);

/* What MmGetPhysicalMemoryRanges() returns: `count` ranges at a user address; 0: the real ones. */
ntstatus memory_set_ranges(uint64_t va, uint64_t count);

/* enum iospace */
void memory_set_iospace(uint64_t policy);

/* Pages that can be mapped neither as views nor by MmMapIoSpace(). */
ntstatus memory_refuse(uint64_t pfn, uint64_t count, bool on);
bool memory_is_refused(uint64_t pfn);

#endif
