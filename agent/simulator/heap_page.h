/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Internals of the heap writer: page heap, x64 (gflags +hpa). The builder's NT heap is the normal
 * heap underneath, which light page heap allocates from. A block of full page heap ends at the end
 * of a page, and the next page is not committed.
 *
 * _DPH_BLOCK_INFORMATION, stamps and fills: "The Structure of a Page Heap Block", Microsoft
 * (ms220938); shanepowell/DbgHelpUtils c62b5a8 (dph_entry.cpp). _DPH_HEAP_ROOT and _DPH_HEAP_BLOCK:
 * type records of 11 (Rickebo/ntoskrnlib 0a72996, Win11/ntdll), which are written for all builds. A
 * block's pages, the page before the root and its signature: reactos/reactos
 * (sdk/lib/rtl/heappage.c). Normal heaps are in the PEB's list: DbgHelpUtils (dph_heap.cpp). The
 * value of Heap in a light block, and how long freed blocks stay, are our choice.
 */
#ifndef RAMSEAL_AGENT_SIMULATOR_HEAP_PAGE_H
#define RAMSEAL_AGENT_SIMULATOR_HEAP_PAGE_H

#include "agent/simulator/heap_build.h"

#define PAGE_HEAP_INFO   0x40u
#define PAGE_HEAP_SUFFIX 0x10u
#define PAGE_HEAP_LIGHT  (PAGE_HEAP_INFO + PAGE_HEAP_SUFFIX) /* added to the request */

/* Reserves what the handle points to. False: failed. */
bool sim__page_heap_create(struct sim_heap_builder *b);
/* A block of full page heap. */
bool sim__page_heap_alloc(struct sim_heap_builder *b, uint64_t size, struct block *ret);
/* Writes the description of a new block; its address becomes that of the data. */
void sim__page_heap_put(struct sim_heap_builder *b, uint32_t block);
/* False: the normal heap must free it. */
bool sim__page_heap_free(struct sim_heap_builder *b, uint32_t block);
/* Accessible bytes of a block of full page heap: whole pages. */
uint64_t sim__page_heap_size(uint64_t requested);
/* Writes root and nodes, and adds the blocks to the truth. */
void sim__page_heap_write(struct sim_heap_builder *b, struct sim_heap *ret);

#endif
