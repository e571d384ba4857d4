/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Maps bytes of physical memory to bytes of a file, from the program headers of a core or the
 * records of a LiME file, sorted and without overlaps. To the byte, because a page can be split
 * between two records.
 */
#ifndef RAMSEAL_DRIVER_INTERFACE_EXTENTS_H
#define RAMSEAL_DRIVER_INTERFACE_EXTENTS_H

#include "driver-interface/drv.h"
#include "driver-interface/source.h"

struct file_extent {
	struct range range;
	uint64_t offset; /* of range.first in the file */
};

struct extents {
	struct file_extent *at;
	size_t count;
	size_t room;
};

void extents_deinit(struct extents *x);

/*
 * The offset of bytes that should be in the file but are not: no file is that long. They are
 * unreadable (DRV_NO_DATA), unlike bytes without an extent, which are not offered.
 */
#define EXTENTS_NOTHING ((uint64_t)1 << 63)

/* The same for bytes that are not in the file because they are zeros. */
#define EXTENTS_ZEROS   ((uint64_t)1 << 62)

/* An untrusted offset from a header, limited to what a file can have. */
static inline uint64_t extents_claimed(uint64_t offset)
{
	return offset < EXTENTS_ZEROS - PHYS_LIMIT ? offset : EXTENTS_NOTHING;
}

/* Adds `len` bytes at `first`; 0 adds nothing, and the range is cut at 2^64. */
enum status extents_add(struct extents *x, uint64_t first, uint64_t len, uint64_t offset,
			struct err *e);

/*
 * Sorts. Where extents overlap, the one that begins first keeps the bytes (the longer one if both
 * begin together), and a third that lies inside is dropped.
 */
void extents_tidy(struct extents *x);

/* Bytes of memory that a file has more than once. */
struct extents_twice {
	uint64_t bytes;
	uint64_t compared; /* of those, as many copies as EXTENTS_COMPARE allows */
	uint64_t differ;   /* of those */
	size_t parts;      /* pieces compared, at most EXTENTS_PARTS */
};

/* Enough for legitimate overlaps, such as a kernel image that a kdump has twice. */
#define EXTENTS_COMPARE ((uint64_t)256 << 20)

/*
 * n extents can overlap in n * n / 2 pieces. After this many, overlaps are only counted, even if
 * both are at the same place in the file.
 */
#define EXTENTS_PARTS   ((size_t)1 << 20)

/* The source of the bytes: a file, or its unpacked content. */
struct extents_bytes {
	struct pread_result (*read)(struct extents_bytes *b, uint64_t off, void *buf, size_t len);
};

struct extents_file {
	struct extents_bytes bytes;
	int fd; /* the caller's */
};

void extents_file_init(struct extents_file *f, int fd);

/* The same, and compares what is dropped with what is kept. */
void extents_tidy_and_compare(struct extents *x, struct extents_bytes *b,
			      struct extents_twice *ret);

/* Where the byte at `addr` is; false if no extent has it. */
bool extents_offset(const struct extents *x, uint64_t addr, uint64_t *ret);

/* Whether one has a byte of `r`. Both for extents that are tidy. */
bool extents_touch(const struct extents *x, struct range r);

/*
 * As drv_ops.read(): whole pages, gathered from the file. Pages not in it are `not_offered`; for a
 * page that is only partly there, the error is DRV_NO_DATA.
 */
struct drv_result extents_read(const struct extents *x, struct extents_bytes *b, uint64_t addr,
			       void *buf, size_t len);

#endif
