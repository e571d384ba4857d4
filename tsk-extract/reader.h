/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads the bytes of a disk: a device, an image file, a split image, an E01. Everything in this
 * folder reads through a `struct reader`, including libtsk (as an external image), so that
 * alignment, bad sectors and freshness are handled in one place. One file per kind; the build
 * chooses the one for devices (reader_linux.c, reader_windows.c).
 *
 * One thread at a time per reader.
 */
#ifndef RAMSEAL_TSK_EXTRACT_READER_H
#define RAMSEAL_TSK_EXTRACT_READER_H

#include <stdbool.h>

#include "formats/base/err.h"

struct reader;

/* Error numbers of reads are errno's. This one: the read goes past the end of a truncated image. */
#define READ_PAST_END ENXIO

struct reader_ops {
	const char *kind; /* "file", "device", "split raw", "EWF", "memory" */
	/*
	 * Reads `len` bytes at `off`; both lie within the size. Returns 0 when all were read, else
	 * an error number, with *good bytes at the front of `buf` valid. Any alignment.
	 */
	uint32_t (*read)(struct reader *r, uint64_t off, void *buf, size_t len, size_t *good);
	/*
	 * hint(): this range will be read soon; at_hand(): is the byte at `off` already in memory?
	 * Both NULL if they would not help.
	 */
	void (*hint)(struct reader *r, uint64_t off, uint64_t len);
	bool (*at_hand)(struct reader *r, uint64_t off);
	void (*close)(struct reader *r);
};

/* Every reader begins with this, filled by its open function. */
struct reader {
	const struct reader_ops *ops;
	uint64_t size;    /* bytes */
	uint32_t sector;  /* bytes; the smallest unit that can be bad */
	uint32_t unit;    /* bytes that fail together, if more than a sector; or 0 */
	bool device;      /* a live device, whose content changes while we read */
	const char *note; /* what is wrong with the whole image, static; or NULL */
};

/*
 * Opens `paths[0..n)`: one path is a device, a raw image, the first segment of a split raw image
 * (NAME.001, NAME.000, NAME.aa: finds the others) or of an EWF image (E01, Ex01 is not supported by
 * libewf 2014); several are the segments of a raw image in order. ST_INPUT.
 */
enum status reader_open(const char *const *paths, size_t n, struct reader **ret, struct err *e);
void reader_close(struct reader *r); /* NULL is fine */

/* Borrowed memory, for tests and fuzzers. `sector` as above. */
enum status reader_open_memory(const void *p, size_t len, uint32_t sector, struct reader **ret,
			       struct err *e);

/*
 * As ops->read, for any range: past the end is READ_PAST_END. *good is a multiple of the sector
 * size unless all was read.
 */
uint32_t reader_read(struct reader *r, uint64_t off, void *buf, size_t len, size_t *good);

/*
 * Reads around bad sectors. Unreadable bytes are zero in `buf`, and `bad` is called for each range
 * of them (merged, ascending; READ_PAST_END ranges only once). `bad` may be NULL.
 */
typedef void (*reader_bad_fn)(void *arg, uint64_t off, size_t len, uint32_t error);
void reader_read_around(struct reader *r, uint64_t off, void *buf, size_t len, reader_bad_fn bad,
			void *arg);

/* How writing a file at `path` could damage what is being read. */
enum target_risk {
	TARGET_SAFE,
	TARGET_ON_SOURCE, /* the file would be on the volume being read: warn */
	TARGET_IS_SOURCE, /* the file is the image or the device itself: refuse */
};

enum target_risk reader_target_risk(const struct reader *r, const char *path);

/*
 * For the files of this folder
 */

/*
 * For devices that need offset, length and address to be multiples of a sector: an aligned buffer,
 * and how to read with everything aligned. Sizes in bytes, whole sectors.
 */
struct bounce {
	uint8_t *at;
	size_t size;
	uint32_t (*read)(struct reader *r, uint64_t off, void *buf, size_t len, size_t *good);
};

/* reader_ops.read() for such a device: directly, or through the buffer. */
uint32_t reader__read_aligned(struct reader *r, const struct bounce *b, uint64_t off, void *buf,
			      size_t len, size_t *good);

/* The kinds. ST_NOT_MINE: try the next. */
enum status reader__open_system(const char *path, struct reader **ret, struct err *e);
/*
 * Windows. A file by a handle that may be shared with whoever opened it, buffered or not. Owns the
 * handle from then on, even if this fails.
 */
enum status reader__open_handle(void *handle, const char *path, struct reader **ret, struct err *e);
enum status reader__open_split(const char *const *paths, size_t n, struct reader **ret,
			       struct err *e);
enum status reader__open_ewf(const char *path, struct reader **ret, struct err *e);
enum target_risk reader__system_target_risk(const struct reader *r, const char *path);
extern const struct reader_ops reader__split_ops;

#endif
