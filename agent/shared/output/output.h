/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where a result goes. A regular file is written as NAME.partial and becomes NAME only when it is
 * complete and on the disk: an image without its end is visibly unfinished, and what a crash or a
 * kill -9 leaves behind can still be read up to its last whole record. stdout, FIFOs and devices
 * are written directly. Outputs can stand on each other (hash_sink.h, age_sink.h); the topmost owns
 * all of them. output_sink.h is for implementing further kinds.
 *
 * Lifetime: output_open() .. output_commit() .. output_destroy(). Every failure is ST_OUTPUT,
 * except ST_NOMEM, ST_INTERRUPTED while waiting for the reader of a FIFO or for a server, and
 * ST_USAGE for an invalid address.
 */
#ifndef RAMSEAL_AGENT_SHARED_OUTPUT_OUTPUT_H
#define RAMSEAL_AGENT_SHARED_OUTPUT_OUTPUT_H

#include <jansson.h>

#include "formats/base/io.h"

struct network;
struct output;

/* The size of an output, in bytes; 0: not known. */
struct output_need {
	uint64_t least;  /* less space is useless */
	uint64_t likely; /* estimated from a sample */
	uint64_t most;   /* if nothing compresses */
	bool exactly;    /* the size is exact */
};

enum output_room {
	ROOM_ENOUGH,     /* for the estimate and a quarter more, or for the maximum */
	ROOM_TIGHT,      /* for the estimate, but not for a quarter more */
	ROOM_DOUBTFUL,   /* less than the maximum, without an estimate */
	ROOM_SHORT,      /* less than the estimate */
	ROOM_TOO_LITTLE, /* of no use */
};

enum output_room output_fits(uint64_t room, const struct output_need *need);

/* The same; unless there is enough, `e` says how much is available and needed. */
enum output_room output_room_verdict(uint64_t room, const struct output_need *need,
				     const char *path, struct err *e);

/*
 * Call before anything is written: ST_OUTPUT if there is too little space, a warning if in doubt.
 * Does nothing with `force`.
 */
enum status output_check_room(uint64_t room, const struct output_need *need, bool force,
			      const char *path, struct err *e);

struct output_options {
	const char *path; /* "-": stdout */
	/*
	 * The file's name if `path` is a directory; NULL: refuse directories. May be untrusted:
	 * only its last component is used, and '_' replaces unsuitable characters.
	 */
	const char *name;
	/* Replace an existing file, and go on even if the target looks too small. */
	bool force;
	/*
	 * Paths of the inputs, ended by NULL; or NULL. No output overwrites them, not even with
	 * `force`.
	 */
	const char *const *inputs;
	struct output_need need;
	/*
	 * Bytes to keep free for an end that must be written whatever happens: a write that would
	 * touch them fails as on a full disk, and sink_cut() gives them back. If a file system
	 * cannot reserve space, what the cut frees must be enough.
	 */
	uint64_t reserve;
	/* A file or disk yields to other writers on its disk (target_step_back()). */
	bool paced;
	/* It stays out of the cache, which is part of what is acquired (target_create()). */
	bool lean;
	/*
	 * Addresses: opened by this function (remote_sink.h), over this network
	 * (network_options.h), which must outlive the output. NULL: they are refused.
	 */
	enum status (*open_address)(const struct output_options *o, struct output **ret,
				    struct err *e);
	struct network *network;
};

/*
 * The output's path: `path`, or `name` in the directory `path`; for free(). A link to a directory
 * counts as one only with a separator at its end. ST_OUTPUT if `path` ends in a separator but is
 * not a directory. output_open() and output_set_open() do this themselves.
 */
enum status output_place(const struct output_options *o, char **ret, struct err *e);

/*
 * A name for something made from a container: the container's without directory, .partial, .age and
 * .rsz, plus the suffix; for free(). NULL if out of memory.
 */
char *output_name_of(const char *container, const char *suffix);

/*
 * An unfinished NAME.partial of an earlier run is evidence too: it stays, and this run's is
 * NAME.2.partial (NAME.3.partial, …). Refused if another process is still writing it.
 *
 * New files get mode 0600; symbolic links are not followed, except to a device or FIFO when root or
 * the caller owns the link (as udev's). Refused: a file that exists, a terminal, a directory, a
 * block device that is in use, and a target with less space than the minimum.
 */
enum status output_open(const struct output_options *o, struct output **ret, struct err *e);

/*
 * Without an earlier output_commit(), this leaves NAME.partial in place, unless it is empty. NULL
 * is fine.
 */
void output_destroy(struct output *o);
#define _cleanup_output_ CLEANUP(output_cleanup)

/*
 * The sink to append to. Lives as long as the output. sink_skip() makes holes in a regular file,
 * real zeros elsewhere; sink_cut() works on a regular file, and with a reserve on a disk; a regular
 * file without other outputs on it can be rewritten.
 */
struct sink *output_sink(struct output *o);

/*
 * What was appended so far, to be read until the next write; NULL for a stream. After reading, call
 * sink_cut() before the next write to set its position.
 */
struct blob *output_blob(struct output *o);

/*
 * Syncs everything, renames NAME.partial to NAME and syncs the directory. A file that has appeared
 * under that name meanwhile stays (without --force): the message says where ours is. After any
 * failure ours keeps its temporary name. Needed for stdout and devices too: late write errors show
 * here.
 */
enum status output_commit(struct output *o, struct err *e);

/*
 * Syncs everything under the temporary name: for parts of something unfinished. Nothing can be
 * appended afterwards.
 */
enum status output_keep(struct output *o, struct err *e);

/*
 * Removes NAME.partial: for results that are worthless when unfinished. Then call output_destroy().
 */
void output_discard(struct output *o);

/*
 * ST_OK; or ST_OUTPUT, with the reason, if the last write succeeded only by using the space
 * reserved for the end. Then only the end may follow, after a sink_cut() to the current length,
 * which makes this ST_OK again. Most outputs let the write fail instead.
 */
enum status output_check(const struct output *o, struct err *e);

/* How many bytes can still be written, if known. */
bool output_room(const struct output *o, uint64_t *ret);

/*
 * How full the buffer is, from 0 to 1, if writes return early. 0 without such a buffer: a slow
 * output then shows in the time of writes.
 */
double output_backlog(const struct output *o);

/* A regular file, now or later. */
bool output_is_file(const struct output *o);
/* A disk: old bytes follow what is written. */
bool output_is_disk(const struct output *o);
/* True if `path` is the output, now or later. "-": stdout. */
bool output_is_at(const struct output *o, const char *path);

/* What to call it in messages: the final path, or "stdout". */
const char *output_name(const struct output *o);
/* Where the bytes are now: NAME.partial, NAME after output_commit(), or as output_name(). */
const char *output_where(const struct output *o);
/*
 * Can what was written be read there, at least up to its last whole record? False for an
 * uncompleted upload.
 */
bool output_holds(const struct output *o);
/*
 * After output_commit(): ST_OUTPUT if it is complete but not protected as requested
 * (--object-lock).
 */
enum status output_kept(const struct output *o, struct err *e);
/*
 * A file written by a command, for the list in its summary; `sha256` and `root` may be NULL.
 * {"role":, "name":, "bytes":, "sha256":, "root":}; NULL if out of memory.
 */
json_t *output_file_json(const char *role, const char *name, uint64_t bytes, const char *sha256,
			 const char *root);
/* Details of an upload for the summary, as JSON; NULL for other outputs or if out of memory. */
json_t *output_json(const struct output *o);
/* Bytes given to the lowest output so far, after encryption. */
uint64_t output_bytes(const struct output *o);

static inline void output_cleanup(struct output **o)
{
	output_destroy(*o);
}

#endif
