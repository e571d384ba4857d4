/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where a result goes. A regular file is written as NAME.partial and becomes NAME only when it is
 * complete and on the disk: an image without its end is visibly unfinished, and what a crash or a
 * kill -9 leaves behind can still be read up to its last whole record. stdout, FIFOs and devices
 * are written directly. Outputs can stand on each other (hash_sink.h, age_sink.h): whoever holds
 * the uppermost holds all of them. output_sink.h is for those who write another kind.
 *
 * Lifetime: output_open() .. output_commit() .. output_destroy(). Every failure is ST_OUTPUT, but
 * for ST_NOMEM, ST_INTERRUPTED while a FIFO waits for its reader or a server does not answer yet,
 * and ST_USAGE of an address that is none.
 */
#ifndef RAMSEAL_AGENT_SHARED_OUTPUT_OUTPUT_H
#define RAMSEAL_AGENT_SHARED_OUTPUT_OUTPUT_H

#include <jansson.h>

#include "formats/base/io.h"

struct network;
struct output;

/* What an output takes, in bytes; 0: not known. */
struct output_need {
	uint64_t least;  /* with less room it is of no use */
	uint64_t likely; /* estimated from a sample */
	uint64_t most;   /* if nothing compresses */
	bool exactly;    /* it is what comes, neither more nor less */
};

enum output_room {
	ROOM_ENOUGH,     /* for the estimate and a quarter more, or for the most that it may be */
	ROOM_TIGHT,      /* for the estimate, and not for a quarter more */
	ROOM_DOUBTFUL,   /* less than the most, and there is no estimate */
	ROOM_SHORT,      /* less than the estimate */
	ROOM_TOO_LITTLE, /* of no use */
};

enum output_room output_fits(uint64_t room, const struct output_need *need);

/* The same; unless it is enough, `e` says what is there and what is needed. */
enum output_room output_room_verdict(uint64_t room, const struct output_need *need,
				     const char *path, struct err *e);

/*
 * Before anything is written: ST_OUTPUT if there is too little room, a warning if that is doubtful.
 * Nothing of it with `force`.
 */
enum status output_check_room(uint64_t room, const struct output_need *need, bool force,
			      const char *path, struct err *e);

struct output_options {
	const char *path; /* "-": stdout */
	/*
	 * What the file is called where `path` is a directory; NULL: a directory is refused. It may
	 * come from elsewhere: its last component counts, and '_' stands for what a file name
	 * should not have.
	 */
	const char *name;
	/* Replace a file of that name, and go on though the target looks too small. */
	bool force;
	/*
	 * Paths of what is being read, ended by NULL; or NULL. No output goes over one of them, not
	 * even with `force`.
	 */
	const char *const *inputs;
	struct output_need need;
	/*
	 * Bytes to keep free for an end that must be written whatever happens: a write that would
	 * touch them fails as on a full disk, and sink_cut() gives them back. Where a file system
	 * cannot promise room, that has to do which the cut gives back.
	 */
	uint64_t reserve;
	/* A file or disk yields to other writers on its disk (target_step_back()). */
	bool paced;
	/* It stays out of the cache, which is part of what is acquired (target_create()). */
	bool lean;
	/*
	 * Addresses: who opens them (remote_sink.h), and how they are reached (network_options.h),
	 * which outlives the output. NULL: they are refused.
	 */
	enum status (*open_address)(const struct output_options *o, struct output **ret,
				    struct err *e);
	struct network *network;
};

/*
 * Where it goes: `path`, or `name` in the directory that `path` is; for free(). A link to a
 * directory is one only if a separator follows it. ST_OUTPUT if `path` ends in a separator and is
 * none. output_open() and output_set_open() do this themselves.
 */
enum status output_place(const struct output_options *o, char **ret, struct err *e);

/*
 * A name for what is made of a container: its own without directory, .partial, .age and .rsz, and
 * the suffix; for free(). NULL if out of memory.
 */
char *output_name_of(const char *container, const char *suffix);

/*
 * An unfinished NAME.partial of an earlier run is evidence, too: it stays, and this run's is
 * NAME.2.partial (NAME.3.partial, …). If another process is still writing it, that is refused.
 *
 * New files get mode 0600; symbolic links are not followed, except to a device or FIFO when root
 * or the caller owns the link (as udev's). Refused: a file that exists, a terminal, a directory,
 * a block device that is in use, and a target with less room than it needs at least.
 */
enum status output_open(const struct output_options *o, struct output **ret, struct err *e);

/*
 * Without output_commit() before it, this leaves NAME.partial where it is, unless it is empty.
 * NULL is fine.
 */
void output_destroy(struct output *o);
#define _cleanup_output_ CLEANUP(output_cleanup)

/*
 * Append here. Lives as long as the output. sink_skip() makes holes in a regular file, real zeros
 * elsewhere; sink_cut() works on a regular file, and with a reserve on a disk; a regular file that
 * nothing stands on can be rewritten.
 */
struct sink *output_sink(struct output *o);

/*
 * What has been appended so far, to be read until the next write; NULL of a stream. Behind a read
 * comes sink_cut() before the next write: it says where that goes.
 */
struct blob *output_blob(struct output *o);

/*
 * Everything to the disk, then NAME.partial becomes NAME and the directory is synced. A file that
 * appeared under that name meanwhile stays (without --force): the message says where ours is.
 * After any failure ours has its temporary name. Also for stdout and devices: that is where a late
 * write error shows.
 */
enum status output_commit(struct output *o, struct err *e);

/*
 * Everything to the disk, but under the temporary name: for what belongs to something unfinished.
 * Nothing can be appended any more.
 */
enum status output_keep(struct output *o, struct err *e);

/* Removes NAME.partial: for results that are worth nothing unfinished. Then output_destroy(). */
void output_discard(struct output *o);

/*
 * ST_OK; or ST_OUTPUT, and why, if the last write was only taken because it was given the room that
 * is kept for the end. Then that is all that may follow, behind a sink_cut() to what is there,
 * after which this is ST_OK again. Most outputs let the write fail instead.
 */
enum status output_check(const struct output *o, struct err *e);

/* What can still be written, in bytes, if that is known. */
bool output_room(const struct output *o, uint64_t *ret);

/*
 * From 0 to 1: how far the end of the way is behind, if writes return before it. 0 of what has no
 * such buffer: there the time that a write takes says it.
 */
double output_backlog(const struct output *o);

/* A regular file, or one that becomes one. */
bool output_is_file(const struct output *o);
/* A disk: what was on it before follows what is written. */
bool output_is_disk(const struct output *o);
/* True if `path` names what the output is, or will be. "-": stdout. */
bool output_is_at(const struct output *o, const char *path);

/* What to call it in messages: the final path, or "stdout". */
const char *output_name(const struct output *o);
/* Where the bytes are now: NAME.partial, NAME after output_commit(), or as output_name(). */
const char *output_where(const struct output *o);
/*
 * Can what was written be read there, if only up to its last whole record? False of what went to
 * another machine and was not completed.
 */
bool output_holds(const struct output *o);
/*
 * After output_commit(): ST_OUTPUT if it is all there, but not protected as was asked for
 * (--object-lock).
 */
enum status output_kept(const struct output *o, struct err *e);
/*
 * A file that a command has written, for the list in its summary; `sha256` and `root` may be NULL.
 * {"role":, "name":, "bytes":, "sha256":, "root":}; NULL if out of memory.
 */
json_t *output_file_json(const char *role, const char *name, uint64_t bytes, const char *sha256,
			 const char *root);
/* How it went, of an address: JSON for the summary; NULL of everything else, or without memory. */
json_t *output_json(const struct output *o);
/* What the lowest of them was given so far: a hash or a cipher above it does not count. */
uint64_t output_bytes(const struct output *o);

static inline void output_cleanup(struct output **o)
{
	output_destroy(*o);
}

#endif
