/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shows progress: on a terminal one line with a bar, updated at most ten times a second; with
 * --log-json a "progress" event each second; otherwise nothing. After SIGUSR1 a line is logged at
 * the next update, even if quiet. There is no thread and no waiting: the loop that does the work
 * calls progress_update() as often as it likes (one clock read each).
 */
#ifndef RAMSEAL_AGENT_SHARED_PROGRAM_PROGRESS_H
#define RAMSEAL_AGENT_SHARED_PROGRAM_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>
#include <stddef.h>

/* What the line shows. */
struct progress_numbers {
	const char *label;   /* "memory", "verify", a path */
	uint64_t done;       /* bytes */
	uint64_t total;      /* bytes; 0: not known */
	uint64_t rate;       /* bytes per second; 0: not known yet */
	uint64_t unreadable; /* pages */
};

/*
 * The line for a terminal that is `columns` wide: it takes at most columns - 1 of them (a full line
 * would wrap on some terminals), and is ASCII except for the label. When there is no room the bar
 * goes first, then time left, rate, amounts, label, unreadable pages; what is left is never cut in
 * the middle. Of a label that is longer than half the line only the end is shown. Returns the
 * line's length in bytes.
 */
size_t progress_format(const struct progress_numbers *n, unsigned columns, char *ret, size_t size);

/* Seconds until done at this rate; UINT64_MAX if unknown. */
uint64_t progress_seconds_left(const struct progress_numbers *n);

struct progress {
	struct progress_numbers numbers;
	enum { PROGRESS_NONE, PROGRESS_BAR, PROGRESS_EVENTS } show;
	uint64_t begin_ns;
	uint64_t shown_ns;   /* when the line or event was last shown */
	uint64_t sampled_ns; /* when the rate was last sampled, and what was done by then */
	uint64_t sampled_done;
};

enum progress_mode {
	PROGRESS_AUTO,  /* a bar if stderr is a terminal */
	PROGRESS_JSON,  /* --log-json */
	PROGRESS_QUIET, /* --quiet */
};

/* `label` is borrowed. */
void progress_init(struct progress *p, enum progress_mode mode, const char *label, uint64_t total);
void progress_update(struct progress *p, uint64_t done, uint64_t unreadable);
/*
 * Requests a report: the next loop that updates answers with a line in the log. Safe in a signal
 * handler.
 */
void progress_ask(void);
/*
 * The progress of the running pass, for other threads. If two run at once it is the one that began
 * first. False: none is running. `label` is a buffer of the caller's.
 */
#define PROGRESS_LABEL_MAX 128
bool progress_now(struct progress_numbers *ret, char label[static PROGRESS_LABEL_MAX]);

/* Removes the line and writes the last event, with the final numbers. */
void progress_finish(struct progress *p);

#endif
