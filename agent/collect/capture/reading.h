/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A watchdog over a source: it is read on a thread of its own, which is abandoned if a read hangs.
 * Everything else (compressing, writing, sealing) never waits for that thread.
 */
#ifndef RAMSEAL_AGENT_COLLECT_CAPTURE_READING_H
#define RAMSEAL_AGENT_COLLECT_CAPTURE_READING_H

#include "agent/shared/program/pipeline.h"
#include "driver-interface/drv.h"

/*
 * How long one read may take by default. A read has at most a few MiB; disks that spin up and
 * networks that come back can take two minutes (a SCSI command times out after 30 s and is
 * repeated).
 */
#define READING_LIMIT_S     300

/* The same after Ctrl-C. */
#define READING_INTERRUPT_S 10

struct reading {
	struct drv *source; /* NULL: it is being opened, which counts as one read */
	unsigned limit_s;   /* 0: no limit */
	/* For tests, instead of waiting for a second; NULL: wait. */
	void (*step)(void *with);
	void *with;
};

/*
 * Runs fn(arg, e) on another thread. ST_SOURCE_FAILED, with what hangs in the message, if a read
 * was given up: then drv_is_abandoned(), and `arg` and everything that fn uses must never be freed.
 * Time is counted in steps of a second, so a machine that sleeps or is stopped adds only one.
 */
enum status reading_run(const struct reading *r, enum status (*fn)(void *arg, struct err *e),
			void *arg, struct err *e);

/*
 * The same for filling a pipeline, and for its workers if they read: worker n is the source's
 * reader n (drv_read_pages_beside()). NULL stays NULL: no watchdog.
 */
struct pipeline_filler reading_filler(const struct reading *r);

#endif
