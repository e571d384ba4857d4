/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the readers of the segment heap share. Sizes are in bytes.
 *
 * Sources: types of ntdll's and ntoskrnl's public PDBs, as JPCERTCC/Windows-Symbol-Tables at
 * 11ad856 (17763 to 22000), ntdiff/headers at 34fa37e (1607 to 1803) and 5dcfad1 (20H1, 22H2) and
 * Rickebo/ntoskrnlib at 0a72996 (Win11: what 24H2 changed) have them; what they mean:
 * ufrisk/MemProcFS at c3aa810 (vmmheap.c), shanepowell/DbgHelpUtils at c62b5a8 (heap_vs_entry.cpp,
 * heap_lfh_subsegment.cpp, page_range_flags_utils.h) and M. V. Yason, "Windows 10 Segment Heap
 * Internals" (before 1709). Tried on heaps that ntdll of 17763 to 22000 made, but not on others.
 */
#ifndef RAMSEAL_AGENT_EXAMINE_HEAP_SEGMENT_SEGMENT_INTERNAL_H
#define RAMSEAL_AGENT_EXAMINE_HEAP_SEGMENT_SEGMENT_INTERNAL_H

#include "agent/examine/heap/base/heap_internal.h"

/* _SEGMENT_HEAP.SegContexts: for small ranges, and for large ones. */
#define SEGMENT_CONTEXTS        2

/* _HEAP_PAGE_SEGMENT.Signature, after the LIST_ENTRY, and its XOR constant up to 22000. */
#define PAGE_SEGMENT_SIGNATURE  0x10
#define PAGE_SEGMENT_CONSTANT   UINT64_C(0xa2e64eada2e64ead)
/* A segment begins at a multiple of its size; this is the smallest size. */
#define PAGE_SEGMENT_STEP       ((uint64_t)1 << 20)
/* Possible starts tried in one process: 1 TiB of private ranges. */
#define PAGE_SEGMENT_STARTS_MAX (UINT64_C(1) << 20)

/* A _HEAP_PAGE_SEGMENT begins with this many descriptors. */
#define SEGMENT_DESCRIPTORS     256
#define DESCRIPTOR_SIZE         0x20

/* Page segments of one process; each takes at least 1 MiB of its address space. */
#define PAGE_SEGMENTS_MAX       (1U << 16)

/* _HEAP_SEG_CONTEXT; the contexts follow each other. Its first members have never moved. */
struct segment_context_layout {
	uint8_t size;    /* 0: no such type; the heap itself has its members */
	uint8_t list;    /* SegmentListHead */
	uint8_t lfh, vs; /* LfhContext, VsContext */
	uint8_t heap;
};

/* _HEAP_PAGE_RANGE_DESCRIPTOR, and values of its RangeFlags with the bits in `other` ignored. */
struct segment_range_layout {
	uint8_t unused; /* UnusedBytes: 32 bits, or 16 if not 32-bit aligned */
	uint8_t units;  /* UnitSize */
	uint8_t other;
	uint8_t first; /* only in the first descriptor of a range; alone, the range is free */
	uint8_t plain, lfh, vs;
};

struct segment_layout {
	const char *name;
	const struct segment_context_layout *context;
	const struct segment_range_layout *range;
	uint16_t contexts; /* _SEGMENT_HEAP: SegContexts */
	/* VsContext, LfhContext. Each context points to both, or both point to the heap, from: */
	uint16_t vs, lfh;
	uint16_t back_end;       /* BackendCtx in VsContext; LfhContext begins with its own */
	uint16_t list;           /* SegmentListHead, if there is no context */
	uint8_t large;           /* LargeAllocMetadata.Root */
	uint8_t large_committed; /* LargeCommittedPages */
	uint8_t vs_mark;         /* _HEAP_VS_SUBSEGMENT.Signature */
	uint8_t lfh_bitmap;      /* _HEAP_LFH_SUBSEGMENT.BlockBitmap */
	bool lfh_whole;          /* offsets are XORed with the whole address (MemProcFS) */
	bool tried;              /* on heaps of a genuine ntdll */
	uint64_t constant;       /* in the signatures of page segments */
};

#define SEGMENT_LAYOUTS 7

extern const struct segment_layout segment__layouts[SEGMENT_LAYOUTS]; /* newest first */

struct segment_context {
	uint64_t at;   /* 0: the heap has no such context */
	uint64_t list; /* SegmentListHead */
	uint64_t size; /* of its segments, which begin at multiples of it */
	uint8_t shift; /* log2 of a unit, the bytes that one descriptor describes */
	uint8_t first; /* the first descriptor that describes anything */
};

struct segment_heap {
	uint64_t address;
	const struct segment_layout *l;
	struct segment_context contexts[SEGMENT_CONTEXTS];
	bool misread; /* its segments contradict the layout */
};

struct page_segment {
	uint64_t at, end;
	size_t heap; /* which of segment_state.heaps */
	uint8_t context;
};

/* One for each process: keys belong to the process (RtlpHpHeapGlobals), not to a heap. */
struct segment_state {
	struct segment_heap *heaps;
	size_t heap_count, heap_room;
	struct page_segment *segments; /* by address, none overlaps another */
	size_t segment_count, segment_room;
	bool has_key, has_lfh_key;
	bool has_vs, has_lfh; /* there are subsegments that need a key */
	bool lfh_whole;
	uint64_t key;      /* of VS chunks and signatures */
	uint64_t constant; /* in signatures; valid if .is_signed */
	bool is_signed;    /* the key explains the signatures */
	bool guessed;      /* from segments alone: their heads may have another layout */
	uint32_t lfh_key;
	bool padded; /* _RTLP_HP_PADDING_HEADER precedes the data of blocks (padding.c) */
	bool cut;
};

enum range_kind {
	RANGE_REST, /* continues the range of an earlier descriptor */
	RANGE_FREE,
	RANGE_PLAIN, /* one block */
	RANGE_LFH,
	RANGE_VS,
	RANGE_OTHER /* unknown */
};

struct page_range {
	uint64_t at, size;
	uint32_t unused;
	unsigned units;
	enum range_kind kind;
};

/* False: it cannot be read. .units is 0 if it has no units or passes the segment's end. */
bool segment__range(struct heap_pages *p, const struct segment_layout *l,
		    const struct page_segment *s, const struct segment_context *c, unsigned index,
		    struct page_range *ret);

/*
 * VS: blocks of any size
 */

struct vs_chunk {
	uint64_t at;
	uint32_t size, prev; /* in units of 16 bytes */
	bool busy;
	bool has_unused; /* the block's last bytes count its unused ones */
};

struct vs_subsegment {
	uint64_t first, end; /* chunks */
};

/* CHUNK_WRONG: its head is not a subsegment's. */
enum chunk_read segment__vs_open(struct heap_pages *p, const struct segment_layout *l,
				 const struct page_range *r, struct vs_subsegment *ret);
enum chunk_read segment__vs_chunk(struct heap_pages *p, uint64_t key, uint64_t at, uint64_t to,
				  struct vs_chunk *ret);
/* Is the chain of chunks unbroken under this key, as far as it can be read, and long enough? */
bool segment__vs_agrees(struct heap_pages *p, uint64_t key, const struct vs_subsegment *s);

/*
 * LFH: blocks of one size
 */

struct lfh_subsegment {
	uint64_t at, size;
	const struct segment_layout *l;
	uint32_t count;
	uint32_t offsets; /* encoded */
	/* Once decoded: */
	uint32_t block, first;
};

enum chunk_read segment__lfh_open(struct heap_pages *p, const struct segment_layout *l,
				  const struct page_range *r, struct lfh_subsegment *ret);
/* False: decoded by this key it does not fit. */
bool segment__lfh_decode(struct lfh_subsegment *s, uint32_t key, bool whole);
/* Two bits: 1 busy, 2 partly unused. False: it cannot be read. */
bool segment__lfh_bits(struct heap_pages *p, const struct lfh_subsegment *s, uint32_t i,
		       uint8_t *ret);

enum unused_read { UNUSED_GOOD, UNUSED_WRONG, UNUSED_UNREAD };

/* The unused bytes, which the last two of the block [at, at + size) count. */
enum unused_read segment__unused(struct heap_pages *p, uint64_t at, uint64_t size, uint64_t *ret);

/* Finds the keys of the process from the heaps and segments known so far. */
enum status segment__find_keys(struct heaps *h, struct err *e);
/*
 * Votes on the key of VS chunks, but not on its lower 16 bits, which sizes do not use. False:
 * none.
 */
bool segment__vote_vs(struct heaps *h, const struct vs_subsegment *at, size_t count, uint64_t *ret);
/* Finds the key if no head of a segment heap can be read. */
enum status segment__find_lost_key(struct heaps *h, struct err *e);
/* A context as all known builds have it, for a head that cannot be read. */
struct segment_context segment__usual_context(uint64_t heap, const struct segment_layout *l,
					      unsigned i);
/* Finds the LFH's key once all segments are known. */
enum status segment__find_lfh_key(struct heaps *h, struct err *e);

/* Once all are known: removes segments that contradict their heap's layout. */
void segment__refuse_misread(struct heaps *h);
/* Once all keys are known: decides by the blocks of all heaps whether blocks are padded. */
enum status segment__find_padding(struct heaps *h, struct err *e);
/* The bytes of padding before a block's data, if blocks are padded. */
uint64_t segment__padding(const struct heap_allocation *a);
/* Moves a busy block's address past its padding. */
void segment__unpad(struct heap_walk *w, struct heap_allocation *a);

/* The heap at that address; NULL: none whose layout is known. */
const struct segment_heap *segment__heap_at(const struct heaps *h, uint64_t address);

enum status segment__walk_vs(struct heap_walk *w, const struct segment_heap *heap,
			     const struct page_range *r, bool island);
enum status segment__walk_lfh(struct heap_walk *w, const struct segment_heap *heap,
			      const struct page_range *r, bool island);
enum status segment__walk_large(struct heap_walk *w);

#endif
