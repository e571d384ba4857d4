/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a kind of output is made of, for those who write one. Each is a file of its own with one
 * `const struct output_ops`: file_sink.c, device_sink.c, pipe_sink.c and stdout_sink.c are opened
 * by what -o names (output.c has the table), remote_sink.c for an address by who may send;
 * hash_sink.c and age_sink.c stand on another one and pass on what they get. A sink knows
 * agent/shared/program/ and formats/base/, that of addresses agent/collect/stores/ too, and nothing
 * else.
 */
#ifndef RAMSEAL_AGENT_SHARED_OUTPUT_OUTPUT_SINK_H
#define RAMSEAL_AGENT_SHARED_OUTPUT_OUTPUT_SINK_H

#include "agent/shared/output/output.h"

/*
 * Unless it says otherwise, a sink that stands on another need not have an operation: then the one
 * below is asked. What changes the bytes on their way is different: nobody below can do that
 * instead.
 */
struct output_ops {
	const char *name; /* "file" */
	/* There is a folder that can hold a file beside it: a list, a statement. */
	bool is_file;
	/* Old bytes follow what is written, and its length is nowhere. */
	bool is_disk;

	/*
	 * ST_NOT_MINE: what `o->path` names is for another sink of the table. NULL: it only stands
	 * on others. After any other failure nothing is left behind.
	 */
	enum status (*open)(const struct output_options *o, struct output **ret, struct err *e);

	/*
	 * Takes all of it or fails, in order. It may take its time, and that is all that the caller
	 * learns of a slow link: what can break and come back is resumed in here, from the offset
	 * that the other end has, and a failure is the last word. Never falls through.
	 */
	enum status (*write)(struct output *o, const void *p, size_t len, struct err *e);
	/* A hole. NULL: zeros are written. Never falls through. */
	enum status (*skip)(struct output *o, uint64_t len, struct err *e);
	/*
	 * Drops what lies behind the first `len` bytes, after a failed write or read. NULL: what
	 * was written cannot be taken back. Never falls through.
	 */
	enum status (*cut)(struct output *o, uint64_t len, struct err *e);
	/*
	 * Other bytes in the place of `len` that were written. NULL: they stay what they are. Never
	 * falls through.
	 */
	enum status (*rewrite)(struct output *o, uint64_t offset, const void *p, size_t len,
			       struct err *e);
	/* The first `size` bytes, to be read. NULL: they cannot be. Never falls through. */
	struct blob *(*blob)(struct output *o, uint64_t size);

	/*
	 * As output_check(), of one that does not fail where the room for the end begins, but takes
	 * the write to its end. NULL: it fails.
	 */
	enum status (*check)(const struct output *o, struct err *e);

	/* What can still be written, if that is known. */
	bool (*room)(const struct output *o, uint64_t *ret);

	/*
	 * What the other end is behind, of what can wait for it in here: from 0 to 1. NULL: nothing
	 * can, and a slow output is known by the time that writes take.
	 */
	double (*backlog)(const struct output *o);

	/*
	 * The ways out. commit: all of it is where it belongs, durable, under its name. keep: it is
	 * durable, but does not look complete. discard: nothing of it is left. One that changes the
	 * bytes ends its own part first, and then calls the same of the one below.
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
	const char *(*path)(const struct output *o);                /* what to call it */
	const char *(*where)(const struct output *o);               /* where the bytes are now */
	bool (*holds)(const struct output *o);                      /* NULL of all: yes */
	enum status (*kept)(const struct output *o, struct err *e); /* NULL of all: yes */
	json_t *(*json)(const struct output *o);
};

/* Every sink's own struct begins with this. */
struct output {
	struct sink sink;
	const struct output_ops *ops;
	struct output *below; /* owned; NULL: it stands on nothing */
	uint64_t bytes;       /* appended so far; a cut sets it */
	bool committed;       /* set by output_commit(), for all that stand on each other */
};

/* For open(); `below` is NULL of those in the table, and is owned from now on. */
void output_init(struct output *o, const struct output_ops *ops, struct output *below);

extern const struct output_ops file_sink, device_sink, pipe_sink, stdout_sink;

#endif
