/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The compression store of Windows 10 and later: pages that an entry sends to the paging file
 * without a file. The kernel keeps them compressed in the user half of a process, MemCompression
 * (before 14393: System), and finds them by a key, which the entry names:
 *
 *	manager              KeyToStoreTree, and its stores: 0 ptr[32] to 32 {0 ptr SMKM_STORE} of
 *	                     0x28 bytes; before 14393 32 {0 ptr SMKM_STORE} of 0xb0 bytes at once
 *	B-tree, a page       0 u16 entries, 3 u8 leaf, 8 ptr what lies left of the first key,
 *	                     0x10 {u32 key, u32 value}, or {u32 key, u32 -, ptr child}
 *	its values           10 bits: which store; 0x010000: only 1 and 3 of that byte are pages;
 *	                     0x1000000: gone
 *	SMKM_STORE           0x50 ptr PagesTree: key to region key; 0x110 the chunks; `self` ptr to
 *	                     itself, and behind it u32 RegionSizeMask, u32 a shift; `regions` u32
 *	                     size of a region, u32 how many, ptr to ptr[]; by build: the algorithm,
 *	                     the EPROCESS of the owner
 *	chunks               0 ptr[32], 0x108 u32 a shift, 0x10c u32 mask of records, 0x110 u32 size
 *	                     of a record, 0x118 u32 size of a chunk's head
 *	record               0 u32 region and place (2^32-1: the region key at 4 leads on), 4 u32:
 *	                     12 bits size (0: a page that is not compressed), above them how many
 *	                     use it; before 14393 there are neither chunks nor records: PagesTree
 *	                     has {key, place, size, u32 -}, and 0x1000000 of the size: gone
 *
 * Where the manager is, without symbols. SmGlobals has no signature. It is recognised by a store
 * that it points to and that points to itself, and by its tree, which must be a valid one.
 *
 *	10240 to 22000       in the image: SmGlobals
 *	22621 to 26200       at the beginning of an SM_PARTITION. A ring of those begins in the
 *	                     image; the kernel puts the system's first. Each has a pointer to its
 *	                     EPARTITION, which at 0x18 points back. If two have stores, an entry
 *	                     does not tell which it means: then none is taken.
 *
 * Sources, by their letters in pagestore.c and pagestore_find.c:
 *
 *	V  mandiant/win10_volatility 1f3b996c (overlays/windows/win10_memcompression.py and
 *	   addrspaces/win10_memcompression.py): 14393 to 18362
 *	M  ufrisk/MemProcFS c3aa8106 (vmm/mm/mm_win.c): to 26100
 *	D  nohuto/decompiled-pseudocode 47643d2 (ntoskrnl of 1507, 1511, 1607, 1703, 1709, 1809,
 *	   2004, 22H2, and of 11 22H2 to 25H2): what the kernel itself reads and checks
 *	N  ntdiff/headers 34fa37e4 (KTHREAD of 1507 and 1511)
 *	R  Rickebo/ntoskrnlib 0a72996 (_EPARTITION: SmPartition)
 *
 * V and M have the chunks and records too. Only D says that a count stands above the size and that
 * 0 is a whole page (M takes 0 for zeros). 10240 and 10586 are from D alone, and so is the ring
 * from 22621 on, whose members M knows. Not supported: 26H1, whose manager has moved (D); XPRESS
 * with Huffman codes; what 24H2 has besides LZ4. Their pages are counted as missing. No store of a
 * real Windows has been read yet.
 *
 * None of it is trusted: each structure is checked before use, and a page is given only if it was
 * found by its key in both trees, lies in one region, and has 4096 bytes. That takes at most two
 * trees of PAGESTORE_DEPTH nodes and PAGESTORE_CHAIN records.
 */
#ifndef RAMSEAL_AGENT_EXAMINE_VIRTUAL_PAGESTORE_H
#define RAMSEAL_AGENT_EXAMINE_VIRTUAL_PAGESTORE_H

#include "agent/examine/virtual/memory_view.h"
#include "formats/base/range.h"

/* A tree of 255 entries a node has 4 levels at most, for 2^32 keys. */
#define PAGESTORE_DEPTH     8
/* The sources follow such a chain without a limit. */
#define PAGESTORE_CHAIN     16

/* How much of the kernel's image is searched. Its writable part has 2 MiB. */
#define PAGESTORE_SCAN_MAX  ((uint64_t)16 << 20)
/* How many pages elsewhere are read meanwhile to check candidates. */
#define PAGESTORE_LOOKS_MAX ((uint32_t)1 << 16)
/* How many members of a ring are read. */
#define PAGESTORE_RING_MAX  64

struct pagestore_plan {
	struct memory_view kernel;
	/* The user half of the address space with this root; pages as in struct memory_view. */
	const uint8_t *(*user)(void *context, uint64_t dtb, uint64_t va);
	/* Whether a DirectoryTableBase belongs to a known address space. */
	bool (*known)(void *context, uint64_t dtb);
	void *context;
	const struct range *writable; /* of the kernel's image */
	size_t n_writable;
	uint64_t globals; /* SmGlobals, from symbols; 0: it is searched for */
	uint32_t build;   /* 0: not known */
};

#define PAGESTORE_MAP(X)                                                                           \
	X(PAGESTORE_GIVEN, "")                                                                     \
	X(PAGESTORE_NONE, "needs the compression store, which was not found")                      \
	X(PAGESTORE_NO_KEY, "the compression store has no page of its key")                        \
	X(PAGESTORE_NO_STORE, "its compression store cannot be read")                              \
	X(PAGESTORE_NO_LAYOUT, "its compression store has an unknown layout")                      \
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
	const struct pagestore_kind *kind; /* of managers; NULL: none was found */
	uint64_t manager;
	uint64_t tree;  /* KeyToStoreTree */
	uint32_t looks; /* that are left */
};

/* Searches for the manager, once. Nothing is allocated; `plan` is copied. False: none was found. */
bool pagestore_find(struct pagestore *s, const struct pagestore_plan *plan);

/* The page of a key. Unless PAGESTORE_GIVEN is returned, the content of `page` is undefined. */
enum pagestore_answer pagestore_read(const struct pagestore *s, uint32_t key, uint8_t *page);

#endif
