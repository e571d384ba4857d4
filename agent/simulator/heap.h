/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Heaps of a simulated Windows process, in the state in which programs left them. Our own allocator
 * makes them directly in the bytes: a chunk that was merged into its neighbour leaves its header
 * behind, and a freed block its content, as in real memory. It knows exactly what is in use and
 * returns that with the bytes. It shares no code with the reader of heaps (agent/examine/heap).
 *
 * Layouts are those of public type records: JPCERTCC/Windows-Symbol-Tables 11ad856 (ntkrnlmp 7601
 * to 22000), volatilityfoundation/volatility 328a178 (vtypes of 7 SP1 and 8), ntdiff/headers
 * 5dcfad1 (ntdll of 20H1 and 22H2), winsiderss/systeminformer 103cc43 (heapstruct.h, 24H2). Facts
 * that records do not give (which bytes are encoded, where descriptors of holes lie, headers of LFH
 * blocks) were seen in the memory of real processes: google/breakpad 418aacd,
 * src/processor/testdata/tiny-exe-fastfail.dmp. A comment marks what neither source settles.
 */
#ifndef RAMSEAL_AGENT_SIMULATOR_HEAP_H
#define RAMSEAL_AGENT_SIMULATOR_HEAP_H

#include <stdbool.h>

#include "formats/base/defs.h"
#include "formats/base/err.h"

enum sim_heap_layout {
	SIM_HEAP_7,     /* 7 SP1 */
	SIM_HEAP_8,     /* 8 to 10 1507 */
	SIM_HEAP_14393, /* 10 1607 to 1803 */
	SIM_HEAP_17763, /* 10 1809 to 11 23H2 */
	SIM_HEAP_26100, /* 11 24H2 */
	SIM_HEAP_LAYOUTS
};

/* Layouts of segment heaps. */
enum sim_hp_layout {
	SIM_HP_17763,     /* 10 1809 to 22H2 */
	SIM_HP_17763_RTM, /* 10 1809 as it was released */
	SIM_HP_20348,     /* Server 2022 and 11 to 23H2 */
	SIM_HP_LAYOUTS
};

/* gflags +hpa: each block on pages of its own; or, light, in an NT heap. See heap_page.h. */
enum sim_page_heap { SIM_PAGE_HEAP_NONE, SIM_PAGE_HEAP_FULL, SIM_PAGE_HEAP_LIGHT };

/* A heap never has more segments: Windows doubles their sizes, and 1 GiB needs 80. */
#define SIM_HEAP_SEGMENTS_MAX 1024

/* Square brackets give the value that 0 stands for. */
struct sim_heap_plan {
	enum sim_heap_layout layout;
	bool x86; /* a 32-bit process: every address must be below 4 GiB */
	uint64_t seed;
	uint64_t base;     /* of the first segment, a multiple of 64 KiB */
	uint64_t more;     /* everything else goes here and above [after the first segment] */
	uint64_t reserve;  /* bytes of the first segment [1 MiB], ... */
	uint64_t commit;   /* ... and how many are committed at first [8 KiB] */
	uint32_t segments; /* at least this many, [1] to 64 */
	uint32_t index;    /* in the PEB's list, from 1 on [1] */
	bool plain;        /* headers are not encoded, as with some debugging flags */
	bool wiped;        /* merging a chunk wipes its header (Windows leaves it) */

	uint64_t allocations;        /* in use at the end, without those by VirtualAlloc() */
	uint32_t size_min, size_max; /* requested bytes [1 to 32 KiB]; not above 512 KiB */
	uint32_t churn;              /* percent of steps that free a block; at most 45 */
	uint32_t released; /* percent of `allocations` made in addition and freed, 100 at a time */
	uint32_t lfh;      /* percent of sizes that go to the front end */
	uint64_t lfh_key;  /* RtlpLFHKey, which all heaps of a process share [drawn] */
	uint32_t holes;    /* uncommitted ranges inside segments, where there is room */
	uint32_t virtual_blocks; /* blocks that are too big for a segment */
	uint32_t leaks; /* blocks that only free chunks or (a third of them) each other point to */
	uint32_t kept;  /* additional blocks that nothing in the heap points to: roots */
	uint64_t user_context;  /* 24H2: the descriptor that names this heap */
	const uint64_t *traces; /* stack trace entries that blocks point to (gflags +ust) ... */
	size_t trace_count;     /* ... [none: blocks have no extra] */
	/*
	 * HeapKey and LfhKey, which all heaps of a process share; set for a segment heap [NULL: an
	 * NT heap]. A segment heap uses base, more, seed, index, allocations, sizes, churn, lfh,
	 * virtual_blocks (all large kinds) and leaks.
	 */
	const uint64_t *hp_keys;
	enum sim_page_heap page_heap;
	uint64_t page_heap_queue; /* where the list of freed blocks begins [no block waits] */
	enum sim_hp_layout hp_layout;
	bool hp_padded; /* switched on in the registry: a header precedes each block's data */
};

/* A range of reserved address space. */
struct sim_heap_region {
	uint64_t va;
	uint32_t pages;
	uint8_t *bytes;     /* of all pages, from malloc() */
	uint8_t *committed; /* a byte for each page, 0: not committed; from malloc() */
};

enum sim_heap_kind {
	SIM_HEAP_BACK_END,
	SIM_HEAP_LFH,     /* in user blocks of the front end */
	SIM_HEAP_VIRTUAL, /* by VirtualAlloc() */
	SIM_HEAP_OWN,     /* the heap's own: heads, descriptors of holes, user blocks, zones */
	SIM_HEAP_VS,      /* segment heap: variable size */
	SIM_HEAP_RANGE,   /* segment heap: pages of a segment */
	SIM_HEAP_LARGE,   /* segment heap: a VirtualAlloc() of its own */
	SIM_HEAP_PAGE     /* page heap */
};

/* A block, in use or free. */
struct sim_allocation {
	uint64_t address;   /* of the user's data */
	uint64_t requested; /* bytes; of a free block: its capacity */
	uint64_t block;     /* bytes with the header; of a virtual block: all committed bytes */
	uint64_t referrer;  /* address of a pointer to it (or into it); 0: see `leaked` */
	uint64_t trace;     /* the allocating call; 0: unknown */
	uint32_t segment;   /* its number, in order of creation; UINT32_MAX: virtual */
	uint8_t kind;       /* enum sim_heap_kind */
	bool busy;
	/*
	 * It cannot be reached from a root. If this is not set and `referrer` is 0, the program
	 * keeps its address elsewhere: it is a root itself.
	 */
	bool leaked;
};

enum sim_page_block_state {
	SIM_PAGE_BLOCK_BUSY,
	SIM_PAGE_BLOCK_FREED,
	SIM_PAGE_BLOCK_STALE /* its memory was freed too, but its description is still there */
};

/* A block with a _DPH_BLOCK_INFORMATION. */
struct sim_page_block {
	uint64_t address; /* of the user's data */
	uint64_t requested, actual;
	uint64_t trace;
	uint8_t state; /* enum sim_page_block_state */
};

struct sim_heap {
	struct sim_heap_region *regions; /* in order of addresses */
	size_t region_count;
	struct sim_allocation
		*allocations; /* in order of addresses; user blocks as well as blocks */
	size_t count;
	uint64_t *roots; /* addresses of blocks that the process's stacks and globals must hold */
	size_t root_count;

	struct sim_page_block *page_blocks; /* in order of addresses */
	size_t page_block_count;
	uint64_t page_heap;               /* its handle; `address` is the heap behind it */
	uint64_t queue_first, queue_last; /* FreeQueue of freed blocks */

	uint64_t address;
	uint8_t encoding[8];      /* 0 if headers are plain */
	uint64_t front_end;       /* of the LFH's head; 0: none */
	uint32_t lfh_key;         /* the low half of RtlpLFHKey */
	uint32_t segments, holes; /* as _HEAP_COUNTERS has them, the ends of segments included */
	uint64_t reserved, committed, virtual_bytes;
	uint64_t total_free; /* TotalFreeSize, in units of 16 (x86: 8) bytes */
};

/*
 * Makes the heap of a program that behaved as planned. ST_USAGE: the plan is impossible; the
 * message says why. Free it with sim__heap_deinit().
 */
enum status sim__heap_build(const struct sim_heap_plan *plan, struct sim_heap *ret, struct err *e);
void sim__heap_deinit(struct sim_heap *h);

/*
 * The same by hand, for programs whose blocks hold what a test looks for. Blocks are numbered in
 * order of allocation.
 */
struct sim_heap_builder;
#define SIM_HEAP_NO_BLOCK UINT32_MAX

/* An empty heap. */
enum status sim__heap_create(const struct sim_heap_plan *plan, struct sim_heap_builder **ret,
			     struct err *e);
/* Does the work of the plan; may be called repeatedly, and between allocations by hand. */
enum status sim__heap_work(struct sim_heap_builder *b, struct err *e);
/*
 * SIM_HEAP_NO_BLOCK: no memory or no room; sim__heap_finish() reports it. Until sim__heap_refer()
 * or sim__heap_root() is called, nothing refers to the block.
 */
uint32_t sim__heap_alloc(struct sim_heap_builder *b, uint64_t size);
/* The same, with the address of its stack trace entry stored before the data. */
uint32_t sim__heap_alloc_traced(struct sim_heap_builder *b, uint64_t size, uint64_t trace);
void sim__heap_free(struct sim_heap_builder *b, uint32_t block);
uint64_t sim__heap_address(const struct sim_heap_builder *b, uint32_t block);
/* Valid until the next allocation. */
uint8_t *sim__heap_bytes(struct sim_heap_builder *b, uint32_t block);
/* Writes a pointer at offset `at` of block `from`, to offset `into` of block `to`. */
void sim__heap_refer(struct sim_heap_builder *b, uint32_t from, uint64_t at, uint32_t to,
		     uint64_t into);
/* The program keeps the address outside the heap. */
void sim__heap_root(struct sim_heap_builder *b, uint32_t block);
/* Writes heads and lists. Frees `b` even after an error. */
enum status sim__heap_finish(struct sim_heap_builder *b, struct sim_heap *ret, struct err *e);
void sim__heap_destroy(struct sim_heap_builder *b);

/*
 * Like sim__heap_build(), for a heap that keeps changing: the builder keeps its own copy of the
 * bytes, which sim__heap_step() changes. Destroy *ret_builder.
 */
enum status sim__heap_build_live(const struct sim_heap_plan *plan, struct sim_heap *ret,
				 struct sim_heap_builder **ret_builder, struct err *e);

struct sim_heap_event {
	uint64_t address;
	uint64_t requested;
	uint8_t kind; /* enum sim_heap_kind */
	bool freed;   /* else it was allocated */
};

/*
 * Allocates or frees one block and updates everything the heap keeps about itself. False: failed.
 */
bool sim__heap_step(struct sim_heap_builder *b, struct sim_heap_event *ret);

#endif
