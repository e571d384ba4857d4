/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Counts the pages of a stream by state, and lists those without content. Used by acquisitions
 * while writing, and by `info` and the exports while reading.
 */
#ifndef RAMSEAL_AGENT_SHARED_CONTAINER_TALLY_H
#define RAMSEAL_AGENT_SHARED_CONTAINER_TALLY_H

#include <jansson.h>

#include "formats/base/range.h"
#include "formats/rsz/rsz.h"

/* A run of adjacent pages of one state without content. */
struct tally_gap {
	struct range range;
	struct page_status status;
};

/* Further gaps are only counted, to bound memory on a hostile machine. */
#define TALLY_GAPS_MAX ((size_t)65536)

/* Zero-initialise. */
struct tally {
	uint64_t pages[PAGE_STATES];
	struct tally_gap *gaps; /* unreadable and skipped pages, in the order added */
	size_t n_gaps;
	size_t room;
	uint64_t gaps_untold; /* gaps only counted */
};

void tally_deinit(struct tally *t);
#define _cleanup_tally_ CLEANUP(tally_deinit)

/* Counts one page, or a run of `pages` pages of the same state. */
void tally_add(struct tally *t, uint64_t address, uint64_t pages, struct page_status status);

/*
 * Counts every page of a chunk of a paged stream; content captured again (a pass above 0) is not
 * counted twice.
 */
void tally_chunk(struct tally *t, const struct rsz_chunk *c);

uint64_t tally_pages(const struct tally *t);

/* True if any page is unreadable or skipped, for whatever reason. */
bool tally_has_gaps(const struct tally *t);

/* {"data": N, "zero": N, …} */
json_t *tally_states_json(const struct tally *t);

/*
 * [{"first":, "last":, "pages":, "error" or (skipped) "reason":}]; at most `max` gaps of that
 * state. NULL if out of memory.
 */
json_t *tally_gaps_json(const struct tally *t, enum page_state state, size_t max);

#endif
