/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The system-specific parts of outputs: what a path is, how to create it safely, and how to rename
 * without overwriting: output_linux.c and output_windows.c. Used by the sinks.
 */
#ifndef RAMSEAL_AGENT_SHARED_OUTPUT_OUTPUT_TARGET_H
#define RAMSEAL_AGENT_SHARED_OUTPUT_OUTPUT_TARGET_H

#include <stdbool.h>

#include "formats/base/io.h"

#define PARTIAL_SUFFIX ".partial"

/* The target of writes. */
struct target {
	int fd;
	bool stream;   /* stdout, FIFO, character device: usually nothing to sync */
	char *path;    /* as the user named it */
	char *partial; /* a new file: the path of its temporary name; else NULL */

	/* target_step_back(), target_leave_cache() */
	uint64_t step;    /* how much may be on its way to the disk, twice; 0: it does not matter */
	uint64_t settled; /* on the disk up to there, and no more in the page cache */
	uint64_t begun;   /* on its way there */
	struct direct_file *direct; /* writes past the cache; NULL: through `fd` */
	struct direct_io *direct_io;
	const char *shown; /* what messages call it; `path`, unless the caller sets another */

	/* A new file: Linux looks both names up in this directory, wherever it is moved. */
	int directory;
	const char *name;         /* last component of `path` */
	const char *partial_name; /* last component of `partial` */
};

/* What a path is, before anything is opened. */
struct target_facts {
	enum {
		PATH_IS_FILE,   /* a free name, or a file that --force replaces */
		PATH_IS_DISK,   /* a block device */
		PATH_IS_STREAM, /* FIFO, character device; on Windows a named pipe, or NUL */
	} is;
	uint64_t volume, number; /* of the device or FIFO: the same when it is opened */
};

/* ST_OUTPUT if it cannot be written, as in output.h. */
enum status target_inspect(const char *path, bool force, const char *const *inputs,
			   struct target_facts *ret, struct err *e);

/*
 * Is it a directory? A link to one counts only with a separator at its end. ST_OUTPUT if `path`
 * ends in a separator but is not a directory.
 */
enum status target_is_folder(const char *path, bool *ret, struct err *e);
/* Does this character separate components of a path, or follow a drive letter? */
bool target_separates(char c);

/*
 * Each for one of these; everything in `ret` is freed by target_deinit(), also after a failure.
 * target_create() makes a new regular file, under its temporary name. `lean`: it is written past
 * the cache, unless its file system refuses: on Windows that is logged, on Linux
 * target_leave_cache() does for it. `ret` stays where it is then.
 */
enum status target_create(const char *path, bool lean, struct target *ret, struct err *e);
enum status target_open_device(const char *path, const struct target_facts *seen,
			       struct target *ret, struct err *e);
enum status target_open_stdout(struct target *ret, struct err *e);
void target_deinit(struct target *t);

/* True if `path` is the name that the new file will have; or if it names the device. */
bool target_has_name(const struct target *t, const char *path);
bool target_is_device(const struct target *t, const char *path);

/* "PATH.partial", and for n > 1 "PATH.n.partial"; for free(). NULL if out of memory. */
char *target_partial_path(const char *path, unsigned n);

/* How many names are tried for an unfinished file. */
#define PARTIALS_MAX 99

/* Logs that earlier ones exist and stay. */
void target_tell_partials(const char *path, const char *partial);

/* Free space on the file system of a new file, or the size of a disk, if known. */
bool target_room(const struct target *t, uint64_t *ret);
bool target_disk_size(const struct target *t, uint64_t *ret);

/* What was written to a file or disk, to be read until the next write. */
struct target_blob {
	struct blob blob;
	const struct target *target; /* borrowed */
};

struct blob *target_blob_of(struct target_blob *b, const struct target *t, uint64_t size);

/* A hole of `len` bytes at the end of a file; `end` is its new length. */
enum status target_hole(struct target *t, uint64_t len, uint64_t end, struct err *e);

/* A file: drops everything after the first `len` bytes; writing continues there. */
enum status target_cut(struct target *t, uint64_t len, struct err *e);

/*
 * A file: from now on, writes yield to others. Linux: at most two steps are not on the disk yet, so
 * that a sync of somebody else's file need not wait for gigabytes of ours; the calling thread
 * writes them with its I/O priority; and what is on the disk is dropped from the page cache, which
 * belongs to the machine and is part of what is acquired. Windows: a lower I/O priority.
 */
#define TARGET_STEP ((uint64_t)4 << 20)
void target_step_back(struct target *t);
/*
 * The same for the cache's sake alone, where target_create() could not see to it: in steps that
 * hold up no disk which has something to do. Windows: nothing.
 */
#define TARGET_STEP_LEAN ((uint64_t)32 << 20)
void target_leave_cache(struct target *t);
/*
 * A file, at its end: what `sink`, which writes to `fd`, does, or the same past the cache. Behind
 * it, writing goes on at the end.
 */
enum status target_write(struct target *t, struct sink *sink, const void *p, size_t len,
			 struct err *e);
/* Over what was written; `end` is the file's. */
enum status target_rewrite(struct target *t, struct sink *sink, uint64_t offset, const void *p,
			   size_t len, uint64_t end, struct err *e);

/* Behind each write: `end` is how long the file is by now. ST_OUTPUT if an earlier one failed. */
enum status target_pace(struct target *t, uint64_t end, struct err *e);

/* Not for streams: writing continues there; later bytes stay until overwritten. */
enum status target_seek(struct target *t, uint64_t at, struct err *e);

/*
 * A file: reserves space for bytes `from` to `end` without extending the file; target_cut() frees
 * what was not written. ST_OUTPUT if there is not enough space, ST_NOT_MINE if the file system
 * cannot reserve any.
 */
enum status target_reserve(struct target *t, uint64_t from, uint64_t end, struct err *e);

/* Syncs everything and closes the descriptor: both can report a late write error. */
enum status target_close(struct target *t, struct err *e);

/* A closed file: renames it to its final name, durably; on failure it keeps the temporary one. */
enum status target_publish(struct target *t, bool force, struct err *e);
void target_remove_partial(struct target *t);

/*
 * Renames a file within its folder; ST_OUTPUT if the new name is taken or could not be made
 * durable: then it keeps the old one. The file may be open.
 */
enum status target_rename(const char *from, const char *to, struct err *e);

/*
 * Renames a completed "NAME.partial" to "NAME"; any other name stays. Returns the resulting name,
 * for free(); if "NAME" is taken, the file keeps its name, which is logged. NULL if out of memory.
 */
char *target_complete_name(const char *path);

/*
 * Keeps others from sealing what is being written, or writing what is being sealed, until the
 * descriptor is closed. `shared`: for reading only. ST_OUTPUT if the file is locked. Without effect
 * on file systems without locks (some FUSE and network ones).
 */
enum status target_lock(int fd, bool shared, struct err *e);

/*
 * Opens an existing file. `write`: to change it in place; symbolic links are followed for reading,
 * but never for writing. ST_INPUT, or ST_OUTPUT if it can be read but not changed.
 */
enum status target_open_existing(const char *path, bool write, int *ret, struct err *e);

/*
 * ST_OUTPUT if `path` is now a different file than the open one, or that does not have `size`
 * bytes: a program that ignores our lock may have written to it or replaced it.
 */
enum status target_check_untouched(int fd, const char *path, uint64_t size, struct err *e);

/* The directory part of `path`, for free(); "." if there is none. */
char *target_directory_of(const char *path);

/*
 * For the halves of target_create(), of a file that is new: t->direct, if it takes that. Both ends
 * are the same for both: direct__end() frees, and drops what waits; NULL is fine.
 */
enum status direct__begin(struct target *t, struct err *e);
void direct__end(struct target *t);

#endif
