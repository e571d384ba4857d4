/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The compression store of Windows 10 and later: pages that an entry sends to the paging file
 * without a file. The kernel keeps them compressed in the user half of a process, MemCompression,
 * and finds them by a key, which the entry names:
 *
 *	SmGlobals            0 ptr[32] to 32 SMKM_STORE_METADATA each; 0x1c0 ptr KeyToStoreTree
 *	SMKM_STORE_METADATA  (0x28 bytes) 0 ptr SMKM_STORE
 *	B-tree, a page       0 u16 entries, 3 u8 leaf, 8 ptr what lies left of the first key,
 *	                     0x10 {u32 key, u32 value}, or {u32 key, u32 -, ptr child}
 *	SMKM_STORE           0x50 ptr PagesTree: key to region key; 0x110 the chunks; 0x370 ptr to
 *	                     itself; 0x378 u32 RegionSizeMask, 0x37c u32 a shift; and by build: the
 *	                     algorithm, the regions, the EPROCESS of the owner
 *	chunks               0 ptr[32], 0x108 u32 a shift, 0x10c u32 mask of records, 0x110 u32 size
 *	                     of a record, 0x118 u32 size of a chunk's head
 *	record               0 u32 region and place (2^32-1: the region key at 4 leads on), 4 u16
 *	                     size; 0x1000: not compressed
 *
 * Sources: mandiant/win10_volatility 1f3b996c (overlays/windows/win10_memcompression.py and
 * addrspaces/win10_memcompression.py: builds 14393 to 18362) and ufrisk/MemProcFS c3aa8106
 * (vmm/mm/mm_win.c: to 22631). From 26100 on pages are compressed by LZ4 (MemProcFS): those are not
 * read here, nor is a record of the size 0, which MemProcFS takes for zeros. No store of a real
 * Windows was read yet.
 *
 * Nothing of it is believed: each structure is judged before it is used. A page costs two trees of
 * PAGESTORE_DEPTH nodes and PAGESTORE_CHAIN records at most.
 */
#ifndef RAMSEAL_AGENT_VIRTUAL_PAGESTORE_H
#define RAMSEAL_AGENT_VIRTUAL_PAGESTORE_H

#include "agent/virtual/memory_view.h"
#include "formats/base/range.h"

/* A tree of 255 entries a node has 4 levels at most, for 2^32 keys. */
#define PAGESTORE_DEPTH     8
/* Sources follow it without end. */
#define PAGESTORE_CHAIN     16

/* Of the kernel's image as much is looked through for SmGlobals. Its writable part has 2 MiB. */
#define PAGESTORE_SCAN_MAX  ((uint64_t)16 << 20)
/* And so many pages are looked at elsewhere meanwhile, for what could be it. */
#define PAGESTORE_LOOKS_MAX ((uint32_t)1 << 16)

struct pagestore_plan {
	struct memory_view kernel;
	/* The user half of the address space with this root; pages as in struct memory_view. */
	const uint8_t *(*user)(void *context, uint64_t dtb, uint64_t va);
	/* Whether a DirectoryTableBase is that of an address space that is known. */
	bool (*known)(void *context, uint64_t dtb);
	void *context;
	const struct range *writable; /* of the kernel's image */
	size_t n_writable;
	uint64_t globals; /* SmGlobals, if symbols tell; 0: it is looked for */
	uint32_t build;   /* 0: not known */
};

#define PAGESTORE_MAP(X)                                                                           \
	X(PAGESTORE_GIVEN, "")                                                                     \
	X(PAGESTORE_NONE, "needs the compression store, which was not found")                      \
	X(PAGESTORE_NO_KEY, "the compression store has no page of its key")                        \
	X(PAGESTORE_NO_STORE, "its compression store cannot be read")                              \
	X(PAGESTORE_NO_LAYOUT, "its compression store has a layout that is not known")             \
	X(PAGESTORE_NO_RECORD, "its record in the compression store cannot be read")               \
	X(PAGESTORE_NO_DATA, "its part of the compression store cannot be read")                   \
	X(PAGESTORE_BAD_DATA, "its part of the compression store cannot be decompressed")

enum pagestore_answer {
#define X(name, text) name,
	PAGESTORE_MAP(X)
#undef X
		PAGESTORE_ANSWERS
};

const char *pagestore_why(enum pagestore_answer a);

struct pagestore {
	struct pagestore_plan plan;
	uint64_t globals; /* 0: not found */
	uint64_t tree;    /* KeyToStoreTree */
	uint32_t looks;   /* that are left */
};

/* Looks for SmGlobals, once. Nothing is allocated; `plan` is copied. False: there is none. */
bool pagestore_find(struct pagestore *s, const struct pagestore_plan *plan);

/* The page of a key. Unless PAGESTORE_GIVEN is returned, `page` holds anything. */
enum pagestore_answer pagestore_read(const struct pagestore *s, uint32_t key, uint8_t *page);

#endif
