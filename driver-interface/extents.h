/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which bytes of a file are which bytes of physical memory: what the program headers of a core and
 * the records of a LiME file say, sorted and without overlaps. To the byte, because a page can be
 * split between two records.
 */
#ifndef RAMSEAL_DRIVER_INTERFACE_EXTENTS_H
#define RAMSEAL_DRIVER_INTERFACE_EXTENTS_H

#include "driver-interface/drv.h"

struct extent {
	struct range range;
	uint64_t offset; /* of range.first in the file */
};

struct extents {
	struct extent *at;
	size_t count;
	size_t room;
};

void extents_deinit(struct extents *x);

/* Adds `len` bytes at `first`; 0 is nothing, and what would pass 2^64 is cut there. */
enum status extents_add(struct extents *x, uint64_t first, uint64_t len, uint64_t offset,
			struct err *e);

/*
 * Sorts. Where extents overlap, the one that begins first keeps the bytes (the longer one if both
 * begin together), and a third that lies inside is dropped.
 */
void extents_tidy(struct extents *x);

/* As drv_ops.read(): whole pages, gathered from the file. Pages not in it are `not_offered`. */
struct drv_result extents_read(const struct extents *x, int fd, uint64_t addr, void *buf,
			       size_t len);

#endif
