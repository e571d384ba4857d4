/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The summary of an acquisition: one object, which is the last line of the log, and with --summary
 * also a file (formats/json/summary-1.schema.json).
 *
 *	summary_begin() .. summary_tell() .. summary_end()
 *
 * Whatever can be wrong with the file's name is found before anything is read, and ends the command
 * (ST_OUTPUT). Behind that the file is worth less than what it speaks of: if it cannot be written,
 * that is a warning, and the exit code is still the acquisition's.
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

/* ST_OUTPUT if the file is to be what `path` names, too. Then no summary is written. */
enum status summary_check(struct summary *s, const char *path, struct err *e);

/* When the acquisition began: by the clock of its source, if that has one of its own. */
struct summary_begun {
	uint64_t wall, mono; /* ns */
};

/* Logs it. `st` is what the command will end with, and `more` is added to what all have. */
void summary_tell(struct summary *s, enum status st, const struct err *why,
		  struct summary_begun begun, const struct json_field *more, const char *text);

/*
 * Writes the file, also of what ended before there was anything to tell, unless its command line
 * was refused (ST_USAGE), and frees all. `st` and `why` are how the command ends.
 */
void summary_end(struct summary *s, enum status st, const struct err *why);

/*
 * What is not there, as far as it is known: {"unreadable_pages":, "skipped_pages":,
 * "unacquired_bytes":, "files":}. `bytes` of memory were added to the machine and not acquired.
 */
json_t *summary_missing_json(const struct tally *memory, uint64_t bytes, size_t files);

#endif
