/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What others on this machine can see of an acquisition during and after it: a state file
 * (state_file.h), the lock beside it (STATE.lock), which shows whether the process is alive, and
 * the host's lock (host_lock.h), which every acquisition of the machine's own memory takes.
 *
 *	{"schema": "ramseal-state-1", "pid": 4711, "begin": "2026-11-20T05:30:12.000000042Z",
 *	 "updated": ..., "phase": "opening"|"acquiring"|"sealing"|"ended", "output": "/mnt/a.rsz",
 *	 "progress": {"label": "memory", "bytes": ..., "total_bytes": ..., "bytes_per_second": ...,
 *	              "unreadable_pages": ...},
 *	 "exit_code": 0, "outcome": "complete", "error": null, "root": "6a09..."}
 *
 * "progress" is present while there is any; "stopping" says what asked it to stop; "exit_code",
 * "outcome", "error" and "end" appear only in the phase "ended". "where" is where the bytes are
 * now. A thread writes the file every three seconds (every half minute if state_folder() is on a
 * disk and no other place was given), and so does each of the calls below.
 */
#ifndef RAMSEAL_AGENT_COLLECT_HOST_RUNNING_H
#define RAMSEAL_AGENT_COLLECT_HOST_RUNNING_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "formats/base/err.h"

struct running;

struct running_plan {
	const char *state; /* its file; NULL: acquire.json in state_folder() */
	bool needed;       /* it must not start without a state file */
	bool host;         /* it takes the host's lock, and shares its state if that is in memory */
	bool allow_second; /* even if another acquisition holds it */
};

/*
 * *ret is NULL if no state is to be kept, or if there is no place for it and it is not needed
 * (--verbose says why). ST_RUNNING: another acquisition holds the host's or the file's lock.
 * ST_OUTPUT: the state is needed but cannot be written.
 */
enum status running_begin(const struct running_plan *p, struct running **ret, struct err *e);

/* All of these accept NULL, and must be called on one thread. */

/* Its file, as an absolute path. */
const char *running_state_path(const struct running *r);
/* Sets a member of the file; a NULL `text` becomes null. */
void running_tell(struct running *r, const char *key, const char *text);
/*
 * Writes the outcome, releases the locks and frees everything; `why` is used if `st` is not ST_OK.
 */
void running_end(struct running *r, enum status st, const struct err *why);

/* What others see. */
enum running_how {
	RUNNING_RUNS,
	RUNNING_ENDED, /* and recorded how */
	RUNNING_DIED,  /* it is no longer alive and did not record how it ended */
};

struct running_seen {
	enum running_how how;
	json_t *state; /* untrusted: whoever can write the file decides what is in it */
	uint64_t pid;  /* of the lock's holder, or else from the state; 0: not known */
	int exit_code; /* of RUNNING_ENDED */
};

/*
 * `path` NULL: the default place. *ret_path (if not NULL) is the resulting path, for free().
 * ST_INPUT: there is no state, or it cannot be read.
 */
enum status running_look(const char *path, char **ret_path, struct running_seen *ret,
			 struct err *e);
void running_seen_deinit(struct running_seen *s);

/*
 * Asks it to stop and seal what it has. ST_DIED: it has already ended. ST_NO_PRIVILEGE; ST_INPUT.
 */
enum status running_ask_to_stop(const char *path, const struct running_seen *s, struct err *e);

#endif
