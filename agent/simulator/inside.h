/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The structures of processes, with `inside=1`: a full EPROCESS, VADs, PEB, the loader's lists,
 * programs and libraries, mapped files, threads with TEBs and stacks, and with `heaps` NT heaps.
 *
 * `process_truth=FILE` is the machine's account of them: CSV whose first column names the kind of
 * line. Numbers with 0x are hexadecimal, others decimal; an end is the last byte. The states of
 * pages are those at the start.
 *
 *	build,BUILD
 *	process,PID,NAME,EPROCESS,PEB,CREATED,PARENT    CREATED in 100 ns since 1601
 *	vad,PID,FIRST,LAST,TYPE,PROTECTION,NODE,FILE    TYPE private, mapped or image
 *	wow64,PID,PEB32                                 the process runs a 32-bit program
 *	module,PID,BASE,SIZE,SEEN,GUID,AGE,PATH,BITS    SEEN both, vad or loader: who lists it
 *	thread,PID,TID,ETHREAD,TEB,LIMIT,BASE,START,RSP LIMIT and BASE of the stack
 *	thread32,PID,TID,TEB32,LIMIT,BASE               its 32-bit half, in a 32-bit program
 *	pages,PID,FIRST,LAST,VALID,TRANSITION,PAGED,ZERO,NONE
 *	                                                a region, and its pages by state; ZERO:
 *	                                                demand zero, NONE: not committed
 *	heap,PID,INDEX,ADDRESS,ENCODING,LFH,KEY,SEGMENTS,RESERVED,COMMITTED,FREE,BITS
 *	                                                INDEX in the list of its PEB (a 32-bit
 *	                                                program has two); ENCODING 8 bytes as
 *	                                                stored; LFH the
 *	                                                front end's head; KEY the low half of
 *	                                                RtlpLFHKey; FREE TotalFreeSize, in units
 *	heap-region,PID,INDEX,FIRST,LAST                a segment or virtual block
 *	allocation,PID,INDEX,ADDRESS,REQUESTED,BLOCK,KIND,STATE,REFERRER
 *	                                                KIND back-end, lfh, virtual, page-heap or
 *	                                                own, of a segment heap lfh, vs, segment,
 *	                                                large or own; STATE busy, leaked or free
 *	                                                (heap.h)
 *	page-heap,PID,INDEX,HANDLE,KIND                 before the heap; KIND full or light
 *	page-block,PID,INDEX,ADDRESS,REQUESTED,ACTUAL,STATE,ENTRY
 *	                                                a block of page heap; ADDRESS of its data.
 *	                                                STATE busy, freed, or stale: its memory
 *	                                                was freed too. ENTRY as in `trace`. For
 *	                                                light page heap, allocation lines show the
 *	                                                enclosing blocks, freed ones as busy
 *	segment-heap,PID,INDEX,ADDRESS,HEAPKEY,LFHKEY   a segment heap; ENCODING and LFH of its
 *	                                                heap line are 0
 *	trace-entry,PID,ENTRY,RETURNS                   in the stack trace database: return
 *	                                                addresses separated by blanks, innermost
 *	                                                first
 *	trace,PID,INDEX,ADDRESS,ENTRY                   for each allocation in use, if there is a
 *	                                                database; ENTRY 0x0: unknown
 *	stack-root,PID,INDEX,ADDRESS,WHERE,AT           an allocation that only a thread refers
 *	                                                to; WHERE user-stack, register or
 *	                                                kernel-stack; AT the pointer's address
 *	volume,SERIAL                                   of all files; hexadecimal
 *	file,NUMBER,SIZE,PATH                           a mapped file: with `files`, its content
 *	                                                is in PREFIX, NUMBER, ".bin" (files.h)
 *	end
 */
#ifndef RAMSEAL_AGENT_SIMULATOR_INSIDE_H
#define RAMSEAL_AGENT_SIMULATOR_INSIDE_H

#include "agent/simulator/machine.h"

/* Call once all initial processes exist. The account goes to m->told, which may be NULL. */
enum status sim__inside_init(struct machine *m, struct err *e);
/* Fills the fields that an EPROCESS has from its first moment; `at`: its bytes. */
void sim__inside_begin(const struct machine *m, uint8_t *at);

#endif
