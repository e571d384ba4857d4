/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The program of "Leak Checking" (adeyblue, 18 January 2010) at the moment of its second listing:
 * app.exe, of 32 bits, has asked for HeapAlloc(0xcc), LocalAlloc(LPTR, 0x123), GlobalAlloc(GPTR,
 * 0x456), HeapAlloc(0x80), new char[77] and malloc(89), freed nothing, and exits. ntdll reports 8
 * leaks then: three of 32 bytes at 0x0041fc28, 0x0041fca0 and 0x00421cd0, without a stack trace;
 * 204, 291, 1110 and, at 0x00422bb0, 128 bytes with the traces of the four calls; and 128 bytes of
 * another heap without one. The debug CRT's two blocks are none: its list of all blocks has them.
 *
 * The sizes and addresses, the depth of each trace, and all return addresses but two come from the
 * text. The surviving copy of the text lacks the second return address of LocalAlloc and of
 * GlobalAlloc, the addresses of the other four blocks, and those of both heaps. We chose these, and
 * the bases of the modules: only the low 16 bits of a return address come from its module. The low
 * bits for LocalAlloc are those of KERNELBASE!LocalAlloc in the text's first listing, because
 * return addresses in both listings end alike (0xb234, 0x1174, 0xb3f5, 0xb3c8). The rest of the
 * heaps is ours, too, such as the heap of the CRT's blocks and who allocated them.
 *
 * Traces are stored as the text describes it for Vista and 7: two units before the data hold the
 * address of an entry {word, pointer, count, return addresses}. The CRT's list follows "Memory
 * Management and the Debug Heap" (Microsoft, Visual Studio 2005: _CrtMemBlockHeader).
 *
 * leaker=2 is a moment earlier: the six calls have not happened, and there are four leaks.
 *
 * Two things look like references to leaks but are not: words in app.exe's code, which ntdll counts
 * (as the text says) because the pages are mapped PAGE_EXECUTE_WRITECOPY; and the old content of a
 * freed block.
 */
#ifndef RAMSEAL_AGENT_SIMULATOR_LEAKER_H
#define RAMSEAL_AGENT_SIMULATOR_LEAKER_H

#include "agent/simulator/making.h"

/* True for the main process with leaker=1 or 2. */
bool sim__leaker_is(const struct sim_making *x);
/* Describes app.exe, before it is made. */
void sim__leaker_program(struct sim_image *image);
/* Sets base and code size of the 32-bit libraries, before they are made. */
void sim__leaker_libraries(struct sim_inside *in);
/* Makes its two 32-bit heaps, stack traces, and the CRT's list. */
enum status sim__leaker_make(struct sim_making *x, struct err *e);

#endif
