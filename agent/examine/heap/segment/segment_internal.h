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

/* _HEAP_PAGE_SEGMENT: Signature, behind its LIST_ENTRY, and what it is combined with to 22000. */
#define PAGE_SEGMENT_SIGNATURE  0x10
#define PAGE_SEGMENT_CONSTANT   UINT64_C(0xa2e64eada2e64ead)
/* One begins at a multiple of its size, of which this is the least. */
#define PAGE_SEGMENT_STEP       ((uint64_t)1 << 20)
/* Starts that are tried for one process: 1 TiB of private ranges. */
#define PAGE_SEGMENT_STARTS_MAX (UINT64_C(1) << 20)

/* _HEAP_PAGE_SEGMENT: that many descriptors, which the segment begins with. */
#define SEGMENT_DESCRIPTORS     256
#define DESCRIPTOR_SIZE         0x20

/* Page segments of one process: each takes 1 MiB of its address space. */
#define PAGE_SEGMENTS_MAX       (1U << 16)

/* _HEAP_SEG_CONTEXT: one lies behind the other. Its first members have never moved. */
struct segment_context_layout {
	uint8_t size;    /* 0: there is none, and the heap itself is what it would be */
	uint8_t list;    /* SegmentListHead */
	uint8_t lfh, vs; /* LfhContext, VsContext */
	uint8_t heap;
};

/* _HEAP_PAGE_RANGE_DESCRIPTOR, and what its RangeFlags are but for `other`. */
struct segment_range_layout {
	uint8_t unused; /* UnusedBytes: 32 bits, or 16 if it does not begin a word of 32 */
	uint8_t units;  /* UnitSize */
	uint8_t other;
	uint8_t first; /* of a first descriptor alone; if there is nothing else, it is free */
	uint8_t plain, lfh, vs;
};

struct segment_layout {
	const char *name;
	const struct segment_context_layout *context;
	const struct segment_range_layout *range;
	uint16_t contexts; /* _SEGMENT_HEAP: SegContexts */
	/* VsContext, LfhContext. Each context points to both, or both point to the heap, from: */
	uint16_t vs, lfh;
	uint16_t back_end;       /* BackendCtx in VsContext; in LfhContext it is the first */
	uint16_t list;           /* SegmentListHead, where there is no context */
	uint8_t large;           /* LargeAllocMetadata.Root */
	uint8_t large_committed; /* LargeCommittedPages */
	uint8_t vs_mark;         /* _HEAP_VS_SUBSEGMENT.Signature */
	uint8_t lfh_bitmap;      /* _HEAP_LFH_SUBSEGMENT.BlockBitmap */
	bool lfh_whole;          /* its offsets are combined with all of the address (MemProcFS) */
	bool tried;              /* on heaps that a genuine ntdll made */
	uint64_t constant;       /* in the signatures of page segments */
};

#define SEGMENT_LAYOUTS 7

extern const struct segment_layout segment__layouts[SEGMENT_LAYOUTS]; /* newest first */

struct segment_context {
	uint64_t at;   /* 0: the heap has no such one */
	uint64_t list; /* SegmentListHead */
	uint64_t size; /* of its segments, which begin at multiples of it */
	uint8_t shift; /* of a unit, which a descriptor stands for */
	uint8_t first; /* descriptor that stands for anything */
};

struct segment_heap {
	uint64_t address;
	const struct segment_layout *l;
	struct segment_context contexts[SEGMENT_CONTEXTS];
	bool misread; /* its segments deny the layout */
};

struct page_segment {
	uint64_t at, end;
	size_t heap; /* which of segment_state.heaps */
	uint8_t context;
};

/* Of one process: the keys are the process's (RtlpHpHeapGlobals), not a heap's. */
struct segment_state {
	struct segment_heap *heaps;
	size_t heap_count, heap_room;
	struct page_segment *segments; /* by address, none overlaps another */
	size_t segment_count, segment_room;
	bool has_key, has_lfh_key;
	bool has_vs, has_lfh; /* there are subsegments that a key is needed for */
	bool lfh_whole;
	uint64_t key;      /* of VS chunks and signatures */
	uint64_t constant; /* in signatures; valid where `is_signed` */
	bool is_signed;    /* the key explains signatures */
	bool guessed;      /* by segments alone: which layout's heads they have may be another */
	uint32_t lfh_key;
	bool padded; /* blocks have _RTLP_HP_PADDING_HEADER before their data (padding.c) */
	bool cut;
};

enum range_kind {
	RANGE_REST, /* of the range whose descriptor came before */
	RANGE_FREE,
	RANGE_PLAIN, /* one block */
	RANGE_LFH,
	RANGE_VS,
	RANGE_OTHER /* what it is nobody knows */
};

struct page_range {
	uint64_t at, size;
	uint32_t unused;
	unsigned units;
	enum range_kind kind;
};

/* False: it can't be had. A range of no units, or past the segment's end, has .units 0. */
bool segment__range(struct heap_pages *p, const struct segment_layout *l,
		    const struct page_segment *s, const struct segment_context *c, unsigned index,
		    struct page_range *ret);

/*
 * VS: blocks of any size
 */

struct vs_chunk {
	uint64_t at;
	uint32_t size, prev; /* 16 bytes each */
	bool busy;
	bool has_unused; /* the block's last bytes say how many of it are unused */
};

struct vs_subsegment {
	uint64_t first, end; /* chunks */
};

/* CHUNK_WRONG: its head denies that it is one. */
enum chunk_read segment__vs_open(struct heap_pages *p, const struct segment_layout *l,
				 const struct page_range *r, struct vs_subsegment *ret);
enum chunk_read segment__vs_chunk(struct heap_pages *p, uint64_t key, uint64_t at, uint64_t to,
				  struct vs_chunk *ret);
/* Is the chain of chunks whole under this key, as far as it can be read, and long enough? */
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
/* False: what the key makes of it does not fit. */
bool segment__lfh_decode(struct lfh_subsegment *s, uint32_t key, bool whole);
/* Two bits: 1 busy, 2 some of it is unused. False: can't be had. */
bool segment__lfh_bits(struct heap_pages *p, const struct lfh_subsegment *s, uint32_t i,
		       uint8_t *ret);

enum unused_read { UNUSED_GOOD, UNUSED_WRONG, UNUSED_UNREAD };

/* Bytes unused, as the last two of the block [at, at + size) say. */
enum unused_read segment__unused(struct heap_pages *p, uint64_t at, uint64_t size, uint64_t *ret);

/* The keys of the process, from its heaps and segments that are known so far. */
enum status segment__find_keys(struct heaps *h, struct err *e);
/* The key of VS chunks, but for its lower 16 bits, which say nothing of sizes; false: none has. */
bool segment__vote_vs(struct heaps *h, const struct vs_subsegment *at, size_t count, uint64_t *ret);
/* The key where no head of a segment heap can be had. */
enum status segment__find_lost_key(struct heaps *h, struct err *e);
/* A context as it is in all builds that are known, of a head that can't be had. */
struct segment_context segment__usual_context(uint64_t heap, const struct segment_layout *l,
					      unsigned i);
/* The same of the LFH, once all segments are known. */
enum status segment__find_lfh_key(struct heaps *h, struct err *e);

/* Takes the segments from a heap whose layout they deny, once all are known. */
void segment__refuse_misread(struct heaps *h);
/* Whether blocks are padded, by those of all heaps, once all keys are known. */
enum status segment__find_padding(struct heaps *h, struct err *e);
/* Of a block, if it is padded. */
uint64_t segment__padding(const struct heap_allocation *a);
/* Moves a busy block's address behind its padding. */
void segment__unpad(struct heap_walk *w, struct heap_allocation *a);

/* The heap at that address; NULL: none whose layout is known. */
const struct segment_heap *segment__heap_at(const struct heaps *h, uint64_t address);

enum status segment__walk_vs(struct heap_walk *w, const struct segment_heap *heap,
			     const struct page_range *r, bool island);
enum status segment__walk_lfh(struct heap_walk *w, const struct segment_heap *heap,
			      const struct page_range *r, bool island);
enum status segment__walk_large(struct heap_walk *w);

#endif
