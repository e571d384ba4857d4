/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The summary of an acquisition: one object, the last line of the log and with --summary also a
 * file (formats/json/summary-1.schema.json).
 *
 *	summary_begin() .. summary_tell() .. summary_end()
 *
 * A problem with the file's name is found before anything is read, and ends the command
 * (ST_OUTPUT). Later, the acquisition matters more than its summary: if the file cannot be written,
 * that is a warning, and the exit code stays the acquisition's.
 */
#ifndef RAMSEAL_AGENT_COLLECT_ACQUIRE_SUMMARY_H
#define RAMSEAL_AGENT_COLLECT_ACQUIRE_SUMMARY_H

#include "agent/collect/acquire/acquire.h"
#include "agent/shared/output/output.h"

struct tally;

struct summary {
	const struct cli *cli;
	struct output *out;  /* NULL: no file is asked for */
	json_t *machine;     /* host_describe(); NULL without a file */
	uint64_t wall, mono; /* when the command began */
	json_t *doc;         /* NULL: nothing is known yet */
};

/* Opens the file. Zero-initialise `s`; summary_end() in any case. */
enum status summary_begin(struct summary *s, const struct cli *cli, const struct acquire_options *o,
			  struct err *e);

/* ST_OUTPUT if `path` is the summary's file. Then no summary is written. */
enum status summary_check(struct summary *s, const char *path, struct err *e);

/* When the acquisition began, by the source's own clock if it has one. */
struct summary_begun {
	uint64_t wall, mono; /* ns */
};

/*
 * Logs it. `st` is the status that the command will end with; `more` is added to the common
 * members.
 */
void summary_tell(struct summary *s, enum status st, const struct err *why,
		  struct summary_begun begun, const struct json_field *more, const char *text);

/*
 * Writes the file, even if the acquisition ended before summary_tell(), unless the command line was
 * wrong (ST_USAGE). Frees everything. `st` and `why` are how the command ends.
 */
void summary_end(struct summary *s, enum status st, const struct err *why);

/*
 * What is missing, as far as it is known: {"unreadable_pages":, "skipped_pages":,
 * "unacquired_bytes":, "files":}. `bytes`: memory that was added to the machine but not acquired.
 */
json_t *summary_missing_json(const struct tally *memory, uint64_t bytes, size_t files);

#endif
