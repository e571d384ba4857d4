/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pool as Driver Verifier's special pool has it: each block ends at a page that is not mapped,
 * what is freed is not mapped any more, and new memory holds junk.
 */
#ifndef WINPMEM_KERNEL_POOL_H
#define WINPMEM_KERNEL_POOL_H

#include "kernel.h"

/* NULL if allocation_fails(), or if nothing is left. */
void *pool_allocate(uint64_t size, uint32_t tag);

/*
 * A block of the kernel's own, in place of the driver: it never fails on demand and is not
 * counted.
 */
void *pool_allocate_own(uint64_t size);

/* Stops Windows for what is no block, as ExFreePoolWithTag() does. `tag` 0: any. */
void pool_free(void *block, uint32_t tag);

/* What new blocks are filled with. */
void pool_set_junk(uint64_t junk);

/* A line of the log for each block that a driver has, up to twenty. */
void pool_list(void);

#endif
