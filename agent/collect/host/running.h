/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What others on this machine can see of an acquisition while it runs, and afterwards: a state file
 * (state_file.h), the lock beside it (STATE.lock), which says whether the process lives, and the
 * lock of the host (host_lock.h), which every acquisition of the machine's own memory takes.
 *
 *	{"schema": "ramseal-state-1", "pid": 4711, "begin": "2026-11-20T05:30:12.000000042Z",
 *	 "updated": ..., "phase": "opening"|"acquiring"|"sealing"|"ended", "output": "/mnt/a.rsz",
 *	 "progress": {"label": "memory", "bytes": ..., "total_bytes": ..., "bytes_per_second": ...,
 *	              "unreadable_pages": ...},
 *	 "exit_code": 0, "outcome": "complete", "error": null, "root": "6a09..."}
 *
 * "progress" is there while there is some; "stopping", and by what, once it was asked to stop;
 * "exit_code", "outcome", "error" and "end" only in the phase "ended". "where" is where the bytes
 * are now. A thread writes the file every three seconds, or, where state_folder() is on a disk and
 * nobody named another place, every half a minute; and at each of the calls below.
 */
#ifndef RAMSEAL_AGENT_COLLECT_HOST_RUNNING_H
#define RAMSEAL_AGENT_COLLECT_HOST_RUNNING_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "formats/base/err.h"

struct running;

struct running_plan {
	const char *state; /* where its file is to be; NULL: acquire.json in state_folder() */
	bool needed;       /* without a state file it must not begin */
	bool host;         /* it takes the host's lock, and tells its state if that is in memory */
	bool allow_second; /* also if another one has that */
};

/*
 * *ret is NULL if nobody is to be told, or if there is no place for it and it is not needed: then
 * --verbose says why. ST_RUNNING: another one has the lock of the host or of the file. ST_OUTPUT:
 * the state is needed, and has no place.
 */
enum status running_begin(const struct running_plan *p, struct running **ret, struct err *e);

/*
 * All of these take NULL, and are for one thread.
 */

/* Where its file is: the same in every folder. */
const char *running_state_path(const struct running *r);
/* A member of the file: `text` NULL is null. */
void running_tell(struct running *r, const char *key, const char *text);
/* The last word, and the locks go; `why` if it is not ST_OK. Frees. */
void running_end(struct running *r, enum status st, const struct err *why);

/* What is seen of one. */
enum running_how {
	RUNNING_RUNS,
	RUNNING_ENDED, /* and said how */
	RUNNING_DIED,  /* it does not live any more, and has not said how it ended */
};

struct running_seen {
	enum running_how how;
	json_t *state; /* as it was read: whoever can write the file decides what is in it */
	uint64_t pid;  /* of who holds the lock, or else what the state says; 0: not known */
	int exit_code; /* of RUNNING_ENDED */
};

/*
 * `path` NULL: the default place; *ret_path is what it comes to, for free(), if that is not NULL.
 * ST_INPUT: there is no state, or it cannot be read.
 */
enum status running_look(const char *path, char **ret_path, struct running_seen *ret,
			 struct err *e);
void running_seen_deinit(struct running_seen *s);

/*
 * Asks it to stop and to seal what it has. ST_DIED: it has ended meanwhile. ST_NO_PRIVILEGE;
 * ST_INPUT.
 */
enum status running_ask_to_stop(const char *path, const struct running_seen *s, struct err *e);

#endif
