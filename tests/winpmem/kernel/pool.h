/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pool in the manner of Driver Verifier's special pool: each block ends at an unmapped page, freed
 * blocks are unmapped, and new blocks are full of junk.
 */
#ifndef WINPMEM_KERNEL_POOL_H
#define WINPMEM_KERNEL_POOL_H

#include "kernel.h"

/* NULL if allocation_fails(), or if there is no more. */
void *pool_allocate(uint64_t size, uint32_t tag);

/* For the kernel's own use: not counted, and never made to fail. */
void *pool_allocate_own(uint64_t size);

/* As ExFreePoolWithTag(): stops Windows if it is not a block. Tag 0 matches any. */
void pool_free(void *block, uint32_t tag);

/* What new blocks are filled with. */
void pool_set_junk(uint64_t junk);

/* Logs each block that a driver holds, up to twenty. */
void pool_list(void);

#endif
