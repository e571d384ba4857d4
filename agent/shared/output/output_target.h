/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the operating system decides of an output: what a path names, how to create it safely, and
 * how to rename without overwriting: output_linux.c and output_windows.c. The sinks are made of
 * this.
 */
#ifndef RAMSEAL_AGENT_SHARED_OUTPUT_OUTPUT_TARGET_H
#define RAMSEAL_AGENT_SHARED_OUTPUT_OUTPUT_TARGET_H

#include <stdbool.h>

#include "formats/base/io.h"

#define PARTIAL_SUFFIX ".partial"

/* What is written to. */
struct target {
	int fd;
	bool stream;   /* stdout, FIFO, character device: most have nothing to sync */
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

/* What a path names, before anything is opened. */
struct target_facts {
	enum {
		PATH_IS_FILE,   /* a name that is free, or that of a file that --force replaces */
		PATH_IS_DISK,   /* a block device */
		PATH_IS_STREAM, /* FIFO, character device; on Windows a named pipe, or NUL */
	} is;
	uint64_t volume, number; /* which device or FIFO: it is to be the same when it is opened */
};

/* ST_OUTPUT of what cannot be written, as output.h says. */
enum status target_inspect(const char *path, bool force, const char *const *inputs,
			   struct target_facts *ret, struct err *e);

/*
 * Is it a directory? A link to one only with a separator behind it. ST_OUTPUT if `path` ends in a
 * separator and names no directory.
 */
enum status target_is_folder(const char *path, bool *ret, struct err *e);
/* Does this stand between the components of a path, or behind the letter of a drive? */
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

/* So many names are tried for a file that is not finished. */
#define PARTIALS_MAX 99

/* Says that earlier ones are there, and stay. */
void target_tell_partials(const char *path, const char *partial);

/* How much the file system of a new file has left, or how large a disk is, if that is known. */
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

/* A file: drops what lies behind the first `len` bytes; writing goes on there. */
enum status target_cut(struct target *t, uint64_t len, struct err *e);

/*
 * A file: what is written from now on yields to others. Linux: of what the disk has not got yet,
 * there are never more than two steps, so that a sync of somebody else's file does not have to wait
 * for gigabytes of ours; they are written by the thread that calls, with its I/O priority; and what
 * is on the disk leaves the page cache, which is the machine's, and part of what is acquired.
 * Windows: a lower I/O priority.
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

/* No stream: writing goes on there; what lies behind stays until it is overwritten. */
enum status target_seek(struct target *t, uint64_t at, struct err *e);

/*
 * A file: keeps room for bytes `from` to `end` without making the file longer; what is not
 * written is given back by target_cut(). ST_OUTPUT if there is no such room, ST_NOT_MINE if the
 * file system cannot promise any.
 */
enum status target_reserve(struct target *t, uint64_t from, uint64_t end, struct err *e);

/* Everything to the disk, and the descriptor closed: both can report a late write error. */
enum status target_close(struct target *t, struct err *e);

/*
 * A file, closed: the temporary name becomes the name, and that is on the disk; else it has the
 * temporary one.
 */
enum status target_publish(struct target *t, bool force, struct err *e);
void target_remove_partial(struct target *t);

/*
 * Another name in the same folder; ST_OUTPUT if something has it already, or if it is not known to
 * be on the disk: then it has the old one. The file may be open.
 */
enum status target_rename(const char *from, const char *to, struct err *e);

/*
 * What was "NAME.partial" and is complete now becomes "NAME"; any other name stays. *ret is what it
 * is called then, for free(), also where it keeps its name because something has the new one, and
 * that is logged. NULL if out of memory.
 */
char *target_complete_name(const char *path);

/*
 * Keeps others from sealing what is being written, or from writing what is being sealed, until the
 * descriptor is closed. `shared`: only read from. ST_OUTPUT if somebody has the file locked. File
 * systems that know no locks (some FUSE and network ones) do without.
 */
enum status target_lock(int fd, bool shared, struct err *e);

/*
 * Opens a file that is there. `write`: to be changed where it is; a symbolic link is read through,
 * but never written through. ST_INPUT, or ST_OUTPUT for what can be read, but not changed.
 */
enum status target_open_existing(const char *path, bool write, int *ret, struct err *e);

/*
 * ST_OUTPUT if `path` names another file now than the one that is open, or if that has not `size`
 * bytes: somebody who does not know our lock may have gone on writing, or put another file there.
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
