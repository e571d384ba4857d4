/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which bytes of a file are which bytes of physical memory: what the program headers of a core and
 * the records of a LiME file say, sorted and without overlaps. To the byte, because a page can be
 * split between two records.
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
 * The offset of bytes that should be in the file and are not: no file is that long. They are
 * unreadable (DRV_NO_DATA), where those that no extent has are not offered.
 */
#define EXTENTS_NOTHING ((uint64_t)1 << 63)

/* The same of bytes that are not in the file because they are zeros. */
#define EXTENTS_ZEROS   ((uint64_t)1 << 62)

/* What a header claims as an offset, which may be any number: no file reaches that far. */
static inline uint64_t extents_claimed(uint64_t offset)
{
	return offset < EXTENTS_ZEROS - PHYS_LIMIT ? offset : EXTENTS_NOTHING;
}

/* Adds `len` bytes at `first`; 0 is nothing, and what would pass 2^64 is cut there. */
enum status extents_add(struct extents *x, uint64_t first, uint64_t len, uint64_t offset,
			struct err *e);

/*
 * Sorts. Where extents overlap, the one that begins first keeps the bytes (the longer one if both
 * begin together), and a third that lies inside is dropped.
 */
void extents_tidy(struct extents *x);

/* Bytes of memory that stand in a file at more than one place. */
struct extents_twice {
	uint64_t bytes;
	uint64_t compared; /* of those, as many copies as EXTENTS_COMPARE allows */
	uint64_t differ;   /* of those */
	size_t parts;      /* pieces that were looked at, EXTENTS_PARTS at most */
};

/* Enough for what overlaps in good faith: a kernel image that a kdump has twice. */
#define EXTENTS_COMPARE ((uint64_t)256 << 20)

/*
 * n extents can overlap in n * n / 2 pieces. Beyond so many pieces what overlaps is only counted,
 * even if both lie at the same place of the file.
 */
#define EXTENTS_PARTS   ((size_t)1 << 20)

/* Where the bytes are: in a file, or in what a file becomes when it is unpacked. */
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
 * As drv_ops.read(): whole pages, gathered from the file. Pages not in it are `not_offered`; of a
 * page that is there in part the error is DRV_NO_DATA.
 */
struct drv_result extents_read(const struct extents *x, struct extents_bytes *b, uint64_t addr,
			       void *buf, size_t len);

#endif
