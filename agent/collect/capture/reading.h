/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A watchdog over a source: what reads it runs on a thread of its own, which is left behind if one
 * read does not come back. Everything else (compressing, writing, sealing) never waits for that
 * thread.
 */
#ifndef RAMSEAL_AGENT_COLLECT_CAPTURE_READING_H
#define RAMSEAL_AGENT_COLLECT_CAPTURE_READING_H

#include "agent/shared/program/pipeline.h"
#include "driver-interface/drv.h"

/*
 * How long one read may take, by default. A read has at most some MiB; disks that spin up again,
 * and networks that come back, take up to two minutes (a SCSI command is given 30 s, and is
 * repeated).
 */
#define READING_LIMIT_S     300

/* And if somebody has pressed Ctrl-C meanwhile. */
#define READING_INTERRUPT_S 10

struct reading {
	struct drv *source; /* NULL: it is being opened, and that as a whole counts as one read */
	unsigned limit_s;   /* 0: reads may take as long as they like */
	/* Instead of waiting for a second, for tests; NULL: a second. */
	void (*step)(void *with);
	void *with;
};

/*
 * As fn(arg, e), on another thread. ST_SOURCE_FAILED, with what hangs in the message, if a read was
 * given up: then drv_is_abandoned(), and `arg` and all that fn uses must never be freed. Time is
 * counted in steps of a second, so that a machine that sleeps, or is stopped, counts for one.
 */
enum status reading_run(const struct reading *r, enum status (*fn)(void *arg, struct err *e),
			void *arg, struct err *e);

/*
 * The same for the filling of a pipeline, and for its workers where they read, worker n as the
 * source's reader n beside (drv_read_pages_beside()). NULL stays NULL: no watchdog.
 */
struct pipeline_filler reading_filler(const struct reading *r);

#endif
