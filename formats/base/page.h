/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is known about one page of a stream. Unreadable memory is data: a page of zeros and a page
 * that nobody could read never look alike, from the driver to the container to the exports.
 */
#ifndef RAMSEAL_BASE_PAGE_H
#define RAMSEAL_BASE_PAGE_H

#include <stdbool.h>

#include "formats/base/defs.h"

/* The numbers are the container's (formats/SPEC.md, "Page states"). */
enum page_state {
	PAGE_DATA = 0,       /* read; its content is stored */
	PAGE_ZERO = 1,       /* read; every byte is zero; nothing is stored */
	PAGE_UNREADABLE = 2, /* tried and refused; detail: the source's own error number */
	PAGE_SKIPPED = 3,    /* not tried; detail: enum skip_reason */
	PAGE_HOLE = 4,       /* a part of a sparse file that was never allocated; reads as zeros */
	PAGE_STATES
};

/*
 * Why a page was not tried. The numbers are the container's, except 0, which no container may hold.
 */
enum skip_reason {
	SKIP_NOT_CAPTURED =
		0, /* not in the container: the acquisition ended or was cut off before it */
	SKIP_NOT_MAPPED = 1,    /* in the RAM map, but not offered by the source */
	SKIP_SOURCE_FAILED = 2, /* the source had failed for good before its turn came */
	SKIP_INTERRUPTED = 3,   /* the user stopped the acquisition before its turn came */
	SKIP_BEYOND_INIT = 4,   /* beyond a file's initialised size: the disk holds older data */
	SKIP_REASONS
};

struct page_status {
	uint32_t state;  /* enum page_state */
	uint32_t detail; /* see the states; otherwise 0 */
};

static inline bool page_status_same(struct page_status a, struct page_status b)
{
	return a.state == b.state && a.detail == b.detail;
}

/* Pages without content; page_reads_as_zeros() says which of them need none. */
static inline bool page_is_gap(struct page_status s)
{
	return s.state == PAGE_UNREADABLE || s.state == PAGE_SKIPPED;
}

/*
 * Pages that the system itself shows as zeros. What is beyond a file's initialised size was not
 * read from the disk, but no reader of the file would see it (NTFS: "valid data length").
 */
static inline bool page_reads_as_zeros(struct page_status s)
{
	return s.state == PAGE_ZERO || s.state == PAGE_HOLE ||
	       (s.state == PAGE_SKIPPED && s.detail == SKIP_BEYOND_INIT);
}

/* Words for people and for JSON, such as "unreadable". */
const char *page_state_name(uint32_t state);
const char *skip_reason_name(uint32_t reason);

/* True if all `len` bytes are zero. `len` is a multiple of 64. */
bool bytes_are_zero(const void *p, size_t len);

#endif
