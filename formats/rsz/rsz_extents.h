/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which capture of an address is the newest: the extents of a container, sorted, and cut so that
 * each address belongs to one. Internal to formats/.
 *
 * A large container has millions of extents. They are sorted RSZ__RUN at a time, each run
 * is packed, and what the runs are merged to is packed, too: no array of them all is ever there.
 */
#ifndef RAMSEAL_FORMATS_RSZ_EXTENTS_H
#define RAMSEAL_FORMATS_RSZ_EXTENTS_H

#include "formats/base/packed.h"

#define RSZ__RUN ((size_t)1 << 15) /* pieces that are sorted at once: 1 MiB */

/* All of an extent, or what newer ones have left of it. */
struct rsz__piece {
	uint64_t address;
	uint64_t length; /* above 0; the end has a number */
	uint64_t extent; /* its number: the higher, the newer */
	uint32_t stream;
};

/* What is added and not yet sorted, and what was; until all is merged. */
struct rsz__sorting {
	struct rsz__piece *at;
	size_t count;
	size_t room;
	struct packed runs; /* of RSZ__RUN pieces each; the last may have fewer */
};

/* What a block of the table begins with: found without a look into it. */
struct rsz__first {
	uint64_t address;
	uint32_t stream;
};

struct rsz__extents {
	struct packed pieces; /* by stream and address, disjoint within a stream */
	struct rsz__first *firsts;
	struct rsz__sorting sorting;
	uint8_t *covered; /* a bit for each number from the least on; NULL: no two overlap */
	uint64_t least;   /* numbers of extents */
	uint64_t most;
};

void rsz__extents_init(struct rsz__extents *x);
void rsz__extents_deinit(struct rsz__extents *x);

/* In any order, no two with one number. */
enum status rsz__extents_add(struct rsz__extents *x, const struct rsz__piece *piece, struct err *e);

/* Behind the last one: what follows is for settled ones. */
enum status rsz__extents_settle(struct rsz__extents *x, struct err *e);

/* True if a newer extent has some or all of this one. */
bool rsz__extents_is_covered(const struct rsz__extents *x, uint64_t extent);

/* The first piece of the stream that ends behind `from`; x->pieces.rows if there is none. */
size_t rsz__extents_find(const struct rsz__extents *x, uint32_t stream, uint64_t from);

/* `i` below x->pieces.rows. */
struct rsz__piece rsz__extents_get(const struct rsz__extents *x, size_t i);

#endif
