/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One acquisition as a report needs it: everything is read from its container, which is then
 * closed.
 */
#ifndef RAMSEAL_AGENT_EXAMINE_REPORT_HOST_RUN_H
#define RAMSEAL_AGENT_EXAMINE_REPORT_HOST_RUN_H

#include <jansson.h>

#include "agent/shared/container/sums.h"
#include "agent/examine/report/kit/strip.h"
#include "agent/examine/report/kit/timeline.h"
#include "agent/examine/smear/smear.h"
#include "agent/shared/container/origin.h"
#include "agent/shared/program/progress.h"

struct report_run {
	const char *path;  /* borrowed */
	const char *label; /* what the report calls it; borrowed */
	uint64_t bytes;    /* of the file */

	struct rsz_identity identity;
	json_t *begin; /* lines of the manifest; NULL: it has none */
	json_t *finish;
	json_t *sealed_later;
	json_t *lines; /* "tables" and "file" lines, and those above */

	struct rsz_scan_result end;
	bool checked;                  /* every hash was checked, not only those of the headers */
	char partial[ERR_MESSAGE_MAX]; /* container_outcome(): why it is not all of it; or "" */
	uint64_t missing;              /* pages of the map of RAM that are in no record */

	struct container_sums sums;
	struct timeline timeline;
	struct strip strip;

	struct origin origin; /* borrows from `lines` */
	bool has_smear;
	/* An image has no smear, but the pages that its own tables name were counted. */
	bool has_counts;
	struct smear smear;
	char no_smear[ERR_MESSAGE_MAX]; /* why it has none */
};

struct run_plan {
	const struct age_identities *identities; /* of encrypted ones; NULL: none */
	const char *path;
	const char *label;
	bool check; /* every hash */
	unsigned threads;
	enum progress_mode progress;
};

/*
 * ST_INPUT: not a container. ST_OK also for one that is damaged, cut off or not sealed: see `end`.
 * Free `ret` in any case.
 */
enum status run_load(const struct run_plan *plan, struct report_run *ret, struct err *e);
void run_deinit(struct report_run *r);

/* True if it is sealed and no check failed. */
bool run_is_whole(const struct report_run *r);

/* True if the acquisition ran to its end, with or without pages that have no content. */
bool run_is_complete(const struct report_run *r);

/* How it ended, according to the manifest, or that it did not end. */
const char *run_outcome(const struct report_run *r);

/* The first stream of that kind, or NULL. */
const struct stream_sums *run_stream(const struct report_run *r, enum rsz_kind kind);
/* True if the source cannot report unreadable pages. */
bool run_is_silent(const struct report_run *r);

/*
 * Bytes that were read, counted as often as they were captured, without pages that were skipped or
 * could not be read.
 */
uint64_t run_stream_read(const struct stream_sums *s);

/* Pages in that state, in all streams. */
uint64_t run_pages(const struct report_run *r, enum page_state state);

/* Bytes that were captured again, in all streams. */
uint64_t run_again(const struct report_run *r);

/* From the beginning of the acquisition to its end, ns; 0 if it did not finish. */
uint64_t run_wall(const struct report_run *r);

/* Bytes of RAM in the map that was to be acquired; 0 if the manifest has no map. */
uint64_t run_map_bytes(const struct report_run *r);

/* The order in which memory was read, as the manifest names it; or NULL. */
const char *run_order(const struct report_run *r);

/* From a line of the manifest: the text at object.key, or NULL; the number there, or -1. */
const char *run_text(const json_t *line, const char *object, const char *key);
int64_t run_integer(const json_t *line, const char *object, const char *key);

#endif
