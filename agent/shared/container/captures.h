/* SPDX-License-Identifier: Apache-2.0 */
/*
 * When each page of a stream was captured, with newest and older captures kept apart. It uses only
 * the headers of a container, so nothing is decoded.
 */
#ifndef RAMSEAL_AGENT_SHARED_CONTAINER_CAPTURES_H
#define RAMSEAL_AGENT_SHARED_CONTAINER_CAPTURES_H

#include "formats/base/packed.h"
#include "formats/base/range.h"
#include "formats/rsz/rsz_reader.h"

/* Adjacent pages captured together with the same state. */
struct capture {
	struct range range;
	uint64_t start; /* monotonic ns */
	uint64_t end;
	uint16_t state;  /* enum page_state */
	uint16_t reason; /* enum rsz_reason */
};

/* An extent whose pages have several states. */
struct mixed_extent {
	uint64_t address;
	size_t first; /* its first page in mixed_states */
};

/*
 * When and why each extent of a container was captured, and the states of its pages, by its number
 * (struct rsz_segment). The reader knows its addresses.
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
 * A page that was read in an earlier record and captured again later. For a swap cache, unread
 * pages are included too, because their absence is the information.
 */
struct older_page {
	uint64_t address;
	uint64_t start; /* monotonic ns */
	uint64_t end;
	uint64_t record; /* offset of the CHUNK record */
	uint32_t data;   /* offset of its bytes in the chunk's data */
	uint16_t length; /* PAGE_SIZE, or less at the end of a file */
	uint8_t reason;  /* enum rsz_reason */
	uint8_t state;   /* enum page_state: always read, except in a swap cache's stream */
};

/*
 * The most older pages kept for a stream, 8 GiB of memory: an acquisition does not capture more
 * again, but a record of 200 bytes can claim 4,096.
 */
#define CAPTURES_OLDER_MAX ((size_t)1 << 21)

/* Of one stream. */
struct captures {
	const struct rsz_reader *reader; /* NULL: an unwanted stream, with everything empty */
	const struct captured_extents *extents;
	uint32_t stream;
	struct rsz_times times;   /* of the newest captures, from the first to the last */
	struct older_page *older; /* by address, then by record */
	size_t n_older;
	size_t older_room;
	uint64_t older_untold; /* further ones: then no page's list is complete */
	bool all_states;       /* older pages of any state are kept: a swap cache */
};

/* One for each stream of the container; unwanted ones stay empty. */
struct stream_captures {
	struct captures *streams;
	size_t count;
	struct captured_extents *extents; /* of all of them */
};

/*
 * Loads all streams of physical memory, page files and swap caches. `in` is what `r` was opened on;
 * the reader must stay open while captures are used.
 */
enum status stream_captures_load(struct stream_captures *ret, struct blob *in,
				 const struct rsz_reader *r, struct err *e);
void stream_captures_deinit(struct stream_captures *s);

/*
 * The first capture at or after the page at `address`, cut to start there and to end at `last` (the
 * end of a page) at the latest; false if there is none up to there. The time grows with its
 * extents.
 */
bool captures_from(const struct captures *c, uint64_t address, uint64_t last, struct capture *ret);

/*
 * The first page at or after `address` that was captured more than once: its *n older captures, in
 * the order of the file. NULL: none.
 */
const struct older_page *captures_older_from(const struct captures *c, uint64_t address, size_t *n);

/* Those of the page at `address`; NULL with *n of 0: it was captured at most once. */
const struct older_page *captures_older(const struct captures *c, uint64_t address, size_t *n);

/*
 * The content of an older page, PAGE_SIZE bytes, with zeros after the end of a file. ST_CORRUPT if
 * the container is damaged there. `c` is a cursor of the same reader.
 */
enum status captures_read_older(struct rsz_cursor *c, const struct older_page *o, uint8_t *ret,
				struct err *e);

/* True if the pages have content, zeros included. */
bool capture_is_readable(const struct capture *c);

/* All captured addresses, tidy and joined. */
enum status captures_ranges(const struct captures *c, struct range_list *ret, struct err *e);

#endif
