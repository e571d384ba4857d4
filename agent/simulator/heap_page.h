/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Inside the writer of heaps: page heap, x64 (gflags +hpa). The builder's NT heap is the normal
 * heap behind it, which light page heap takes its blocks from; blocks of full page heap end where
 * pages do, and a page that is not there follows.
 *
 * _DPH_BLOCK_INFORMATION, stamps and fills: "The Structure of a Page Heap Block", Microsoft
 * (ms220938); shanepowell/DbgHelpUtils c62b5a8 (dph_entry.cpp). _DPH_HEAP_ROOT and _DPH_HEAP_BLOCK:
 * type records of 11 (Rickebo/ntoskrnlib 0a72996, Win11/ntdll), which are written for all builds.
 * What pages a block has, the page in front of the root, and its signature: reactos/reactos
 * (sdk/lib/rtl/heappage.c). That normal heaps are in the PEB's list: DbgHelpUtils (dph_heap.cpp).
 * What Heap says of a light block, and how long freed blocks stay, is our choice.
 */
#ifndef RAMSEAL_AGENT_SIMULATOR_HEAP_PAGE_H
#define RAMSEAL_AGENT_SIMULATOR_HEAP_PAGE_H

#include "agent/simulator/heap_build.h"

#define PAGE_HEAP_INFO   0x40u
#define PAGE_HEAP_SUFFIX 0x10u
#define PAGE_HEAP_LIGHT  (PAGE_HEAP_INFO + PAGE_HEAP_SUFFIX) /* more than was requested */

/* Reserves what the handle leads to. False: failed. */
bool sim__page_heap_create(struct sim_heap_builder *b);
/* A block of full page heap. */
bool sim__page_heap_alloc(struct sim_heap_builder *b, uint64_t size, struct block *ret);
/* The description of a block that was taken; its address becomes that of the data. */
void sim__page_heap_put(struct sim_heap_builder *b, uint32_t block);
/* False: the normal heap has to free it. */
bool sim__page_heap_free(struct sim_heap_builder *b, uint32_t block);
/* Bytes that can be accessed: pages of a block of full page heap. */
uint64_t sim__page_heap_size(uint64_t requested);
/* Root, nodes, and the truth of blocks. */
void sim__page_heap_write(struct sim_heap_builder *b, struct sim_heap *ret);

#endif
