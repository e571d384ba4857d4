/* SPDX-License-Identifier: Apache-2.0 */
/*
 * When every page of a stream was captured, newest capture first served: from the headers of a
 * container alone, so that no content is decoded to know it.
 */
#ifndef RAMSEAL_AGENT_SMEAR_CAPTURES_H
#define RAMSEAL_AGENT_SMEAR_CAPTURES_H

#include "formats/base/range.h"
#include "formats/rsz_reader.h"

/* Neighbouring pages that were captured together and have the same state. */
struct capture {
	struct range range;
	uint64_t start; /* monotonic ns */
	uint64_t end;
	uint32_t state; /* enum page_state */
};

/* One page as an earlier record has it: it was captured again later. */
struct older_page {
	uint64_t address;
	uint64_t start; /* monotonic ns */
	uint64_t end;
	uint64_t record; /* offset of the CHUNK record */
	uint64_t data;   /* where its bytes begin in the chunk's */
};

/* Of one stream; sorted and disjoint. */
struct captures {
	struct capture *at;
	size_t count;
	size_t room;
	struct older_page *older; /* of physical memory, readable ones: by address, then by time */
	size_t n_older;
	size_t older_room;
};

/* One for each stream of the container; those that are not wanted stay empty. */
struct stream_captures {
	struct captures *streams;
	size_t count;
};

/* Of all streams of physical memory and all page files. `in` is what `r` was opened on. */
enum status stream_captures_load(struct stream_captures *ret, struct blob *in,
				 const struct rsz_reader *r, struct err *e);
void stream_captures_deinit(struct stream_captures *s);

/* The first capture that ends at or behind `address`; it may begin behind it. NULL: there is none. */
const struct capture *captures_from(const struct captures *c, uint64_t address);

/* The first capture of a page that was captured more than once; NULL: it was not. */
const struct older_page *captures_oldest(const struct captures *c, uint64_t address);

/* True if the pages have content, zeros included. */
bool capture_is_readable(const struct capture *c);

/* The addresses that are covered, tidy and joined. */
enum status captures_ranges(const struct captures *c, struct range_list *ret, struct err *e);

#endif
