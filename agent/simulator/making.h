/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A process whose structures are being made: by inside.c and inside_*.c, then heaps by heaps.c.
 */
#ifndef RAMSEAL_AGENT_SIMULATOR_MAKING_H
#define RAMSEAL_AGENT_SIMULATOR_MAKING_H

#include "agent/simulator/images.h"
#include "agent/simulator/vads.h"

#define PROGRAMS_MAX            64
#define GRANULE                 UINT64_C(0x10000)
#define THREADS_MAX             8 /* as in spec.h */

/* Offsets in a process's copy of ntdll's data: the array behind PEB.ProcessHeaps */
#define HEAPS_AT                0x80
#define HEAPS_MAX               16
/* The head of the ring of heaps of 24H2 and later. */
#define HEAP_RING_AT            0x180
/* RtlpStackTraceDataBase */
#define TRACES_AT               0x1a0

/* RtlpHpHeapGlobals */
#define HP_GLOBALS_AT           0x1b0

/* RtlpDphPageHeapList, RtlpDphDelayedFreeQueue */
#define PAGE_HEAP_LIST_AT       0x1c0
#define PAGE_HEAP_QUEUE_AT      0x1d0

/* PEB.NtGlobalFlag */
#define FLG_HEAP_PAGE_ALLOCS    0x02000000
#define FLG_USER_STACK_TRACE_DB 0x1000

/* For the whole machine. */
struct sim_inside {
	struct machine *m;
	const struct sim_layout *layout;
	struct sim_pools pools;
	uint64_t random;
	uint64_t stacks; /* address of the next kernel stack */
	struct sim_image ntdll, kernel32, unlisted, resolver;
	struct sim_image wow64, ntdll32, kernel32_32, unlisted32; /* wow64.h */
	struct sim_image kernelbase32;                            /* leaker.h */
	struct sim_image programs[PROGRAMS_MAX];
	size_t n_programs;
	char paths[PROGRAMS_MAX][SIM_NAME_MAX];
	struct sim_section data, shared;
	uint8_t *states; /* sim__resolver_states() of the main process; or NULL */
};

/* The process that is being made. */
struct sim_making {
	struct sim_inside *in;
	struct sim_process *p;
	uint32_t process;
	struct sim_vads vads;
	uint64_t eprocess;
	uint8_t *bytes;     /* of the EPROCESS */
	uint64_t next;      /* where the search for a free address begins */
	uint64_t peb, tebs; /* .teb_step: from one TEB to the next */
	int64_t teb_step;
	uint8_t *peb_bytes, *teb_bytes[THREADS_MAX];
	uint64_t ntdll_data;
	uint8_t *ntdll_bytes;
	const struct sim_image *program;
	uint8_t *program_bytes; /* of its data */
	uint64_t lfh_key;       /* RtlpLFHKey */
	uint64_t hp_keys[2];    /* HeapKey and LfhKey of segment heaps */
	size_t roots;           /* bytes of pointers in the program's data */
	uint64_t ring;          /* descriptors of heaps; 0: none */
	uint8_t *ring_bytes;
	uint64_t rsp[THREADS_MAX]; /* of the threads made so far; .thread_bytes: their ETHREADs */
	uint8_t *thread_bytes[THREADS_MAX];
	size_t n_threads;
	uint8_t *last_page_heap; /* NextHeap of the last one; NULL: none yet */
	uint64_t *traces;        /* entries of the stack trace database; or NULL */
	size_t n_traces;

	bool narrow; /* a 32-bit program, whose 32-bit half has: */
	uint64_t peb32, ntdll32_data, ring32;
	uint8_t *peb32_bytes, *teb32_bytes[THREADS_MAX], *ntdll32_bytes, *ring32_bytes;
};

/* An address with `pages` free pages. */
uint64_t sim__making_place(struct sim_making *x, uint32_t pages);
/*
 * Reserves `pages` of private memory and commits `count` of them from page `from` on. Returns their
 * bytes, which may be written until the process is done; NULL: no memory.
 */
uint8_t *sim__making_private(struct sim_making *x, uint64_t va, uint32_t pages, uint32_t from,
			     uint32_t count);

/* Maps an image. Returns the bytes of its data pages, which are the process's own, or NULL. */
uint8_t *sim__making_map(struct sim_making *x, const struct sim_image *image);
/* Writes a line of the account; `seen` as in inside.h. */
void sim__making_tell_module(struct sim_making *x, const struct sim_image *image, const char *seen);

/* inside_files.c: makes all files but programs, which are made with their processes. */
enum status sim__inside_files(struct sim_inside *in, struct err *e);
/* Finds or makes the program `name`; processes of the same name share it. */
const struct sim_image *sim__inside_program(struct sim_inside *in, const char *name, bool narrow,
					    struct err *e);

/* inside_threads.c: makes thread `i`. False: no memory. */
bool sim__making_thread(struct sim_making *x, uint32_t i);

/* inside_pages.c. False: no memory. */
bool sim__making_map_sections(struct sim_making *x);
bool sim__inside_populate(struct sim_inside *in, uint32_t process);

struct sim_heap;

/* Makes spec.heaps heaps, the PEB's list, and the pointers to them. */
enum status sim__making_heaps(struct sim_making *x, struct err *e);
/*
 * Adds a heap, number `index` (from 1) in the list of its half. Takes the bytes of its regions.
 */
enum status sim__making_heap(struct sim_making *x, uint32_t index, bool narrow, struct sim_heap *h,
			     struct err *e);

#endif
