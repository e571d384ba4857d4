/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Internals of the heap writer. The allocator (heap_chunks.c) keeps its own list of chunks and
 * writes each header when it changes; heap_write.c writes heads and lists at the end. heap_lfh.c is
 * the front end, heap_program.c plays the program.
 */
#ifndef RAMSEAL_AGENT_SIMULATOR_HEAP_BUILD_H
#define RAMSEAL_AGENT_SIMULATOR_HEAP_BUILD_H

#include "agent/simulator/heap.h"
#include "agent/simulator/page.h"
#include "formats/base/bytes.h"

#define NO_CHUNK       UINT32_MAX
#define NO_USER_BLOCKS UINT32_MAX
/* Units of the largest chunk: a segment that is all free (HEAP_MAXIMUM_BLOCK_SIZE). */
#define CHUNK_MAX      0xfe00
#define CHUNK_MIN      2
/* Each size below this has its own list of free chunks; above, each power of two has one. */
#define BINS_EXACT     1024
#define BINS           (BINS_EXACT + 8)
#define LFH_BUCKETS    129 /* _LFH_HEAP.Buckets */

/* Bits of a header's flags. */
#define FLAG_BUSY      0x01
#define FLAG_EXTRA     0x02
#define FLAG_INTERNAL  0x08
#define FLAG_LAST      0x10

#define LFH_SIGNATURE  0xf0e0d0c0

enum chunk_state { CHUNK_FREE, CHUNK_BUSY, CHUNK_OWN, CHUNK_HOLE };

/* Of a segment, gapless. A hole is an uncommitted range, whose descriptor is the chunk before. */
struct chunk {
	uint32_t at, size; /* units from the start of the segment */
	uint32_t before, after;
	uint32_t bin_before, bin_after; /* if free; bin_after also chains unused entries */
	uint32_t segment;
	uint8_t state;
	uint8_t internal; /* FLAG_INTERNAL or 0 */
	uint8_t unused;   /* UnusedBytes */
	uint8_t extra;    /* of an internal chunk: units between header and data */
};

struct segment {
	size_t region;
	uint32_t first, last; /* chunks */
};

/* The area of one _HEAP_SUBSEGMENT. */
struct user_blocks {
	uint32_t chunk;
	uint32_t bucket;
	uint32_t count, free;
	uint32_t first, stride; /* bytes */
	uint32_t hint;          /* 7: the first free block */
	uint32_t next;          /* in its bucket; NO_USER_BLOCKS at the end */
	uint8_t size_index;     /* log2 of the area's bytes */
	uint64_t va, subsegment;
	uint32_t blocks; /* index in lfh_owner of its first block's owner */
};

struct bucket {
	uint32_t uses;
	bool drawn, on;
	uint32_t newest;    /* user blocks */
	uint32_t open;      /* user blocks that allocations come from */
	uint8_t size_index; /* of the next user blocks */
	uint64_t info;      /* _HEAP_LOCAL_SEGMENT_INFO */
};

struct block {
	uint64_t address;
	uint64_t requested;
	uint32_t place; /* a chunk, user blocks, or a region */
	uint32_t index; /* within user blocks */
	uint32_t lead;  /* pages of its region before a virtual block */
	uint8_t kind;
	bool busy, root, reached;
	bool waits; /* freed and still in the queue of light page heap */
	uint64_t referrer, trace;
};

struct edge {
	uint32_t from, to;
	uint64_t at; /* bytes into `from` */
};

/* The size of a pointer (x64 or x86) determines most offsets. */
struct sim_heap_builder {
	struct sim_heap_plan plan;
	uint64_t random;
	uint8_t encoding[8];
	uint32_t lfh_key;
	uint32_t unit, header, pointer; /* bytes */
	uint64_t next_va;
	uint64_t next_reserve;
	bool failed; /* no memory, or no room */
	bool live;   /* keeps changing after it was written */
	const char *why;

	struct sim_heap_region *regions;
	size_t region_count, region_room;
	struct segment *segments;
	size_t segment_count, segment_room;
	struct chunk *chunks;
	size_t chunk_count, chunk_room;
	uint32_t spare; /* chain of unused entries of `chunks` */
	uint32_t bins[BINS];

	struct block *blocks;
	size_t block_count, block_room;
	struct edge *edges;
	size_t edge_count, edge_room;

	uint64_t front_end;
	size_t front_region;
	uint64_t zone; /* the newest; .zone_left: its free bytes */
	uint32_t zone_left;
	uint32_t infos; /* _HEAP_LOCAL_SEGMENT_INFO in use */
	struct bucket buckets[LFH_BUCKETS];
	struct user_blocks *user_blocks;
	size_t user_blocks_count, user_blocks_room;
	uint64_t page_heap; /* its handle */
	size_t page_region; /* region of its next block; .page_next: the page in it */
	uint32_t page_next;
	struct hp *hp;       /* of a segment heap (heap_segment.h); else NULL */
	uint32_t *lfh_owner; /* number of each block in the front end, or SIM_HEAP_NO_BLOCK */
	size_t lfh_owner_count, lfh_owner_room;
};

static inline void put_heap_pointer(const struct sim_heap_builder *b, uint8_t *p, uint64_t v)
{
	if (b->pointer == 8)
		put_le64(p, v);
	else
		put_le32(p, (uint32_t)v);
}

static inline uint64_t get_pointer(const struct sim_heap_builder *b, const uint8_t *p)
{
	return b->pointer == 8 ? get_le64(p) : get_le32(p);
}

/* x64's or x86's. */
static inline uint32_t by_width(const struct sim_heap_builder *b, uint32_t wide, uint32_t narrow)
{
	return b->pointer == 8 ? wide : narrow;
}

/* Does nothing, and says so, from the first failure on. */
void sim__heap_fail(struct sim_heap_builder *b, const char *why);

#define GRANULARITY    UINT64_C(0x10000)
#define COMMIT_DEFAULT UINT64_C(0x2000)
/* Segments double up to this (RtlpExtendHeap; 0x10000 below 16 MiB less guard pages). */
#define RESERVE_MAX    UINT64_C(0xfd0000)

/* Adds a segment whose first `head` units are internal; _more: one for `bytes`. False: failed. */
bool sim__heap_add_segment(struct sim_heap_builder *b, uint64_t va, uint64_t reserve,
			   uint64_t commit, uint32_t head);
bool sim__heap_more(struct sim_heap_builder *b, uint64_t bytes);
struct sim_heap_region *sim__heap_segment(const struct sim_heap_builder *b, uint32_t chunk);
uint64_t sim__chunk_va(const struct sim_heap_builder *b, uint32_t chunk);
/* Address of an internal chunk's content. */
uint64_t sim__chunk_data(const struct sim_heap_builder *b, uint32_t chunk);
/* The bytes at an address of the heap. */
uint8_t *sim__heap_at(const struct sim_heap_builder *b, uint64_t va);
/* Reserves address space. False: failed. */
bool sim__heap_region_add(struct sim_heap_builder *b, uint64_t va, uint64_t bytes,
			  uint64_t committed);
/* A free address for `bytes`. */
uint64_t sim__heap_region_place(struct sim_heap_builder *b, uint64_t bytes);
/* A Windows LIST_ENTRY list: entries are appended to a head. */
void sim__heap_list_init(const struct sim_heap_builder *b, uint64_t head);
void sim__heap_list_append(const struct sim_heap_builder *b, uint64_t head, uint64_t entry);
/* Writes the 8 bytes of a chunk's header. */
void sim__chunk_put(const struct sim_heap_builder *b, uint32_t chunk);
/* Encodes a header's 8 bytes from its fields. */
void sim__header_put(const struct sim_heap_builder *b, uint8_t *to, uint32_t size, uint8_t flags,
		     uint32_t previous, uint8_t segment, uint8_t unused);
/* Allocates a chunk for `bytes` of data. NO_CHUNK: failed. */
uint32_t sim__chunk_take(struct sim_heap_builder *b, uint64_t bytes, enum chunk_state state,
			 uint8_t internal);
void sim__chunk_free(struct sim_heap_builder *b, uint32_t chunk);
/* Decommits as many pages of a free chunk as it can. False: too small, nothing was done. */
bool sim__chunk_decommit(struct sim_heap_builder *b, uint32_t chunk);

/* A virtual block's committed bytes, and its start. */
uint64_t sim__virtual_bytes(const struct sim_heap_builder *b, const struct block *of);
uint64_t sim__virtual_va(const struct sim_heap_builder *b, const struct block *of);
/* Random units of a block's extra; a random stack trace entry that depends on its size. */
uint32_t sim__extra_units(struct sim_heap_builder *b);
uint64_t sim__extra_trace(struct sim_heap_builder *b, uint64_t size);
/* Writes an extra after the header of a block of `whole` bytes, `requested` of them the user's. */
void sim__extra_put(const struct sim_heap_builder *b, uint8_t *at, uint32_t units, uint64_t whole,
		    uint64_t requested, uint64_t trace);
/* Which of ntdll's interceptors captures the heap's stack traces, from 1. */
uint16_t sim__trace_function(const struct sim_heap_builder *b);

/* Allocates in the front end. False: it does not serve this size. */
bool sim__lfh_alloc(struct sim_heap_builder *b, uint64_t size, struct block *ret);
void sim__lfh_free(struct sim_heap_builder *b, const struct block *of);
/* Writes the front end's bitmaps, counts and lists. */
void sim__lfh_finish(struct sim_heap_builder *b);
uint64_t sim__lfh_block_va(const struct sim_heap_builder *b, const struct user_blocks *u,
			   uint32_t index);
void sim__heap_write(struct sim_heap_builder *b, struct sim_heap *ret);
/* Writes heads and lists only. */
void sim__heap_rewrite(struct sim_heap_builder *b);

#endif
