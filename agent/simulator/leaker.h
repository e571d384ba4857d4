/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The program of "Leak Checking" (adeyblue, 18 January 2010) at the moment of its second listing:
 * app.exe, of 32 bits, has asked for HeapAlloc(0xcc), LocalAlloc(LPTR, 0x123), GlobalAlloc(GPTR,
 * 0x456), HeapAlloc(0x80), new char[77] and malloc(89), freed nothing, and exits. ntdll reports 8
 * leaks then: three of 32 bytes at 0x0041fc28, 0x0041fca0 and 0x00421cd0, without a stack trace;
 * 204, 291, 1110 and, at 0x00422bb0, 128 bytes with the traces of the four calls; and 128 bytes of
 * another heap without one. The debug CRT's two blocks are none: its list of all blocks has them.
 *
 * From the text are these sizes and addresses, how deep each trace is, and every return address but
 * the second of LocalAlloc's and GlobalAlloc's. The text as it is kept has lost those two, the
 * other four addresses of blocks, and both heaps'. These are ours, as are the bases of the modules:
 * of a return address only the last 16 bits are its module's. The first of the two ends as that of
 * KERNELBASE!LocalAlloc in the text's first listing, since those that are in both listings end
 * alike (0xb234, 0x1174, 0xb3f5, 0xb3c8). Where a block lies that the text does not print, in which
 * heap the CRT's are and what asked for them is ours, too, and so is all else in the heaps.
 *
 * Traces are kept as the text has it of Vista and 7: two units before the data, with the address of
 * an entry {word, pointer, count, return addresses}. The CRT's list is that of "Memory Management
 * and the Debug Heap" (Microsoft, Visual Studio 2005: _CrtMemBlockHeader).
 *
 * With leaker=2 it is a moment earlier: the six calls have not come yet, and there are four leaks.
 *
 * Two things look like references to leaks, and are none: words in app.exe's code, which ntdll
 * takes for some, as the text says, because the pages are mapped PAGE_EXECUTE_WRITECOPY; and what
 * a freed block had.
 */
#ifndef RAMSEAL_AGENT_SIMULATOR_LEAKER_H
#define RAMSEAL_AGENT_SIMULATOR_LEAKER_H

#include "agent/simulator/making.h"

/* The main process, with leaker=1 or 2. */
bool sim__leaker_is(const struct sim_making *x);
/* What app.exe is like, before it is made. */
void sim__leaker_program(struct sim_image *image);
/* Where the libraries of 32 bits are, before they are made, and how long their code is. */
void sim__leaker_libraries(struct sim_inside *in);
/* Its two heaps of 32 bits, stack traces, and the CRT's list. */
enum status sim__leaker_make(struct sim_making *x, struct err *e);

#endif
