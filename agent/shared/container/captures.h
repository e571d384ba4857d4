/* SPDX-License-Identifier: Apache-2.0 */
/*
 * When every page of a stream was captured, the newest capture and the older ones apart: from the
 * headers of a container alone, so that no content is decoded to know it.
 */
#ifndef RAMSEAL_AGENT_SHARED_CONTAINER_CAPTURES_H
#define RAMSEAL_AGENT_SHARED_CONTAINER_CAPTURES_H

#include "formats/base/packed.h"
#include "formats/base/range.h"
#include "formats/rsz/rsz_reader.h"

/* Neighbouring pages that were captured together and have the same state. */
struct capture {
	struct range range;
	uint64_t start; /* monotonic ns */
	uint64_t end;
	uint16_t state;  /* enum page_state */
	uint16_t reason; /* enum rsz_reason */
};

/* An extent whose pages do not all have one state. */
struct mixed_extent {
	uint64_t address;
	size_t first; /* its first page in mixed_states */
};

/*
 * When each extent of a container was captured, why, and what became of its pages; by its number
 * (struct rsz_segment). Which addresses it has is the reader's to know.
 */
struct captured_extents {
	struct packed table;
	struct mixed_extent *mixed;
	size_t n_mixed;
	size_t mixed_room;
	uint8_t *mixed_states; /* half a byte for each page */
	size_t n_states;
	size_t states_room; /* bytes */
};

/*
 * One page as an earlier record has it, and it was read: it was captured again later. Of a swap
 * cache what was not read is here, too: that it had nothing is what was to be known.
 */
struct older_page {
	uint64_t address;
	uint64_t start; /* monotonic ns */
	uint64_t end;
	uint64_t record; /* offset of the CHUNK record */
	uint32_t data;   /* where its bytes begin in the chunk's */
	uint16_t length; /* PAGE_SIZE, or less at the end of a file */
	uint8_t reason;  /* enum rsz_reason */
	uint8_t state;   /* enum page_state: it was read, but in a stream of the swap cache */
};

/*
 * So many older pages of a stream are kept, 8 GiB of memory: an acquisition does not capture that
 * much again, and a record of 200 bytes can say that it has 4,096.
 */
#define CAPTURES_OLDER_MAX ((size_t)1 << 21)

/* Of one stream. */
struct captures {
	const struct rsz_reader
		*reader; /* NULL: of a stream that is not wanted, and all is empty */
	const struct captured_extents *extents;
	uint32_t stream;
	struct rsz_times times;   /* of the newest captures, from the first to the last */
	struct older_page *older; /* by address, then in the order of their records */
	size_t n_older;
	size_t older_room;
	uint64_t older_untold; /* that there were more of: of no page all are known */
	bool all_states;       /* of older pages; of a swap cache */
};

/* One for each stream of the container; those that are not wanted stay empty. */
struct stream_captures {
	struct captures *streams;
	size_t count;
	struct captured_extents *extents; /* of all of them */
};

/*
 * Of all streams of physical memory, all page files and what swap caches held of them. `in` is what
 * `r` was opened on; the reader must stay open as long as captures are asked for.
 */
enum status stream_captures_load(struct stream_captures *ret, struct blob *in,
				 const struct rsz_reader *r, struct err *e);
void stream_captures_deinit(struct stream_captures *s);

/*
 * The first capture at or behind the page at `address`, from there on, and up to `last` (the end of
 * a page) at most; false if there is none up to there. It takes as long as it has extents.
 */
bool captures_from(const struct captures *c, uint64_t address, uint64_t last, struct capture *ret);

/*
 * The first page at or behind `address` that was captured more than once: *n older captures of it,
 * in the order in which they were written. NULL: there is none.
 */
const struct older_page *captures_older_from(const struct captures *c, uint64_t address, size_t *n);

/* Those of the page at `address`; NULL, and *n is 0: it was captured once at most. */
const struct older_page *captures_older(const struct captures *c, uint64_t address, size_t *n);

/*
 * The content of an older page, PAGE_SIZE bytes of it: behind the end of a file there are zeros.
 * ST_CORRUPT if the container is damaged there. `c` is a cursor of the reader they are of.
 */
enum status captures_read_older(struct rsz_cursor *c, const struct older_page *o, uint8_t *ret,
				struct err *e);

/* True if the pages have content, zeros included. */
bool capture_is_readable(const struct capture *c);

/* The addresses that are covered, tidy and joined. */
enum status captures_ranges(const struct captures *c, struct range_list *ret, struct err *e);

#endif
