/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The half of output.c that the operating system decides: what a path names, how to create it
 * safely, and how to rename without overwriting: output_linux.c and output_windows.c.
 */
#ifndef RAMSEAL_AGENT_OUTPUT_OUTPUT_TARGET_H
#define RAMSEAL_AGENT_OUTPUT_OUTPUT_TARGET_H

#include <stdbool.h>

#include "formats/base/err.h"

#define PARTIAL_SUFFIX ".partial"

struct target {
	enum {
		TARGET_FILE,   /* a new regular file, under its temporary name */
		TARGET_BLOCK,  /* a disk: has a size, and old content where nothing is written */
		TARGET_STREAM, /* stdout, FIFO, character device */
	} kind;
	int fd;
	char *path;    /* as the user named it */
	char *partial; /* TARGET_FILE: the path of the temporary name; else NULL */

	/* TARGET_FILE: Linux looks both names up in this directory, wherever it is moved. */
	int directory;
	const char *name;         /* last component of `path` */
	const char *partial_name; /* last component of `partial` */
};

/* Opens `path` for writing as output.h says. Everything in `ret` is freed by target_deinit(). */
enum status target_open(const char *path, bool force, const char *const *inputs, struct target *ret,
			struct err *e);
enum status target_open_stdout(struct target *ret, struct err *e);
void target_deinit(struct target *t);

/* True if `path` names what the target is, or what it will be. */
bool target_is_at(const struct target *t, const char *path);

/* "PATH.partial", and for n > 1 "PATH.n.partial"; for free(). NULL if out of memory. */
char *target_partial_path(const char *path, unsigned n);

/* So many names are tried for a file that is not finished. */
#define PARTIALS_MAX 99

/* Says that earlier ones are there, and stay. */
void target_tell_partials(const char *path, const char *partial);

/* How much can be written, if that is known. */
bool target_room(const struct target *t, uint64_t *ret);

/* A hole of `len` bytes at the end of a TARGET_FILE; `end` is its new length. */
enum status target_hole(struct target *t, uint64_t len, uint64_t end, struct err *e);

/* TARGET_FILE: drops what lies behind the first `len` bytes; writing goes on there. */
enum status target_cut(struct target *t, uint64_t len, struct err *e);

/* Not TARGET_STREAM: writing goes on there; what lies behind stays until it is overwritten. */
enum status target_seek(struct target *t, uint64_t at, struct err *e);

/*
 * TARGET_FILE: keeps room for bytes `from` to `end` without making the file longer; what is not
 * written is given back by target_cut(). ST_OUTPUT if there is no such room, ST_NOT_MINE if the
 * file system cannot promise any.
 */
enum status target_reserve(struct target *t, uint64_t from, uint64_t end, struct err *e);

/* Everything to the disk, and the descriptor closed: both can report a late write error. */
enum status target_close(struct target *t, struct err *e);

/* TARGET_FILE, closed: the temporary name becomes the name. */
enum status target_publish(struct target *t, bool force, struct err *e);
void target_remove_partial(struct target *t);

/* Another name in the same folder; ST_OUTPUT if something has it already. The file may be open. */
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
 * Opens a file that is there. `write`: to be changed where it is; a symbolic link is read through, but
 * never written through. ST_INPUT, or ST_OUTPUT for what can be read, but not changed.
 */
enum status target_open_existing(const char *path, bool write, int *ret, struct err *e);

/*
 * ST_OUTPUT if `path` names another file now than the one that is open, or if that has not `size`
 * bytes: somebody who does not know our lock may have gone on writing, or put another file there.
 */
enum status target_check_untouched(int fd, const char *path, uint64_t size, struct err *e);

/* The directory part of `path`, for free(); "." if there is none. */
char *target_directory_of(const char *path);

#endif
