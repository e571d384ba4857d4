/* SPDX-License-Identifier: Apache-2.0 */
/*
 * 32-bit programs on x64 (WoW64), with `wow64=N`: N processes, the main one first, have beside
 * their 64-bit half (PEB, TEBs and stacks, ntdll and wow64.dll, one heap) a 32-bit one, in which
 * the program runs: PEB32 with parameters, loader's lists, PE32 images and heaps, and for each
 * thread a TEB32 and a stack. All of it lies below 4 GiB, but for the images of 64 bits.
 *
 * PEB32, TEB32: Rickebo/ntoskrnlib 8260d7c (ntdll of 24H2) and volatilityfoundation/volatility
 * 328a178 (vtypes of 7 SP1 x86); the loader's entries and parameters: winsiderss/systeminformer
 * 103cc43, phnt/include/ntwow64.h. What registers such a thread has in its 32-bit half
 * (WOW64_CONTEXT, on its 64-bit stack) is left out.
 */
#ifndef RAMSEAL_AGENT_SIMULATOR_WOW64_H
#define RAMSEAL_AGENT_SIMULATOR_WOW64_H

#include "agent/simulator/making.h"

/* A process that is there at first. */
bool sim__wow64_has(const struct machine *m, uint32_t process);
/* The images of both halves. */
enum status sim__wow64_files(struct sim_inside *in, struct err *e);
void sim__wow64_deinit(struct sim_inside *in);

/* In this order; false: no memory. PEBs and TEBs: */
bool sim__wow64_blocks(struct sim_making *x);
bool sim__wow64_images(struct sim_making *x);
/* Parameters, and the loader's lists. */
bool sim__wow64_loader(struct sim_making *x);
/* Fills PEB32, and what the EPROCESS leads to it by. */
bool sim__wow64_peb(struct sim_making *x);
/* The 32-bit half of a thread whose TEB is written. */
bool sim__wow64_thread(struct sim_making *x, uint32_t i, uint64_t teb, uint32_t tid);
/* A heap's place in the list of the 32-bit PEB; `index` counts from 1 on. */
void sim__wow64_list_heap(struct sim_making *x, uint32_t index, uint64_t heap);
/* Descriptors of 24H2, and where that of a heap is; 0: there are none. */
bool sim__wow64_make_ring(struct sim_making *x);
uint64_t sim__wow64_descriptor(const struct sim_making *x, uint32_t index);

#endif
