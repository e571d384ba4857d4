/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where the content of a file lies: an ordered list without gaps from byte 0 of the file on.
 */
#ifndef RAMSEAL_TSK_EXTRACT_EXTENT_H
#define RAMSEAL_TSK_EXTRACT_EXTENT_H

#include <stdbool.h>

#include "formats/base/err.h"

enum extent_kind {
	EXTENT_DISK, /* `disk` says where */
	EXTENT_HOLE, /* sparse: never allocated, reads as zeros */
	EXTENT_LOST, /* there are clusters, but the record that names them could not be had */
};

const char *extent_kind_name(enum extent_kind kind);

/* All in bytes; multiples of the cluster, but for the last one of a file. */
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
 * Brings what was added into the form above, for a file of `length` bytes: sorted, cut at its end,
 * gaps filled with EXTENT_LOST, neighbours that continue each other joined. Where two claim the
 * same bytes of the file, the one that begins earlier has them; *ret_overlaps counts those (NULL is
 * fine).
 */
enum status extent_list_settle(struct extent_list *l, uint64_t length, size_t *ret_overlaps,
			       struct err *e);

/* The extent that holds `off`, or NULL if it is behind the end. The list is settled. O(log n). */
const struct extent *extent_list_find(const struct extent_list *l, uint64_t off);

/* Number of pieces on disk: what people call the fragments of a file. */
size_t extent_list_fragments(const struct extent_list *l);

/*
 * Appends to `ret` the parts of the file that lie elsewhere, or are of another kind, in `now`
 * (settled, as is `before`). What only one of them has counts as changed too. The parts are given
 * as extents of `now`; those that `now` no longer has are left out.
 */
enum status extent_list_changes(const struct extent_list *before, const struct extent_list *now,
				struct extent_list *ret, struct err *e);

#endif
