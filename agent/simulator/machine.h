/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The simulated machine: the content of each frame of its memory, its page tables, its page files
 * and its processes. Pages of processes are not stored but derived (page.h); only tables and the
 * kernel's own structures are bytes. So a frame costs 24 bytes, a page-file slot 16, and a table
 * its 4 KiB.
 *
 *	machine.c   frames and slots
 *	entries.c   page-table entries, and the tables
 *	windows.c   the kernel's image, its address space, EPROCESS: what tools find by name
 *	manager.c   the memory manager and the processes, in virtual time
 *	race.c      changes just where a reader is
 *	live.c      heaps that change meanwhile
 *	truth.c     what only the machine knows
 *	inside.c    structures of processes, on request; with inside_*.c, images.c, layout.c,
 *	            pool.c, regions.c, sections.c, vads.c
 *	store.c     the compression store
 *
 * Entries are written from figures 2 and 3 of the 2015 paper and the _MMPTE headers of project
 * ntdiff/headers, not with the tables of agent/shared/paging, which they test.
 */
#ifndef RAMSEAL_AGENT_SIMULATOR_MACHINE_H
#define RAMSEAL_AGENT_SIMULATOR_MACHINE_H

#include "agent/simulator/page.h"
#include "agent/simulator/regions.h"
#include "agent/simulator/spec.h"
#include "formats/base/page.h"
#include "formats/base/range.h"

#define SIM_NONE     UINT32_MAX
#define SIM_TABLE    512                     /* entries */
#define SIM_TICK     100000                  /* ns: the step of virtual time */
#define SIM_BOOT     UINT64_C(3600000000000) /* ns: the clock when the source is opened */

/* Owners that are not processes. Process n has the PID 4 + 44 n; process 0 is System. */
#define SIM_SECTION  UINT32_C(0xfffffffe)
#define SIM_MAPPED   UINT32_C(0xfffffffd) /* mapped files, see sections.c */
#define SIM_PID_STEP 44

/* Virtual page numbers. Addresses that Windows randomises at boot are fixed here. */
#define SIM_VPN(va)  ((va) >> PAGE_SHIFT & ((UINT64_C(1) << 36) - 1))
/* And back, to a canonical address of 48 bits. */
static inline uint64_t sim__vpn_address(uint64_t vpn)
{
	return (uint64_t)((int64_t)(vpn << 28) >> 16);
}

#define SIM_SHARED       UINT64_C(0x000007fef8000000) /* the section, in every process */
#define SIM_SHARED_PAGES 1024
#define SIM_IMAGE        UINT64_C(0xfffff80002a00000) /* ntoskrnl */
#define SIM_IMAGE_PAGES  512
#define SIM_USER_SHARED  UINT64_C(0xfffff78000000000) /* KUSER_SHARED_DATA, constant here */
#define SIM_PROCESSORS   UINT64_C(0xfffff80001000000) /* a page for each */
#define SIM_SYSTEM_TIME  UINT64_C(130700000000000000) /* FILETIME: in March 2015 */
#define SIM_SYSTEM_PTES  UINT64_C(0xfffff88000000000) /* nonpaged, random pages */
#define SIM_PAGED_POOL   UINT64_C(0xfffff8a000000000) /* the section's prototype entries */
#define SIM_SESSION      UINT64_C(0xfffff90000000000)
#define SIM_CACHE        UINT64_C(0xfffff98000000000) /* where the file cache would map files */
#define SIM_PFN_DATABASE UINT64_C(0xfffffa8000000000) /* in large pages */
#define SIM_POOL         UINT64_C(0xfffffa8040000000) /* an EPROCESS in each page */
#define SIM_HAL          UINT64_C(0xffffffffffd00000)

/*
 * The use of a frame, and its content, which a freed frame keeps until it is reused.
 */
enum frame_state {
	FRAME_PINNED,
	FRAME_FREE,
	FRAME_STANDBY,
	FRAME_MODIFIED,
	FRAME_CACHE,
	FRAME_VALID
};
enum frame_content { CONTENT_ZERO, CONTENT_MARK, CONTENT_BYTES };

struct frame {
	uint32_t next, prev; /* in its state's list */
	uint32_t owner;
	uint32_t generation; /* CONTENT_BYTES: which bytes */
	/* Virtual page number 0-35, state 36-38, content 39-40, slot 41-63 (0: none). */
	uint64_t where;
};

struct frame_list {
	uint32_t head, tail, count;
};

/* The page last written to a slot. A free slot keeps its content. */
struct sim_slot {
	uint32_t owner; /* SIM_NONE: never written */
	uint32_t generation;
	uint64_t vpn; /* with SLOT_USED */
};

#define SLOT_USED     (UINT64_C(1) << 63)
/* A slot as frames store it: index (22 bits) and file. */
#define SLOT_FILE(s)  ((s) >> 22)
#define SLOT_INDEX(s) ((s) & ((UINT32_C(1) << 22) - 1))
#define SIM_FILES     2

struct page_file {
	struct sim_slot *at;
	uint32_t count; /* 0: no such file */
	uint32_t used;
	uint32_t cursor;
};

struct sim_process {
	char name[16];
	uint32_t pid;
	bool alive;
	bool transient; /* may exit */
	uint32_t root;  /* frame */
	uint32_t slot;  /* in the pool, of its EPROCESS */
	uint64_t first; /* virtual page of its heap */
	uint32_t pages;
	uint32_t *tables;           /* bytes of the heap's page tables, or SIM_NONE */
	struct sim_regions regions; /* numbered after the heap's pages */
	uint32_t valid;             /* its working set: valid pages of heap and regions */
	uint32_t floor;             /* pages that the trimmer leaves */
	uint32_t hand;              /* of the trimmer's clock */
	uint32_t hot;               /* first page of the hot part */
	uint32_t n_hot;             /* pages of the hot part */
	uint32_t weight;            /* its share of accesses, in pages */
	uint64_t begin, end;        /* ns; 0: before, not yet */
};

/* Where a process maps pages of `mapped`, of which it may have private copies. */
struct sim_mapping {
	uint32_t process;
	uint32_t pages;
	uint64_t vpn, mapped;
};

#define SIM_RANGES     3
#define SIM_TICKETS    1024
#define SIM_POOL_PAGES 8192
#define SIM_RATES      6

#define SIM_COUNT_MAP(X)                                                                           \
	X(soft_faults)                                                                             \
	X(hard_faults)                                                                             \
	X(demand_zero)                                                                             \
	X(written)                                                                                 \
	X(heap_steps)                                                                              \
	X(freed)                                                                                   \
	X(trims) X(paged_out) X(repurposed) X(cached) X(started) X(exited) X(beside) X(failed)

/* A page table of a process's heap. */
struct sim_recent {
	uint32_t process;
	uint32_t table;
};

#define SIM_RECENT 64

struct sim_live;

struct machine {
	struct sim_spec spec;
	FILE *told;            /* the account of inside.h, while the machine is built; or NULL */
	FILE *heap_log;        /* the account of live.h; or NULL */
	struct sim_live *live; /* heaps that keep changing; or NULL */
	struct range ranges[SIM_RANGES];
	size_t n_ranges;
	uint32_t frames;
	struct frame *frame;
	struct frame_list lists[FRAME_VALID + 1];
	uint32_t low_next, low_end; /* frames below 16 MiB for page tables */
	uint32_t database; /* first frame of the kernel's large pages, at the end of memory */

	uint8_t **blocks; /* arrays of bytes */
	uint32_t n_bytes, bytes_room;
	uint32_t *spare; /* unused bytes */
	uint32_t n_spare, spare_room;

	struct page_file files[SIM_FILES + 1]; /* the last is the compression store */
	uint64_t mask;                         /* InvalidPteMask; 0: entries are not swizzled */
	/* Bits of entries that differ by build: PageFileLow, Protection, PageFileAllocated. */
	unsigned file_shift, proto_shift;
	uint64_t allocated;

	uint32_t root;                      /* the kernel's: frame */
	uint32_t self_index;                /* of each root's entry for itself */
	uint32_t section[SIM_SHARED_PAGES]; /* its frames, or SIM_NONE */
	uint8_t pool_used[SIM_POOL_PAGES];

	struct sim_regions mapped; /* the bytes of mapped files */
	struct sim_mapping *mappings;
	size_t n_mappings, mapping_room;
	struct sim_process *processes;
	uint32_t n_processes, process_room;
	uint32_t main;
	uint32_t tickets[SIM_TICKETS];

	uint64_t random;     /* for activity; the initial state has its own */
	uint32_t generation; /* of the newest write */
	uint64_t now;        /* ns */
	uint64_t next_tick;
	uint64_t due[SIM_RATES];
	uint64_t trim_due, writer_due;
	uint64_t cache_due;  /* bytes read, times pressure */
	uint64_t cache_next; /* page */
	uint64_t io;         /* pages that went to the cache, times IO_FADES, fading */
	uint32_t trim_turn;
	struct sim_recent recent[SIM_RECENT]; /* page tables read lately, see race.c */
	uint32_t n_recent;                    /* page tables read in all */
	uint64_t race_due;
	bool trimming; /* since I/O began to press */

#define X(name) uint64_t name;
	struct {
		SIM_COUNT_MAP(X)
	} counts;
#undef X
	uint32_t *resident; /* of the main process, each tenth of a second */
	size_t n_resident, resident_room;
};

/*
 * machine.c, entries.c
 */

enum status sim__machine_init(struct machine *m, struct err *e);
void sim__machine_deinit(struct machine *m);

uint64_t sim__frame_address(const struct machine *m, uint32_t frame);
/* SIM_NONE: no memory at that address. */
uint32_t sim__frame_at(const struct machine *m, uint64_t pa);
/* Writes the content of a frame, or of a slot; false: it was never written. */
void sim__frame_render(const struct machine *m, uint32_t frame, uint8_t page[static PAGE_SIZE]);
bool sim__slot_render(const struct machine *m, unsigned file, uint32_t slot,
		      uint8_t page[static PAGE_SIZE]);

static inline enum frame_state frame_state(const struct frame *f)
{
	return (enum frame_state)(f->where >> 36 & 7);
}

static inline enum frame_content frame_content(const struct frame *f)
{
	return (enum frame_content)(f->where >> 39 & 3);
}

static inline uint32_t frame_slot(const struct frame *f)
{
	return (uint32_t)(f->where >> 41);
}

static inline uint64_t frame_vpn(const struct frame *f)
{
	return f->where & ((UINT64_C(1) << 36) - 1);
}

void sim__frame_set_slot(struct frame *f, uint32_t slot);
/* Moves it from its state's list to the end of the new state's. */
void sim__frame_move(struct machine *m, uint32_t frame, enum frame_state to);
/* Makes it hold this page. */
void sim__frame_put(struct machine *m, uint32_t frame, uint32_t owner, uint64_t vpn,
		    uint32_t generation);
/* Frees it; its content stays. */
void sim__frame_free(struct machine *m, uint32_t frame);
/* Gives a frame zeroed bytes. NULL: no memory. */
uint8_t *sim__frame_make_bytes(struct machine *m, uint32_t frame);
uint8_t *sim__frame_bytes(const struct machine *m, uint32_t frame);
uint8_t *sim__bytes_at(const struct machine *m, uint32_t index);

/*
 * Takes a frame for a table and pins it; low in memory with spec.low_tables. SIM_NONE: none left.
 * sim__manager_take() takes other frames.
 */
uint32_t sim__table_take(struct machine *m);
/*
 * Where the entry for `va` of a root's lowest table is; with `make`, tables are made. NULL: there
 * is none.
 */
uint8_t *sim__table_entry(struct machine *m, uint32_t root, uint64_t va, unsigned level, bool make);
/* The same for a page of a process's heap or, numbered after those, of its regions. */
uint8_t *sim__heap_entry(struct machine *m, uint32_t process, uint32_t page, bool make);

/* Entries. */
#define MM_READONLY      1
#define MM_READWRITE     4
#define MM_DECOMMIT      0x10

#define ENTRY_VALID_BIT  UINT64_C(0x1)
#define ENTRY_NO_EXECUTE (UINT64_C(1) << 63)
#define ENTRY_ACCESSED   UINT64_C(0x20)
#define ENTRY_DIRTY      UINT64_C(0x42) /* the hardware's bit and Dirty1 */
#define ENTRY_VAD        UINT64_C(0xffffffff00000420)
#define ENTRY_ADDRESS    UINT64_C(0x000ffffffffff000)

uint64_t sim__entry_table(const struct machine *m, uint32_t frame, bool user);
uint64_t sim__entry_kernel(const struct machine *m, uint32_t frame);
uint64_t sim__entry_user(const struct machine *m, uint32_t frame, bool writable);
uint64_t sim__entry_transition(const struct machine *m, uint32_t frame);
uint64_t sim__entry_soft(const struct machine *m, uint32_t slot);
uint64_t sim__entry_zero(unsigned protection);
uint64_t sim__entry_prototype(const struct machine *m, uint64_t address);
uint64_t sim__entry_subsection(const struct machine *m, uint64_t address);
uint64_t sim__entry_list(const struct machine *m, uint32_t next);

/* The kind of an entry written here. */
enum entry_is { IS_EMPTY, IS_VALID, IS_TRANSITION, IS_SOFT, IS_ZERO, IS_DECOMMITTED, IS_PROTOTYPE };
enum entry_is sim__entry_kind(const struct machine *m, uint64_t raw);
uint32_t sim__entry_frame(const struct machine *m, uint64_t raw); /* valid, transition */
uint32_t sim__entry_slot(const struct machine *m, uint64_t raw);

/* Takes a page-file slot. 0: all are taken. */
uint32_t sim__slot_take(struct machine *m, const struct frame *content);
struct sim_slot *sim__slot_at(const struct machine *m, uint32_t slot);
void sim__slot_free(struct machine *m, uint32_t slot);

uint32_t sim__process_pid(uint32_t owner);
/*
 * The number of a process's pages (heap and regions); from a page's number to its address and back.
 */
uint32_t sim__process_pages(const struct sim_process *p);
uint64_t sim__page_vpn(const struct sim_process *p, uint32_t page);
uint32_t sim__page_number(const struct sim_process *p, uint64_t vpn);

/*
 * windows.c
 */

/* Makes the kernel, its address space, and System. */
enum status sim__windows_init(struct machine *m, struct err *e);
/* Makes root and EPROCESS, and links it into the list. False: no frame left. */
bool sim__windows_add(struct machine *m, uint32_t process);
void sim__windows_remove(struct machine *m, uint32_t process);
/* The address of its EPROCESS. */
uint64_t sim__windows_eprocess(const struct sim_process *p);
/* Maps a zeroed, resident page of the kernel. False: no memory. */
bool sim__kernel_map(struct machine *m, uint64_t va);
/* The bytes at a resident kernel address. */
uint8_t *sim__kernel_bytes(const struct machine *m, uint64_t va);

/*
 * manager.c
 */

/* Makes all processes and their pages, the file cache, and the free list. */
enum status sim__manager_init(struct machine *m, uint64_t *random, struct err *e);
/* Takes a frame; its state is FRAME_PINNED. SIM_NONE: none is free or can be freed. */
uint32_t sim__manager_take(struct machine *m);
/* Advances time and does what is due. `read`: bytes read meanwhile. */
void sim__manager_run(struct machine *m, uint64_t now, uint64_t read);

/*
 * store.c
 */

/* Moves spec.compressed pages of the main process from page files into the store. */
enum status sim__store_init(struct machine *m, uint64_t *random, struct err *e);

/*
 * race.c
 */

/* Notes that a frame was read: if it is a page table, pages that it names will change. */
void sim__race_note(struct machine *m, uint32_t frame);
/* Call after each page read: does what is due. */
void sim__race_run(struct machine *m);

/*
 * truth.c
 */

void sim__truth_write(const struct machine *m, FILE *out);
enum status sim__truth_page_file(const struct machine *m, unsigned file, FILE *out, struct err *e);

#endif
