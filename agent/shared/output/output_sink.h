/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a kind of output consists of. Each is a file of its own with one `const struct output_ops`:
 * file_sink.c, device_sink.c, pipe_sink.c and stdout_sink.c are opened by what -o names (output.c
 * has the table), remote_sink.c opens addresses; hash_sink.c and age_sink.c stand on another sink
 * and pass on what they get. A sink may include agent/shared/program/ and formats/base/, the one
 * for addresses also agent/collect/stores/, and nothing else.
 */
#ifndef RAMSEAL_AGENT_SHARED_OUTPUT_OUTPUT_SINK_H
#define RAMSEAL_AGENT_SHARED_OUTPUT_OUTPUT_SINK_H

#include "agent/shared/output/output.h"

/*
 * A sink that stands on nothing must have write(), commit(), keep(), destroy(), is_at() and path(),
 * and in the table also open(). One that stands on another may leave out any operation, which then
 * falls through to the one below, unless it changes the bytes: "never falls through" marks those.
 */
struct output_ops {
	const char *name; /* "file" */
	/* It is in a folder that can hold another file beside it: a list, a statement. */
	bool is_file;
	/* Old bytes follow what is written, and its length is not recorded. */
	bool is_disk;

	/*
	 * ST_NOT_MINE: `o->path` is for another sink of the table. NULL: it only stands on others.
	 * After any other failure nothing is left behind.
	 */
	enum status (*open)(const struct output_options *o, struct output **ret, struct err *e);

	/*
	 * Writes everything, in order, or fails. It may take its time, which is all that the caller
	 * notices of a slow link: broken connections are resumed in here, from the offset that the
	 * other end has, so a failure is final. Never falls through.
	 */
	enum status (*write)(struct output *o, const void *p, size_t len, struct err *e);
	/* A hole. NULL: zeros are written. Never falls through. */
	enum status (*skip)(struct output *o, uint64_t len, struct err *e);
	/*
	 * Drops everything after the first `len` bytes, after a failed write or read. NULL: it
	 * cannot. Never falls through.
	 */
	enum status (*cut)(struct output *o, uint64_t len, struct err *e);
	/* Replaces `len` bytes that were written. NULL: it cannot. Never falls through. */
	enum status (*rewrite)(struct output *o, uint64_t offset, const void *p, size_t len,
			       struct err *e);
	/* The first `size` bytes, to be read. NULL: they cannot be. Never falls through. */
	struct blob *(*blob)(struct output *o, uint64_t size);

	/*
	 * As output_check(), for a sink that completes a write that reaches into the space reserved
	 * for the end. NULL: such a write fails.
	 */
	enum status (*check)(const struct output *o, struct err *e);

	/* How much can still be written, if known. */
	bool (*room)(const struct output *o, uint64_t *ret);

	/*
	 * How full the buffer for the other end is, from 0 to 1. NULL: there is none, and a slow
	 * output shows in the time that writes take.
	 */
	double (*backlog)(const struct output *o);

	/*
	 * The ways to end. commit: everything is in its place, durable, under its name. keep: it is
	 * durable but does not look complete. discard: nothing is left. A sink that changes the
	 * bytes ends its own part first, and then calls the one below.
	 */
	enum status (*commit)(struct output *o, struct err *e);
	enum status (*keep)(struct output *o, struct err *e);
	void (*discard)(struct output *o);
	/*
	 * Frees it; the one below is destroyed by the caller afterwards. If it was neither
	 * committed nor discarded it ended early: what was written without a gap stays where it is,
	 * and can be read. Never falls through.
	 */
	void (*destroy)(struct output *o);

	bool (*is_at)(const struct output *o, const char *path);
	const char *(*path)(const struct output *o);                /* its name in messages */
	const char *(*where)(const struct output *o);               /* where the bytes are now */
	bool (*holds)(const struct output *o);                      /* NULL of all: yes */
	enum status (*kept)(const struct output *o, struct err *e); /* NULL of all: yes */
	json_t *(*json)(const struct output *o);
};

/* Every sink's own struct begins with this. */
struct output {
	struct sink sink;
	const struct output_ops *ops;
	struct output *below; /* owned; NULL: stands on nothing */
	uint64_t bytes;       /* appended so far; a cut sets it */
	bool committed;       /* set by output_commit(), for all that stand on each other */
};

/* For open(); `below` is NULL for sinks in the table, and is owned from now on. */
void output_init(struct output *o, const struct output_ops *ops, struct output *below);

extern const struct output_ops file_sink, device_sink, pipe_sink, stdout_sink;

#endif
