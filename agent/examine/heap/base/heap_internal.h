/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What all kinds of heap share: heap_layout (tables), page_notes, heap_pages (memory), heap_set
 * (the heaps found so far), page_header, and heap_tell (reports a block to the visitor). nt/ and
 * segment/ use it and know nothing of each other; the folder above calls both. No two files depend
 * on each other (tests/circles.py).
 */
#ifndef RAMSEAL_AGENT_EXAMINE_HEAP_BASE_HEAP_INTERNAL_H
#define RAMSEAL_AGENT_EXAMINE_HEAP_BASE_HEAP_INTERNAL_H

#include "agent/examine/heap/base/heap_facts.h"
#include "formats/base/bytes.h"

#define SEGMENT_SIGNATURE      0xffeeffee
#define NT_HEAP_SIGNATURE      0xeeffeeff
#define SEGMENT_HEAP_SIGNATURE 0xddeeddee
#define USER_BLOCKS_SIGNATURE  0xf0e0d0c0

#define CHUNK_FLAG_BUSY        0x01
#define CHUNK_FLAG_INTERNAL    0x08 /* LFH containers and zones; VirtualAlloc blocks */

#define CHUNK_EXTENDED         0x40 /* in UnusedBytes: see nt/extended.c; below it: */
#define CHUNK_UNITS            0x3f
#define EXTENSION_END          5 /* UnusedBytes of a header that is none */

/* In a block's last header byte: it belongs to the LFH. The other bits count unused bytes. */
#define LFH_BLOCK              0x80

/* VirtualAlloc's allocations begin at multiples of it. */
#define ALLOCATION_GRANULARITY ((uint64_t)64 << 10)

/* User addresses lie below these. */
#define USER_LIMIT_WIDE        (UINT64_C(1) << 47)
#define USER_LIMIT_NARROW      (UINT64_C(1) << 32)

/* _HEAP_SEGMENT, and _HEAP, which begins with one; offsets in bytes. */
struct heap_layout {
	bool wide;
	uint8_t unit;   /* of sizes in chunk headers */
	uint8_t header; /* offset of a header's encoded bytes in the chunk */
	uint8_t segment_signature;
	uint8_t segment_entry; /* LIST_ENTRY */
	uint8_t segment_heap;
	uint8_t pages;
	uint8_t first;
	uint8_t last;
	uint8_t uncommitted_pages;
	uint8_t holes; /* LIST_ENTRY */
	uint8_t flags;
	uint8_t encode_mask;
	uint8_t encoding;
	uint8_t descriptor_segment; /* of _HEAP_UCR_DESCRIPTOR: LIST_ENTRY */
	uint8_t descriptor_address;
	uint8_t virtual_commit; /* of _HEAP_VIRTUAL_ALLOC_ENTRY */
	uint8_t virtual_reserve;
	uint8_t virtual_chunk;
	uint8_t virtual_data;
	uint16_t user_context;    /* 24H2's */
	uint16_t segment_context; /* 24H2's _SEGMENT_HEAP.UserContext */
	/* Of _HEAP, by family: Vista and 7, and 8 and later. */
	struct heap_family {
		uint16_t signature;
		uint16_t total_free;
		uint16_t index;
		uint16_t virtual_blocks; /* LIST_ENTRY */
		uint16_t segments;       /* LIST_ENTRY */
	} family[2];
	/* FrontEndHeap, FrontEndHeapType, Counters (0: not known), newest first; ended by zeros. */
	struct heap_front {
		uint16_t pointer;
		uint16_t type;
		uint16_t counters;
	} front[2][4];
	/* _HEAP_USERDATA_HEADER and _HEAP_SUBSEGMENT: of 7, and of 8 and later. */
	struct heap_lfh_layout {
		uint8_t signature;
		uint8_t offsets; /* 0: has none, nor a bitmap */
		uint8_t bitmap_size;
		uint8_t bitmap_pointer;
		uint8_t bitmap;
		uint8_t first; /* without a bitmap: the first block */
		uint8_t sub_user_blocks;
		uint8_t sub_depth;
		uint8_t sub_block_size;
		uint8_t sub_block_count;
		uint8_t head; /* of _LFH_HEAP: Heap */
	} lfh[2];
};

extern const struct heap_layout heap__wide, heap__narrow;

static inline const struct heap_layout *heap__layout(bool wide)
{
	return wide ? &heap__wide : &heap__narrow;
}

struct heap_notes; /* page_notes.h */
struct notes_part;
struct page_note;

/* The memory, and the page that was read last; each call replaces it. */
struct heap_pages {
	const struct memory_view *m;
	uint64_t va;
	const uint8_t *bytes;
	bool has;      /* .va is set: the page of the last call */
	bool loaded;   /* .bytes are that page's */
	uint64_t left; /* of HEAP_FETCHES_MAX */
	bool cut;
	struct heap_notes *notes;           /* NULL: none are made */
	const struct page_note *note;       /* NULL: the page has none */
	const struct notes_part *note_part; /* set with .note */
};

/* `size` bytes in one page, valid until the next call. NULL: they cross pages, or are missing. */
const uint8_t *heap__at(struct heap_pages *p, uint64_t va, size_t size);
/* Bytes of [from, to), in one page that cannot be read, that count as lost. */
uint64_t heap__lost(struct heap_pages *p, uint64_t from, uint64_t to);
/*
 * The next five do not read the page if it is noted.
 */

/* Can the page be read? */
bool heap__is_there(struct heap_pages *p, uint64_t va);
/* Does a container of LFH blocks with the layout .lfh[kind] begin at `va`? */
bool heap__is_container(struct heap_pages *p, const struct heap_layout *l, size_t kind,
			uint64_t va);
/* Is the pointer at `va` the heap's address? */
bool heap__holds(struct heap_pages *p, uint64_t va, bool wide, uint64_t heap);
/*
 * The last byte of the header of an LFH block at `va`; for another block it may be 0 instead. -1:
 * it cannot be read.
 */
int heap__lfh_byte(struct heap_pages *p, const struct heap_layout *l, uint64_t va);
/*
 * The 8 bytes before an extended block's data. For another block they may be zeros, which never end
 * an extension.
 */
const uint8_t *heap__extension_end(struct heap_pages *p, const struct heap_layout *l, uint64_t va);

/* Read a number at `va`. Inline because walks consist of them. */
static inline bool heap__u16(struct heap_pages *p, uint64_t va, uint16_t *ret)
{
	const uint8_t *at = heap__at(p, va, 2);

	if (at)
		*ret = get_le16(at);
	return at;
}

static inline bool heap__u32(struct heap_pages *p, uint64_t va, uint32_t *ret)
{
	const uint8_t *at = heap__at(p, va, 4);

	if (at)
		*ret = get_le32(at);
	return at;
}

static inline bool heap__u64(struct heap_pages *p, uint64_t va, uint64_t *ret)
{
	const uint8_t *at = heap__at(p, va, 8);

	if (at)
		*ret = get_le64(at);
	return at;
}

static inline bool heap__pointer(struct heap_pages *p, uint64_t va, bool wide, uint64_t *ret)
{
	uint32_t narrow;

	if (wide)
		return heap__u64(p, va, ret);
	if (!heap__u32(p, va, &narrow))
		return false;
	*ret = narrow;
	return true;
}

struct chunk {
	uint64_t at;
	uint32_t size; /* in units, like .prev */
	uint32_t prev;
	uint8_t flags;
	uint8_t offset; /* SegmentOffset; of a virtual block: units of its extension */
	uint8_t unused;
};

enum chunk_read { CHUNK_GOOD, CHUNK_WRONG, CHUNK_UNREAD };

enum chunk_read heap__chunk(struct heap_pages *p, const struct heap_layout *l, const uint8_t *key,
			    uint64_t at, struct chunk *ret);

/* Bytes of the chunk that the program asked for; false: unknown. */
bool heap__requested(struct heap_pages *p, const struct heap_layout *l, const struct chunk *c,
		     uint64_t *ret);

/* A part of a heap, which has reserved [base, end). */
struct heap_segment {
	uint64_t base;
	uint64_t heap; /* its address */
	uint64_t first, last, end;
	uint64_t uncommitted_pages;
	bool wide;
	bool read; /* its head was read; else .first and .last are those of the whole segment */
};

/* A block of full page heap: one header, and the pages up to its end. */
struct page_block {
	uint64_t first; /* page */
	uint64_t user;
	uint64_t requested;
	uint64_t heap;
	uint64_t trace;
	bool busy;
	bool wide;
};

struct segment_state;

struct heaps {
	struct heap_sources sources;
	struct heap_notes *notes;       /* or NULL */
	struct segment_state *segment;  /* segment/ */
	struct page_block *page_blocks; /* by heap, then address */
	size_t page_block_count, page_block_room;
	bool page_blocks_cut;
	struct heap_global_flag {
		bool known;
		uint32_t value;
	} global_flag[2]; /* of the 32-bit PEB, and of the 64-bit one */
	struct heap_pages pages;
	struct heap_info *at;
	size_t count, room;
	struct heap_segment *segments; /* by heap, then base */
	size_t segment_count, segment_room;
	bool segments_cut; /* there are more than could be kept */
	bool list_lost[2]; /* 32-bit, 64-bit */
	uint16_t build[2]; /* likewise; 0: unknown */
};

/* A walk of one heap. */
struct heap_walk {
	struct heaps *h;
	size_t index;
	const struct heap_info *info;
	const uint8_t *key; /* NULL: headers are plain */
	const struct heap_layout *l;
	struct heap_pages *p;
	const struct heap_visitor *v;
	struct heap_stats *stats;
	struct user_blocks {
		uint64_t at;
		uint64_t size;
	} *user_blocks;
	size_t user_block_count, user_block_room;
	struct err *e;
};

enum status heap__tell(struct heap_walk *w, struct heap_allocation *a);

/* Sets p->note for the current page. */
void heap__see_note(struct heap_pages *p);
/*
 * About p->note
 */

bool heap__note_is_lost(const struct heap_pages *p);
bool heap__note_is_of(const struct heap_pages *p, bool wide, const uint8_t *key);
bool heap__note_is_of_heap(const struct heap_pages *p, bool wide, uint64_t heap);
/* `size` noted bytes at an offset in a page that is not lost. NULL: not all are noted. */
const uint8_t *heap__noted_bytes(const struct heap_pages *p, size_t at, size_t size);
/* The noted last byte of one of the heap's units; 0: not noted. */
uint8_t heap__noted_last(const struct heap_pages *p, size_t unit);

/* Is it a user address of a program of this width, and aligned? */
bool heap__plausible(uint64_t va, bool wide, uint64_t alignment);

/* Finds or adds the heap at `address`. *ret NULL: there are too many. */
enum status heap__add(struct heaps *h, uint64_t address, bool wide, struct heap_info **ret,
		      struct err *e);

/* True unless a flag that was read says that page heap is off. */
bool heap__page_heap_may_be(const struct heaps *h);
/* If a busy block begins with a light page-heap header, reports the block behind it instead. */
void heap__see_light(struct heap_walk *w, struct heap_allocation *a);

#endif
