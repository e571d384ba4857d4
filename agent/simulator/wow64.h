/* SPDX-License-Identifier: Apache-2.0 */
/*
 * 32-bit programs on x64 (WoW64), with `wow64=N`: N processes, the main one first, have two halves.
 * The 64-bit half has PEB, TEBs and stacks, ntdll and wow64.dll, and one heap. The program runs in
 * the 32-bit half: PEB32 with parameters, loader's lists, PE32 images and heaps, and a TEB32 and a
 * stack for each thread. Everything but the 64-bit images lies below 4 GiB.
 *
 * PEB32, TEB32: Rickebo/ntoskrnlib 8260d7c (ntdll of 24H2) and volatilityfoundation/volatility
 * 328a178 (vtypes of 7 SP1 x86); the loader's entries and parameters: winsiderss/systeminformer
 * 103cc43, phnt/include/ntwow64.h. The registers of the 32-bit half (WOW64_CONTEXT, on the 64-bit
 * stack) are left out.
 */
#ifndef RAMSEAL_AGENT_SIMULATOR_WOW64_H
#define RAMSEAL_AGENT_SIMULATOR_WOW64_H

#include "agent/simulator/making.h"

/* True if this initial process runs a 32-bit program. */
bool sim__wow64_has(const struct machine *m, uint32_t process);
/* Makes the images of both halves. */
enum status sim__wow64_files(struct sim_inside *in, struct err *e);
void sim__wow64_deinit(struct sim_inside *in);

/* Call these in this order; false: no memory. First: reserves PEBs and TEBs. */
bool sim__wow64_blocks(struct sim_making *x);
bool sim__wow64_images(struct sim_making *x);
/* Makes the parameters and the loader's lists. */
bool sim__wow64_loader(struct sim_making *x);
/* Fills PEB32 and the field of the EPROCESS that points to it. */
bool sim__wow64_peb(struct sim_making *x);
/* Makes the 32-bit half of a thread whose TEB is written. */
bool sim__wow64_thread(struct sim_making *x, uint32_t i, uint64_t teb, uint32_t tid);
/* Puts a heap into the 32-bit PEB's list, at `index`, from 1. */
void sim__wow64_list_heap(struct sim_making *x, uint32_t index, uint64_t heap);
/* Makes 24H2's descriptors of heaps; the address of one; 0: there are none. */
bool sim__wow64_make_ring(struct sim_making *x);
uint64_t sim__wow64_descriptor(const struct sim_making *x, uint32_t index);

#endif
