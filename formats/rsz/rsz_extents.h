/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the newest capture of an address: the extents of a container, sorted and cut so that each
 * address belongs to one of them. Internal to formats/.
 *
 * A large container has millions of extents. They are sorted RSZ__RUN at a time, and both the runs
 * and their merged result are packed, so there is never an array of all of them.
 */
#ifndef RAMSEAL_FORMATS_RSZ_EXTENTS_H
#define RAMSEAL_FORMATS_RSZ_EXTENTS_H

#include "formats/base/packed.h"

#define RSZ__RUN ((size_t)1 << 15) /* pieces sorted at once: 1 MiB */

/* An extent, or a part of it that no newer one covers. */
struct rsz__piece {
	uint64_t address;
	uint64_t length; /* above 0; the end does not overflow */
	uint64_t extent; /* its number: the higher, the newer */
	uint32_t stream;
};

/* Pieces not sorted yet, and sorted runs, until all are merged. */
struct rsz__sorting {
	struct rsz__piece *at;
	size_t count;
	size_t room;
	struct packed runs; /* of RSZ__RUN pieces each; the last may have fewer */
};

/* The first piece of each block of the table, for searching without unpacking. */
struct rsz__first {
	uint64_t address;
	uint32_t stream;
};

struct rsz__extents {
	struct packed pieces; /* by stream and address, disjoint within a stream */
	struct rsz__first *firsts;
	struct rsz__sorting sorting;
	uint8_t *covered; /* a bit for each number from `least` on; NULL: no two overlap */
	uint64_t least;   /* numbers of extents */
	uint64_t most;
};

void rsz__extents_init(struct rsz__extents *x);
void rsz__extents_deinit(struct rsz__extents *x);

/* In any order, each number once. */
enum status rsz__extents_add(struct rsz__extents *x, const struct rsz__piece *piece, struct err *e);

/* Call after the last one; the functions below need this. */
enum status rsz__extents_settle(struct rsz__extents *x, struct err *e);

/* True if newer extents cover a part of this one or all of it. */
bool rsz__extents_is_covered(const struct rsz__extents *x, uint64_t extent);

/* The first piece of the stream that ends after `from`; x->pieces.rows if there is none. */
size_t rsz__extents_find(const struct rsz__extents *x, uint32_t stream, uint64_t from);

/* `i` below x->pieces.rows. */
struct rsz__piece rsz__extents_get(const struct rsz__extents *x, size_t i);

#endif
