/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Internals of the heap writer: segment heaps of 10 1809 to 11 23H2, x64. The allocator is in
 * heap_segment.c, heads and lists in heap_segment_write.c. Freed blocks leave their bytes behind,
 * and merged chunks their headers.
 *
 * Layouts: ntdiff/headers 5dcfad1 and JPCERTCC/Windows-Symbol-Tables 11ad856 (_SEGMENT_HEAP and
 * its parts, 17763 to 22H2). What records do not say:
 *
 * - range flags: 3 a block, b (hexadecimal) a subsegment of the front end, f of variable sizes
 *   (ufrisk/MemProcFS c3aa810, vmmheap.c); 2 the first of a free range (shanepowell/DbgHelpUtils
 *   c62b5a8, page_range_flags_utils.h); 1 all others (our choice).
 * - keys: RtlpHpHeapGlobals, how headers and offsets are encoded, links of subsegments of variable
 *   sizes, unused bytes at a block's end: DbgHelpUtils, the same.
 * - sizes of buckets, and which allocator gets which: M. V. Yason, "Windows 10 Segment Heap
 *   Internals", Black Hat 2016, for an older layout with one context. The sizes of subsegments
 *   and the places of buckets are our choice.
 * - padding: shanepowell/DbgHelpUtils c62b5a8 (segment_heap_utils.cpp), and heaps of 18362.30 that
 *   were switched on by the registry; the type is _RTLP_HP_PADDING_HEADER.
 *
 * Left out: x86 and 24H2, whose types we have not read, and extras (gflags +ust).
 */
#ifndef RAMSEAL_AGENT_SIMULATOR_HEAP_SEGMENT_H
#define RAMSEAL_AGENT_SIMULATOR_HEAP_SEGMENT_H

#include "agent/simulator/heap_build.h"

#define HP_CONTEXTS   2
#define HP_UNITS      256
/*
 * _HEAP_PAGE_SEGMENT's own fields end in the second descriptor (UnusedWatermark at 20), so a range
 * can have the third at the earliest.
 */
#define HP_FIRST_UNIT 2
#define HP_BUCKETS    129
#define HP_LFH_MAX    16368u
#define HP_VS_MAX     0x20000u
#define HP_NONE       UINT32_MAX

/* _HEAP_VS_SUBSEGMENT, and _HEAP_VS_CHUNK_HEADER */
#define HP_VS_FIRST   0x30u
#define HP_VS_HEADER  0x10u
/* _HEAP_LFH_SUBSEGMENT.BlockBitmap */
#define HP_LFH_BITMAP 0x30u

enum hp_range { HP_FREE, HP_BLOCK, HP_LFH, HP_VS, HP_REST };

struct hp_segment {
	size_t region;
	uint32_t context;
	uint8_t range[HP_UNITS]; /* enum hp_range; HP_REST: continues an earlier range */
	uint8_t units[HP_UNITS]; /* length of the range that begins here */
	uint32_t unused[HP_UNITS];
};

struct hp_lfh {
	uint32_t segment, unit, units;
	uint32_t bucket;
	uint32_t first, count, free;
	uint32_t usable; /* blocks in committed pages */
	uint32_t blocks; /* index in lfh_owner of its first block's owner */
	uint32_t next;   /* in its bucket */
};

struct hp_vs {
	uint32_t segment, unit;
	uint32_t first; /* chunk */
};

/* A chunk of variable size. */
struct hp_chunk {
	uint32_t vs;
	uint32_t at, size; /* units of 16 bytes; at: from the subsegment's start */
	uint32_t before, after;
	bool busy, unused; /* unused: the data ends with a count of unused bytes */
	bool gone;         /* merged into another */
};

struct hp {
	struct hp_segment *segments;
	size_t segment_count, segment_room;
	struct hp_lfh *lfh;
	size_t lfh_count, lfh_room;
	struct hp_vs *vs;
	size_t vs_count, vs_room;
	struct hp_chunk *chunks;
	size_t chunk_count, chunk_room;
	struct {
		uint32_t uses, newest;
		bool drawn, on;
	} buckets[HP_BUCKETS];
	size_t metadata; /* region of nodes of large blocks, or SIZE_MAX */
};

/* What each of the two contexts serves. */
struct hp_context {
	uint64_t segment; /* its size in bytes, and its alignment */
	uint32_t shift;   /* log2 of a unit's bytes */
	uint32_t max;     /* largest block, bytes */
};

extern const struct hp_context sim__hp_contexts[HP_CONTEXTS];

/* Address of a unit. */
uint64_t sim__hp_va(const struct sim_heap_builder *b, uint32_t segment, uint32_t unit);
uint64_t sim__hp_chunk_va(const struct sim_heap_builder *b, uint32_t chunk);
uint32_t sim__hp_bucket_size(uint32_t bucket);

/* False: failed. */
bool sim__hp_create(struct sim_heap_builder *b);
bool sim__hp_alloc(struct sim_heap_builder *b, uint64_t size, struct block *ret);
void sim__hp_free(struct sim_heap_builder *b, const struct block *of);
/* Bytes before the data of a block of `requested` bytes. */
uint64_t sim__hp_padding(const struct sim_heap_builder *b, uint64_t requested);
/* All bytes of a block. */
uint64_t sim__hp_block_size(const struct sim_heap_builder *b, const struct block *of);
/* Adds internal subsegments and free blocks to the truth, which has room for them. */
void sim__hp_tell(const struct sim_heap_builder *b, struct sim_heap *ret);
/* Writes heads, lists and trees. */
void sim__hp_write(struct sim_heap_builder *b, struct sim_heap *ret);
void sim__hp_destroy(struct hp *h);

#endif
