/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What processes hold, with `inside=1`: EPROCESS with the fields that lead on, VADs, PEB, the
 * loader's lists, programs and libraries, files that are mapped, threads with TEBs and stacks, and
 * with `heaps` NT heaps.
 *
 * `process_truth=FILE` is the machine's account of it: CSV whose first column says what a line is
 * about. Numbers with 0x are hexadecimal, the others decimal; ends are those of the last byte. The
 * state of pages is that of the beginning.
 *
 *	build,BUILD
 *	process,PID,NAME,EPROCESS,PEB,CREATED,PARENT    CREATED in 100 ns since 1601
 *	vad,PID,FIRST,LAST,TYPE,PROTECTION,NODE,FILE    TYPE private, mapped or image
 *	wow64,PID,PEB32                                 it runs a 32-bit program
 *	module,PID,BASE,SIZE,SEEN,GUID,AGE,PATH,BITS    SEEN both, vad or loader: who knows of it
 *	thread,PID,TID,ETHREAD,TEB,LIMIT,BASE,START,RSP LIMIT and BASE of its stack
 *	thread32,PID,TID,TEB32,LIMIT,BASE               and its other half, of a 32-bit program
 *	pages,PID,FIRST,LAST,VALID,TRANSITION,PAGED,ZERO,NONE
 *	                                                a region, and how many pages are what; ZERO:
 *	                                                demand zero, NONE: not committed
 *	heap,PID,INDEX,ADDRESS,ENCODING,LFH,KEY,SEGMENTS,RESERVED,COMMITTED,FREE,BITS
 *	                                                INDEX in the list of its PEB, of which a
 *	                                                32-bit program has two; ENCODING 8
 *	                                                bytes as they lie there; LFH the
 *	                                                front end's head; KEY the low half of
 *	                                                RtlpLFHKey; FREE TotalFreeSize, in units
 *	heap-region,PID,INDEX,FIRST,LAST                where segments and virtual blocks are
 *	allocation,PID,INDEX,ADDRESS,REQUESTED,BLOCK,KIND,STATE,REFERRER
 *	                                                KIND back-end, lfh, virtual, page-heap or
 *	                                                own, of a segment heap lfh, vs, segment,
 *	                                                large or own; STATE busy, leaked or free
 *	                                                (heap.h)
 *	page-heap,PID,INDEX,HANDLE,KIND                 before the heap; KIND full or light
 *	page-block,PID,INDEX,ADDRESS,REQUESTED,ACTUAL,STATE,ENTRY
 *	                                                a block that it describes; ADDRESS of the
 *	                                                data. STATE busy, freed, or stale: freed,
 *	                                                and its memory, too. ENTRY as in `trace`.
 *	                                                Of light page heap, allocation lines have
 *	                                                the blocks around these, freed ones as busy
 *	segment-heap,PID,INDEX,ADDRESS,HEAPKEY,LFHKEY   a heap that is none of NT's; ENCODING and
 *	                                                LFH of its line before are 0
 *	trace-entry,PID,ENTRY,RETURNS                   of the stack trace database: return
 *	                                                addresses, apart by blanks, the last call
 *	                                                first
 *	trace,PID,INDEX,ADDRESS,ENTRY                   of each allocation in use, if there is a
 *	                                                database; ENTRY 0x0: nobody knows
 *	stack-root,PID,INDEX,ADDRESS,WHERE,AT           an allocation that nothing but a thread
 *	                                                leads to; WHERE user-stack, register or
 *	                                                kernel-stack; AT where the pointer is
 *	volume,SERIAL                                   that all files are on; hexadecimal
 *	file,NUMBER,SIZE,PATH                           a file that is mapped: with `files`,
 *	                                                PREFIX and NUMBER with ".bin" is what is in
 *	                                                it (files.h)
 *	end
 */
#ifndef RAMSEAL_AGENT_SIMULATOR_INSIDE_H
#define RAMSEAL_AGENT_SIMULATOR_INSIDE_H

#include "agent/simulator/machine.h"

/* When all processes of the beginning are there. The account goes to m->told, which may be NULL. */
enum status sim__inside_init(struct machine *m, struct err *e);
/* What of this an EPROCESS has from its first moment; `at` are its bytes. */
void sim__inside_begin(const struct machine *m, uint8_t *at);

#endif
