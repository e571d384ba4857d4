/* SPDX-License-Identifier: Apache-2.0 */
/* The location of a file's content: an ordered list without gaps, from byte 0 of the file. */
#ifndef RAMSEAL_TSK_EXTRACT_EXTENT_H
#define RAMSEAL_TSK_EXTRACT_EXTENT_H

#include <stdbool.h>

#include "formats/base/err.h"

enum extent_kind {
	EXTENT_DISK, /* at `disk` */
	EXTENT_HOLE, /* sparse: never allocated, reads as zeros */
	EXTENT_LOST, /* it has clusters, but the record that lists them is not available */
};

const char *extent_kind_name(enum extent_kind kind);

/* All in bytes; multiples of the cluster, except the last one of a file. */
struct extent {
	uint64_t file;   /* offset in the file */
	uint64_t length; /* never 0 */
	uint64_t disk;   /* offset from the start of the volume; 0 unless EXTENT_DISK */
	enum extent_kind kind;
};

/* Zero-initialise; extent_list_deinit() frees and zeroes. */
struct extent_list {
	struct extent *at;
	size_t count;
	size_t room;
};

void extent_list_deinit(struct extent_list *l);
#define _cleanup_extents_ CLEANUP(extent_list_deinit)

/* Appends, in any order. */
enum status extent_list_add(struct extent_list *l, struct extent x, struct err *e);

/*
 * Brings the added extents into the form above, for a file of `length` bytes: sorted, cut at its
 * end, gaps filled with EXTENT_LOST, contiguous neighbours joined. If two claim the same bytes of
 * the file, the one that begins earlier gets them; *ret_overlaps counts those (NULL is fine).
 */
enum status extent_list_settle(struct extent_list *l, uint64_t length, size_t *ret_overlaps,
			       struct err *e);

/* The extent that contains `off`, or NULL if it is past the end. The list is settled. O(log n). */
const struct extent *extent_list_find(const struct extent_list *l, uint64_t off);

/* The number of pieces on disk, the file's fragments. */
size_t extent_list_fragments(const struct extent_list *l);

/*
 * Appends to `ret` the parts of the file that have moved, or are of another kind, in `now`
 * (settled, like `before`). Parts that only one of them has count as changed too. The parts are
 * extents of `now`; those it no longer has are left out.
 */
enum status extent_list_changes(const struct extent_list *before, const struct extent_list *now,
				struct extent_list *ret, struct err *e);

#endif
