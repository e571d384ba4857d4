/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is known of a heap, of each of its blocks, and of a walk: the readers of each kind of heap
 * fill it in, and heap.h hands it out.
 *
 * Layouts: the types of ntdll's and ntoskrnl's public PDBs, as JPCERTCC/Windows-Symbol-Tables at
 * 11ad856, ntdiff/headers at 5dcfad1 (20H1, 22H2), volatilityfoundation/volatility at 328a178
 * (Vista, 7, 8) and winsiderss/systeminformer at 103cc43 (heapstruct.h, 24H2) have them.
 */
#ifndef RAMSEAL_AGENT_EXAMINE_HEAP_BASE_HEAP_FACTS_H
#define RAMSEAL_AGENT_EXAMINE_HEAP_BASE_HEAP_FACTS_H

#include "agent/examine/virtual/memory_view.h"
#include "formats/base/range.h"

/* No real process has more; thousands are a leak already. */
#define HEAPS_MAX                4096

/*
 * Pages that are read for one process, counting repeats; 1 GiB has 2^18. It bounds the cost of
 * hostile bytes that send a walk back and forth.
 */
#define HEAP_FETCHES_MAX         (UINT64_C(1) << 26)

/* LFH containers of one heap; each holds tens to thousands of blocks. 16 bytes each. */
#define HEAP_USER_BLOCKS_MAX     (1U << 20)

/* Blocks of full page heap of one process: each takes 8 KiB of it at least. 40 bytes each. */
#define HEAP_PAGE_BLOCKS_MAX     (1U << 22)

/* NtGlobalFlag's bit for page heap, which GFlags calls hpa (windows-driver-docs, GFlags). */
#define GLOBAL_FLAG_PAGE_HEAP    UINT32_C(0x02000000)
#define GLOBAL_FLAG_STACK_TRACES UINT32_C(0x00001000) /* +ust */

struct heap_sources {
	const struct memory_view *memory; /* borrowed until heaps_close() */
	uint64_t peb;                     /* 0: none, or not known */
	uint64_t peb32;                   /* a WoW64 process has both; 0: none, or .peb32_lost */
	bool peb32_lost;                  /* the second PEB cannot be read */
	/*
	 * The private readable and writable ranges, tidy; borrowed. If they are not the process's
	 * VADs (.not_vads), a heap may begin inside one, and every 64 KiB are tried.
	 */
	const struct range_list *ranges;
	bool not_vads;
};

#define HEAP_KIND_MAP(X)                                                                           \
	X(HEAP_UNREAD, "unreadable") /* first page missing, and no key recovered */                \
	X(HEAP_NT, "nt")                                                                           \
	X(HEAP_SEGMENT, "segment") /* of Windows 10 and later; walked where .layout is set */      \
	X(HEAP_PAGE, "page heap")  /* its blocks have pages of their own */                        \
	X(HEAP_OTHER, "not a heap")

enum heap_kind {
#define X(name, text) name,
	HEAP_KIND_MAP(X)
#undef X
		HEAP_KINDS
};

const char *heap_kind_name(enum heap_kind k);

/* Where the heap's key comes from: 8 bytes that encode its chunk headers. */
#define HEAP_KEY_MAP(X)                                                                            \
	X(KEY_NONE, "unknown")                                                                     \
	X(KEY_READ, "read")           /* from the heap's first page */                             \
	X(KEY_RECOVERED, "recovered") /* by voting: its first page is missing or lies */           \
	X(KEY_PLAIN, "none")          /* the heap does not encode its headers */

enum heap_key {
#define X(name, text) name,
	HEAP_KEY_MAP(X)
#undef X
		HEAP_KEYS
};

const char *heap_key_name(enum heap_key k);

#define HEAP_KEY_SIZE 8

/* The first check that failed, because of which a heap is not walked, or not all of it. */
#define HEAP_REFUSAL_MAP(X)                                                                        \
	X(REFUSED_NOTHING, "")                                                                     \
	X(REFUSED_SIGNATURE, "its first page has no heap's signature")                             \
	X(REFUSED_NARROW, "no layout of a 32-bit process's segment heap is known")                 \
	X(REFUSED_CONTEXT, "no segment context names the heap where a known build has one")        \
	X(REFUSED_PARTS, "VsContext or LfhContext is not where a known build has it")              \
	X(REFUSED_UNITS, "the mask of a segment context does not fit its units")                   \
	X(REFUSED_RANGES, "most of its segments' page ranges are of no known kind or size")        \
	X(REFUSED_HEADERS,                                                                         \
	  "its header is not right under its key, nor do chunks agree on another")                 \
	X(REFUSED_CHUNKS, "no key explains its chunks of variable size")                           \
	X(REFUSED_OFFSETS, "no key explains its LFH subsegments")

enum heap_refusal {
#define X(name, text) name,
	HEAP_REFUSAL_MAP(X)
#undef X
		HEAP_REFUSALS
};

const char *heap_refusal_text(enum heap_refusal r);

struct heap_info {
	uint64_t address;
	enum heap_kind kind;
	bool wide;    /* of 64-bit code */
	bool listed;  /* the PEB's list has it */
	bool chained; /* the chain of 24H2 has it (from build 26100 on) */
	bool found;   /* the start of a range looks like a heap */
	/*
	 * None of these: it is known only by chunk headers in ranges whose first page is missing.
	 * .address is then the start of the first such range, which may be a segment's.
	 */
	bool unnamed;
	bool segments_followed; /* its list of segments could be read to its end */
	bool head;              /* its first page was read; then: */
	bool old;               /* the layout of Vista and 7 */
	bool counted;           /* the counters are set */
	uint64_t front_end;     /* its LFH, which points back to the heap; 0: none seen */
	uint32_t flags;
	uint32_t index;             /* in the PEB's list, from 1; 0: none */
	uint64_t total_free;        /* bytes, as the heap counts them */
	uint64_t counted_reserved;  /* bytes */
	uint64_t counted_committed; /* bytes */
	enum heap_key key_from;     /* of a segment heap: HeapKey, which is the process's */
	uint8_t key[HEAP_KEY_SIZE];
	const char *layout; /* of a segment heap: the first build that has it; NULL: not known */
	bool experimental;  /* a segment heap whose layout was never tried on a genuine heap */
	enum heap_refusal refused;
	const char *nearest; /* the layout whose check failed; NULL: no particular one */
};

#define HEAP_PLACE_MAP(X)                                                                          \
	X(PLACE_BACK_END, "back-end")                                                              \
	X(PLACE_LFH, "lfh")                                                                        \
	X(PLACE_VIRTUAL, "virtual")                                                                \
	X(PLACE_PAGE_HEAP, "page-heap") /* light: replaces the block that holds it */              \
	X(PLACE_VS, "vs")               /* of segment heaps; PLACE_LFH is, too */                  \
	X(PLACE_SEGMENT, "segment")     /* page ranges of a segment heap's segments */             \
	X(PLACE_LARGE, "large")         /* of segment heaps: with a VirtualAlloc of its own */

enum heap_place {
#define X(name, text) name,
	HEAP_PLACE_MAP(X)
#undef X
		HEAP_PLACES
};

const char *heap_place_name(enum heap_place p);

#define HEAP_STATE_MAP(X)                                                                          \
	X(BLOCK_BUSY, "busy")                                                                      \
	X(BLOCK_FREE, "free")                                                                      \
	X(BLOCK_INTERNAL, "internal") /* the heap's own use: containers of LFH blocks, zones */

enum heap_state {
#define X(name, text) name,
	HEAP_STATE_MAP(X)
#undef X
		HEAP_STATES
};

const char *heap_state_name(enum heap_state s);

struct heap_allocation {
	size_t heap;        /* which of heaps_at() */
	uint64_t address;   /* of the data: the pointer that the program has */
	uint64_t size;      /* usable bytes, including those in the next header */
	uint64_t requested; /* bytes the program asked for; 0 unless has_requested */
	/* The segment, the LFH or VS subsegment, the VirtualAlloc, or page heap's first page. */
	uint64_t container;
	uint64_t trace; /* of its stack trace, for stack_trace_read(); 0: none */
	enum heap_place place;
	enum heap_state state;
	uint16_t frames;    /* return addresses at `trace`; 0: a database entry is there */
	bool has_requested; /* busy, and its header was read and gives the size */
	/*
	 * Pages before it are missing; it is known by headers that agree with each other. A copy of
	 * a heap inside a block whose own header is lost would look the same.
	 */
	bool island;
};

struct heap_tally {
	uint64_t blocks;
	uint64_t bytes; /* requested if known, else size */
};

/* What heaps_walk() found. In bytes unless a comment says otherwise. */
struct heap_stats {
	struct heap_tally blocks[HEAP_PLACES][HEAP_STATES];
	uint64_t largest_free;    /* of the back end */
	uint64_t segments;        /* number */
	uint64_t segments_unread; /* number: first page missing */
	uint64_t holes;           /* number of uncommitted ranges */
	uint64_t reserved;        /* by segments and the LFH's head, without VirtualAlloc blocks */
	uint64_t uncommitted;     /* likewise */
	uint64_t free_chunks;     /* with headers; compare with total_free */
	/* In missing pages that must have held headers; pages that never existed do not count. */
	uint64_t lost;
	uint64_t unlinked;        /* readable, but without a chain of headers */
	uint64_t containers;      /* number: of LFH blocks */
	uint64_t containers_lost; /* number: their content is unknown */
	uint64_t containers_lost_bytes;
	uint64_t contradictions; /* number: headers, bitmaps or links that disagree */
	uint64_t resynchronised; /* number */
	uint64_t islands;        /* number of blocks with .island */
	bool cut;                /* there is more: HEAP_FETCHES_MAX or HEAP_USER_BLOCKS_MAX */
	bool reserve_unknown;    /* .reserved and .uncommitted lack the LFH's head */
};

/* Called for every block; any result but ST_OK ends the walk. */
struct heap_visitor {
	enum status (*block)(void *context, const struct heap_allocation *a, struct err *e);
	void *context;
};

/* The heaps of a process, as heaps_open() found them. */
struct heaps;
size_t heaps_count(const struct heaps *h);
const struct heap_info *heaps_at(const struct heaps *h, size_t i); /* until heaps_close() */
/* The PEB's list could not be read to its end, or has more than HEAPS_MAX. */
bool heaps_list_lost(const struct heaps *h);

/* OSBuildNumber of the process's PEB, or of the second PEB of a WoW64 process. 0: unknown. */
uint16_t heaps_build(const struct heaps *h, bool wide);

/* NtGlobalFlag of the process's PEB, or of the second PEB of a WoW64 process. False: unknown. */
bool heaps_global_flag(const struct heaps *h, bool wide, uint32_t *ret);

#endif
