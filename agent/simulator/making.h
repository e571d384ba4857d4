/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A process while what it holds is made: inside.c begins, with inside_*.c; heaps.c adds its heaps.
 */
#ifndef RAMSEAL_AGENT_SIMULATOR_MAKING_H
#define RAMSEAL_AGENT_SIMULATOR_MAKING_H

#include "agent/simulator/images.h"
#include "agent/simulator/vads.h"

#define PROGRAMS_MAX            64
#define GRANULE                 UINT64_C(0x10000)
#define THREADS_MAX             8 /* as in spec.h */

/* In the copy of ntdll's data that a process has: PEB.ProcessHeaps leads there. */
#define HEAPS_AT                0x80
#define HEAPS_MAX               16
/* The head of the ring that heaps are on from 24H2 on. */
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

/* The machine's. */
struct sim_inside {
	struct machine *m;
	const struct sim_layout *layout;
	struct sim_pools pools;
	uint64_t random;
	uint64_t stacks; /* where the next kernel stack goes */
	struct sim_image ntdll, kernel32, unlisted, resolver;
	struct sim_image wow64, ntdll32, kernel32_32, unlisted32; /* wow64.h */
	struct sim_image kernelbase32;                            /* leaker.h */
	struct sim_image programs[PROGRAMS_MAX];
	size_t n_programs;
	char paths[PROGRAMS_MAX][SIM_NAME_MAX];
	struct sim_section data, shared;
	uint8_t *states; /* resolver.h, of the main process; or NULL */
};

/* The process that is being made. */
struct sim_making {
	struct sim_inside *in;
	struct sim_process *p;
	uint32_t process;
	struct sim_vads vads;
	uint64_t eprocess;
	uint8_t *bytes;     /* of the EPROCESS */
	uint64_t next;      /* where a free address is looked for */
	uint64_t peb, tebs; /* and the way from one TEB to the next: */
	int64_t teb_step;
	uint8_t *peb_bytes, *teb_bytes[THREADS_MAX];
	uint64_t ntdll_data;
	uint8_t *ntdll_bytes;
	const struct sim_image *program;
	uint8_t *program_bytes; /* of its data */
	uint64_t lfh_key;       /* RtlpLFHKey */
	uint64_t hp_keys[2];    /* HeapKey and LfhKey of segment heaps */
	size_t roots;           /* bytes of pointers in the program's data */
	uint64_t ring;          /* descriptors of heaps; 0: there are none */
	uint8_t *ring_bytes;
	uint64_t rsp[THREADS_MAX]; /* of threads that are made, and bytes of their ETHREADs */
	uint8_t *thread_bytes[THREADS_MAX];
	size_t n_threads;
	uint8_t *last_page_heap; /* NextHeap of the last one; NULL: there is none yet */
	uint64_t *traces;        /* entries of the stack trace database; or NULL */
	size_t n_traces;

	bool narrow; /* a 32-bit program; then its other half: */
	uint64_t peb32, ntdll32_data, ring32;
	uint8_t *peb32_bytes, *teb32_bytes[THREADS_MAX], *ntdll32_bytes, *ring32_bytes;
};

/* An address where so many pages are free. */
uint64_t sim__making_place(struct sim_making *x, uint32_t pages);
/*
 * Private memory: reserved pages, of which `count` are there, `from` on. Their bytes, which may be
 * written until the process is done; NULL without memory.
 */
uint8_t *sim__making_private(struct sim_making *x, uint64_t va, uint32_t pages, uint32_t from,
			     uint32_t count);

/* A view of an image, whose pages of data are the process's own: their bytes, or NULL. */
uint8_t *sim__making_map(struct sim_making *x, const struct sim_image *image);
/* For the account; `seen` as in inside.h. */
void sim__making_tell_module(struct sim_making *x, const struct sim_image *image, const char *seen);

/* inside_files.c: all but the programs, which are made as their processes are. */
enum status sim__inside_files(struct sim_inside *in, struct err *e);
/* Two processes of one name run one program. Behind what the main process has. */
const struct sim_image *sim__inside_program(struct sim_inside *in, const char *name, bool narrow,
					    struct err *e);

/* inside_threads.c: the i-th thread. False without memory. */
bool sim__making_thread(struct sim_making *x, uint32_t i);

/* inside_pages.c: false without memory. */
bool sim__making_map_sections(struct sim_making *x);
bool sim__inside_populate(struct sim_inside *in, uint32_t process);

struct sim_heap;

/* spec.heaps heaps, in the PEB's list, and what refers to them. */
enum status sim__making_heaps(struct sim_making *x, struct err *e);
/*
 * One of them, which has this number in the list of its half, from 1 on; takes its regions' bytes.
 */
enum status sim__making_heap(struct sim_making *x, uint32_t index, bool narrow, struct sim_heap *h,
			     struct err *e);

#endif
