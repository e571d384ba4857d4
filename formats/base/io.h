/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The two smallest interfaces under all I/O: a `sink` that appends (a file, a pipe, a socket)
 * and a `blob` that is read at an offset (a file, a device). Both have a memory version, for
 * tests and fuzzers.
 */
#ifndef RAMSEAL_BASE_IO_H
#define RAMSEAL_BASE_IO_H

#include <stdbool.h>

#include "formats/base/err.h"

/* Where bytes go: at the end. Only a file may let them be changed afterwards. */
struct sink {
	enum status (*write)(struct sink *s, const void *p, size_t len, struct err *e);
	/* Appends zeros, as a hole where it can. NULL: sink_skip() writes them. */
	enum status (*skip)(struct sink *s, uint64_t len, struct err *e);
	/* Drops everything after the first `len` bytes, after a failed write. NULL: it cannot. */
	enum status (*cut)(struct sink *s, uint64_t len, struct err *e);
	/* Replaces `len` bytes that were written or skipped. NULL: it cannot. */
	enum status (*rewrite)(struct sink *s, uint64_t offset, const void *p, size_t len,
			       struct err *e);
};

static inline enum status sink_write(struct sink *s, const void *p, size_t len, struct err *e)
{
	return s->write(s, p, len, e);
}

/* Appends `len` zero bytes. */
enum status sink_skip(struct sink *s, uint64_t len, struct err *e);

/* ST_OUTPUT if the sink cannot drop anything. */
enum status sink_cut(struct sink *s, uint64_t len, struct err *e);

/* Writes to a descriptor that stays the caller's. ST_OUTPUT with the reason on failure. */
struct fd_sink {
	struct sink sink;
	int fd;
	const char *name; /* for messages; borrowed */
};

void fd_sink_init(struct fd_sink *s, int fd, const char *name);

/* Collects in memory; `limit` bytes at most, then ST_OUTPUT (a full disk in a test). */
struct mem_sink {
	struct sink sink;
	uint8_t *at;
	size_t len;
	size_t room;
	size_t limit;
};

void mem_sink_init(struct mem_sink *s, size_t limit);
void mem_sink_deinit(struct mem_sink *s);

/*
 * Where bytes come from. read_at() fills as much of `len` as it has: *got < len only at the end of
 * the blob. An I/O error is ST_INPUT.
 */
struct blob {
	enum status (*read_at)(struct blob *b, uint64_t off, void *p, size_t len, size_t *got,
			       struct err *e);
	/*
	 * For a stream whose end is not known yet: reads on until it has `end` bytes or has found
	 * the end. See blob_reach(). NULL: the size is known.
	 */
	enum status (*reach)(struct blob *b, uint64_t end, struct err *e);
	uint64_t size; /* bytes; BLOB_ENDLESS until the end of a stream is found */
	/* A disk: its size is not the length of what was written to it, and old bytes follow. */
	bool device;
};

#define BLOB_ENDLESS UINT64_MAX

/*
 * Afterwards b->size can be compared with `end` and anything below it. With BLOB_ENDLESS as `end`,
 * the size is known afterwards. What a stream had before that place may be gone.
 */
static inline enum status blob_reach(struct blob *b, uint64_t end, struct err *e)
{
	return b->reach && b->size == BLOB_ENDLESS ? b->reach(b, end, e) : ST_OK;
}

/* Exactly `len` bytes, or ST_CORRUPT ("ends at ..."). */
enum status blob_read(struct blob *b, uint64_t off, void *p, size_t len, struct err *e);

/*
 * ST_INPUT for a FIFO or a socket: opening one can wait for its other end forever, and neither can
 * be read at an offset. ST_OK if there is nothing: opening it will say why.
 */
enum status input_is_no_pipe(const char *path, struct err *e);

/* A regular file or block device. The descriptor is owned and closed by file_blob_deinit(). */
struct file_blob {
	struct blob blob;
	int fd;
};

enum status file_blob_open(struct file_blob *b, const char *path, struct err *e);
/* The same for an open descriptor, which is owned even if this fails. */
enum status file_blob_take(struct file_blob *b, int fd, struct err *e);
void file_blob_deinit(struct file_blob *b);

/*
 * A whole regular file of at most `max` bytes, for free(); a NUL follows the `*ret_len` bytes.
 * ST_INPUT with the path if it cannot be read or is longer.
 */
enum status file_load(const char *path, size_t max, char **ret, size_t *ret_len, struct err *e);

/* Borrowed memory. */
struct mem_blob {
	struct blob blob;
	const uint8_t *at;
};

void mem_blob_init(struct mem_blob *b, const void *p, size_t len);

#endif
