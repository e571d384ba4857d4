/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ramseal container (.rsz): what writers and readers share. The byte layout, every limit and
 * its reason are in formats/SPEC.md, whose numbers are used here.
 */
#ifndef RAMSEAL_FORMATS_RSZ_H
#define RAMSEAL_FORMATS_RSZ_H

#include <stdbool.h>

#include "formats/base/err.h"
#include "formats/base/page.h"
#include "formats/base/sha256.h"

#define RSZ_VERSION     1
#define RSZ_ID_SIZE     16
#define RSZ_CONTENT_MAX ((size_t)16 << 20) /* bytes of content per record */
#define RSZ_STORED_MAX  ((size_t)17 << 20) /* bytes of payload frame per record */
#define RSZ_HEADER_MAX  ((size_t)164000)   /* bytes of the longest header, a CHUNK's */
#define RSZ_EXTENTS_MAX 4096
#define RSZ_RUNS_MAX    4096
/* Pages per chunk: 16 MiB of whole pages and, at worst, a short one at the end of each extent. */
#define RSZ_PAGES_MAX   (RSZ_CONTENT_MAX / PAGE_SIZE + RSZ_EXTENTS_MAX)
#define RSZ_STREAMS_MAX 4096
#define RSZ_NAME_MAX    4096
#define RSZ_META_MAX    65496
#define RSZ_TEXT_MAX    3944
#define RSZ_INDEX_MAX   4096 /* entries per INDEX record */

enum rsz_type { RSZ_BEGIN = 1, RSZ_STREAM = 2, RSZ_CHUNK = 3, RSZ_INDEX = 4, RSZ_CLOSE = 5 };

enum rsz_kind {
	RSZ_KIND_MEMORY = 1,
	RSZ_KIND_TABLES_BEFORE = 2,
	RSZ_KIND_TABLES_AFTER = 3,
	RSZ_KIND_PAGEFILE = 4,
	RSZ_KIND_FILE = 5,
	RSZ_KIND_LOG = 6,
	RSZ_KIND_MANIFEST = 7,
	RSZ_KIND_FRAGMENT = 8,
	RSZ_KIND_SWAP_CACHE = 9, /* what memory held of a swap area's slots */
};

/* "physical memory", "page file", … or "unknown". */
const char *rsz_kind_name(uint32_t kind);

/* Paged kinds have page states and 4096-byte pages; the others are plain bytes. */
bool rsz_kind_is_paged(uint32_t kind);

/* Addresses of these kinds are physical: whole pages below PHYS_LIMIT. */
bool rsz_kind_is_physical(uint32_t kind);

/* Why an extent was captured again. The numbers are the container's. */
enum rsz_reason {
	RSZ_FIRST = 0,
	RSZ_TABLE_CHANGED = 1, /* a page table refers to them that did not before */
	RSZ_FILE_CHANGED = 2,  /* the file's extents changed */
	RSZ_TABLE_AGAIN = 3,   /* a page table, read again after what it refers to */
};

/* A contiguous piece of a stream and when it was read. Times are monotonic ns. */
struct rsz_extent {
	uint64_t address;
	uint32_t length;
	uint16_t pass;
	uint16_t reason;
	uint64_t start;
	uint64_t end;
};

/* Pages that an extent of a paged stream covers. */
static inline size_t rsz_extent_pages(const struct rsz_extent *x)
{
	return ((size_t)x->length + PAGE_SIZE - 1) >> PAGE_SHIFT;
}

/* A chunk before encoding or after decoding. The arrays belong to whoever holds it. */
struct rsz_chunk {
	uint32_t stream;
	bool paged;
	struct rsz_extent *extents;
	size_t n_extents;
	/* Paged: one per page, over all extents in order. Otherwise unused. */
	struct page_status *pages;
	size_t n_pages;
	/*
	 * All extents concatenated: `length` bytes. Pages that are not PAGE_DATA are undefined
	 * before encoding, and zeros after decoding.
	 */
	uint8_t *data;
	size_t length;
	uint64_t start; /* of the first extent */
	uint64_t end;   /* of the last one */
};

#endif
